"""Law of one column of a table of encoded rows: fitted once, and asked in batches for rows of the fit and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.conditional.forest import Growth
from isopleth.conditional.inputs import Sample
from isopleth.conditional.levels import LevelLaws, TargetLevels
from isopleth.conditional.number_law import FOLLOWS, LAWS, At, NumberLaw
from isopleth.conditional.target import target_step
from isopleth.conditional.word_law import WordLaw
from isopleth.core.budget import Budget
from isopleth.core.laws import interpolated
from isopleth.core.progress import unheard
from isopleth.core.threads import map_threads
from isopleth.tables.kinds import Column

# Distinct rows up to which a second forest is grown, for the residuals of the line.
_SMALL = 2000
# Probability of an interval below which nothing of a law is known inside it.
_LEAST_MASS = 1e-9
# Quantiles of a censored regression inside an interval.
_WITHIN = 64
# Rows that are answered at once, so that tables stay in the processor's cache.
_BATCH = 2048

Curves = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class CellLaw:
    """Law of a column given other columns.

    Rows are encoded rows of the other columns, or None for the rows of the fit, each of which is answered by a law that does
    not know it (NaN where it had no weight).
    """

    column: Column
    law: Any  # NumberLaw or WordLaw
    place: np.ndarray  # (n,): distinct row of each row of the fit, -1 without weight
    step: float  # in which numbers and times are recorded, 0 for none
    budget: Budget
    between: LevelLaws | None = None  # laws of rows between the levels of a column
    scale: TargetLevels | None = None  # law of rows between the levels of the target

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        n_numeric: int,
        column: Column,
        target: np.ndarray,
        weights: np.ndarray,
        upper: np.ndarray | None = None,
        *,
        growth: Growth,
        forests: int | str = "auto",
    ) -> Self:
        """Fit the law of encoded cells `target` given encoded rows, whose first `n_numeric` columns hold numbers.

        Where `upper` differs from the target, the cell is the interval between them.
        `growth` is that of the forests, of which a number has as many as `forests` says, "auto" for two with few rows.
        """
        sample = Sample.of(rows, target, weights, upper, n_numeric)
        small = len(sample.target) <= _SMALL if forests == "auto" else forests == 2
        if column.kind == "categorical":
            law: Any = WordLaw.fit(sample, n_numeric, len(column.levels), growth)
            return cls(column, law, sample.place, 0.0, growth.budget)
        step = target_step(column, sample.target[sample.target == sample.upper])
        law = NumberLaw.fit(sample, n_numeric, step, growth, residual_forest=small)
        between = LevelLaws.of(sample, n_numeric, step, growth, residual_forest=small)
        scale = TargetLevels.of(sample, n_numeric, law, growth, residual_forest=small)
        return cls(column, law, sample.place, step, growth.budget, between, scale)

    @property
    def is_words(self) -> bool:
        """Tell whether the column holds words or truth values."""
        return self.column.kind == "categorical"

    @property
    def is_finer(self) -> bool:
        """Tell whether numbers are between levels that leave out some of the steps in which they are recorded."""
        return self.scale is not None and self.scale.law() is not None and self.scale.levels.leave_out(self.step)

    @property
    def follows_line(self) -> bool:
        """Tell whether most of the weight of a number is on laws around a line, which lead beyond the data."""
        return bool(self.law.weights[FOLLOWS[[law.group for law in LAWS]]].sum() > 0.5)

    def probabilities(self, rows: np.ndarray | None, tick: Callable[[int], None] = unheard) -> np.ndarray:
        """Return the probabilities of words, (n, K)."""
        return self._batches(rows, lambda part, start: self._at(part, rows is None), tick)

    def curves(self, rows: np.ndarray | None, ask: Curves, tick: Callable[[int], None] = unheard) -> np.ndarray:
        """Return what `ask` makes of places, (n, K), and the distribution functions there, for each row."""
        return self.curves_from(rows, lambda y, F, start: ask(y, F), tick)

    def curves_from(
        self, rows: np.ndarray | None, ask: Callable[..., np.ndarray], tick: Callable[[int], None] = unheard
    ) -> np.ndarray:
        """Return :meth:`curves` where `ask` takes the number of the first row of a batch too."""
        tables = self.law.tables()

        def answer(part: np.ndarray, start: int) -> np.ndarray:
            found = self.law.curves(self._at(part, rows is None), tables)
            if (scale := self._on_scale(part, rows is None)) is not None:
                law, at, share = scale
                found = _mixed(found, law.curves(at, law.tables()), share)
            for law, places, share in self._between(part, rows is None):
                found = _with_rows(found, law.curves(law.at(part[places]), law.tables()), places, share)
            return ask(*found, start)

        return self._batches(rows, answer, tick)

    def quantiles(
        self, rows: np.ndarray | None, levels: np.ndarray, limits: tuple[float, float] = (-np.inf, np.inf)
    ) -> np.ndarray:
        """Return the quantiles of each row, (n, k), no nearer to infinity than `limits`."""
        return self.curves(rows, lambda y, F: interpolated(np.tile(levels, (len(y), 1)), F, np.clip(y, *limits)))

    def cells(
        self, rows: np.ndarray | None, low: np.ndarray, high: np.ndarray, tick: Callable[[int], None] = unheard
    ) -> np.ndarray:
        """Return the distribution function at `low` and the log probability up to `high` of each row, (n, 2)."""

        def ask(part: np.ndarray, start: int) -> np.ndarray:
            of_batch = slice(start, start + _BATCH)
            ends = low[of_batch], high[of_batch]
            found = np.stack(self.law.cells(self._at(part, rows is None), *ends), axis=1)
            if (scale := self._on_scale(part, rows is None)) is not None:
                law, at, share = scale
                found = _mixed_cells(found, np.stack(law.cells(at, *ends), axis=1), share)
            for law, places, share in self._between(part, rows is None):
                here = np.stack(law.cells(law.at(part[places]), *(end[places] for end in ends)), axis=1)
                found[places] = _mixed_cells(here, found[places], share)
            return found

        return self._batches(rows, ask, tick)

    def _on_scale(self, part: np.ndarray, of_fit: bool) -> tuple[NumberLaw, At, np.ndarray] | None:
        """Return the law of rows between levels of the target, what it needs of rows, and the weight of the levels there."""
        law = None if of_fit or self.scale is None else self.scale.law()
        if law is None or self.scale is None:
            return None
        at = law.at(part)
        return law, at, self.scale.share(law, at)

    def _between(self, part: np.ndarray, of_fit: bool) -> list[tuple[NumberLaw, np.ndarray, np.ndarray]]:
        """Return the laws of rows that are between levels, the places of these rows in a batch, and the shares of the laws.

        Each is to be mixed with what the laws before it have made.
        """
        if of_fit or self.between is None:
            return []
        shares = self.between.shares(part)
        columns = np.flatnonzero((shares > 0.0).any(axis=0))[::-1].tolist()
        asked = [(k, np.flatnonzero(shares[:, k] > 0.0)) for k in columns]
        return [(self.between.law(k), places, shares[places, k]) for k, places in asked]

    def _at(self, part: np.ndarray, of_fit: bool) -> Any:
        return self.law.of_fit(np.maximum(part, 0)) if of_fit else self.law.at(part)

    def _batches(
        self, rows: np.ndarray | None, answer: Callable[[np.ndarray, int], np.ndarray], tick: Callable[[int], None]
    ) -> np.ndarray:
        """Return the joined answers of batches of rows; rows of the fit are given by their places."""
        asked = self.place if rows is None else rows

        def one(start: int) -> np.ndarray:
            part = asked[start : start + _BATCH]
            found = answer(part, start)
            tick(len(part))
            return found

        starts = range(0, max(len(asked), 1), _BATCH)
        found = np.concatenate(map_threads(one, starts, self.budget.threads))
        if rows is None:
            found[asked < 0] = np.nan
        return found


@dataclass(frozen=True)
class Cut:
    """Laws of cells given that their numbers are inside intervals."""

    low: np.ndarray  # (n,)
    high: np.ndarray
    points: np.ndarray  # (n, k): quantiles of a law that goes on beyond limits, at even levels
    share: np.ndarray  # (n,): weight of the law by kernels, which know nothing where no number is known

    @classmethod
    def of(cls, law: CellLaw, rows: np.ndarray, low: np.ndarray, high: np.ndarray, point: np.ndarray) -> Self:
        """Prepare the intervals of rows; `point` stands for one of which the law of the column knows nothing."""
        share, levels = law.law.known_within(low, high), (np.arange(_WITHIN) + 0.5) / _WITHIN
        points = law.law.points_within(rows, low, high, levels)
        return cls(low, high, np.tile(point[:, None], (1, _WITHIN)) if points is None else points, share)

    def take(self, rows: np.ndarray) -> Self:
        """Return the cuts of some rows."""
        return type(self)(self.low[rows], self.high[rows], self.points[rows], self.share[rows])

    def __call__(self, y: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return places and distribution functions, of the same shape, of laws that are cut off."""
        under, above = self._at(y, F, self.low, "right"), self._at(y, F, self.high, "left")
        inside = above - under > _LEAST_MASS
        k = y.shape[1] - _WITHIN
        level = under[:, None] + (np.arange(k) + 0.5) / k * (above - under)[:, None]
        found = np.clip(interpolated(level, F, y), self.low[:, None], self.high[:, None])
        share = np.where(inside, self.share, 0.0)[:, None]
        places = np.concatenate([found, self.points], axis=1)
        mass = np.concatenate([np.tile(share / k, (1, k)), np.tile((1.0 - share) / _WITHIN, (1, _WITHIN))], axis=1)
        order = np.argsort(places, axis=1, kind="stable")
        places, mass = np.take_along_axis(places, order, axis=1), np.take_along_axis(mass, order, axis=1)
        total = np.cumsum(mass, axis=1) - 0.5 * mass
        return places, (total - total[:, :1]) / (total[:, -1:] - total[:, :1])

    @staticmethod
    def _at(y: np.ndarray, F: np.ndarray, end: np.ndarray, side: str) -> np.ndarray:
        """Return distribution functions at one place a row; at a step, below it for the side "left"."""
        line, last = np.arange(len(y)), y.shape[1] - 1
        place = (y <= end[:, None]).sum(axis=1) if side == "right" else (y < end[:, None]).sum(axis=1)
        first, second = np.maximum(place - 1, 0), np.minimum(place, last)
        step = y[line, second] - y[line, first]
        part = (np.clip(end, y[:, 0], y[:, -1]) - y[line, first]) / np.where(step > 0.0, step, 1.0)
        found = F[line, first] + np.where(step > 0.0, part, 0.0) * (F[line, second] - F[line, first])
        return np.where(place == 0, 0.0 if side == "right" else F[:, 0], found)


