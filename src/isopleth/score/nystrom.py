"""NystromKEF: a score with kernels at a few landmarks, for any number of samples, and the choice of these landmarks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.core.arrays import NUMPY, Backend, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, whole_number
from isopleth.core.parameters import given_points
from isopleth.core.parts import Parts, Streaming, take_columns
from isopleth.core.progress import Progress
from isopleth.core.rows import FOLDS, distinct_rows, held_out_parts, merge_rows
from isopleth.core.scales import deviations
from isopleth.core.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, interruptible, slices
from isopleth.frames import Frame, FrameMap
from isopleth.kernels import Kernel
from isopleth.operators import Operator
from isopleth.score.base import Coordinates, FrameFit, ScoreEstimator, compared_frames, warn_if_all_is_cut
from isopleth.score.field import GaussianBase, KernelTerm
from isopleth.score.ridge_selection import NystromFolds, default_landmarks, parts_within_memory, path_of
from isopleth.score.selection import Candidates, choose_frame
from isopleth.score.spaces import SPACES, Space
from isopleth.score.statistics import NystromStatistics, pooled_system
from isopleth.solvers.regularizers import Regularizer, Tikhonov
from isopleth.tables.checks import enter, warn_of_new_beginning

METHODS = ("uniform", "kmeans++", "leverage")

# Number of samples from which leverage scores are estimated, over the number of landmarks.
PILOTS = 2

# Samples in one block; larger blocks are not faster.
ROWS = 4096


def choose_landmarks(
    z: np.ndarray,
    n_landmarks: int,
    method: str = "uniform",
    *,
    kernel: Kernel,
    weights: np.ndarray | None = None,
    random_state: Any = None,
    budget: Budget = DEFAULT_BUDGET,
) -> np.ndarray:
    r"""Choose distinct samples as landmarks and return their row numbers.

    - "uniform": at random without replacement, as the theory of the Nystrom form assumes [1]_.
    - "kmeans++": each far from the previous ones, like the initial centres of k-means.
    - "leverage": at random without replacement, in proportion to ridge leverage scores of the scalar kernel,
      :math:`w_i\,\langle k_{x_i}, (C + \alpha)^{-1} k_{x_i}\rangle` with :math:`C = \sum_i w_i\, k_{x_i} \otimes k_{x_i}` [2]_.
      C is estimated from twice as many samples as landmarks, drawn by weight with replacement, and :math:`\alpha` makes the
      effective dimension of that estimate half the number of landmarks.

    A weight counts repetitions: copies of a row are one candidate with their summed weight. Drawing the copies one by one and
    skipping rows that were drawn before has the same distribution.

    Parameters
    ----------
    z : ndarray of shape (n, d)
        Samples in frame coordinates.
    n_landmarks : int
        Number of landmarks; all distinct samples if there are no more.
    method : {"uniform", "kmeans++", "leverage"}, default="uniform"
        Method of the choice.
    kernel : Kernel
        The kernel; only "leverage" uses it.
    weights : ndarray of shape (n,), optional
        Nonnegative weights; samples of weight 0 are never landmarks.
    random_state : int, RandomState or None
        Seed.
    budget : Budget
        Memory and threads.

    Returns
    -------
    ndarray of shape (min(n_landmarks, distinct samples),), int
        Row numbers, ascending; for copies the first one.

    Raises
    ------
    InputError
        If `n_landmarks` is not a positive whole number or `method` is none of the three.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric score estimators", ICML 2020, appendix C.1.
    .. [2] A. Rudi, D. Calandriello, L. Carratino, L. Rosasco, "On fast leverage score sampling and optimal learning",
       NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import IMQ
    >>> from isopleth.score.nystrom import choose_landmarks
    >>> z = np.repeat(np.arange(5.0), 3)[:, None]
    >>> choose_landmarks(z, 100, kernel=IMQ())
    array([ 0,  3,  6,  9, 12])
    >>> len(choose_landmarks(z, 2, "kmeans++", kernel=IMQ(), random_state=0))
    2
    """
    n_landmarks = whole_number("n_landmarks", n_landmarks)
    if method not in METHODS:
        raise InputError(f"landmark_method = {method!r}: expected one of {', '.join(map(repr, METHODS))}.")
    first, w = _distinct(z, np.ones(len(z)) if weights is None else weights)
    if n_landmarks >= len(first):
        return first
    random = check_random_state(random_state)
    points = z[first]
    if method == "kmeans++":
        # scikit-learn computes distances by products, which lose digits far from the origin
        chosen = kmeans_plusplus(points - points.mean(axis=0), int(n_landmarks), sample_weight=w, random_state=random)[
            1
        ]
    elif method == "leverage":
        with ONE_BLAS_THREAD:
            scores = _leverage(kernel, points, w, int(n_landmarks), random, budget)
        chosen = _draw(scores, int(n_landmarks), random)
    else:
        chosen = _draw(w, int(n_landmarks), random)
    return first[np.sort(chosen)]


def _distinct(z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first number of each distinct sample and summed weights, in order of appearance, which no rotation changes."""
    _, weights, place = merge_rows(z, w)
    first = np.full(len(weights), len(z))
    rows = np.flatnonzero(place >= 0)
    np.minimum.at(first, place[rows], rows)
    order = np.argsort(first)
    return first[order], weights[order]


