"""Pages of a drift monitor that judges rows in their context, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Page:
    """A cause: what changed, in which columns, by how much, and since when.

    Rows are counted from 0. `closed` is the row at which the end of the change was certain; -1 while it is open. The change of a
    page without a number is smaller than what is to be told.
    """

    row: int
    start: int
    kind: str
    columns: tuple[int, ...]
    direction: int
    last: int
    closed: int = -1
    also: tuple[int, ...] = ()
    seconds: float = np.nan  # time of its start, in seconds since 1970; NaN if it is not known
    usual: float = np.nan  # what is usual in the context, in units of the column; the correlation of two columns
    observed: float = np.nan  # what was observed in its place
    times: float = np.nan  # observed over usual, of columns without negative cells
    size: float = np.nan  # of a level in deviations, of a spread over the usual one
    until: int = -1  # first row after the change of its columns; -1 while they are changed or if that is not known
    until_seconds: float = np.nan
    changed: int = -1  # row at which an incident that went on became a change of the level; -1 if it did not
    of_rows: int = 0  # rows whose mean is `observed`, of a column of small counts; 0 of other columns and incidents
    number: int = -1  # number of the page among those that were told, from 0
    row_seconds: float = np.nan  # times of `row` and `closed`
    closed_seconds: float = np.nan
    turned: int = -1  # number of the page that took its place, as the level turned to the other side of what is usual


class PageEvent(NamedTuple):
    """Event of a page at a row, and the state of the page after it."""

    row: int
    # "opened"; "joins" where another column joins; "lasts" for an incident that has become a change; "grows"; "turned" to the
    # other side; "closed"
    event: str
    number: int  # number of the page, from 0
    page: Page  # of an event "joins" the change of the column that joins
    seconds: float = np.nan  # time of the row
