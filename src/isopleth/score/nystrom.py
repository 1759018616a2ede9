"""NystromKEF: the score by a few landmarks, for as many samples as there are."""

from __future__ import annotations

from functools import reduce
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.errors import InputError
from isopleth.folds import FOLDS, held_out_parts
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.rows import merge_rows
from isopleth.score.base import FrameFit, ScoreEstimator
from isopleth.score.base_measure import GaussianBase
from isopleth.score.cut import warn_if_all_is_cut
from isopleth.score.field import KernelTerm
from isopleth.score.landmarks import METHODS, choose_landmarks
from isopleth.score.nystrom_selection import choose_ridge, parts_within_memory
from isopleth.score.spaces import SPACES, Space
from isopleth.score.statistics import NystromStatistics
from isopleth.solvers.regularizers import Regularizer, Tikhonov


class NystromKEF(ScoreEstimator):
    r"""The kernel exponential family estimator at landmarks: time and memory linear in the samples, or less.

    The score is sought among sums of kernels at m landmarks Z by what all M samples say [1]_ [2]_:

    .. math:: \hat s(x) = -K_{xZ} \left(\tfrac1M K_{ZX} K_{XZ} + \alpha K_{ZZ}\right)^+ \hat\zeta(Z)

    and likewise for every other regulariser: :class:`~isopleth.score.nystrom_system.NystromSystem` has the formula. All distinct
    rows as landmarks make it the truncated form of :class:`KernelScore`. Data that do not fit in memory go chunk by chunk
    through :class:`~isopleth.score.statistics.NystromStatistics`.

    The ridge, if it is not given, is chosen by the mean Hyvarinen loss of rows held out, in parts that are always the same:
    the sums that a fit rests on tell it, so that rows are gone through once. Nothing else is tuned.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`KernelScore`; curl-free, the fit takes matrices of (m n_features) x (m n_features) numbers.
    regularizer : Regularizer, optional
        As for :class:`KernelScore`, in truncated forms. None is Tikhonov with the ridge that
        :func:`~isopleth.score.nystrom_selection.choose_ridge` finds, or ``Tikhonov()`` for fewer than 10 distinct rows.
    landmarks : int or array-like of shape (m, n_features), default=300
        How many to choose among the rows, or the landmarks themselves. All distinct rows serve where there are not more.
    landmark_method : {"uniform", "kmeans++", "leverage"}, default="uniform"
        How they are chosen: :func:`~isopleth.score.landmarks.choose_landmarks` tells.
    length_scale, base
        As for :class:`KernelScore`.
    random_state : int, RandomState or None
        Seed of the choice.
    memory_limit : float, default=2**30
        Bytes that matrices and scratch of sums may take together.
    n_jobs : int, optional
        Threads; None is all processors.

    Attributes
    ----------
    centers_ : ndarray of shape (m, n_features)
        The landmarks.
    dual_coef_ : ndarray of shape (m, n_features)
        The vector of each, in frame coordinates.
    weights_ : ndarray of shape (n_distinct,)
        Summed weights of the distinct rows.
    regularizer_ : Regularizer
        What was used.
    search_path_ : RidgePath
        What was compared and chosen, if the ridge was.
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    See Also
    --------
    KernelScore : With a kernel at every row.

    References
    ----------
    .. [1] D. Sutherland, H. Strathmann, M. Arbel, A. Gretton, "Efficient and Principled Score Estimation with Nystrom Kernel
       Exponential Families", AISTATS 2018.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020, appendix C.1.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NystromKEF, Tikhonov
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> score = NystromKEF(regularizer=Tikhonov(alpha=1e-3), landmarks=50, random_state=0).fit(X)
    >>> near = score.grad_log_density([[1.0, 0.0]])  # of a normal density: minus the row
    >>> bool(abs(near[0, 0] + 1.0) < 0.2)
    True
    """

    base: str | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreEstimator._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "regularizer": [Regularizer, None],
        "landmarks": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "landmark_method": [StrOptions(set(METHODS))],
        "base": [None, StrOptions({"gaussian"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        regularizer: Regularizer | None = None,
        landmarks: Any = 300,
        landmark_method: str = "uniform",
        length_scale: Any = "median",
        base: str | None = None,
        random_state: Any = None,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.regularizer = regularizer
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.length_scale = length_scale
        self.base = base
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _fit_frame(self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None) -> FrameFit:
        centers = self._choose(space, z, weights)
        sums = self._sums(space, z, weights / weights.mean(), centers, base)
        regularizer: Regularizer = Tikhonov() if self.regularizer is None else self.regularizer
        if len(sums) > 1:
            self.search_path_ = choose_ridge(sums)
            regularizer = self.search_path_.regularizer
        statistics = reduce(NystromStatistics.merge, sums)
        del sums  # the solution has the memory to itself
        system = statistics.system()
        coefficients = np.asarray(space.unstack(system.solve(regularizer), z.shape[1]))
        warn_if_all_is_cut(regularizer, coefficients, lambda: system.largest)
        at_samples = KernelTerm(space, centers, coefficients).value(z)
        if base is not None:
            at_samples = at_samples + base.value(z)
        return FrameFit(at_samples, centers, coefficients, 0.0, {"regularizer_": regularizer})

    def _sums(
        self, space: Space, z: np.ndarray, weights: np.ndarray, centers: np.ndarray, base: GaussianBase | None
    ) -> list[NystromStatistics]:
        """Sums over all rows, in parts if the ridge is to be chosen."""
        if self.regularizer is not None or len(z) < 2 * FOLDS:
            return [NystromStatistics(space, centers, base).accumulate(z, weights)]
        parts = parts_within_memory(space, centers, base)
        for part, rows in zip(parts, held_out_parts(len(z), len(parts)), strict=True):
            part.accumulate(z[rows], weights[rows])
        return parts

    def _choose(self, space: Space, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Landmarks in frame coordinates."""
        if not isinstance(self.landmarks, Integral):
            return self._given(z.shape[1])
        chosen = choose_landmarks(
            z,
            int(self.landmarks),
            self.landmark_method,
            kernel=space.kernel,
            weights=weights,
            random_state=self.random_state,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
        )
        return z[chosen]

    def _given(self, columns: int) -> np.ndarray:
        try:
            rows = np.asarray(self.landmarks, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("landmarks holds something other than numbers; expected a number or rows.") from error
        if rows.ndim != 2 or rows.shape[1] != columns or not len(rows) or not np.isfinite(rows).all():
            raise InputError(
                f"landmarks has shape {rows.shape}; expected how many to choose, or finite rows of {columns} columns as X has."
            )
        return self._frame.enter(merge_rows(rows, np.ones(len(rows)))[0])
