"""Where a series changes: levels, slopes, scatter and shape, at a stated level of false alarms."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, to_backend
from isopleth.entry import check_memory_limit, enter, on_host
from isopleth.errors import InputError
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.tasks.change_points.curve import along_series, score_curve
from isopleth.tasks.change_points.levels import surcharge
from isopleth.tasks.change_points.result import ChangePoints
from isopleth.tasks.change_points.shape import ShapeTest
from isopleth.tasks.segmentation.preparation import repeats_exactly, without_absurd_values
from isopleth.tasks.segmentation.stages import SHORTEST_SCATTER, Description, describe, in_stages, unbroken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Those of the paper, for series that are long enough for them.
_SUBSEQUENCE, _WINDOW = 5, 50
_LEAST_WINDOW = 3
_WINDOWS = 6
_ROWS_A_STEP = 5


class ChangePointDetector(BaseEstimator):
    r"""Change points of a time series, without a setting to choose.

    Two things are computed. The **score curve** is the one of Sugiyama et al. (2013, section 4.2.2): the squared L2 distance,
    by LSDD, between the densities of r subsequences of length k before a step and r after it, with centres, length scale and
    ridge the same for all windows. The **change points** come from a description of the series by segments: a constant or a
    line in each, plus autoregressive noise, as many segments as make the description shortest when every coefficient is
    paid for at the precision that the noise allows and every change by :math:`\log T` nats and a surcharge. Then come changes of
    the scatter of what is left, and changes of its shape or dependence, by LSDD between windows.

    The series may be a tensor, or an array of another library: all is computed in NumPy, and fitted arrays of numbers are in
    its library and on its device.

    Parameters
    ----------
    subsequence : int, optional
        k, the length of the subsequences that are compared; as in the paper 5, less for short series.
    window : int, optional
        r, the number of subsequences in a window; as in the paper 50, less for short series.
    false_alarm_rate : float, default=0.05
        Probability with which a series without a change may show one. A third each goes to levels and slopes, to scatter and
        to shape. Held by bootstrap: the surcharge is the quantile of what a change saves in series with the noise that was
        found. That is an approximation for correlated noise, and takes the prepared series and its model as given.
    centers : int, default=100
        How many subsequences, drawn at random, are centres.
    memory_limit : float, default=2**30
        Bytes that a block of windows may take.
    random_state : int, RandomState or None, default=None
        For the centres and the bootstrap.

    Attributes
    ----------
    change_points_ : array of shape (m,), int
        First steps of what is new.
    kinds_ : ndarray of shape (m,), str
        "level", "line", "scatter" or "shape".
    scores_ : array of shape (T,)
        The score curve, relative to the volume of the kernel; corrected for the variance of windows, so that it is around 0
        without a change. NaN where a window would leave the series.
    shape_scores_ : array of shape (T,)
        The curve of what segments and scatter leave unexplained.
    shape_threshold_ : float
        What that curve exceeds anywhere with a third of the false-alarm rate.
    penalties_ : array of shape (2,)
        Twice the nats that a change of location and one of scatter must save, beyond paying for their own coefficients.
    subsequence_, window_ : int
        k and r.
    length_scale_ : float
        Length scale of the score curve, in standard deviations of the columns: the median distance between centres.
    result_ : ChangePoints
        All of it, with a table and a picture.
    n_features_in_ : int
        Columns of the series.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu and I. Takeuchi, "Density-difference estimation",
       Neural Computation 25 (2013).

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
    scores_: np.ndarray
    window_: int
    subsequence_: int

    def __init__(
        self,
        subsequence: int | None = None,
        window: int | None = None,
        false_alarm_rate: float = 0.05,
        centers: int = 100,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        random_state: Any = None,
    ) -> None:
        self.subsequence = subsequence
        self.window = window
        self.false_alarm_rate = false_alarm_rate
        self.centers = centers
        self.memory_limit = memory_limit
        self.random_state = random_state

    def fit_predict(self, series: Any, y: Any = None, *, reference: Any = None) -> Array:
        """Change points of `series`; as :meth:`fit`, of which this returns ``change_points_``."""
        return self.fit(series, reference=reference).change_points_

    def fit(self, series: Any, y: Any = None, *, reference: Any = None) -> Self:
        """Find the changes of a series.

        Parameters
        ----------
        series : array-like of shape (T,) or (T, d)
            Values at steps of equal length, in their order.
        y : Ignored
            For pipelines.
        reference : array-like of shape (T', d), optional
            A stretch known to have no change: the false-alarm rate is then held for noise like its.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the series is shorter than its windows, the reference shorter than a window, values are missing, or a
            parameter cannot be used.
        """
        values = self._checked("series", series, reset=True)
        backend = Backend.of(series)
        self._set_lengths(len(values))
        known = None if reference is None else self._checked("reference", reference, reset=False)
        if known is not None and len(known) < self.window_:
            raise InputError(f"reference has {len(known)} rows, fewer than window = {self.window_}; give a longer one.")
        if known is not None and (known.min(axis=0) == known.max(axis=0)).any():
            raise InputError(
                "reference has a column that is constant, so that there is no noise to learn from it; leave it out."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        # A column that repeats itself exactly leaves nothing that could change, as a constant one does.
        telling = np.array([not repeats_exactly(column) for column in values.T])
        if telling.any():
            largest = np.abs(values).max(axis=0)[telling]
            scaled = without_absurd_values(values[:, telling] / largest)
            self._fit_telling(scaled, None if known is None else known[:, telling] / largest, rng)
        else:
            self._set_nothing(len(values))
        self.result_ = ChangePoints(self.change_points_, self.kinds_, self.scores_, values)
        to_backend(self, backend)
        return self

    def plot(self) -> Figure:
        """Draw the series with its changes, and the score curve; see :func:`isopleth.plotting.plot_change_points`."""
        check_is_fitted(self, "result_")
        return self.result_.plot()

    def _checked(self, name: str, given: Any, reset: bool) -> np.ndarray:
        given = on_host(given, name)
        if not hasattr(given, "columns"):
            try:
                dim = np.ndim(given)
            except ValueError as error:
                raise InputError(f"{name} has rows of different lengths; expected as many values in each.") from error
            if dim not in (1, 2):
                raise InputError(f"{name} has {dim} dimensions; expected values of shape (T,) or (T, d).")
            given = np.asarray(given).reshape(-1, 1) if dim == 1 else given
        return enter(self, given, reset=reset, name=name).rows

    def _set_lengths(self, length: int) -> None:
        """k and r, those of the paper as far as the series has room for them."""
        rate = self.false_alarm_rate
        if not isinstance(rate, Real) or not 0.0 < rate < 1.0:
            raise InputError(f"false_alarm_rate = {rate!r}: expected a probability between 0 and 1, such as 0.05.")
        for name in ("subsequence", "window", "centers"):
            value, least = getattr(self, name), 2 if name == "window" else 1
            optional = name != "centers"
            if not (optional and value is None) and (not isinstance(value, Integral) or value < least):
                raise InputError(f"{name} = {value!r}: expected a whole number >= {least}{' or None' * optional}.")
        check_memory_limit(self.memory_limit)
        auto = min(_WINDOW, max(_LEAST_WINDOW, length // _WINDOWS))
        self.window_ = int(auto if self.window is None else self.window)
        short = min(_SUBSEQUENCE, max(1, self.window_ // _ROWS_A_STEP))
        self.subsequence_ = int(short if self.subsequence is None else self.subsequence)
        needed = 2 * self.window_ + self.subsequence_ - 1
        if length < needed:
            advice = (
                "." if self.window is None and self.subsequence is None else "; give smaller window or subsequence."
            )
            raise InputError(
                f"series has {length} row{'s' * (length != 1)}, fewer than the {needed} of two windows of "
                f"{self.window_} subsequences of length {self.subsequence_}{advice}"
            )

    def _set_nothing(self, length: int) -> None:
        """A series that is constant or repeats itself exactly: no change, and nothing that could have been one."""
        self.change_points_ = np.empty(0, dtype=int)
        self.kinds_ = np.empty(0, dtype="<U7")
        flat = along_series(np.zeros(length - self._reach + 1), length, self.subsequence_, self.window_)
        self.scores_, self.shape_scores_ = flat, flat.copy()
        self.shape_threshold_ = float("inf")
        self.penalties_ = np.full(2, 2.0 * np.log(length))
        self.length_scale_ = float("nan")

    @property
    def _reach(self) -> int:
        """Rows that a score looks at."""
        return 2 * self.window_ + self.subsequence_ - 1

    def _fit_telling(self, values: np.ndarray, known: np.ndarray | None, rng: np.random.Generator) -> None:
        self.scores_, sliding = score_curve(
            values, self.subsequence_, self.window_, self.centers, self.memory_limit, rng
        )
        self.length_scale_ = sliding.length_scale
        share = float(self.false_alarm_rate) / 3.0
        found = describe(values)
        calm = found if known is None else unbroken(known)
        surcharges = self._surcharges(calm, len(values), share, rng)
        if max(surcharges) > 0.0 and (len(found.location.changes) or len(found.scatter_changes)):
            found = in_stages(found.prepared, (np.inf if found.shocks else surcharges[0], surcharges[1]))
        self.penalties_ = 2.0 * np.log(len(values)) + np.array(surcharges)
        changes = self._plain_changes(found)
        bounds = np.array([0, *sorted(changes), len(values)])
        test = ShapeTest(
            found.innovations, bounds, self.subsequence_, self.window_, self.centers, self.memory_limit, rng
        )
        self.shape_scores_ = test.curve
        self.shape_threshold_ = test.threshold(share, None if known is None else calm.innovations)
        changes |= dict.fromkeys(map(int, test.changes(self.shape_threshold_)), "shape")
        self.change_points_ = np.array(sorted(changes), dtype=int)
        self.kinds_ = np.array([changes[place] for place in sorted(changes)], dtype="<U7")

    def _surcharges(
        self, calm: Description, length: int, share: float, rng: np.random.Generator
    ) -> tuple[float, float]:
        location = surcharge(calm.location, calm.precision, length, 0, share, rng)
        if calm.scatter is None:
            return location, 0.0
        even = np.ones(len(calm.precision))
        return location, surcharge(calm.scatter, even, length, SHORTEST_SCATTER, share, rng)

    @staticmethod
    def _plain_changes(found: Description) -> dict[int, str]:
        """Changes of location and scatter by place; of scatter those alone that are not changes of location as well."""
        changes = {int(place): "line" if found.location.degree else "level" for place in found.location.changes}
        near = [
            place
            for place in found.scatter_changes
            if np.any(np.abs(found.location.changes - place) <= SHORTEST_SCATTER)
        ]
        return changes | {int(place): "scatter" for place in found.scatter_changes if place not in near}
