"""Cells of a table that hold no finite number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isopleth.errors import InputError
from isopleth.io.raw import Block


class Gaps:
    """Which columns have cells that are missing or infinite: looked for block by block, refused at the end.

    Parameters
    ----------
    width : int
        Number of columns.
    """

    def __init__(self, width: int) -> None:
        self._counts = np.zeros(width, dtype=np.int64)
        self._first = [""] * width
        self._rows = 0

    def add(self, block: Block) -> None:
        """Look through the rows that follow."""
        bad = ~np.isfinite(block.values)
        for j in np.flatnonzero(bad.any(axis=0)):
            if not self._counts[j]:
                row = int(bad[:, j].argmax())
                self._first[j] = f"row {self._rows + row + 1}" if block.lines is None else f"line {block.lines[row]}"
            self._counts[j] += np.count_nonzero(bad[:, j])
        self._rows += len(bad)

    def refuse(self, path: Path, names: list[str]) -> None:
        """Refuse the file if any was found; `names` are those of the last columns, where the first are left out.

        Raises
        ------
        InputError
            With the number of such rows in each column, and the first of them.
        """
        left_out = len(self._counts) - len(names)
        bad = [int(j) for j in np.flatnonzero(self._counts) if j >= left_out]
        if not bad:
            return
        worst = [f"{names[j - left_out]!r} {self._where(j)}" for j in bad[:5]]
        more = len(bad) - len(worst)
        if more:
            worst.append(f"{more} more column{'s' if more > 1 else ''}")
        raise InputError(
            f"{path}: empty, NaN or infinite cells in {', '.join(worst)}; "
            "fill or drop these rows, or use other columns with --columns."
        )

    def _where(self, j: int) -> str:
        count, place = self._counts[j], self._first[j]
        return f"({count} rows, the first at {place})" if count > 1 else f"({place})"
