"""Mistakes that explain the strange cells of a row at once: a decimal point, a sign, a digit of a date, two swapped cells.

A mistake is undone on paper, and the row is judged again. Where the undone row is as usual and the row as it stands is not, the
mistake names its cells, and what they held before it is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from isopleth.core.steps import NEARLY_ALL_IN_STEPS, recorded_step
from isopleth.tasks.cellwise.margins import worst_cells

# Factors of a decimal point that is lost or moved.
_FACTORS = (10.0, 100.0, 1000.0)
# Rows are looked at whose worst cell is less than so many nats below its bound, so many of their most surprising cells, and so
# many with which one of these may be swapped.
_NEAR, _MOST_CELLS, _MOST_PARTNERS = 3.0, 6, 24
# Nats that undoing a mistake has to gain: of one cell beyond the range of its column, and of others, of which there are many more
# in a row; and bound from which on they have to gain more. The next best way to undo another one gains less by at least the
# lead.
_GAIN_OF_ONE, _GAIN_OF_TWO, _USUAL_BOUND, _LEAD = 5.0, 8.0, 6.0, 2.0
# An undone cell is so many nats below its bound, and surprises by at most so many.
_BELOW, USUAL_SURPRISE = 2.0, 2.5
# Share of the numbers of a column at each end that are not of its range if they are farther from the others than these from each
# other: a year among ages makes no other year an age.
_FEW = 0.02
# Mistakes that are undone at once, about.
_MOST_TRIED = 2**20
_DAY = 86_400.0
# Nats beyond its bound that count for a row that is known to be wrong.
_CONDEMNED = 0.1

# Takes what returns changed rows, by their numbers; the rows of the table that each was; and the row and the column of the cells
# that are asked for. Returns the scores and the bounds of these cells.
Judge = Callable[
    [Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]


@dataclass(frozen=True)
class Mistake:
    """Mistake in a row, and what its cells held before it."""

    row: int
    columns: tuple[int, ...]  # of the encoded rows
    values: tuple[float, ...]
    said: str  # what it is, with {} for the name of each column
    # Whether an equation says the values, which then keep it whatever is wrong; `said` holds the names then.
    computed: bool = False


@dataclass(frozen=True)
class FoundMistakes:
    """Mistakes in a table, by row."""

    found: dict[int, Mistake]
    scores: dict[int, np.ndarray]  # of the cells of the row without the mistake, (d,)
    # Cells that may be swapped with another one of their row, which is as usual then, though nothing shows it: row and column.
    swappable: set[tuple[int, int]] = field(default_factory=set)

    def __or__(self, other: FoundMistakes) -> FoundMistakes:
        """Return both."""
        return FoundMistakes(self.found | other.found, self.scores | other.scores, self.swappable | other.swappable)


@dataclass(frozen=True)
class NumberColumn:
    """Numbers of a column in rows that are not doubted: their range, without few far ones, and the step of their record."""

    low: float
    high: float
    step: float

    @classmethod
    def of(cls, values: np.ndarray) -> NumberColumn:
        """Describe the known numbers; no number fits a column without one."""
        known = np.sort(values[~np.isnan(values)])
        if not len(known):
            return cls(np.inf, -np.inf, 0.0)
        low, high = _range(known)
        return cls(low, high, recorded_step(np.unique(known), share=NEARLY_ALL_IN_STEPS))

    def holds(self, value: float) -> bool:
        """Return whether the column could hold a number."""
        if not self.low <= value <= self.high:
            return False
        return not self.step or abs(value - np.rint(value / self.step) * self.step) <= 1e-9 * max(abs(value), self.step)


def _range(ordered: np.ndarray) -> tuple[float, float]:
    """Return the ends of ascending numbers without few that are farther from the others than these from each other."""
    few, last = int(_FEW * len(ordered)), len(ordered) - 1
    low, high = few, last - few
    if ordered[low] == ordered[high]:
        return float(ordered[0]), float(ordered[last])
    wider = True
    while wider:
        width = ordered[high] - ordered[low]
        down = low > 0 and ordered[low] - ordered[low - 1] <= width
        up = high < last and ordered[high + 1] - ordered[high] <= width
        low, high, wider = low - int(down), high + int(up), bool(down or up)
    return float(ordered[low]), float(ordered[high])


def found_mistakes(
    rows: np.ndarray,
    scores: np.ndarray,
    bounds: np.ndarray,
    numbers: Sequence[int],
    judge: Judge,
    standing: Callable[[np.ndarray, np.ndarray], np.ndarray],
    reads: np.ndarray,
    solved: Sequence[Mistake] = (),
    dates: Mapping[int, float] | None = None,
    condemned: np.ndarray | None = None,
) -> FoundMistakes:
    """Return the mistake of each row that one explains, and the scores of the row without it.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Encoded rows.
    scores, bounds : ndarray of shape (n, d)
        Scores of their cells, by laws that do not know the row, NaN where a cell is missing; and the bounds of the cells.
    numbers : sequence of int
        Columns of numbers.
    judge : function
        Takes changed rows and cells of them, and returns their scores and bounds by laws that know these rows.
    standing : function
        Takes numbers of rows and a mask of their cells, and returns their scores as they stand, by the laws of `judge`.
    reads : ndarray of shape (d, d), bool
        Whether the score of a cell, in the second column, goes by that in the first one: no others change with it.
    solved : sequence of Mistake
        Further mistakes that may explain a row, such as a cell that does not keep an equation.
    dates : mapping of int to float, optional
        Columns of dates and times, and the seconds since 1970 from which their cells count.
    condemned : ndarray of shape (n,), bool, optional
        Rows that are wrong though no score is beyond its bound.
    """
    _, margin = worst_cells(scores, bounds)
    if condemned is not None:
        margin = np.where(condemned, np.maximum(margin, _CONDEMNED), margin)
    calm = margin <= 0.0
    columns = {j: NumberColumn.of(rows[calm, j]) for j in (*numbers, *(dates or ()))}
    doubted = np.flatnonzero(margin > -_NEAR)
    # Most that any mistake can gain: most rows that are nearly flagged have too little for one.
    hopeful = doubted[_surprise(scores[doubted]).sum(axis=1) >= _least_needed(rows[doubted], columns) - _LEAD]
    going_by, of_numbers = csr_array(reads), {j: columns[j] for j in numbers}
    tried = [
        each for i in hopeful.tolist() for each in _of_row(i, rows[i], np.nan_to_num(scores[i]), of_numbers, going_by)
    ]
    tried += [
        each
        for j, origin in (dates or {}).items()
        for i in hopeful[margin[hopeful] > 0.0].tolist()
        for each in _of_date(i, j, float(rows[i, j]), origin, columns[j])
    ]
    tried += [each for each in solved if margin[each.row] > 0.0 and _in_range_of_dates(each, columns, dates or {})]
    tried.sort(key=lambda each: each.row)
    found = FoundMistakes({}, {})
    for some in _in_blocks(tried, _MOST_TRIED):
        found |= _explained(Undone.of(some, rows, scores, bounds, columns, len(numbers)), going_by, judge, standing)
    return found


def _in_range_of_dates(mistake: Mistake, columns: Mapping[int, NumberColumn], dates: Mapping[int, float]) -> bool:
    """Return whether the dates before a mistake are such as the others of their columns: a start is not moved to a wrong end."""
    cells = zip(mistake.columns, mistake.values, strict=True)
    return all(columns[j].low <= value <= columns[j].high for j, value in cells if j in dates)


def _in_blocks(tried: Sequence[Mistake], most: int) -> Iterator[list[Mistake]]:
    """Yield mistakes, in the order of their rows, in blocks of whole rows that have about so many."""
    block: list[Mistake] = []
    for _, group in groupby(tried, key=lambda each: each.row):
        block += group
        if len(block) >= most:
            yield block
            block = []
    if block:
        yield block


def _explained(
    found: Undone, reads: csr_array, judge: Judge, standing: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> FoundMistakes:
    """Return the mistakes that explain their rows, among some that are undone."""
    # What is less than the lead below what is needed is not chosen, and is in the way of no other mistake.
    found = found.take(found.most(reads) >= found.needed - _LEAD)
    after, bounds = judge(found.rows, found.at, found.changed.row, found.changed.column)
    gains, usual = found.most(reads) - found.changed.sums(_surprise(after)) - found.needed, found.usual(after, bounds)
    kept, swappable = gains >= -_LEAD, found.swappable(after, bounds)
    # A row is explained by a mistake that leaves usual cells and gains what is needed: where there is none, the other mistakes
    # need not be judged.
    for likely in (usual & (gains >= 0.0), kept):
        some = kept & likely
        left = found.take(some)
        if not left.tried:
            return FoundMistakes({}, {}, swappable)
        gains, without = _judged(left, after[some[found.changed.row]], reads, judge, standing)
        kept &= np.isin(found.at, left.at[gains >= 0.0])
    return replace(_chosen(left.tried, gains, usual[some], without), swappable=swappable)


def _judged(
    found: Undone,
    after: np.ndarray,
    reads: csr_array,
    judge: Judge,
    standing: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, Callable[[int], np.ndarray]]:
    """Return what undoing mistakes gains beyond what is needed, and what gives the scores of each row then.

    `after` has the scores of the cells of the mistakes then.
    """
    read = found.read(reads)
    own, before, place = read.holds(found.changed), *found.standing(standing, read)
    new = np.empty(len(own))
    new[own], new[~own] = after, judge(found.rows, found.at, read.row[~own], read.column[~own])[0]
    # A law that knows the row as it stands is kinder to it. Cells that change are judged by one that does not, and the others
    # by the same one before and after.
    old = np.where(own, found.scores_of(read), before[place[read.row], read.column])

    def without(k: int) -> np.ndarray:
        cells, here = before[place[k]].copy(), read.of_row(k)
        cells[read.column[here]] = new[here]
        return cells

    return read.sums(_surprise(old)) - read.sums(_surprise(new)) - found.needed, without


@dataclass(frozen=True)
class SomeCells:
    """Some cells of k rows by row and then column: of wide rows these are far fewer than all."""

    row: np.ndarray
    column: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, mask: csr_array) -> Self:
        """Take the cells of a sparse mask."""
        mask.sort_indices()
        return cls(np.repeat(np.arange(mask.shape[0]), np.diff(mask.indptr)), mask.indices.astype(np.intp), mask.shape)

    @property
    def mask(self) -> csr_array:
        """The cells as a sparse mask."""
        return csr_array((np.ones(len(self.row), dtype=bool), (self.row, self.column)), shape=self.shape)

    def take(self, kept: np.ndarray) -> Self:
        """Return the cells of the rows of a mask."""
        here, number = kept[self.row], np.cumsum(kept) - 1
        return type(self)(number[self.row[here]], self.column[here], (int(kept.sum()), self.shape[1]))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values of the cells over each row, (k,)."""
        return np.bincount(self.row, values, self.shape[0])

    def of_row(self, k: int) -> slice:
        """Return the places of the cells of a row."""
        return slice(*np.searchsorted(self.row, (k, k + 1)).tolist())

    def holds(self, other: SomeCells) -> np.ndarray:
        """Return which of the cells are among others of the same rows."""
        width = self.shape[1]
        return np.isin(self.row * width + self.column, other.row * width + other.column)


