"""Alarms when a stream of rows no longer looks like a reference."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import to_numpy
from isopleth.entry import enter, plain_names, varying_columns
from isopleth.errors import DataWarning, InputError
from isopleth.frame import Frame
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import ONE_BLAS_THREAD
from isopleth.rows import row_keys
from isopleth.tasks.drift.alarms import DriftAlarms, ReferenceColumns
from isopleth.tasks.drift.calibration import calibrate
from isopleth.tasks.drift.features import DriftFeatures, spread

# Rows of a mean run length: simulations of more would take hours.
_LONGEST = 1e7

# Features that vary by less than this share of their size vary by rounding alone.
_ALIKE = 1e-10

# Rows whose kernel values are computed together, so that memory does not grow with the rows of a call.
_AT_ONCE = 1024


class DriftMonitor(BaseEstimator):
    r"""Alarms when the last rows of a stream come from another distribution than a reference.

    After every row, the last `window` rows are compared with the reference by the dual form of least-squares density
    difference [1]_, :math:`h^\top M h` with :math:`h = \bar\psi_{\text{window}} - \bar\psi_{\text{reference}}` and
    :math:`M = 2G - GHG`, :math:`G = (H + \alpha I)^{-1}`: an estimate of the squared L2 distance of the two densities, smoothed.
    If it is above `threshold_`, an alarm is raised, the window is emptied and filled again by the rows that follow.

    The threshold is the one for which, while nothing changes, `expected_run_length` rows pass until an alarm, counted from
    the first row or from the row after the last alarm. That is a mean over streams **and over references**: see Notes.

    Parameters
    ----------
    window : int, default=50
        Rows that are compared with the reference at a time. Short windows find large changes soon, long ones small changes.
    expected_run_length : float, default=10000
        Mean number of rows until a false alarm; at least twice the window and at most 10 million. The time of a fit grows with
        it: some seconds for 10,000 rows, ten times as long for 100,000.
    length_scale : float, array of shape (n_features,) or None, default=None
        Of the Gaussian kernel, in the units of the columns. None is :math:`\sqrt d` standard deviations, taken from the
        quartiles where these say less: wide, since a window holds few rows.
    alpha : float, default=0.1
        The ridge over the volume of the kernel, as in :class:`LSDD`.
    centers : int, default=100
        Centres of kernels, random rows of the reference; at most a quarter of them. These rows serve as nothing else.
    min_effect : float, default=0
        Differences up to this size raise alarms no more often than no difference does. The unit is a share of rows: 0.2 stands
        for a difference as large as if a fifth of the rows had gone to places far away from all others, and no row elsewhere
        had changed. Between 0 and 1.
    memory_limit : float, default=2**30
        Bytes that matrices of the centres and scratch may take at fit.
    n_jobs : int, optional
        Threads of kernel sums at fit; None is all processors.
    random_state : int, RandomState or None
        Seed of the choice of centres and of the simulations.

    Attributes
    ----------
    threshold_ : float
        Of the statistic, which is relative to the volume of the kernel.
    run_lengths_ : array of shape (simulations,)
        Run lengths under no change, as simulated to find the threshold. Their mean is `expected_run_length`; their
        quantiles say how much they spread. Those beyond 50 times the mean are cut there.
    state_ : DriftState
        Place in the stream. It is replaced and never changed: keep it and assign it later to go back to that row.
    length_scale_ : array of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    n_features_in_ : int
        Number of columns at fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns at fit, where they had any.

    Warns
    -----
    DataWarning
        For columns that are constant in the reference: they are left out, and what the stream has there is not looked at.
        Also where no threshold has the run length asked for, since the reference is poor, and where a window is so short that
        not even rows far from all of the reference would raise an alarm.

    See Also
    --------
    LSDD : The difference of the densities of two samples.

    Notes
    -----
    A reference is a sample too. Its mean misses the truth a little, by the same amount at every row, so that one reference
    gives alarms more often and another more seldom than asked for. The threshold is set by simulation of many references
    drawn from the given one, each with the threshold that it would have set for itself, and the mean over all of them is right;
    it takes a reference of ten windows or more to make it nearly right for each. Run lengths are about exponential: half of
    all false alarms come before 0.7 of the mean. Rows must be independent of each other while nothing changes.

    Rows may be tensors, or arrays of another library: all is computed in NumPy, in double precision, and fitted arrays are in
    the library and on the device of the reference.

    How rows are cut into calls of :meth:`update` does not change any answer, not by a bit. The memory is that of
    three windows. An alarm names the columns that moved, before and after: ``changes()``.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

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
        "length_scale": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "centers": [Interval(Integral, 1, None, closed="left")],
        "min_effect": [Interval(Real, 0, 1, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        window: int = 50,
        expected_run_length: float = 10_000,
        length_scale: Any = None,
        alpha: float = 0.1,
        centers: int = 100,
        min_effect: float = 0.0,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.window = window
        self.expected_run_length = expected_run_length
        self.length_scale = length_scale
        self.alpha = alpha
        self.centers = centers
        self.min_effect = min_effect
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the reference, set the threshold and wait for the first row of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The reference: rows as they are while nothing has changed, independent of each other.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the rows or parameters cannot be used, or there are fewer rows than in a window; the sentence says why and
            what to do.
        """
        self._validate_params()
        self.__dict__.pop("threshold_", None)  # a fit that fails leaves no mixture of two models
        if not self.expected_run_length >= 2 * self.window:
            raise InputError(
                f"expected_run_length = {self.expected_run_length!r} is less than twice the window of {self.window} rows, which "
                "the first decision waits for; raise it or take a shorter window."
            )
        if self.expected_run_length > _LONGEST:
            raise InputError(
                f"expected_run_length = {self.expected_run_length!r} is more than can be simulated; take at most {_LONGEST:,.0f}."
            )
        table = enter(self, X, reset=True, min_samples=2)
        n = len(table.rows)
        if n < self.window:
            raise InputError(
                f"the reference X has {n} row{'s' if n > 1 else ''}, fewer than the window of {self.window}; give a "
                "longer reference, of ten windows or more, or a shorter window."
            )
        self._learn(table.rows)
        self.state_ = DriftState.empty(int(self.window), len(self._features.mean), self._key)
        return table.finish(self)

    def _learn(self, X: np.ndarray) -> None:
        keep = varying_columns(self, X)
        frame = Frame.centred(X, keep)
        scale = self._scales(frame.centre(X), keep)
        frame = frame.scaled(scale)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with ONE_BLAS_THREAD:  # the matrices are small
            limits = {"memory_limit": self.memory_limit, "n_jobs": self.n_jobs}
            self._features, values = DriftFeatures.of(X, frame, int(self.centers), float(self.alpha), rng, **limits)
            if np.sqrt((values**2).mean(axis=0).sum()) <= _ALIKE * np.linalg.norm(self._features.mean):
                raise InputError(
                    "to the kernels all rows of the reference X that are no centres look the same, so that nothing says how "
                    "much a window varies; give a reference with more rows that differ, or another length_scale."
                )
            run_length = float(self.expected_run_length)
            threshold, self.run_lengths_ = calibrate(values, int(self.window), run_length, rng)
        # The norm of the noise crosses the root of the threshold once in a run length, and that of a difference adds to it. Far
        # away all kernels are 0, so a share of rows that goes there moves the mean by this share of its norm.
        threshold = float((np.sqrt(threshold) + self.min_effect * np.linalg.norm(self._features.mean)) ** 2)
        self._warn_of_limits(threshold, run_length)
        self._columns = ReferenceColumns.of(X)
        # A saved monitor can be asked whether it knows this reference, without its rows.
        self._reference_key = int(row_keys(X).sum())
        self._key = int(row_keys(np.append(self._features.mean, self.window)[None])[0])
        self.length_scale_ = frame.by_column(frame.scale)
        self.threshold_ = threshold

    def _warn_of_limits(self, threshold: float, run_length: float) -> None:
        reached = float(self.run_lengths_.mean())
        if reached > 1.1 * run_length:
            warnings.warn(
                f"by simulation no threshold has a mean run length of {run_length:g} rows, and the nearest has {reached:.0f}: "
                "the reference has too few rows that differ.",
                DataWarning,
                stacklevel=4,
            )
        # All kernels are 0 far away, so that more than this cannot come from there.
        if self._features.mean @ self._features.mean <= threshold:
            warnings.warn(
                f"a window of {self.window} rows is so short that rows far from all of the reference would raise no alarm: by "
                "chance it differs as much. Take a longer window or a shorter run length.",
                DataWarning,
                stacklevel=4,
            )

    def _scales(self, rows: np.ndarray, keep: np.ndarray) -> np.ndarray:
        """Length scales of the kept columns of the centred rows."""
        if self.length_scale is None:
            return math.sqrt(rows.shape[1]) * spread(rows)
        try:
            given = np.asarray(to_numpy(self.length_scale), dtype=np.float64)
            scale = np.broadcast_to(given, (len(keep),))[keep]
        except (TypeError, ValueError) as error:
            raise InputError(
                f"length_scale = {self.length_scale!r}: expected None, a number, or one for each of {len(keep)} columns."
            ) from error
        if not (np.isfinite(scale) & (scale > 0.0)).all():
            raise InputError(f"length_scale = {self.length_scale!r}: expected positive, finite numbers.")
        return scale

    def update(self, X: Any) -> DriftAlarms:
        """Take in the next rows of the stream.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows in the order in which they came, one or many.

        Returns
        -------
        DriftAlarms
            The alarms among these rows, and the statistic at each.

        Raises
        ------
        InputError
            If rows cannot be used, NaN among them; then none of them is taken in. Also if `state_` was assigned and is not
            one that this monitor has had since its reference was set.
        """
        check_is_fitted(self, "threshold_")
        X = enter(self, X).rows
        state = self._own_state()
        first = state.rows
        parts, windows = [], []
        with ONE_BLAS_THREAD:
            for start in range(0, len(X), _AT_ONCE):
                state, statistic, found = self._take_in(state, X[start : start + _AT_ONCE])
                parts.append(statistic)
                windows += found
        self.state_ = state
        names = plain_names(self) if windows else []
        columns = tuple(self._columns.changes(window, names) for window in windows)
        return DriftAlarms(first, np.concatenate(parts), self.threshold_, len(state.block), columns)

    def _own_state(self) -> DriftState:
        if not isinstance(self.state_, DriftState) or self.state_.key != self._key:
            raise InputError(
                "state_ is not of this monitor with this reference; assign one that it has had since fit or update_reference."
            )
        return self.state_

    def _take_in(self, state: DriftState, X: np.ndarray) -> tuple[DriftState, np.ndarray, list[np.ndarray]]:
        """Return the state after the rows `X`, the statistic at each, and the windows that raised alarms."""
        values, out, windows = self._features(X), np.full(len(X), np.nan), []
        done = 0
        while done < len(values):
            after, sums = advance(state, values[done : done + state.room])
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

    def update_reference(self, X: Any) -> Self:
        """Compare with other rows from now on: what has been called a drift, say, and is the new normal.

        The reference is replaced and the threshold set anew. The count of rows goes on; the window is emptied, since its rows
        were compared with what is gone.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The new reference, with the columns of the old one.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As :meth:`fit`; the old reference then stays.
        """
        check_is_fitted(self, "threshold_")
        table = enter(self, X, min_samples=2)
        fresh = type(self)(**self.get_params(deep=False))
        names = getattr(self, "feature_names_in_", None)
        fresh.fit(table.rows)
        state = replace(fresh.state_, rows=self.state_.rows, alarms=self.state_.alarms)
        self.__dict__.update(vars(fresh) | {"state_": state, "_column_labels": self._column_labels})
        if names is not None:
            self.feature_names_in_ = names
        return table.finish(self)


@dataclass(frozen=True, eq=False)
class DriftState:
    """Where a monitor is in its stream. It is never changed in place, so a reference to it is a copy.

    The rows since the last alarm are cut into blocks as long as the window. A window that ends in a block is the last rows
    of the block before and the first rows of this one, so that two sums are added and none is ever subtracted from: rounding
    does not build up, however long the stream is.

    Parameters
    ----------
    rows : int
        Rows of the stream so far.
    alarms : int
        Alarms so far.
    since : int
        Rows since the last alarm.
    block : array of shape (window, r)
        Values at the rows of the present block, zeros after them.
    prefix : array of shape (r,)
        Their sum.
    suffix : array of shape (window, r)
        Sums over the last rows of the block before: row k is the sum without its first k rows.
    key : int
        Key of the fitted monitor in whose coordinates these values are.
    recent : array of shape (k, d)
        The last rows of the stream as they came, at most a window of them and none from before the last alarm.
    """

    rows: int
    alarms: int
    since: int
    block: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    key: int
    recent: np.ndarray

    @classmethod
    def empty(cls, window: int, width: int, key: int = 0) -> Self:
        """Before the first row."""
        return cls(
            0, 0, 0, np.zeros((window, width)), np.zeros(width), np.zeros((window, width)), key, np.empty((0, 0))
        )

    def after_alarm(self, taken: int) -> Self:
        """With an alarm at the last of so many rows more, and an empty window."""
        empty = self.empty(len(self.block), len(self.prefix), self.key)
        return replace(empty, rows=self.rows + taken, alarms=self.alarms + 1)

    def window_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the last rows of the stream, at most a window of them, after `rows` more."""
        older = self.recent[max(0, len(self.recent) + len(rows) - len(self.block)) :]
        return np.vstack([older, rows[-len(self.block) :]]) if len(older) else rows[-len(self.block) :].copy()

    @property
    def room(self) -> int:
        """Rows until the present block is full."""
        return len(self.block) - self.since % len(self.block)


def advance(state: DriftState, values: np.ndarray) -> tuple[DriftState, np.ndarray]:
    """Take in at most as many rows as the block has room for.

    Parameters
    ----------
    state : DriftState
        Before these rows.
    values : array of shape (k, r)
        Values at the rows, 1 <= k <= ``state.room``.

    Returns
    -------
    state : DriftState
        After them.
    sums : array of shape (k, r)
        Sum over the window that ends with each row; NaN where there is no full window yet.
    """
    window, place = len(state.block), state.since % len(state.block)
    end = place + len(values)
    prefixes = np.add.accumulate(np.vstack([state.prefix[None], values]), axis=0)[1:]
    sums = np.full_like(prefixes, np.nan)
    if state.since >= window:
        # The last row of a block ends a window that is the block itself; nothing of the one before is in it.
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
    rows, since = state.rows + len(values), state.since + len(values)
    return replace(state, rows=rows, since=since, block=block, prefix=prefix, suffix=suffix), sums