def _draw(p: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Draw `count` indices without replacement in proportion to `p`: the smallest of exponential times with rates `p`."""
    log_times = np.log(random.standard_exponential(len(p))) - np.log(p)  # in logarithms, since quotients may overflow
    return np.argsort(log_times, kind="stable")[:count]


def _leverage(
    kernel: Kernel,
    points: np.ndarray,
    w: np.ndarray,
    n_landmarks: int,
    random: np.random.RandomState,
    budget: Budget,
) -> np.ndarray:
    r"""Return ridge leverage scores :math:`w_i (k_{ii} - k_{iJ} (K_{JJ} + q\alpha)^{-1} k_{Ji})` by q pilot samples J."""
    q = PILOTS * n_landmarks
    pilots = points[random.choice(len(points), q, p=w / w.sum())]
    gram = Operator(kernel, pilots, budget=budget).dense()
    ridge = q * _ridge(interruptible(2.0 * q**3, np.linalg.eigvalsh, gram) / q, n_landmarks / 2)
    root = interruptible(q**3 / 3, np.linalg.cholesky, gram + ridge * np.eye(q, dtype=gram.dtype))
    scores = np.empty(len(points))
    for rows in slices(len(points), min(ROWS, budget.memory / (4 * points.itemsize * q))):
        cross = Operator(kernel, pilots, points[rows], budget=budget.within(budget.memory / 4)).dense()
        half = interruptible(float(q) ** 2 * cross.shape[1], solve_triangular, root, cross, lower=True)
        scores[rows] = 1.0 - np.einsum("ij,ij->j", half, half)
    # for a sample that equals a pilot, rounding may lead to less than the smallest possible value
    return w * np.clip(scores, ridge / (q + ridge), 1.0)


def _ridge(eigenvalues: np.ndarray, dimension: float) -> float:
    """Return the ridge at which the effective dimension, the sum of sigma/(sigma + alpha), is `dimension`."""
    sigma = np.maximum(eigenvalues, 0.0)
    floor = float(np.finfo(sigma.dtype).eps) * float(sigma[-1])

    def excess(log_alpha: float) -> float:
        return float(np.sum(sigma / (sigma + math.exp(log_alpha)))) - dimension

    low, high = math.log(floor), math.log(float(sigma.sum()) / dimension) + 1.0
    return floor if excess(low) <= 0.0 else math.exp(brentq(excess, low, high))


class NystromKEF(Streaming, ScoreEstimator):
    r"""Kernel exponential family estimator with kernels at landmarks: time is linear in the number of samples.

    The score is a sum of kernels at m landmarks Z, fitted to all M samples [1]_ [2]_:

    .. math:: \hat s(x) = -K_{xZ} \left(\tfrac1M K_{ZX} K_{XZ} + \alpha K_{ZZ}\right)^+ \hat\zeta(Z)

    and similarly for the other regularizers, see :class:`~isopleth.score.statistics.NystromSystem`. With all distinct rows as
    landmarks it is the truncated form of :class:`KernelScore`. For data that do not fit in memory, use :meth:`partial_fit` chunk
    by chunk, or :func:`isopleth.distributed.fit` part by part.

    If no regularizer is given, the ridge is chosen by cross-validation with the mean Hyvarinen loss of held-out rows. The losses
    follow from the same sums as the fit, so one pass over the rows is enough. The frame and the base are chosen before, on at
    most 512 rows with a kernel at each, as :class:`KernelScore` chooses them.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`KernelScore`. Curl-free fits need matrices of (m n_features) x (m n_features) numbers.
    regularizer : Regularizer, optional
        As for :class:`KernelScore`, but in truncated form. None is Tikhonov with the ridge that
        :func:`~isopleth.score.ridge_selection.choose_ridge` finds, or ``Tikhonov()`` for fewer than 10 distinct rows.
    landmarks : "auto", int or array-like of shape (m, n_features), default="auto"
        Number of landmarks to choose among the rows, or the landmarks themselves. If there are no more distinct rows than that,
        all are landmarks. "auto" is 300; in the curl-free space it is at most 1,500 over the number of columns, so that the time
        of a solution does not grow with the columns, and at most what fits in the memory limit.
    landmark_method : {"uniform", "kmeans++", "leverage"}, default="uniform"
        Method to choose landmarks, see :func:`~isopleth.score.nystrom.choose_landmarks`.
    length_scale, base, frame
        As for :class:`KernelScore`, but "auto" of the length scale is "median".
    random_state : int, RandomState or None
        Seed of the choice of landmarks.
    memory_limit : float, default=2**30
        Bytes that matrices and scratch of sums may take together.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    verbose : bool or int, default=False
        Whether to show the progress of the sums over the rows and of the choice of the ridge on standard error.

    Attributes
    ----------
    centers_ : ndarray of shape (m, n_features)
        The landmarks.
    dual_coef_ : ndarray of shape (m, n_features)
        The coefficient vector of each landmark, in the scaled coordinates of the fit.
    weights_ : ndarray of shape (n_distinct,)
        Summed weights of the distinct rows of `fit`.
    regularizer_ : Regularizer
        The regularizer of the fit, given or chosen.
    search_path_ : RidgePath
        The losses compared and the choice, if the ridge was chosen.
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`KernelScore`.

    Warns
    -----
    DataWarning
        If columns are linearly dependent or have one value in 80 % of the rows, as :class:`KernelScore` does.

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
    >>> from isopleth import NystromKEF
    >>> from isopleth.score import Tikhonov
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> score = NystromKEF(regularizer=Tikhonov(alpha=1e-3), landmarks=50, random_state=0).fit(X)
    >>> near = score.grad_log_density([[1.0, 0.0]])  # the score of the normal density is minus the row
    >>> bool(abs(near[0, 0] + 1.0) < 0.2)
    True
    """

    base: str | None

    _solved = ("_dual_coef", "regularizer_", "search_path_")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ScoreEstimator._parameter_constraints,
        "space": [StrOptions(set(SPACES))],
        "regularizer": [Regularizer, None],
        "landmarks": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), "array-like"],
        "landmark_method": [StrOptions(set(METHODS))],
        "base": [None, StrOptions({"gaussian", "auto"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        regularizer: Regularizer | None = None,
        landmarks: Any = "auto",
        landmark_method: str = "uniform",
        length_scale: Any = "auto",
        base: str | None = "auto",
        frame: str | Frame = "auto",
        random_state: Any = None,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.regularizer = regularizer
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.length_scale = length_scale
        self.base = base
        self.frame = frame
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _choose_coordinates(
        self, space: Space, rows: np.ndarray, weights: np.ndarray, counts: np.ndarray, backend: Backend
    ) -> Coordinates:
        """Choose the frame and the base by cross-validation on at most COMPARED_ROWS rows with a kernel at each."""
        frames, bases = compared_frames(self, rows, counts)
        found = [self._coordinates(frame, rows, weights, counts) for frame in frames]
        if len(frames) * len(bases) == 1:
            return found[0]._replace(base=bases[0])
        candidates = Candidates(bases, (1.0,), self.regularizer)
        framed = [one.as_rows(rows, weights, counts, FOLDS, backend) for one in found]
        place, rounds, _ = choose_frame(space, framed, candidates, deviations(rows, counts))
        return found[place]._replace(base=rounds[place].chosen(candidates)[0])

    def _fit_frame(
        self, space: Space, z: np.ndarray, weights: np.ndarray, base: GaussianBase | None, backend: Backend
    ) -> FrameFit:
        centers = self._choose_centers(space, z, weights)
        sums = self._sums(space, z, weights / weights.mean(), centers, base, backend)
        regularizer = self._choose_regularizer(sums, self.regularizer)
        system = pooled_system(sums)
        del sums  # frees memory for the solution
        coefficients = space.unstack(system.solve(regularizer), z.shape[1])
        warn_if_all_is_cut(regularizer, coefficients, lambda: system.largest)
        at_samples = to_numpy(KernelTerm(space, backend.array(centers), coefficients).value(backend.array(z)))
        if base is not None:
            at_samples = at_samples + base.value(z)
        return FrameFit(at_samples, centers, coefficients, 0.0, {"regularizer_": regularizer})

    def _choose_regularizer(self, sums: list[NystromStatistics], given: Regularizer | None) -> Regularizer:
        """Return the regularizer for these sums; if none is given and the sums are in parts, set `search_path_`."""
        path = path_of(sums)
        if path is None:
            return Tikhonov() if given is None else given
        self.search_path_ = path
        return path.regularizer

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those of earlier calls. No rows are kept.

        The first call chooses the landmarks (unless `landmarks` is an array), the length scale, the base measure and the unit of
        losses from its rows. So its rows should be a representative sample of at least some hundreds. For a given ridge, the
        score then equals that of one fit to all rows with these landmarks, length scale and base, for any batches in any order.
        A ridge that is chosen uses all rows so far and depends on their order as it would on a seed.

        The first call ends with a solution. After later calls the first evaluation solves, so adding single rows is cheap. Sums
        are kept on the CPU, also for tensors. There are no ``grad_log_density_`` and ``weights_``, which have one entry for each
        row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; computed in float64.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative. A row of weight 2 counts as two rows.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If rows, weights or parameters are invalid; for the first call as in :meth:`fit`.

        Warns
        -----
        DataWarning
            If the model was fitted by :meth:`fit`, which keeps no sums: that fit is discarded.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import NystromKEF
        >>> rng = np.random.default_rng(0)
        >>> score = NystromKEF(landmarks=50, random_state=0)
        >>> for day in range(5):
        ...     score = score.partial_fit(rng.normal(size=(400, 2)))
        >>> bool(abs(score.grad_log_density([[1.0, 0.0]])[0, 0] + 1.0) < 0.2)  # the score of the normal density
        True
        """
        self._validate_params()
        running: NystromFolds | None = self._sums_so_far()
        if running is None:
            if hasattr(self, "_centers"):
                warn_of_new_beginning()
            self._forget()
        first = running is None
        table = enter(self, X, sample_weight, reset=first, min_samples=2 if first else 1, adding=not first)
        if running is None:
            rows, merged, _ = distinct_rows(table.rows, table.weights)
            running = self._empty_sums(*self._resolve_frame(rows, merged, NUMPY), merged)()
        self._centers = table.answer(running.landmarks)
        with self._adding(running):
            _add(self._frame, running, table.rows, table.weights)
        # The first call has set these, perhaps as tensors on the device of its rows.
        self.length_scale_, self.unit_ = to_numpy(self.length_scale_), to_numpy(self.unit_)
        return table.finish(self)

    def _forget(self) -> None:
        ScoreEstimator._forget(self)
        Streaming._forget(self)

    def _empty_sums(
        self, space: Space, z: np.ndarray, base: GaussianBase | None, weights: np.ndarray
    ) -> Callable[..., NystromFolds]:
        """Return a function that makes sums over no rows, with landmarks chosen among the distinct rows `z`."""
        landmarks = self._choose_centers(space, z, weights)
        return partial(NystromFolds.empty, space, landmarks, base, self.regularizer)

    def _solve(self, sums: NystromFolds) -> None:
        """Solve for the coefficients, on the backend of the landmarks."""
        self.zeta_factor_ = 0.0
        with ONE_BLAS_THREAD:
            self.regularizer_, system = (
                self._choose_regularizer(sums.parts, sums.regularizer),
                pooled_system(sums.parts),
            )
            coefficients = self._space.unstack(system.solve(self.regularizer_), self._frame.dim)
            warn_if_all_is_cut(self.regularizer_, coefficients, lambda: system.largest)
        self._dual_coef = self._backend.array(coefficients)

    def _sums(
        self,
        space: Space,
        z: np.ndarray,
        weights: np.ndarray,
        centers: np.ndarray,
        base: GaussianBase | None,
        backend: Backend,
    ) -> list[NystromStatistics]:
        """Return sums over all rows, in parts if the ridge is to be chosen."""
        if self.regularizer is not None or len(z) < 2 * FOLDS:
            parts, held_out = [NystromStatistics(space, centers, base, backend)], [np.ones(len(z), dtype=bool)]
        else:
            parts = parts_within_memory(space, centers, base, backend)
            held_out = held_out_parts(len(z), len(parts))
        with Progress("sums over the rows", len(z), self.verbose) as tick:
            for part, rows in zip(parts, held_out, strict=True):
                part.accumulate(z[rows], weights[rows], tick)
        return parts

    def _choose_centers(self, space: Space, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the landmarks in frame coordinates."""
        if not isinstance(self.landmarks, (Integral, str)):
            return self._given_landmarks(z.shape[1])
        count = default_landmarks(space, z.shape[1]) if isinstance(self.landmarks, str) else int(self.landmarks)
        chosen = choose_landmarks(
            z,
            count,
            self.landmark_method,
            kernel=space.kernel,
            weights=weights,
            random_state=self.random_state,
            budget=Budget.of(self),
        )
        return z[chosen]

    def _given_landmarks(self, columns: int) -> np.ndarray:
        expected = f"how many to choose, or finite rows of {columns} columns as X has"
        rows = given_points("landmarks", self.landmarks, columns, expected)
        return self._frame.forward(distinct_rows(rows, np.ones(len(rows)))[0])


# Most distinct rows that the first pass over parts samples.
SAMPLE = 10_000


def fit_parts(estimator: NystromKEF, parts: Parts) -> NystromKEF:
    """Fit the score to rows in parts in two passes, of which only sums are kept.

    The first pass draws up to 10,000 distinct rows. They decide the landmarks (unless `landmarks` is an array), the length scale
    (if it is a rule), the base measure and the unit of losses. The second pass computes the sums. If landmarks, length scale and
    regularizer are given, the score equals that of ``estimator.fit`` to all rows up to rounding.
    """
    estimator._validate_params()
    estimator._forget()
    take_columns(estimator, parts)
    rows, weights = parts.sample(SAMPLE, int(check_random_state(estimator.random_state).randint(2**31)))
    if not len(rows):
        raise InputError("X has no rows of positive weight; a score needs at least two that differ.")
    resolved = estimator._resolve_frame(rows, weights, NUMPY)
    start = partial(estimator._empty_sums(*resolved, weights), merged=True)
    sums = parts.sums(start, partial(_add, estimator._frame))
    estimator._centers = sums.landmarks
    estimator._solve(sums)
    return estimator


def _add(frame: FrameMap, sums: NystromFolds, rows: np.ndarray, weights: np.ndarray | None) -> NystromFolds:
    return sums.accumulate(frame.forward(rows), weights)
