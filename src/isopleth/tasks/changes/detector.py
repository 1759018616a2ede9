"""Change points of a series: level, slope, scatter, shape, frequency and relation, at a stated false alarm rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, Backend, to_backend
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, probability
from isopleth.core.parameters import check_memory_limit, on_host
from isopleth.core.progress import AtMost, Progress, ReportsProgress, checked_verbose
from isopleth.core.rows import without_rounding
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.tables.checks import enter
from isopleth.tables.given import Given
from isopleth.tasks.changes.bounds import Bounds
from isopleth.tasks.changes.given_columns import GivenColumns, GivenLeft, follows, split_given
from isopleth.tasks.changes.incidents import SHARE
from isopleth.tasks.changes.periods import check_period
from isopleth.tasks.changes.preparation import filled_gaps, repeats_exactly
from isopleth.tasks.changes.result import ChangePoints
from isopleth.tasks.changes.search import NOTHING, TIME, Changes, changes_of
from isopleth.tasks.changes.seasons_beside import TIME as SEASONS
from isopleth.tasks.changes.series import ObservedSeries, prepared, scaled, without_seasons
from isopleth.tasks.changes.standing_still import as_gaps, standing_still
from isopleth.tasks.changes.steps import Grid, grid_of, split_times
from isopleth.tasks.changes.zones import stored_times
from isopleth.tasks.running_totals import increments, is_running_total

# Fewest steps of a series. A reference has at least this share of its length, or this many steps.
_SHORTEST = 6
_REFERENCE_SHARE, _REFERENCE_MOST = 1.0 / 6.0, 50


@dataclass(frozen=True, eq=False)
class _Given:
    """A series as it was given, after the checks."""

    values: np.ndarray  # (T, d): rows
    reference: np.ndarray | None
    times: np.ndarray | None
    grid: Grid
    totals: tuple[int, ...]  # columns that are running totals
    given: GivenColumns | None = None  # columns at the same steps, of which no changes are sought


class ChangePointDetector(ReportsProgress, BaseEstimator):
    r"""Change points of a time series, without parameters that must be chosen.

    The series is described by segments of level and slope with autoregressive noise; every coefficient is stored at the precision
    that the noise allows, and every change costs :math:`\log T` nats and a surcharge. Then these legs run in turn, each with its
    share of the false alarm rate; a change that two of them find is told once:

    - **location** (1/3): changes of level and slope, which are those of the description, if they are neither chance nor part of a
      cycle or of a smooth curve;
    - **columns** (1/6): changes of level and slope in each column of several alone, which the noise of the others would hide;
    - **given others** (1/6): changes of a column given the other columns at the same step, which move it by little of its spread;
    - **scatter** (1/3): changes of scatter in the description, in series shorter than 400 steps;
    - **cycles** (1/2): a scan that compares windows, innovations and dynamics between blocks of whole cycles, in series with a
      period;
    - **innovations** (4/9): a scan of the innovations in blocks of five steps, in series of at least 200 steps without a period;
    - **shapes** (2/9): a scan of windows in standard units, in series of at least 400 steps without a period.

    Scans compare kernel mean embeddings before and after each place, over whole segments; shuffled blocks give the null
    distribution. Not all legs apply to one series, so that the shares add up to more than 1.
    :func:`~isopleth.tasks.sliding_lsdd` compares windows of one length along a series; it decides nothing here.

    A column that never falls but for resets, such as a meter or a counter of requests, is a running total: changes of its
    increments are sought, and the result says so.

    From 20,000 steps on, levels and slopes are sought in means of some steps, and then placed among all steps.

    Before that, incidents are taken out as gaps are, at a sixth of the rate: at least two steps, and a tenth of the series at
    most, between two sharp edges, that lie six robust deviations from those beside them and from the same phase elsewhere. What
    begins so in the last five steps and goes on is a level.

    A column that often stands at its least or largest value, as a share of successes does at 1, is measured from there, so that
    such a series and its mirror image have the same changes.

    A stretch of equal values that is longer than runs elsewhere in its column get, at a sixth of the rate, is a sensor that
    stands still. The result names it, and its steps are gaps.

    The series may be a tensor, or an array of another library. It is computed in NumPy; fitted arrays of numbers are in its
    library and on its device.

    There is no `n_jobs`: where the search goes on depends on the changes found so far, and most of its time is in compiled calls
    that are too short to share.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Probability that is meant for a change in a series without one; the guide has measured shares. The surcharge is
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
        First steps after the changes. In a series that grows, fit it anew: values that are appended and hold nothing new hardly
        move them (the guide has measured shares).
    kinds_ : ndarray of shape (m,), str
        "level", "slope", "scatter", "shape", "frequency" or "relation"; "incident" for both ends of a short level after which
        the one before comes back.
    columns_ : list of m tuples of int
        Columns in which each change was seen.
    p_values_ : array of shape (m,)
        About the least false alarm rates at which each change would be reported.
    intervals_ : array of shape (m, 2), int
        About 90 % intervals for the first steps after the changes: the least and the largest.
    segments_ : array of shape (T,), int
        Number of the segment of each step, from 0.
    states_ : array of shape (m + 1,), int
        State of each segment, numbered from 0 as they occur: segments that are alike have the same one.
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

    _use_of_limits = "merge"

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

    def fit_predict(
        self, series: Any, y: Any = None, *, reference: Any = None, times: Any = None, given: Any = None
    ) -> Array:
        """Fit, and return the positions of changes, ``change_points_``; ``segments_`` has the labels of all steps."""
        return self.fit(series, reference=reference, times=times, given=given).change_points_

    def fit(self, series: Any, y: Any = None, *, reference: Any = None, times: Any = None, given: Any = None) -> Self:
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
            that the times are uneven. Where a clock with offsets or a zone is set, as to summer time, days follow this clock,
            unless days of 24 hours describe the series better. A name is that of a column of a data frame. By default, the only
            column of datetimes in a data frame has the times, or else an index of datetimes. A column of times is left out of the
            series and of the reference.
        given : array-like of shape (T,) or (T, k), str or list of str, optional
            Columns that the series follows at the same step, such as the number of requests of errors or the load of a latency;
            names are those of columns of a data frame, which are then no part of the series. Counts are judged as rates
            per given column, with the scatter of a negative binomial law, unless they clearly grow in another way; other columns
            are judged by what a regression on the given ones leaves. Steps without a given value, and counts at a
            given value of 0, are gaps.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the series has fewer than 6 steps, the reference is much shorter than the series, more than half of a column is
            missing, values are infinite, times do not ascend, both a reference and given columns are passed, or a parameter
            cannot be used.
        """
        given = self._entered(series, reference, times, given)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        values = self._on_grid(given)
        moving = np.delete(np.arange(values.shape[1]), given.totals)
        still = standing_still(values, moving, SHARE * float(self.false_alarm_rate))
        found = self._found(given, as_gaps(values, still), rng)
        self.kinds_, self.p_values_, self.columns_ = found.kinds, found.p_values, found.columns
        # In rows in place of steps of the grid.
        self.change_points_, self.intervals_ = map(given.grid.first_rows, (found.steps, found.intervals))
        self.segments_ = np.searchsorted(self.change_points_, np.arange(len(given.values)), side="right")
        self.states_ = found.states
        times, zone = stored_times(given.times)
        self.result_ = ChangePoints(
            self.change_points_,
            self.kinds_,
            given.values,
            self.p_values_,
            self.columns_,
            times=times,
            intervals=self.intervals_,
            states=self.states_,
            spacing=given.grid.note,
            periods=self.periods_,
            searched=None if found.searched is None else found.searched[given.grid.rows],
            totals=given.totals,
            trend=found.trend,
            zone=zone,
            given=() if given.given is None else given.given.names,
            judged=found.judged,
            followed_by=found.followed_by,
            still=tuple(
                (*(given.grid.first_rows([one.start, one.end]) - [0, 1]).tolist(), one.column) for one in still
            ),
            follows=self._followed(given, found),
            names=[str(name) for name in getattr(self, "feature_names_in_", _name_of(series))] or None,
        ).like(series)
        to_backend(self, Backend.of(series))
        return self

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
            Given(given, name).refuse_no_table(shape)
        return without_rounding(enter(self, given, reset=reset, name=name, missing=True).rows)

    def _entered(self, series: Any, reference: Any, times: Any, given: Any) -> _Given:
        """Check the series, its reference, its times, the given columns and the parameters."""
        if reference is not None and given is not None:
            raise InputError("reference cannot be used with {parameter}; leave one of them out.", parameter="given")
        series, moments = split_times(series, times)
        series, others = split_given(series, given)
        if hasattr(reference, "columns"):
            named = times if isinstance(times, str) and times in reference.columns else None
            reference, _ = split_times(reference, named)
        values = self._checked("series", series, reset=True)
        self._check_parameters()
        if len(values) < _SHORTEST:
            raise InputError(f"series has {len(values)} rows; expected at least {_SHORTEST}.")
        known = None if reference is None else self._checked("reference", reference, reset=False)
        if known is not None:
            _check_reference(known, len(values))
        totals = tuple(np.flatnonzero([is_running_total(column) for column in values.T]).tolist())
        grid = grid_of(moments, len(values))
        grid = grid.with_days_of(_totals_as_increments(grid.spread(values), totals))
        return _Given(values, known, moments, grid, totals, others)

    def _on_grid(self, given: _Given) -> np.ndarray:
        """Return the values at the steps of the grid, increments in the place of running totals."""
        values = given.grid.spread(given.values)
        self._check_missing(np.isnan(values))
        return given.grid.on_steps(_totals_as_increments(values, given.totals))

    def _found(self, given: _Given, values: np.ndarray, rng: np.random.Generator) -> Changes:
        """Search the columns that have noise, in values at the steps of the grid."""
        left = self._left(values, given)
        told = None if left is None else np.column_stack([one.told for one in left])
        values = values if left is None else np.column_stack([one.sought for one in left])
        known = None if given.reference is None else _known_rows(given.reference, given.totals)
        missing, bounds, cells = np.isnan(values), Bounds.of(values), values
        values = bounds.distances(values)
        known = None if known is None else bounds.distances(known)
        self.periods_ = np.empty(0)
        # In the scans filled gaps count as known: they have the scatter of the other values, and means of the few other windows
        # would cause false alarms. The positions of changes rest on the known values.
        values = np.column_stack([filled_gaps(column, rng) for column in values.T])
        # A column that repeats itself exactly has no noise to compare a change with, like a constant one.
        noisy = np.flatnonzero([not repeats_exactly(column) for column in values.T])
        if not len(noisy):
            return NOTHING
        sought = cells.copy() if told is None else told
        columns, known = scaled(values[:, noisy], None if known is None else known[:, noisy])
        ready, found = self._searched(columns, missing[:, noisy], known, given.grid.seconds(given.times), rng)
        self.periods_ = np.array(ready.periods)
        found = found.of_columns(noisy)
        if ready.seasons is not None and ready.columns is not None:
            own, units = values[:, noisy], np.abs(values[:, noisy]).max(axis=0)
            plain = without_seasons(own / units, ready.columns, ready.seasons) * units
            # Absurd values are clipped, and their columns rescaled: these stay as they are.
            plain = np.where(missing[:, noisy], np.nan, np.where(columns == own / units, plain, own))
            plain = bounds.of_columns(noisy).values(plain)
            # Rates are told as they are: their seasons were found in other units.
            same = np.array([left is None or left[j].sought is left[j].told for j in noisy])
            sought[:, noisy[same]] = plain[:, same]
        if left is not None:
            found = replace(found, judged=tuple(one.kind for one in left))
        return found if ready.seasons is None and not given.totals and left is None else replace(found, searched=sought)

    def _left(self, values: np.ndarray, given: _Given) -> list[GivenLeft] | None:
        """Return what given columns leave of the steps of a series."""
        if given.given is None:
            return None
        others = replace(given.given, values=given.grid.on_steps(given.grid.spread(given.given.values)))
        return others.left_of(values, self._column_labels)

    def _searched(
        self,
        columns: np.ndarray,
        missing: np.ndarray,
        known: np.ndarray | None,
        seconds: np.ndarray | None,
        rng: np.random.Generator,
    ) -> tuple[ObservedSeries, Changes]:
        """Subtract the seasons of columns, and search for changes in what they leave; both report their progress."""
        options = {"rate": float(self.false_alarm_rate), "budget": Budget(self.memory_limit)}
        # The matrices are small: threads of BLAS wait for one another for most of the time.
        with ONE_BLAS_THREAD:
            with Progress("search of seasons", SEASONS, self.verbose) as tick:
                steps = AtMost(SEASONS, tick)
                ready = prepared(columns, missing, known, self.period, seconds, rng, tick=steps, **options)
                steps.end()
            with Progress("search of changes", TIME, self.verbose) as tick:
                return ready, changes_of(replace(ready, tick=tick), rng)

    def _followed(self, given: _Given, found: Changes) -> tuple[tuple[int, str], ...]:
        """Return the counts with changes that follow another column, and the name of this one."""
        names = getattr(self, "feature_names_in_", None)
        changed = {j for columns in found.columns for j in columns}
        if given.given is not None or names is None or given.totals:
            return ()
        pairs = [(i, j) for i in sorted(changed) for j in range(len(names)) if j != i]
        return tuple((i, str(names[j])) for i, j in pairs if follows(given.values[:, i], given.values[:, j]))

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


def _totals_as_increments(values: np.ndarray, totals: tuple[int, ...]) -> np.ndarray:
    """Return the increments of running totals in their place."""
    values = values.copy()
    for j in totals:
        values[:, j] = increments(values[:, j])
    return values


def _known_rows(reference: np.ndarray, totals: tuple[int, ...]) -> np.ndarray:
    """Return a reference with increments in the place of running totals, without the rows where there are none."""
    found = _totals_as_increments(reference, totals)
    return found[~np.isnan(found).any(axis=1)]


def _check_reference(known: np.ndarray, length: int) -> None:
    """Refuse a reference with gaps, with constant columns, or one that is too short for the series."""
    if np.isnan(known).any():
        raise InputError("reference contains NaN; give a stretch without missing values.")
    least = int(np.clip(_REFERENCE_SHARE * length, 3, _REFERENCE_MOST))
    if len(known) < least:
        raise InputError(f"reference has {len(known)} rows; expected at least {least} for this series.")
    if (known.min(axis=0) == known.max(axis=0)).any():
        raise InputError(
            "reference has a column that is constant, so that there is no noise to learn from it; leave it out."
        )


def _name_of(series: Any) -> list[str]:
    """Return the name of a single column that has one, such as a series of pandas or Polars."""
    name = getattr(series, "name", None)
    return [name] if isinstance(name, str) and name else []
