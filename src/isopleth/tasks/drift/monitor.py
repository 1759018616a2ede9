"""Drift monitor: alarms when a window of a stream differs from a reference."""

from __future__ import annotations

import inspect
import math
import warnings
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.dependence import FEWEST_BLOCKS, Dependence
from isopleth.core.errors import DataWarning, Hint, InputError, listed, warn_user
from isopleth.core.progress import Progress
from isopleth.core.rows import row_keys
from isopleth.core.scales import ScaledColumns, is_auto
from isopleth.core.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, slices
from isopleth.tables.checks import CheckedRows, enter, in_quotes, numbered_groups, plain_names
from isopleth.tables.given import Given
from isopleth.tables.row_encoding import RowEncoding
from isopleth.tasks.drift.alarms import CLOCKS, ReferenceColumns, StreamMonitor, in_order_of_rows
from isopleth.tasks.drift.calibration import (
    DriftFeatures,
    RowBlocks,
    calibrate,
    in_stretches,
    of_some_groups,
    spread,
)
from isopleth.tasks.drift.cause_state import CauseState
from isopleth.tasks.drift.in_context import WatchInContext, reference_key
from isopleth.tasks.drift.pages_result import DriftPages, joined_pages
from isopleth.tasks.drift.reference_context import ReferenceResiduals, n_compared
from isopleth.tasks.drift.stream_times import late_message, message_of_clocks, told_late_rows

# Largest mean run length in rows: simulations of longer ones would take hours.
_LONGEST = 1e7

# Features that vary by less than this share of their size vary by rounding only.
_ALIKE = 1e-10

# Parameters of the comparison of windows.
_OF_WINDOWS = ("window", "length_scale", "alpha", "centers", "compare_missing")
# Rows that are processed together, so that memory does not grow with the rows of a call.
_AT_ONCE = 4096

# Fewer groups say too little of how much groups vary.
_FEWEST_GROUPS = 10


