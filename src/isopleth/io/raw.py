"""What the readers of single formats hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from isopleth.io.gaps import Gaps

# Is told the share of a file that has been looked through.
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Raw:
    """A table as it was read, not yet checked for missing values."""

    values: np.ndarray
    names: list[str]
    named: bool
    lines: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a table, NaN where there is no number; `lines` are those of a text file on which they begin."""

    values: np.ndarray
    lines: np.ndarray | None = None


class Source(Protocol):
    """The chosen columns of a file, read in blocks of rows, from any row on.

    `gaps` are those of all its cells, where opening it has looked at them.
    """

    names: list[str]
    named: bool
    n_rows: int
    gaps: Gaps | None

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Blocks of `size` rows from row `start` on; the last may be smaller."""
        ...