@dataclass(frozen=True)
class Undone:
    """Rows without a mistake each."""

    tried: list[Mistake]
    at: np.ndarray  # (k,): the rows that they were
    changed: SomeCells  # of the mistakes
    values: np.ndarray  # that these cells held before
    needed: np.ndarray  # (k,): nats that undoing each has to gain
    each: np.ndarray  # (k,): nats that each of its cells has to gain
    table: np.ndarray  # (n, d): rows as they stand
    scores: np.ndarray  # (n, d): of the rows as they stand, by laws that do not know them

    @classmethod
    def of(
        cls,
        tried: list[Mistake],
        rows: np.ndarray,
        scores: np.ndarray,
        bounds: np.ndarray,
        columns: dict[int, NumberColumn],
        numbers: int,
    ) -> Self:
        """Undo mistakes in rows."""
        cells = [
            (k, j, value)
            for k, each in enumerate(tried)
            for j, value in sorted(zip(each.columns, each.values, strict=True))
        ]
        row, column, values = np.array(cells, dtype=np.float64).reshape(-1, 3).T
        changed = SomeCells(row.astype(np.intp), column.astype(np.intp), (len(tried), rows.shape[1]))
        needed = np.array([_needed(each, rows[each.row], bounds[each.row], columns) for each in tried])
        # Where one cell is wrong, some other number of its row is likely to fit there, of many columns for sure. That the cell
        # of this number gains by chance, too, has about the probability exp(-gain) for each of them.
        swapped = np.array([len(each.columns) > 1 for each in tried], dtype=bool)
        gain_of_each = np.where(swapped, np.log(max(numbers - 1, 1)), -np.inf)
        at = np.array([each.row for each in tried], dtype=np.intp)
        return cls(tried, at, changed, values, needed, gain_of_each, rows, scores)

    def take(self, kept: np.ndarray) -> Self:
        """Return some of them."""
        return replace(
            self,
            tried=[each for each, keep in zip(self.tried, kept.tolist(), strict=True) if keep],
            at=self.at[kept],
            changed=self.changed.take(kept),
            values=self.values[kept[self.changed.row]],
            needed=self.needed[kept],
            each=self.each[kept],
        )

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Return some of the rows, which all together may take far more memory than the table."""
        out = self.table[self.at[places]]
        first, last = np.searchsorted(self.changed.row, (places, places + 1))
        counts = last - first
        here = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        out[np.repeat(np.arange(len(places)), counts), self.changed.column[here]] = self.values[here]
        return np.asarray(out)

    def read(self, reads: csr_array) -> SomeCells:
        """Return the cells whose scores go by those of the mistakes, these among them."""
        return SomeCells.of(self.changed.mask @ reads)

    def scores_of(self, cells: SomeCells) -> np.ndarray:
        """Return the scores of cells of the rows as they stand."""
        return np.asarray(self.scores[self.at[cells.row], cells.column])

    def most(self, reads: csr_array) -> np.ndarray:
        """Return the most that undoing them gains, (k,): if all cells whose scores go by those of a mistake had 0 then."""
        read = self.read(reads)
        return read.sums(_surprise(self.scores_of(read)))

    def swappable(self, after: np.ndarray, bounds: np.ndarray) -> set[tuple[int, int]]:
        """Return the cells, by row and column, of swaps without which all their cells are usual, whatever each gains."""
        fits = self.changed.sums(after > np.minimum(bounds - _BELOW, USUAL_SURPRISE)) == 0.0
        swaps = [each for each, usual in zip(self.tried, fits.tolist(), strict=True) if usual and len(each.columns) > 1]
        return {(each.row, j) for each in swaps for j in each.columns}

    def usual(self, after: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return whether all cells of each mistake are usual without it, by their scores and bounds then."""
        cells = self.changed
        fits = (after <= np.minimum(bounds - _BELOW, USUAL_SURPRISE)) & (
            self.scores_of(cells) - after >= self.each[cells.row]
        )
        return cells.sums(~fits) == 0.0

    def standing(
        self, standing: Callable[[np.ndarray, np.ndarray], np.ndarray], read: SomeCells
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of the distinct rows as they stand, where mistakes change them, and which one each of these is."""
        at, place = np.unique(self.at, return_inverse=True)
        asked = np.zeros((len(at), read.shape[1]), dtype=bool)
        asked[place[read.row], read.column] = True
        return standing(at, asked), place


def _least_needed(rows: np.ndarray, columns: dict[int, NumberColumn]) -> np.ndarray:
    """Return the least nats that a mistake of each row has to gain: fewer where a number is out of the range of its column."""
    far = np.zeros(len(rows), dtype=bool)
    for j, column in columns.items():
        far |= (rows[:, j] < column.low) | (rows[:, j] > column.high)
    return np.where(far, _GAIN_OF_ONE, _GAIN_OF_TWO)


def _needed(mistake: Mistake, cells: np.ndarray, bounds: np.ndarray, columns: dict[int, NumberColumn]) -> float:
    """Return the nats that undoing a mistake has to gain: more where its cell is in range, or tails are heavy."""
    j = mistake.columns[0]
    column = columns.get(j)  # none of a column with limits, which an equation may name
    far = len(mistake.columns) == 1 and column is not None and not column.low <= cells[j] <= column.high
    return (_GAIN_OF_ONE if far else _GAIN_OF_TWO) + max(float(bounds[j]) - _USUAL_BOUND, 0.0)


def _chosen(
    tried: Sequence[Mistake], gains: np.ndarray, usual: np.ndarray, after: Callable[[int], np.ndarray]
) -> FoundMistakes:
    """Return for each row the mistake that explains it far better than all that lead to other cells, and the scores then."""
    found, scores = {}, {}
    for row, group in groupby(range(len(tried)), key=lambda k: tried[k].row):
        places = _without_computed(sorted(group, key=lambda k: -gains[k]), tried, usual & (gains >= 0.0))
        best = tried[places[0]]
        others = [k for k in places[1:] if not _same(tried[k], best)]
        lead = gains[places[0]] - gains[others[0]] if others else np.inf
        if usual[places[0]] and gains[places[0]] >= 0.0 and lead >= _LEAD:
            found[row], scores[row] = best, after(places[0])
    return FoundMistakes(found, scores)


def _without_computed(places: list[int], tried: Sequence[Mistake], explains: np.ndarray) -> list[int]:
    """Return the mistakes without those that an equation says, if another one explains the row.

    That swapped cells, say, keep an equation hardly happens by chance, and each cell that is computed from the others keeps it.
    """
    others = [k for k in places if not tried[k].computed]
    return others if any(explains[k] for k in others) else places


def _same(one: Mistake, two: Mistake) -> bool:
    """Return whether two mistakes are undone to the same cells, to the rounding of a computed one."""
    return one.columns == two.columns and bool(np.allclose(one.values, two.values, rtol=1e-3, atol=0.0))


def _surprise(scores: np.ndarray) -> np.ndarray:
    """Return what speaks against cells: scores above 0, as those of likely cells below 0 speak for no mistake."""
    return np.maximum(np.nan_to_num(scores), 0.0)


def _of_row(
    i: int, cells: np.ndarray, scores: np.ndarray, columns: dict[int, NumberColumn], reads: csr_array
) -> Iterator[Mistake]:
    """Yield the mistakes that may be behind the most surprising numbers of a row."""
    known = sorted((j for j in columns if not np.isnan(cells[j])), key=lambda j: -scores[j])
    first, partners = known[:_MOST_CELLS], known[:_MOST_PARTNERS]
    most, needed = reads @ _surprise(scores), _GAIN_OF_TWO - _LEAD
    for j in first:
        for value, said in _misread(float(cells[j]), columns[j]):
            if columns[j].holds(value):
                yield Mistake(i, (j,), (value,), said)
    pairs = {(min(j, k), max(j, k)) for j in first for k in partners if j != k and most[j] + most[k] >= needed}
    for j, k in sorted(pairs):
        if cells[j] != cells[k] and columns[j].holds(cells[k]) and columns[k].holds(cells[j]):
            yield Mistake(i, (j, k), (float(cells[k]), float(cells[j])), "{} and {} are swapped")


def _misread(value: float, column: NumberColumn) -> Iterator[tuple[float, str]]:
    """Yield the numbers that a wrong decimal point may have made this one of, or a wrong sign where no other is so low."""
    if value == 0.0:
        return
    for factor in _FACTORS:
        yield float(f"{value / factor:.15g}"), f"{{}} is {factor:,.0f} times too large"
        if column.low > 0.0 or column.high < 0.0:  # near 0 a number is small without a mistake
            yield float(f"{value * factor:.15g}"), f"{{}} is {factor:,.0f} times too small"
    if value < min(column.low, 0.0):
        yield -value, "{} has a wrong sign"


def is_factor(value: float, right: float) -> bool:
    """Return whether a number is another one with its decimal point elsewhere."""
    if value == 0.0 or right == 0.0:
        return False
    ratio = max(abs(value / right), abs(right / value))
    return value * right > 0.0 and any(abs(ratio - factor) <= 1e-9 * factor for factor in _FACTORS)


def _of_date(i: int, j: int, value: float, origin: float, column: NumberColumn) -> Iterator[Mistake]:
    """Yield the dates of which one wrong digit of the year or month, or another century, makes this one."""
    if np.isnan(value):
        return
    start, seconds = date(1970, 1, 1), value + origin
    try:
        day = start + timedelta(days=float(np.floor(seconds / _DAY)))
    except OverflowError:
        return
    for other, said in _misread_days(f"{day.year:04d}{day.month:02d}"):
        try:
            changed = day.replace(int(other[:4]), int(other[4:]))
        except ValueError:
            continue
        moved = value + (changed - day).days * _DAY
        if column.low <= moved <= column.high:
            yield Mistake(i, (j,), (moved,), said)


def _misread_days(text: str) -> Iterator[tuple[str, str]]:
    """Yield other years and months, in six digits, and what is wrong in these if they are right."""
    for place, old in enumerate(text):
        for digit in "0123456789".replace(old, ""):
            part = "year" if place < 4 else "month"
            yield text[:place] + digit + text[place + 1 :], f"a digit of the {part} of {{}} is wrong"
    if text[:2] in ("19", "20"):
        yield {"19": "20", "20": "19"}[text[:2]] + text[2:], "the century of {} is wrong"
