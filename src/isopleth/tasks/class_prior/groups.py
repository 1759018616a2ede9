"""Groups of unlabelled rows, by a column of a frame that classes are not told apart by, or by an array."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.parameters import on_host
from isopleth.tables.cells import is_missing
from isopleth.tables.given import Given


def apart(X: Given, by: Any, learned: Collection[Any]) -> tuple[Given, str | None, np.ndarray | None]:
    """Return the rows without the column of groups, its name, and the group of each row; none of both without `by`."""
    if by is None:
        return X, None, None
    if not isinstance(by, str):
        return X, "group", _words(on_host(by, "by"))
    if by in learned:
        raise InputError(
            f"by = {by!r}: classes are told apart by this column, and shares given it need one that they are not; leave it out "
            "of the labelled rows.",
            parameter="by",
        )
    if X.frame is None or by not in (X.names or ()):
        where = "is an array without names" if X.frame is None else "has no such column"
        raise InputError(
            f"by = {by!r}: X {where}; pass a frame with this column, or an array with the group of each row.",
            parameter="by",
        )
    groups = _words(X.frame.get_column(by).to_list())
    return X.select([name for name in X.names or () if name != by]), by, groups


def _words(groups: Any) -> np.ndarray:
    """Return groups as words; refuse missing ones."""
    cells = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    missing = [i for i, cell in enumerate(cells) if is_missing(cell)]
    if missing:
        raise InputError(
            "by has no group in {row}; fill the cell, or leave the row out.", parameter="by", row=missing[0]
        )
    return np.array([str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell) for cell in cells])
