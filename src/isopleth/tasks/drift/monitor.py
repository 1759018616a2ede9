"""Drift monitor: alarms when a window of a stream differs from a reference."""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT
from isopleth.core.errors import InputError, listed, warn_user
from isopleth.core.progress import Progress
from isopleth.core.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, slices
from isopleth.tables.checks import CheckedRows, enter
from isopleth.tables.given import Given
from isopleth.tasks.drift.alarms import ReferenceColumns, StreamMonitor
from isopleth.tasks.drift.cause_state import CauseState
from isopleth.tasks.drift.in_context import WatchInContext, reference_key
from isopleth.tasks.drift.learned_windows import learn
from isopleth.tasks.drift.pages_result import DriftPages, joined_pages
from isopleth.tasks.drift.stream_times import late_message, message_of_clocks, told_late_rows
from isopleth.tasks.drift.window_sums import DriftState, take_in

# Largest mean run length in rows: simulations of longer ones would take hours.
_LONGEST = 1e7

# Parameters of the comparison of windows.
_OF_WINDOWS = ("window", "length_scale", "alpha", "centers", "compare_missing")
# Rows that are processed together, so that memory does not grow with the rows of a call.
_AT_ONCE = 4096


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
        learned, window = learn(self, table, groups), int(self.window)
        self._windows = windows = learned.features
        self.length_scale_, self.threshold_ = windows.length_scale, learned.threshold
        self.run_lengths_, self.dependence_, self.period_ = learned.run_lengths, learned.dependence, learned.period
        self._columns = ReferenceColumns.of(windows.encoding, table.rows, windows.residuals)
        self._key, self._reference_key = windows.key(window), windows.reference_key(table.rows)
        self.state_ = DriftState.empty(window, len(windows.mean), self._key)

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
        return take_in(state, X, self._windows(X, state.n_rows), self.threshold_)

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
            begin = replace(fresh._watch.empty(self.state_.n_rows), pages=pages, clock=self.state_.clock)
            self.__dict__.update(vars(fresh) | {"state_": begin})
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
        return self._reference_key == self._windows.reference_key(rows)


def watched_names(monitor: DriftMonitor) -> list[str]:
    """Return the names of the columns that a monitor in context watches, in the order in which its pages number them."""
    return list(monitor._watch.columns.names)


def is_whole(monitor: DriftMonitor) -> bool:
    """Tell whether a fitted monitor has all that this version learns; one from a file of another version may lack it."""
    return hasattr(monitor, "_windows" if monitor.context is None else "_watch")
