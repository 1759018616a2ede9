"""Ratio of two densities by the Kullback-Leibler importance estimation procedure, as a baseline."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.difference.grids import length_scales
from isopleth.difference.samples import enter_both
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD
from isopleth.progress import Progress
from isopleth.rows import folds_of
from isopleth.tables.checks import column_names, enter, varying_columns

# Kernels with a smaller mean over Y are left out, because they would be divided by nearly 0.
_UNSEEN = 1e-200


class KLIEP(BaseEstimator):
    r"""Ratio of densities p/q for samples X of p and Y of q, and the Kullback-Leibler divergence that follows [1]_.

    A baseline for :class:`LSDD` in samples with outliers. The ratio
    :math:`w(x) = \sum_l a_l e^{-|x - c_l|^2/2}` with :math:`a_l \ge 0` and centres among the rows of X maximises
    :math:`\tfrac1n \sum_i \log w(x_i)` subject to :math:`\tfrac1{n'} \sum_j w(y_j) = 1`; the maximum estimates the divergence.

    Parameters
    ----------
    length_scale : "auto", float, array of shape (n_features,) or of shape (k, 1) or (k, n_features), default="auto"
        As for :class:`LSDD`; of several candidates the one with the largest held-out mean log ratio is chosen.
    centers : int, default=100
        Largest number of centres, drawn at random from X.
    cv : int, default=5
        Number of folds of X for the choice of the length scale.
    tol : float, default=1e-3
        Tolerance in nats: the distance of the mean log ratio from its maximum.
    max_iter : int, default=2000
        Largest number of steps.
    memory_limit : float, default=2**30
        Bytes that tiles of the kernel matrix and scratch may take together.
    n_jobs : int or None, default=-1
        Number of threads: -1 uses all processors; None uses one, or the number set by ``joblib.parallel_config``.
    random_state : int, RandomState or None
        Seed of centres and folds.
    verbose : bool or int, default=False
        Whether to show the progress of the cross-validation on standard error.

    Attributes
    ----------
    divergence_ : float
        Mean log ratio over X, in nats.
    centers_ : array of shape (b, n_features)
        The centres. This and other arrays are in the library and on the device of X.
    dual_coef_ : array of shape (b,)
        The a_l.
    length_scale_ : array of shape (n_features,)
        The length scale of each column; NaN for constant columns, which are dropped.
    n_iter_ : int
        Number of steps.
    residual_ : float
        Bound on how far from its maximum the mean log ratio is, in nats.

    References
    ----------
    .. [1] M. Sugiyama, T. Suzuki, S. Nakajima, H. Kashima, P. von Buenau, M. Kawanabe, "Direct importance estimation for
       covariate shift adaptation", Annals of the Institute of Statistical Mathematics 60, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.difference import KLIEP
    >>> rng = np.random.default_rng(0)
    >>> baseline = KLIEP(random_state=0).fit(rng.normal(1.0, size=(200, 1)), rng.normal(size=(200, 1)))
    >>> (baseline.ratio([[-1.0], [2.0]]) > 1).tolist()
    [False, True]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "length_scale": [StrOptions({"auto"}), Real, "array-like"],
        "centers": [Interval(Integral, 1, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        length_scale: Any = "auto",
        centers: int = 100,
        cv: int = 5,
        tol: float = 1e-3,
        max_iter: int = 2000,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.length_scale = length_scale
        self.centers = centers
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit the ratio.

        Parameters
        ----------
        X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
            Rows of the two samples. If X is an array of a library other than NumPy, the kernel and the weights are computed
            in that library and on its device.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a sample cannot be used, or a row of X lies so far from all rows of Y that no ratio is finite.
        """
        self._validate_params()
        table, other = enter_both(self, X, Y, min_samples=2)
        x, y, backend = table.rows, other.rows, table.backend
        both = np.vstack([x, y])
        keep = varying_columns(self, both)
        frame = Frame.centred(both, keep)
        member = np.repeat(np.eye(2), (len(x), len(y)), axis=0)
        scales, _ = length_scales(self.length_scale, frame.centre(both), member, keep, column_names(self))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self.centers_ = x[np.sort(rng.permutation(len(x))[: self.centers])]
        fold = folds_of(len(x), int(rng.integers(2**31)), min(int(self.cv), len(x)))
        with ONE_BLAS_THREAD:
            systems = [self._functions(frame.scaled(scale), x, y, backend) for scale in scales]
            held_out = self._held_out_ratios(systems, fold) if len(scales) > 1 else [0.0]
            best = int(np.argmax(held_out))
            functions, means = systems[best]
            if not np.isfinite(held_out[best]) or not _all_seen(functions):
                raise InputError(
                    "some rows of X lie too far from all rows of Y for a ratio of densities; give length_scale."
                )
            weights, self.n_iter_, self.residual_ = mixture_weights(functions, self.tol, self.max_iter)
        if self.residual_ > self.tol:
            warnings.warn(
                f"the mean log ratio may be {self.residual_:.2g} below its maximum after {self.n_iter_} steps; raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._frame = frame.scaled(scales[best])
        self.dual_coef_ = to_numpy(weights) / means
        self.length_scale_ = frame.by_column(scales[best])
        self.divergence_ = float(np.mean(np.log(to_numpy(functions @ weights))))
        return table.finish(self)

    def _system(self, frame: Frame, backend: Backend) -> GaussianSystem:
        centers = backend.array(frame.enter(to_numpy(self.centers_)))
        return GaussianSystem(centers, 0.0, self.memory_limit, self.n_jobs)

    def _functions(self, frame: Frame, x: np.ndarray, y: np.ndarray, backend: Backend) -> tuple[Array, np.ndarray]:
        """Return the kernels at the rows of X, scaled to mean 1 over Y, and their means; 0 where Y is too far from a centre."""
        system = self._system(frame, backend)
        means = system.sums(frame.enter(y), np.full((len(y), 1), 1.0 / len(y)))[:, 0]
        seen = means > _UNSEEN
        values = system.matrix(frame.enter(x)) / backend.array(np.where(seen, means, 1.0))
        return values * backend.array(seen.astype(np.float64)), np.where(seen, means, np.inf)

    def _held_out_ratios(self, systems: list[tuple[Array, np.ndarray]], fold: np.ndarray) -> list[float]:
        """Return :meth:`_held_out` of each system."""
        with Progress("cross-validation", len(systems) * (int(fold.max()) + 1), self.verbose) as tick:
            return [self._held_out(system, fold, tick) for system in systems]

    def _held_out(self, system: tuple[Array, np.ndarray], fold: np.ndarray, tick: Callable[[], None]) -> float:
        """Return the mean log ratio over the rows of X, each from the ratio fitted without its fold."""
        functions, _ = system
        xp, backend = namespace(functions), Backend.of(functions)
        out = np.empty(len(fold))
        for k in range(int(fold.max()) + 1):
            inside = xp.take(functions, backend.array(np.flatnonzero(fold != k)), axis=0)
            if not _all_seen(inside):
                return -np.inf
            weights, _, _ = mixture_weights(inside, self.tol, self.max_iter)
            own = xp.take(functions, backend.array(np.flatnonzero(fold == k)), axis=0)
            with np.errstate(divide="ignore"):
                out[fold == k] = np.log(to_numpy(own @ weights))
            tick()
        return float(out.mean())

    def ratio(self, X: Any) -> Array:
        """Compute the fitted ratio of densities at each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; their library and device are those of the answer.

        Returns
        -------
        array of shape (n_samples,)
            p/q.
        """
        check_is_fitted(self, "dual_coef_")
        table = enter(self, X)
        system = self._system(self._frame, Backend.of(self.centers_))
        values = system.values(self._frame.enter(table.rows), to_numpy(self.dual_coef_)[:, None])
        return table.answer(values[:, 0])


def _all_seen(functions: Array) -> bool:
    """Tell whether some function is positive at each row."""
    xp = namespace(functions)
    return bool(xp.all(xp.max(functions, axis=1) > 0))


def mixture_weights(functions: Array, tol: float, max_iter: int) -> tuple[Array, int, float]:
    r"""Compute the weights on the simplex that maximise the mean log of a mixture.

    Each step multiplies the weights by the gradient, which never lowers the mean log. The objective is concave, so the
    largest entry of the gradient less 1 bounds the distance from the maximum.

    Parameters
    ----------
    functions : array of any library, of shape (n, b)
        Values of the functions at the rows; each row has a positive one.
    tol : float
        Bound on the distance from the maximum at which to stop, in nats.
    max_iter : int
        Largest number of steps.

    Returns
    -------
    weights : array of shape (b,), of the library and on the device of `functions`
    n_iter : int
        Number of steps.
    residual : float
        Bound on the distance from the maximum.
    """
    n, b = functions.shape
    xp = namespace(functions)
    functions = functions / xp.max(functions, axis=1, keepdims=True)  # changes no weights, and nothing overflows
    weights = Backend.of(functions).array(np.full(b, 1.0 / b))
    step = 0
    while True:
        gradient = (1.0 / (functions @ weights)) @ functions / n
        residual = float(xp.max(gradient) - 1.0)
        if residual <= tol or step == max_iter:
            return weights, step, residual
        weights *= gradient
        step += 1
