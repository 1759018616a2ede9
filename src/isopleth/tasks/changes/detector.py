"""Change points of a series: level, slope, scatter, shape, frequency and relation, at a stated false alarm rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, to_backend
from isopleth.core.errors import InputError, probability
from isopleth.core.parameters import check_memory_limit, on_host
from isopleth.core.progress import Progress, ReportsProgress, checked_verbose
from isopleth.core.rows import without_rounding
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.tables.cells import refuse_no_table
from isopleth.tables.checks import enter
from isopleth.tasks.changes.description_length import (
    RUNS,
    SHORTEST_SCATTER,
    Description,
    describe,
    in_stages,
    logs_of_growth,
    margin_of,
    null_gains,
    null_margins,
    or_shocks,
    pvalue_of_gain,
    scatter_drifts,
    smooth_curve,
    surcharge,
    unbroken,
    varying_roots,
)
from isopleth.tasks.changes.local_scatter import beside_local_scatter
from isopleth.tasks.changes.periods import check_period, lines_of, season_beside_levels, seasonal, seasons_of
from isopleth.tasks.changes.positions import by_windows, kind_of_location, kind_of_shape, positions_of
from isopleth.tasks.changes.preparation import filled_gaps, repeats_exactly, spikes, without_absurd_values
from isopleth.tasks.changes.result import ChangePoints
from isopleth.tasks.changes.scan import (
    SHORTEST_SHAPES,
    Candidate,
    Scanned,
    cycle_of,
    merged,
    one_a_gap,
    scans,
    seen_in_cycles,
)
from isopleth.tasks.changes.steps import Grid, grid_of, split_times

# Fewest steps of a series. A reference has at least this share of its length, or this many steps.
_SHORTEST = 6
_REFERENCE_SHARE, _REFERENCE_MOST = 1.0 / 6.0, 50
# Share of the false alarm rate that goes to changes of level and slope.
_LOCATION = 1.0 / 3.0
# Share of the bound exp(-saved nats) that is used as a p-value for all changes of location together. In simulated random walks of
# 60 and 200 steps and autoregressions (0.9 at 200 steps, 0.97 at 500) the frequency was below a third of the bound, up to the
# error of 200 series.
_OF_BOUND = 1.0 / 3.0
# Range of a series without its seasons, relative to that with them, which is rounding.
_ROUNDING = 1e-9
# Probability of an interval for the position of a change.
COVERAGE = 0.9
# Time of the description and the scans in a progress bar, in simulated series, as measured for long series.
_DESCRIPTION, _SCANS = 2 * RUNS, RUNS // 2


class ChangePointDetector(ReportsProgress, BaseEstimator):
    r"""Change points of a time series, without parameters that must be chosen.

    **Changes of level and slope** come from the shortest description of the series by segments. Each segment has a constant or a
    line, plus autoregressive noise. Every coefficient is stored at the precision that the noise allows, and every change costs
    :math:`\log T` nats and a surcharge.
    **Changes of scatter, shape, frequency and relation** come from scans that compare kernel mean embeddings of subsequences,
    and of innovations, before and after each place, over whole segments; shuffled blocks give the null distribution.
    :func:`~isopleth.tasks.sliding_lsdd` compares windows of one length along a series; it decides nothing here.

    The series may be a tensor, or an array of another library. It is computed in NumPy; fitted arrays of numbers are in its
    library and on its device.

    There is no `n_jobs`: where the search goes on depends on the changes found so far, and most of its time is in compiled calls
    that are too short to share.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Probability that is meant for a change in a series without one; the guide has measured shares. A third goes to levels
        and slopes, two thirds to the scans; in a series with a period these use three quarters of theirs. The surcharge is
        a quantile of what a change saves in simulated series with the noise that was found; that is an approximation for
        correlated noise, and takes the prepared series and its model as given. All changes of level and slope together must
        also save enough against the best description without any; failing this, one change must save more than by chance.
    period : "auto", None, float, str or list of these, default="auto"
        Periods of the seasons of the series: numbers of steps, or "day", "week", "month" and "year" of its times. A season is a
        mean for each phase, or some harmonics, whichever is cheaper by the Bayesian information criterion; it is fitted beside
        segments of level and slope. By default, days and weeks of the times, the strongest period, seven of it, and the period
        that explains most of the differences are tried in each column, and seasons are subtracted from those that they make
        cheaper; None leaves all seasons in.
    memory_limit : float, default=2**30
        Bytes for a block of windows.
    random_state : int, RandomState or None, default=None
        Seed of the simulated series and the shuffles.
    verbose : bool or int, default=False
        Whether to show the progress of :meth:`fit` on standard error.

    Attributes
    ----------
    change_points_ : array of shape (m,), int
        First steps after the changes.
    kinds_ : ndarray of shape (m,), str
        "level", "slope", "scatter", "shape", "frequency" or "relation".
    columns_ : list of m tuples of int
        Columns in which each change was seen.
    p_values_ : array of shape (m,)
        About the least false alarm rates at which each change would be reported.
    intervals_ : array of shape (m, 2), int
        About 90 % intervals for the first steps after the changes: the least and the largest.
    segments_ : array of shape (T,), int
        Number of the segment of each step, from 0.
    result_ : ChangePoints
        The changes with the series; it has a table and a picture.
    periods_ : array of shape (k,)
        Mean lengths in steps of the seasons that were subtracted.
    n_features_in_ : int
        Columns of the series.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ChangePointDetector
    >>> rng = np.random.default_rng(0)
    >>> series = np.concatenate([rng.normal(size=100), rng.normal(2.0, size=80), rng.normal(2.0, 4.0, size=120)])
    >>> ChangePointDetector(random_state=0).fit(series).result_
    ChangePoints(100 (level), 181 (scatter))
    """

    change_points_: np.ndarray
    intervals_: np.ndarray
    _changed: list[tuple[int, ...]]

    def __init__(
        self,
        false_alarm_rate: float = 0.05,
        period: Any = "auto",
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.period = period
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    def fit_predict(self, series: Any, y: Any = None, *, reference: Any = None, times: Any = None) -> Array:
        """Fit, and return the positions of changes, ``change_points_``; ``segments_`` has the labels of all steps."""
        return self.fit(series, reference=reference, times=times).change_points_

    def fit(self, series: Any, y: Any = None, *, reference: Any = None, times: Any = None) -> Self:
        """Find the changes of a series.

        Parameters
        ----------
        series : array-like of shape (T,) or (T, d)
            Values at steps of equal length, in their order; NaN where one is missing.
        y : Ignored
            For pipelines.
        reference : array-like of shape (T', d), optional
            Stretch that is known to have no change. The noise for the false alarm rate of levels, slopes and scatters is then
            that of this stretch.
        times : array-like of shape (T,) or str, optional
            Times of the rows, each later than the one before: datetimes, numbers or ISO 8601 text. If they stand on a regular
            grid, steps of it without a row are gaps, up to a quarter of all; otherwise each row is a step, and the result says
            that the times are uneven. A name is that of a column of a data frame. By default, the only column of datetimes in a
            data frame has the times, or else an index of datetimes. A column of times is left out of the series and of the
            reference.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the series has fewer than 6 steps, the reference is much shorter than the series, more than half of a column is
            missing, values are infinite, times do not ascend, or a parameter cannot be used.
        """
        series, moments = split_times(series, times)
        if hasattr(reference, "columns"):
            reference, _ = split_times(
                reference, times if isinstance(times, str) and times in reference.columns else None
            )
        values = self._checked("series", series, reset=True)
        backend = Backend.of(series)
        self._check_parameters()
        if len(values) < _SHORTEST:
            raise InputError(f"series has {len(values)} rows; expected at least {_SHORTEST}.")
        known = None if reference is None else self._checked("reference", reference, reset=False)
        if known is not None and np.isnan(known).any():
            raise InputError("reference contains NaN; give a stretch without missing values.")
        least = int(np.clip(_REFERENCE_SHARE * len(values), 3, _REFERENCE_MOST))
        if known is not None and len(known) < least:
            raise InputError(f"reference has {len(known)} rows; expected at least {least} for this series.")
        if known is not None and (known.min(axis=0) == known.max(axis=0)).any():
            raise InputError(
                "reference has a column that is constant, so that there is no noise to learn from it; leave it out."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        grid, rows = grid_of(moments, len(values)), values
        values = grid.spread(values)
        missing = np.isnan(values)
        self._check_missing(missing)
        # In the scans filled gaps count as known: they have the scatter of the other values, and means of the few other windows
        # would cause false alarms. The positions of changes rest on the known values.
        values = np.column_stack([filled_gaps(column, rng) for column in values.T])
        # A column that repeats itself exactly has no noise to compare a change with, like a constant one.
        noisy = np.array([not repeats_exactly(column) for column in values.T])
        if noisy.any():
            largest = np.abs(values).max(axis=0)[noisy]
            scaled = without_absurd_values(values[:, noisy] / largest)
            unchanged = None if known is None else known[:, noisy] / largest
            # The matrices are small: threads of BLAS wait for one another for most of the time.
            with ONE_BLAS_THREAD, Progress("search of changes", 3 * RUNS + _DESCRIPTION + _SCANS, self.verbose) as tick:
                rest, shapes, unchanged = self._without_seasons(
                    scaled, missing[:, noisy], unchanged, grid.seconds(moments), rng
                )
                self._fit_noisy(rest, shapes, missing[:, noisy], unchanged, rng, tick)
        else:
            self._set_nothing(len(values))
        self.columns_ = [tuple(int(j) for j in np.flatnonzero(noisy)[list(some)]) for some in self._changed]
        self._take_rows(grid)
        self.segments_ = np.searchsorted(self.change_points_, np.arange(len(rows)), side="right")
        self.result_ = ChangePoints(
            self.change_points_,
            self.kinds_,
            rows,
            self.p_values_,
            self.columns_,
            times=moments,
            intervals=self.intervals_,
            spacing=grid.note,
            names=[str(name) for name in getattr(self, "feature_names_in_", _name_of(series))] or None,
        ).like(series)
        del self._changed
        to_backend(self, backend)
        return self

    def _take_rows(self, grid: Grid) -> None:
        """Count the changes in rows in place of steps of the grid."""
        self.change_points_ = grid.first_rows(self.change_points_)
        self.intervals_ = grid.first_rows(self.intervals_)

    def plot(self, ax: Any = None) -> Any:
        """Draw the series with its changes and their intervals, the first column only on `ax`, and return the axes."""
        check_is_fitted(self, "result_")
        return self.result_.plot(ax)

    def _checked(self, name: str, given: Any, reset: bool) -> np.ndarray:
        given = on_host(given, name)
        if not hasattr(given, "columns"):
            try:
                shape = np.shape(given)
            except ValueError as error:
                raise InputError(f"{name} has rows of different lengths; expected as many values in each.") from error
            if len(shape) == 1:
                given, shape = np.asarray(given).reshape(-1, 1), (*shape, 1)
            refuse_no_table(given, name, shape)
        return without_rounding(enter(self, given, reset=reset, name=name, missing=True).rows)

    def _check_missing(self, missing: np.ndarray) -> None:
        """Refuse a column of which less than half of the values are known."""
        for j in np.flatnonzero(2 * missing.sum(axis=0) > len(missing)):
            raise InputError(
                f"series has {missing[:, j].sum()} missing values of {len(missing)} in {self._column_labels[j]}; "
                "expected at least half of them to be known. Leave the column out."
            )

    def _check_parameters(self) -> None:
        probability("false_alarm_rate", self.false_alarm_rate)
        check_period(self.period)
        check_memory_limit(self.memory_limit)
        checked_verbose(self.verbose)

    def _set_nothing(self, length: int) -> None:
        """Set the attributes for a series that is constant or repeats itself exactly, and so has no change."""
        self.change_points_ = np.empty(0, dtype=int)
        self.kinds_ = np.empty(0, dtype="<U9")
        self.p_values_, self._changed = np.empty(0), []
        self.periods_ = np.empty(0)
        self.intervals_ = np.empty((0, 2), dtype=int)

    def _without_seasons(
        self,
        values: np.ndarray,
        missing: np.ndarray,
        known: np.ndarray | None,
        seconds: np.ndarray | None,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Subtract seasons; return the rest, the series for shapes, which keeps a single season found, and the reference."""
        level = logs_of_growth(values)
        cells = np.where(missing, np.nan, level)
        seasons = seasons_of(cells, self.period, seconds)

        def fill(columns: np.ndarray) -> np.ndarray:
            return np.column_stack([filled_gaps(column, rng) for column in columns.T])

        season = season_beside_levels(cells, seasons, fill) if any(seasons) else np.zeros_like(values)
        rest = fill(cells - season) if any(seasons) else values
        if (np.ptp(rest, axis=0) <= _ROUNDING * np.ptp(level, axis=0)).any():
            seasons, rest = [[]] * values.shape[1], values
        self.periods_ = np.unique([cycle.period for cycles in seasons for cycle in cycles])
        if not len(self.periods_):
            return values, level, known
        if known is not None:
            known, n = logs_of_growth(values, known), len(known)
            known = known - seasonal(known, [[one.over(n) for one in own if 2 * one.period <= n] for own in seasons])
        level = np.where(missing, rest + season, level)
        # Around 0, so that no logarithm is taken of it.
        rest = rest - rest.mean(axis=0)
        return rest, rest if self._kept_season() is None else level, known

    def _kept_season(self) -> float | None:
        """Return the period of the season that the scans keep, a single one that was found; None if there is none."""
        found = isinstance(self.period, str) and self.period == "auto" and len(self.periods_) == 1
        return float(self.periods_[0]) if found else None

    def _fit_noisy(
        self,
        values: np.ndarray,
        level: np.ndarray,
        missing: np.ndarray,
        known: np.ndarray | None,
        rng: np.random.Generator,
        tick: Callable[[int], None],
    ) -> None:
        rate = float(self.false_alarm_rate)
        found = describe(values)
        unchanged = found if known is None else unbroken(known)
        tick(_DESCRIPTION)
        # Simulations that cannot change the answer are left out, so each has random numbers of its own.
        of_gains, of_scatter, of_weak = rng.spawn(3)
        gains, scatters = np.zeros(RUNS), np.zeros(RUNS)
        if len(found.location.changes) or (found.scatter is not None and len(found.scatter.changes)):
            gains = null_gains(unchanged.location, unchanged.precision, len(values), 0, of_gains, tick)
            scatters = self._null_gains_of_scatter(unchanged, len(values), of_scatter, tick)
            extra, scatter = (surcharge(some, _LOCATION * rate) for some in (gains, scatters))
        else:
            extra, scatter = 0.0, np.inf  # where no change is worth its cost, none is worth more
            tick(2 * RUNS)
        if extra > 0.0 or 0.0 < scatter < np.inf:
            level_unchanged = found.shocks or not len(found.location.changes)
            found = in_stages(found.prepared, (np.inf if level_unchanged else extra, scatter))
        cycle = cycle_of(level, self._kept_season())
        changes = self._of_location(values, found, gains, (extra, scatter), rate)
        if not changes and len(found.location.changes):
            found = in_stages(found.prepared, (np.inf, scatter))
        if not changes and not found.shocks:
            changes, found = self._of_one_weak_change(
                found, None if known is None else unchanged, len(values), scatter, rate, of_weak, tick
            )
        else:
            tick(RUNS)
        # Beside the segments, because a step less a line is like one tooth of a saw, which repeats.
        left_cycle = cycle_of(found.prepared - lines_of(found.prepared, found.location)) if changes else None
        if left_cycle is not None:
            changes = seen_in_cycles(changes, found.prepared, left_cycle)
            if not changes:
                found = in_stages(found.prepared, (np.inf, scatter))
        # If the changes leave no noise, the descriptions differ by the error of rounding only, which is as large as the steps.
        compared = changes and varying_roots(found.innovations).size
        curve = smooth_curve(found.prepared, found.precision, found.location.changes) if compared else None
        if curve is not None:
            changes, level = [], level - curve
            found = in_stages(found.prepared - curve, (np.inf, scatter))
        # Without a change of location, the scans use the innovations of the description without any.
        if len(values) < SHORTEST_SHAPES:
            changes = merged(changes, Scanned(self._of_scatter(found, scatters), 0.5 * SHORTEST_SCATTER))
        innovations = found.location.innovations / found.precision[:, None]
        for one in scans(level, innovations, cycle, (1.0 - _LOCATION) * rate, rng, self.memory_limit):
            changes = merged(changes, one)
        changes = one_a_gap(changes, np.any(~missing, axis=1))
        self._set_changes((values, level), innovations, changes, found, cycle)
        plain = logs_of_growth(values) if curve is None else logs_of_growth(values) - curve
        self._set_positions((plain, level), changes, found, cycle, missing)
        tick(_SCANS)

    @staticmethod
    def _null_gains_of_scatter(
        unchanged: Description, length: int, rng: np.random.Generator, tick: Callable[[int], None]
    ) -> np.ndarray:
        """Simulate the saving of the best change of scatter in series without changes; zeros if there are no scatters."""
        if unchanged.scatter is None:
            tick(RUNS)
            return np.zeros(RUNS)
        return null_gains(unchanged.scatter, np.ones(len(unchanged.precision)), length, SHORTEST_SCATTER, rng, tick)

    @staticmethod
    def _of_location(
        values: np.ndarray, found: Description, gains: np.ndarray, extra: tuple[float, float], rate: float
    ) -> list[Candidate]:
        """Return the changes of level and slope that remain beside local scatter, if all together save enough against none.

        Noise fitted with the changes is much too small for a nearly integrated process, so whole descriptions are compared; the
        probability that a code is c nats shorter is at most :math:`e^{-c}`, of which a share is used.
        """
        if not len(found.location.changes):
            return []
        of_all = 0.0
        if found.location.innovations.any():  # without residuals there is no noise to compare
            whole = describe(values, (np.inf, extra[1]))
            saved = whole.cost - (found.cost - len(found.location.changes) * extra[0])
            of_all = _OF_BOUND * float(np.exp(-0.5 * max(saved, 0.0)))
        if of_all > rate:
            return []
        kept = beside_local_scatter(found, extra[0])
        p_values = [max(of_all, pvalue_of_gain(gain, gains) / _LOCATION) for gain in found.location.gains]
        return [
            Candidate(step, min(1.0, pvalue), "location")
            for step, pvalue in zip(found.location.changes.tolist(), p_values, strict=True)
            if step in kept
        ]

    @staticmethod
    def _of_one_weak_change(
        found: Description,
        reference: Description | None,
        length: int,
        scatter: float,
        rate: float,
        rng: np.random.Generator,
        tick: Callable[[int], None],
    ) -> tuple[list[Candidate], Description]:
        """Return a change that costs more than it saves, but less than simulations do at the rate, and its description."""
        own = margin_of(found) if found.location.innovations.any() else np.inf
        margins = null_margins(reference or found, length, rng, tick, own, rate * _LOCATION * (RUNS + 1))
        if not len(margins):
            return [], found
        extra = surcharge(margins, _LOCATION * rate, least=-np.inf)
        weak = or_shocks(in_stages(found.prepared, (extra, scatter))) if np.isfinite(extra) else found
        if len(weak.location.changes) != 1:
            return [], found
        pvalue = pvalue_of_gain(found.cost - (weak.cost - extra), margins) / _LOCATION
        if pvalue > rate:
            return [], found
        return [Candidate(int(weak.location.changes[0]), pvalue, "location")], weak

    @staticmethod
    def _of_scatter(found: Description, gains: np.ndarray) -> list[Candidate]:
        """Return the changes of scatter in the description, for series too short for the scan of shapes; none of a drift."""
        if found.scatter is None or not len(found.scatter.changes):
            return []
        if scatter_drifts(found.location.innovations / found.precision[:, None], found.scatter.bounds):
            return []
        return [
            Candidate(int(step), min(1.0, pvalue_of_gain(gain, gains) / _LOCATION), "scatter")
            for step, gain in zip(found.scatter.changes, found.scatter.gains, strict=True)
        ]

    def _set_changes(
        self,
        series: tuple[np.ndarray, np.ndarray],
        innovations: np.ndarray,
        changes: list[Candidate],
        found: Description,
        cycle: float | None,
    ) -> None:
        """Set the attributes of the changes, from the series for levels and slopes and that for other changes."""
        bounds = [0, *(one.step for one in changes), len(innovations)]
        named = []
        for i, one in enumerate(changes):
            values = series[one.kind != "location"]
            left, right = values[bounds[i] : bounds[i + 1]], values[bounds[i + 1] : bounds[i + 2]]
            if one.kind == "location":
                named.append(kind_of_location(left, right, found.location.degree > 0))
            elif one.kind == "scatter":
                sides = innovations[bounds[i] : bounds[i + 1]], innovations[bounds[i + 1] : bounds[i + 2]]
                named.append(("scatter", kind_of_shape(*sides, None)[1]))
            else:
                named.append(kind_of_shape(left, right, cycle))
        self.change_points_ = np.array(bounds[1:-1], dtype=int)
        self.p_values_ = np.array([one.pvalue for one in changes])
        self.kinds_ = np.array([kind for kind, _ in named], dtype="<U9")
        self._changed = [columns for _, columns in named]

    def _set_positions(
        self,
        series: tuple[np.ndarray, np.ndarray],
        changes: list[Candidate],
        found: Description,
        cycle: float | None,
        missing: np.ndarray,
    ) -> None:
        """Set the intervals of the changes, and move those that scans place roughly."""
        turned = np.isin(self.kinds_, ["shape", "frequency"])
        places = by_windows(series[1], self.change_points_, turned, cycle)
        # A scan finds changes of scatter and relation in blocks; an autoregression for each side places them more precisely.
        scanned = np.array([one.kind == "shape" for one in changes], dtype=bool)
        rough = scanned & np.isin(self.kinds_, ["scatter", "relation"]) & (cycle is None)
        lines = (self.kinds_ == "slope") | (found.location.degree > 0)
        used = ~missing & ~np.column_stack([spikes(column) for column in series[0].T])
        own = [positions_of(values, places, self._changed, lines, rough, COVERAGE, used) for values in series]
        others = np.array([one.kind != "location" for one in changes], dtype=bool)
        self.change_points_ = np.where(others, own[1][0], own[0][0])
        self.intervals_ = np.where(others[:, None], own[1][1], own[0][1])


def _name_of(series: Any) -> list[str]:
    """Return the name of a single column that has one, such as a series of pandas or Polars."""
    name = getattr(series, "name", None)
    return [name] if isinstance(name, str) and name else []