class DriftMonitor(StreamMonitor):
    r"""Raise an alarm when the last rows of a stream are from a different distribution than a reference.

    After every row, the last `window` rows, with the residuals of each column given the others beside the columns, are compared
    with the reference by the dual form of least-squares density difference [1]_, :math:`h^\top M h` with
    :math:`h = \bar\psi_{\text{window}} - \bar\psi_{\text{reference}}` and :math:`M = 2G - GHG`,
    :math:`G = (H + \alpha I)^{-1}`: an estimate of the squared L2 distance of the two densities, smoothed.
    If it is above `threshold_`, an alarm is raised, and the window is emptied and filled with the following rows.

    With this threshold and no change, an alarm comes after a mean of `expected_run_length` rows, counted from the first row or
    from the row after the last alarm. This is a mean over streams **and over references**, see Notes.

    Parameters
    ----------
    window : int, default=50
        Number of rows that are compared with the reference. Short windows detect large changes soon, long ones small changes.
    expected_run_length : float, default=10000
        Mean number of rows until a false alarm; at least twice the window and at most 10 million. The time of a fit is
        proportional to it: some seconds for 10,000 rows.
    length_scale : "auto", float or array of shape (n_features,), default="auto"
        Length scale of the Gaussian kernel, in the units of the columns. "auto" is :math:`\sqrt{2 d}` standard
        deviations of d columns (1 of a single column), or their estimates from the quartiles if these are smaller. This is
        wide, because a window has few rows. Residuals have this length scale in units of their standard deviations.
    alpha : float, default=0.1
        The ridge over the volume of the kernel, as in :class:`LSDD`.
    centers : int, default=100
        Number of centres of kernels, drawn from the rows of the reference, at most a quarter of them. These rows are used
        for nothing else.
    min_effect : float, default=0
        Differences up to this size raise alarms no more often than no difference does. The unit is a share of rows, below 1: 0.2
        is the size of a change in which a fifth of the rows move far away from all others. With a `context` pages of smaller
        changes are not told, and the unit is a share of what is usual: 0.1 are 10 % more or less, or a correlation that is other
        by .1; of columns with negative cells deviations from what is usual. A change that grows is told when it is large enough.
    context : None, name, or sequence of names or numbers of columns, optional
        Judge each cell given the context of its row: a column of times (its time of day and day of the week), "hour" or "weekday"
        of the only column of times, hours as numbers from 0 to 24, numbers such as a temperature and a load,
        and columns of up to 31 words or numbers that name kinds of rows, such as holidays. :meth:`update` then returns
        :class:`DriftPages`, one page a cause; see Notes. Parameters from `window` to
        `centers`, and `compare_missing`, have no meaning then and keep their defaults.
    timezone : str, optional
        Name of the time zone whose clock counts in a context and in pages, such as "Europe/Berlin"; times without a zone are in
        UTC then. By default the clock is that of the zone of the times, and times without a zone are taken as they are written.
    categorical : None, name, or sequence of names or numbers of columns, optional
        Columns of numbers that are categories.
    compare_missing : bool, default=True
        Whether a different share of missing cells is a change; if a column of the reference has none, a row of the stream that
        lacks it is far from all others. If not, missing cells are drawn from the known cells of their columns in the reference.
    memory_limit : float, default=2**30
        Bytes that matrices of the centres and scratch may take at fit.
    n_jobs : int or None, default=-1
        Threads of kernel sums at fit; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None
        Seed of the choice of centres and of the simulations.
    verbose : bool or int, default=False
        Whether to show the progress of the simulations of :meth:`fit`, and of :meth:`update`, on standard error.

    Attributes
    ----------
    threshold_ : float
        Threshold of the statistic, which is relative to the volume of the kernel.
    run_lengths_ : array of shape (simulations,)
        Run lengths without a change from the simulation that determined the threshold. Their mean is
        `expected_run_length`; they are truncated at 50 times this mean.
    dependence_ : float
        Number of consecutive rows of the reference that say as much about a mean as one independent row; 1 if these depend on
        nothing.
    period_ : int
        Period of a season in the reference, in rows; 0 if there is none.
    state_ : DriftState
        Position in the stream. It is replaced and never changed in place: keep it and assign it later to return to that row.
    length_scale_ : array of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped, and for categories.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, if they had any.

    Warns
    -----
    DataWarning
        For columns that are constant in the reference: they are ignored, also in the stream. If no threshold has the requested
        run length, because the reference has too few different rows. If a window is so short that not even rows far from the
        whole reference would raise an alarm.

    See Also
    --------
    LSDD : The difference of the densities of two samples.

    Notes
    -----
    The mean of a reference has a sampling error, which is the same at every row, so alarms are more frequent than requested with
    one reference and less frequent with another. The threshold is set by simulation of many references drawn from the given
    one, so that the run length is right in the mean over references. It is nearly right for each reference of ten windows or
    more. Run lengths are about exponential: half of all false alarms come before 0.7 of the mean.

    Consecutive rows may depend on each other, as those of sensors do, and have a season. If their autocorrelation shows it, the
    simulations draw stretches of consecutive rows instead of single ones, at least three windows and a season long. A reference
    of fewer than eight such stretches is refused.

    A column that goes with others may move by little of its spread and by much of what the others leave open. So the residuals of
    its regression on the others, in normal scores of the ranks in the reference, stand beside the columns.

    With a `context` each cell is ranked among the reference rows of its context, weighted by a triangular kernel in the time of
    day and brought to one time of day along a line; which days of the week go together and the width of the kernel are chosen
    from the reference, days left out in turn. A number of the context has such a kernel in its ranks; what several numbers say is
    the value that a regression on them expects.
    What autoregressions leave of the normal scores is watched by Shiryaev-Roberts sums of likelihood ratios [2]_ for level, level
    given the other columns, spread, and products of two columns; their weighted sum less the number of rows is a martingale, so
    the mean number of rows until a false page is at least about `expected_run_length`, without simulations. The older the
    evidence, the more the error of the reference counts in it. Three rows in a row that are far on one side are an incident;
    where rows are more than a quarter of an hour apart two are, or one that is farther out. An incident that goes on becomes a
    change of the level. A cause has one page. It is closed when no evidence has come for a day, or for three times as long as it
    took to find, and the rows since then are 100 times as likely if the change has ended than if it goes on; it then says since
    when rows are as usual again. That of an incident is closed a twenty-fourth of a day after it, or 12 rows. Columns that
    joined a page do not keep it open: what goes on in them after it is closed has a page of its own, and so has what grows in
    them to three times of what was said when they joined. An open page whose change grows so says it, too. The page of a level
    that turns to the other side of what is usual gives way to another one. A reference needs three days, and two weeks where days
    of the week differ. A missing cell says nothing, and neither does a row of a context that the reference does not have.

    Rows whose times go back or repeat are judged by their times, with a warning:
    a row that was held up on its way says as much as others. Times without a row, longer than those of the reference, are
    `absent` in the pages.

    Rows may be tensors or arrays of another library. The computation is done in NumPy, in double precision; fitted arrays are in
    the library and on the device of the reference.

    Answers have the same bits however rows are divided into calls of :meth:`update`. The memory is that of three windows. The
    method ``changes`` of the alarms names the columns that changed.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.
    .. [2] M. Pollak, "Optimal detection of a change in distribution", Annals of Statistics 13, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(window=20, expected_run_length=500, random_state=0).fit(rng.normal(size=(300, 2)))
    >>> monitor.update(rng.normal(size=(100, 2)))
    DriftAlarms(0 alarms in rows 0 to 99)
    >>> alarms = monitor.update(rng.normal(2.0, size=(15, 2)))
    >>> [100 < row < 115 for row in alarms]
    [True]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "window": [Interval(Integral, 2, None, closed="left")],
        "expected_run_length": [Interval(Real, 0, None, closed="neither")],
        "length_scale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "centers": [Interval(Integral, 1, None, closed="left")],
        "min_effect": [Interval(Real, 0, None, closed="left")],
        "context": [None, str, Integral, "array-like"],
        "timezone": [None, str],
        "categorical": [None, str, "array-like"],
        "compare_missing": ["boolean"],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        window: int = 50,
        expected_run_length: float = 10_000,
        length_scale: Any = "auto",
        alpha: float = 0.1,
        centers: int = 100,
        min_effect: float = 0.0,
        context: Any = None,
        timezone: str | None = None,
        categorical: Any = None,
        compare_missing: bool = True,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.window = window
        self.expected_run_length = expected_run_length
        self.length_scale = length_scale
        self.alpha = alpha
        self.centers = centers
        self.min_effect = min_effect
        self.context = context
        self.timezone = timezone
        self.categorical = categorical
        self.compare_missing = compare_missing
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit to the reference and set the threshold; the stream begins with the first call of `update`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The reference: rows from before any change, in the order in which they arrived. Frames may hold words, truth values,
            times and missing cells. Times are left out: those of the stream are all later.
        y : ignored
            Present for scikit-learn's interface.
        groups : array-like of shape (n_samples,), optional
            Group of each row, such as a patient or a day, if the rows of a group depend on each other. Simulated streams then
            consist of whole groups, whose rows follow each other in their order in X, as they must in the stream.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows or parameters cannot be used, or there are fewer rows than in a window, or too few for rows that depend on
            each other.
        """
        self._check_parameters()
        if self.timezone is not None and self.context is None:
            raise InputError("{parameter} is for the hours of a context; name a context, too.", parameter="timezone")
        self.__dict__.pop("threshold_", None)  # a fit that fails must leave no mixture of two models
        table = enter(self, X, reset=True, min_samples=2, missing=True)
        if self.context is not None:
            self._fit_in_context(table, groups)
            return table.finish(self)
        table = self._without_clocks(X, table)
        self._fit_rows(table, groups)
        return table.finish(self)

    def _fit_in_context(self, table: CheckedRows, groups: Any) -> None:
        """Learn how cells vary in their contexts, and begin a stream."""
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        changed = [name for name in _OF_WINDOWS if getattr(self, name) != defaults[name]]
        if changed or groups is not None:
            named = listed([*changed, *(["groups"] * (groups is not None))])
            raise InputError(f"with a context no windows are compared: leave out {named}.", parameter="context")
        self._watch = WatchInContext.of(self, table)
        self.state_, self.threshold_ = self._watch.empty(), float(np.log(self.expected_run_length))
        self._reference_key = self._watch.key

    def _check_parameters(self) -> None:
        """Refuse run lengths that the window or the simulation does not allow."""
        self._validate_params()
        if self.context is None and self.min_effect >= 1.0:
            text = f"{{parameter}} = {self.min_effect!r} is a share of rows, below 1, where windows are compared."
            raise InputError(text, parameter="min_effect")
        if not self.expected_run_length >= 2 * self.window:
            raise InputError(
                f"{{parameter}} = {self.expected_run_length!r} is less than twice the window of {self.window} rows, which "
                "the first decision waits for; raise it or take a shorter window.",
                parameter="expected_run_length",
            )
        if self.expected_run_length > _LONGEST:
            raise InputError(
                f"{{parameter}} = {self.expected_run_length!r} is more than can be simulated; take at most {_LONGEST:,.0f}.",
                parameter="expected_run_length",
            )

    def _fit_rows(self, table: CheckedRows, groups: Any) -> None:
        """Learn from a reference, and begin a stream."""
        n = len(table.rows)
        if n < self.window:
            raise InputError(
                f"the reference has {n} row{'s' if n > 1 else ''}, fewer than the window of {self.window}; give a "
                "longer reference, of ten windows or more, or a shorter window."
            )
        self._learn(table, checked_groups(groups, n, int(self.window)))
        self.state_ = DriftState.empty(int(self.window), len(self._features.mean), self._key)

    def _learn(self, table: CheckedRows, groups: np.ndarray | None) -> None:
        """Fit the features to the reference, and simulate the threshold."""
        n, run_length = len(table.rows), float(self.expected_run_length)
        seed = int(check_random_state(self.random_state).randint(2**31))
        rng, window = np.random.default_rng(seed), int(self.window)
        self._filling = np.random.default_rng([seed, 1]).integers(2**31, size=2)
        # At most a quarter of the rows are centres: functions as wide as the reference need few.
        count = max(1, min(int(self.centers), n // 4))
        with ONE_BLAS_THREAD:  # the matrices are small
            if groups is None:
                chosen = np.sort(rng.permutation(n)[:count])
                others = np.delete(np.arange(n), chosen)
            else:
                chosen, others = of_some_groups(groups, count, rng)
            values = self._values(table, chosen, others)
            found = Dependence.of(values, others) if groups is None else Dependence()
            blocks = RowBlocks.of_groups(groups[others]) if groups is not None else None
            if found.reach:
                # In stretches, so that the other rows follow each other as rows of the stream do.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)  # the same as before
                    chosen = in_stretches(n, count, rng)
                    others = np.delete(np.arange(n), chosen)
                    values = self._values(table, chosen, others)
                self._refuse_short(found, len(others), table)
                length = found.block(window, len(others))
                lost = found.lost(window, length, len(others))
                blocks = RowBlocks.of_stretches(others, length, found.period, lost)
            threshold, self.run_lengths_ = calibrate(values, window, run_length, rng, blocks, Budget.of(self))
        # The norm of the noise exceeds the root of the threshold once in a run length, and the norm of a difference adds to it.
        # Far away all kernels are 0, so a share of rows that moves there changes the mean by this share of its norm.
        threshold = float((np.sqrt(threshold) + self.min_effect * np.linalg.norm(self._features.mean)) ** 2)
        self._warn_of_limits(threshold, run_length)
        self._columns = ReferenceColumns.of(self._encoding, table.rows, self._context)
        # The key tells whether a saved monitor was fitted to this reference, without keeping its rows.
        self._reference_key = self._key_of(table.rows)
        self._key = int(row_keys(np.append(self._features.mean, window)[None])[0])
        self.threshold_, self.dependence_, self.period_ = threshold, found.rows, found.period

    def _values(self, table: CheckedRows, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Fit features around the chosen rows, and return their values at the other rows."""
        # Words chosen from the rows that calibrate would be more frequent there than in new rows.
        self._encoding = RowEncoding.of_table(self, table, compared=self.compare_missing, words_from=chosen)
        X = self._encoding(self._encoding.filled(table.rows, int(self._filling[0])))
        if not np.ptp(X, axis=0).any():
            raise InputError(
                "all rows of the reference are equal, so that nothing says how much a window varies; give rows that differ."
            )
        keep = self._encoding.varying(self, X)
        frame = ScaledColumns.centred(X, keep)
        scale, default = (find(frame.centre(X), keep, table.rows) for find in (self._scales, self._default_scales))
        self.length_scale_ = self._encoding.by_column(frame.by_column(scale))
        self._context = ReferenceResiduals.of(self._encoding, X, keep)
        X, own = self._context.beside(X, left_out=True), np.append(scale, self._context.scales(scale / default))
        frame = ScaledColumns.centred(X, np.append(keep, np.ones(len(own) - len(scale), dtype=bool))).scaled(own)
        self._features, values = DriftFeatures.of(X[chosen], X[others], frame, float(self.alpha), Budget.of(self))
        if np.sqrt((values**2).mean(axis=0).sum()) <= _ALIKE * np.linalg.norm(self._features.mean):
            raise InputError(
                "to the kernels all rows of the reference that are no centres look the same, so that nothing says how "
                "much a window varies; give a reference with more rows that differ, or another length_scale."
            )
        return values

    def _key_of(self, rows: np.ndarray) -> int:
        return int(row_keys(self._encoding(self._encoding.filled(rows, int(self._filling[0])))).sum())

    def _refuse_short(self, found: Dependence, calibrating: int, table: CheckedRows) -> None:
        """Refuse a reference with too few blocks to say how much windows vary, and name columns that count its rows."""
        n, window = len(table.rows), int(self.window)
        needed = [FEWEST_BLOCKS * found.block(size, 0) + n - calibrating for size in range(2, window + 1)]
        if n >= needed[-1]:
            return
        shorter = 1 + sum(rows <= n for rows in needed)  # the longest window for which there are enough rows
        season = f", with a season of {found.period} rows" if found.period else ""
        names = plain_names(self) if table.columns is None else table.columns.numeric_names
        counting = [
            in_quotes(name) for name, values in zip(names, table.rows.T, strict=False) if in_order_of_rows(values)
        ]
        without = len(counting) < table.rows.shape[1] and counting
        in_context = "judge rows in their context, as in {context}"
        clock = {"context": ["hour", "weekday"]}
        left_out = table.columns is not None and CLOCKS in table.columns.left_out.values()
        if left_out and found.period:  # the time says what the season is, and windows of rows do not know it
            raise InputError(
                f"the rows of the reference depend on the time of day{season}, which windows of rows do not tell from a change",
                parameter="X",
                hint=Hint(f"{in_context}, with two weeks of rows", **clock),
            )
        raise InputError(
            f"the rows of the reference depend on each other: about {found.rows:.1f} of them say as much as one independent "
            f"row{season}. Its {n} rows are too few to calibrate windows of {self.window} rows",
            parameter="X",
            hint=Hint(
                (f"leave out {listed(counting)}, which only rises or falls; or " if without else "")
                + f"give {needed[-1]} rows or more"
                + (f", a window of {shorter} rows or fewer" if shorter > 1 else "")
                + f", {in_context} of a column of times with two weeks of rows"
                + ", or give rows in random order if their order means nothing",
                **clock,
            ),
        )

    def _warn_of_limits(self, threshold: float, run_length: float) -> None:
        """Warn if the threshold does not reach the run length, or if far rows would give no alarm."""
        reached = float(self.run_lengths_.mean())
        if reached > 1.1 * run_length:
            warn_user(
                f"by simulation no threshold has a mean run length of {run_length:g} rows, and the nearest has {reached:.0f}: "
                "the reference has too few rows that differ."
            )
        # All kernels are 0 far away, so rows there give this statistic.
        if self._features.mean @ self._features.mean <= threshold:
            warn_user(
                f"a window of {self.window} rows is so short that rows far from all of the reference would raise no alarm: by "
                "chance it differs as much. Take a longer window or a shorter run length."
            )

    def _default_scales(self, rows: np.ndarray, keep: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Return the length scales of "auto"."""
        encoding = self._encoding
        if encoding.is_plain:
            return np.asarray(math.sqrt(n_compared(rows.shape[1])) * spread(rows))
        return np.asarray((math.sqrt(n_compared(encoding.kept_columns(keep))) * encoding.spreads(given, spread))[keep])

    def _scales(self, rows: np.ndarray, keep: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Return the length scales of the kept coordinates of the centred rows."""
        encoding = self._encoding
        default = self._default_scales(rows, keep, given)
        if is_auto(self.length_scale):
            return default
        starts = np.array([block.start for block in encoding.blocks])
        try:
            scale = np.full(len(keep), np.nan)
            scale[starts] = np.broadcast_to(
                np.asarray(to_numpy(self.length_scale), dtype=np.float64), (len(encoding.blocks),)
            )
        except (TypeError, ValueError) as error:
            raise InputError(
                f"length_scale = {self.length_scale!r}: expected 'auto', a number, or one for each of {len(starts)} columns."
            ) from error
        scale = np.where(encoding.scaled[keep], default, scale[keep])
        if not (np.isfinite(scale) & (scale > 0.0)).all():
            raise InputError(f"length_scale = {self.length_scale!r}: expected positive, finite numbers.")
        return scale

    def _pages(self, X: Any) -> DriftPages:
        """Process the next rows of the stream in their context."""
        check_is_fitted(self, "threshold_")
        rows, state, watch = self._rows_of_stream(X), self.state_, self._watch
        if getattr(state, "key", None) != watch.key or not isinstance(state, CauseState):
            raise InputError("state_ is not of this monitor with this reference; assign one that it has had since fit.")
        with ONE_BLAS_THREAD, Progress("rows of the stream", len(rows), self.verbose) as tick:
            after, parts, about = state, [], (watch.columns.names, watch.model.per_day)
            for part in slices(len(rows), _AT_ONCE):
                before = after.n_rows
                after, judged, events = watch.take_in(after, rows[part])
                clock, late, absent = watch.clock.judge(judged.seconds, before, after.clock)
                after = replace(after, clock=clock)
                pages = tuple(sorted((page for page in after.pages if page.number >= 0), key=lambda page: page.number))
                page = DriftPages(before, len(judged.scores), pages, *about, tuple(events), watch.columns.zone, judged)
                parts.append(replace(page, late=tuple(late), absent=tuple(absent)))
                tick(part.stop - part.start)
        self.state_, found = after, joined_pages(parts)
        for row in told_late_rows(found.late, state.clock.times_late):
            warn_user(late_message(row, *map(found.time_text, row[1:])))
        if (
            watch.columns.clock
            and watch.columns.zone is None
            and (said := message_of_clocks(after.pages, state.n_rows))
        ):
            warn_user(said)
        return found.like(X)

    def update(self, X: Any) -> Any:
        """Process the next rows of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows in the order in which they arrived, one or more.

        Returns
        -------
        DriftAlarms or DriftPages
            Alarms among these rows, and the statistic at each row; with a `context` the pages, one a cause.

        Raises
        ------
        InputError
            If rows cannot be used, for example because of infinity; then none of them is processed. Also if `state_` was
            assigned from a monitor with another reference.

        Warns
        -----
        DataWarning
            For words that were not in the reference, with their number; they count as one more category. With a `context`, if
            times go back or repeat and those of the reference ascend: for the first, second, fourth, eighth, ... such row; and if
            several pages open within two weeks after clocks are set in Europe or North America, and times have no zone.
        """
        if self.context is not None:
            return self._pages(X)
        alarms = self._alarms(X)
        return replace(alarms, window=len(self.state_.block), dependence=self.dependence_).like(X)

    def _take_in(self, state: DriftState, X: np.ndarray) -> tuple[DriftState, np.ndarray, list[np.ndarray]]:
        """Return the state after the rows `X`, the statistic at each, and the windows that raised alarms."""
        filled = self._encoding.filled(X, int(self._filling[1]), state.n_rows)
        values = self._features(self._context.beside(self._encoding(filled)))
        out, windows = np.full(len(X), np.nan), []
        done = 0
        while done < len(values):
            after, sums = advance(state, values[done : done + state.rows_left])
            sums /= len(state.block)
            statistic = (sums * sums).sum(axis=1)
            raised = np.flatnonzero(statistic > self.threshold_)
            if len(raised):
                taken = int(raised[0]) + 1
                windows.append(state.window_of(X[done : done + taken]))
                after = state.after_alarm(taken)
                statistic = statistic[:taken]
            else:
                after = replace(after, recent=state.window_of(X[done : done + len(statistic)]))
            out[done : done + len(statistic)] = statistic
            done += len(statistic)
            state = after
        return state, out, windows

    def update_reference(self, X: Any, groups: Any = None) -> Self:
        """Replace the reference, for example after a change that is accepted as normal.

        The threshold is computed again and the window is emptied. The count of rows continues.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The new reference, with the columns of the old one.
        groups : array-like of shape (n_samples,), optional
            Group of each row, as for :meth:`fit`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As :meth:`fit`; the old reference is then kept.
        """
        check_is_fitted(self, "threshold_")
        given = Given.of(X)
        self._check_parameters()
        table, fresh = enter(self, given, min_samples=2, missing=True), copy(self)
        if self.context is not None:
            fresh._fit_in_context(table, groups)
            pages = tuple(
                replace(page, closed=self.state_.n_rows) if page.closed < 0 else page for page in self.state_.pages
            )
            self.__dict__.update(
                vars(fresh)
                | {"state_": replace(fresh.state_, n_rows=self.state_.n_rows, pages=pages, clock=self.state_.clock)}
            )
            return table.finish(self)
        if table.columns is None:
            fresh._fit_rows(table, groups)
        else:  # from now on the words of the new reference are known
            fresh.fit(given.select(table.columns.names).table, groups=groups)
        state = replace(fresh.state_, n_rows=self.state_.n_rows, alarms=self.state_.alarms)
        self.__dict__.update(vars(fresh) | {"state_": state})
        return table.finish(self)

    def has_reference(self, X: Any) -> bool:
        """Tell whether `X` holds the rows that the monitor was fitted to.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows with the columns of the reference.

        Returns
        -------
        bool
        """
        check_is_fitted(self, "threshold_")
        rows = enter(self, X, min_samples=2, missing=True).rows
        if self.context is not None:
            return self._reference_key == reference_key(rows)
        return self._reference_key == self._key_of(rows)


def checked_groups(groups: Any, rows: int, window: int) -> np.ndarray | None:
    """Return the number of the group of each row of a reference."""
    if groups is None:
        return None
    (numbers,) = numbered_groups([groups], [rows])
    found = int(numbers.max()) + 1
    if found < _FEWEST_GROUPS:
        raise InputError(
            f"groups: {found} group{'s' if found > 1 else ''}; the threshold of a window of {window} rows needs "
            f"{_FEWEST_GROUPS} or more, or no groups if rows are independent."
        )
    return numbers


@dataclass(frozen=True, eq=False)
class DriftState:
    """Position of a monitor in its stream, with the sums of its window. It is never changed in place.

    The rows since the last alarm are divided into blocks as long as the window. A window consists of the last rows of one block
    and the first rows of the next, so its sum is the sum of a suffix and a prefix. Nothing is subtracted, so rounding errors
    do not accumulate over long streams.

    Parameters
    ----------
    n_rows : int
        Rows of the stream so far.
    alarms : int
        Alarms so far.
    since : int
        Rows since the last alarm.
    block : array of shape (window, r)
        Values at the rows of the current block, zeros after them.
    prefix : array of shape (r,)
        Sum of these values.
    suffix : array of shape (window, r)
        Sums over the last rows of the block before: row k is the sum of the block without its first k rows.
    key : int
        Key of the fitted monitor that computed the values.
    recent : array of shape (k, d)
        Last rows of the stream, at most a window of them and none from before the last alarm.
    """

    n_rows: int
    alarms: int
    since: int
    block: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    key: int
    recent: np.ndarray

    @classmethod
    def empty(cls, window: int, width: int, key: int = 0) -> Self:
        """Return the state before the first row."""
        return cls(
            0, 0, 0, np.zeros((window, width)), np.zeros(width), np.zeros((window, width)), key, np.empty((0, 0))
        )

    def after_alarm(self, taken: int) -> Self:
        """Return the state after an alarm at the last of `taken` more rows, with an empty window."""
        empty = self.empty(len(self.block), len(self.prefix), self.key)
        return replace(empty, n_rows=self.n_rows + taken, alarms=self.alarms + 1)

    def window_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the last rows of the stream, at most a window of them, after `rows` more."""
        older = self.recent[max(0, len(self.recent) + len(rows) - len(self.block)) :]
        return np.vstack([older, rows[-len(self.block) :]]) if len(older) else rows[-len(self.block) :].copy()

    @property
    def rows_left(self) -> int:
        """Number of rows until the current block is full."""
        return len(self.block) - self.since % len(self.block)


def advance(state: DriftState, values: np.ndarray) -> tuple[DriftState, np.ndarray]:
    """Add rows, at most the rest of the block; return sums (k, r) of the windows that end with each, NaN if not full."""
    window, place = len(state.block), state.since % len(state.block)
    end = place + len(values)
    prefixes = np.add.accumulate(np.vstack([state.prefix[None], values]), axis=0)[1:]
    sums = np.full_like(prefixes, np.nan)
    if state.since >= window:
        # The window that ends with the last row of a block is this block, without rows of the block before.
        older = state.suffix[place + 1 : end + 1]
        sums[: len(older)] = prefixes[: len(older)] + older
        sums[len(older) :] = prefixes[len(older) :]
    elif end == window:
        sums[-1] = prefixes[-1]
    block = state.block.copy()
    block[place:end] = values
    prefix, suffix = prefixes[-1], state.suffix
    if end == window:
        suffix = np.add.accumulate(block[::-1], axis=0)[::-1]
        block, prefix = np.zeros_like(block), np.zeros_like(prefix)
    rows, since = state.n_rows + len(values), state.since + len(values)
    return replace(state, n_rows=rows, since=since, block=block, prefix=prefix, suffix=suffix), sums


def watched_names(monitor: DriftMonitor) -> list[str]:
    """Return the names of the columns that a monitor in context watches, in the order in which its pages number them."""
    return list(monitor._watch.columns.names)