def _mixed(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return curves of mixtures, in which the first ones have a share; both may jump."""
    y = np.concatenate([one[0], other[0]], axis=1)
    parts = [
        np.array([_at_places(*row) for row in zip(asked, *curves, strict=True)]).reshape(asked.shape)
        for curves, asked in ((one, other[0]), (other, one[0]))
    ]
    first = np.concatenate([one[1], parts[0]], axis=1)
    second = np.concatenate([parts[1], other[1]], axis=1)
    F = share[:, None] * first + (1.0 - share[:, None]) * second
    order = np.lexsort((F, y), axis=1)
    return np.take_along_axis(y, order, axis=1), np.take_along_axis(F, order, axis=1)


def _at_places(asked: np.ndarray, y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return the distribution function of one row at ascending places, of which repeated ones are the ends of a jump."""
    F = np.maximum.accumulate(F)
    found = np.interp(asked, y, F, left=0.0, right=1.0)
    low, high = np.searchsorted(y, asked, side="left"), np.searchsorted(y, asked, side="right")
    again = asked[1:] == asked[:-1]
    # Where both jump at a place, the lower end of one goes with the lower end of the other.
    lower = np.append(again, False) & ~np.append(False, again) & (high - low > 1)
    found[lower] = F[low[lower]]
    return found


def _mixed_beside(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return curves of mixtures that become those of one law as its share goes to 1.

    A curve begins above 0, by the weight of the wide law below its first place, which means leave out. That weight is taken off
    before the parts are mixed and added again afterwards: otherwise it would be spread down to the first place of the other
    law, however small the share of that law.
    """
    start = share * one[1][:, 0] + (1.0 - share) * other[1][:, 0]
    parts = [(y, (F - F[:, :1]) / (F[:, -1:] - F[:, :1])) for y, F in (one, other)]
    y, F = _mixed(parts[0], parts[1], share)
    return y, start[:, None] + (1.0 - start[:, None]) * F


def _mixed_cells(one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return distribution functions and log probabilities, (n, 2), of mixtures in which the first ones have a share."""
    with np.errstate(divide="ignore"):
        logs = np.logaddexp(np.log(share) + one[:, 1], np.log1p(-share) + other[:, 1])
    return np.stack([share * one[:, 0] + (1.0 - share) * other[:, 0], logs], axis=1)


def _with_rows(
    found: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    places: np.ndarray,
    share: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return curves in which others have a share in some rows; the shorter ones go on at their last place."""
    some, y, F = np.flatnonzero(share < 1.0), *found
    if len(some):
        mixed = _mixed_beside((other[0][some], other[1][some]), (y[places[some]], F[places[some]]), share[some])
        other = _with_rows(other, mixed, some, np.ones(len(some)))
    k = max(y.shape[1], other[0].shape[1])
    longer, parts = (
        [np.pad(part, ((0, 0), (0, k - part.shape[1])), mode="edge") for part in pair] for pair in (found, other)
    )
    for out, part in zip(longer, parts, strict=True):
        out[places] = part
    return longer[0], longer[1]


def means(y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return the means, (n, 1), of distribution functions that are linear between places."""
    total = (np.diff(F, axis=1) * 0.5 * (y[:, 1:] + y[:, :-1])).sum(axis=1)
    # Rounding must not put the mean of one value, or of values at a limit, beyond it.
    return np.clip(total / (F[:, -1] - F[:, 0]), y[:, 0], y[:, -1])[:, None]


def medians(y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return the medians, (n, 1)."""
    return interpolated(np.full((len(y), 1), 0.5), F, y)


def modes(y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return the places of the largest density, (n, 1), smoothed over some of the places."""
    width = 4
    slope = (F[:, width:] - F[:, :-width]) / np.maximum(y[:, width:] - y[:, :-width], 1e-300)
    best = slope.argmax(axis=1) + width // 2
    return np.asarray(y[np.arange(len(y)), best])[:, None]
