"""NuMethod and Landweber: iterations that are stopped early."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.regularized import ALPHA, SPACE, RegularizedScore
from isopleth.solvers.regularizers import LandweberIteration, NuIteration, Regularizer

_STRENGTH: dict[str, list[Any]] = {**SPACE, **ALPHA, "steps": [None, Interval(Integral, 1, None, closed="left")]}


class NuMethod(RegularizedScore):
    """The nu-method: accelerated iteration stopped early, curl-free or diagonal.

    It takes what it is given and tunes nothing.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`KernelScore`.
    alpha : float, default=0.03
        Strength: as many steps as the root of the largest eigenvalue of K/M over it.
    steps : int, optional
        The number of steps instead.
    nu : float, default=1.0
        The qualification.
    length_scale, base, solver, tol, memory_limit, n_jobs
        As for :class:`KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NuMethod
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> near = NuMethod(steps=8).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(near[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        **_STRENGTH,
        "nu": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        alpha: float = 0.03,
        steps: int | None = None,
        nu: float = 1.0,
        length_scale: Any = "median",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.alpha = alpha
        self.steps = steps
        self.nu = nu
        self.length_scale = length_scale
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _regularizer(self) -> Regularizer:
        if self.steps is not None:
            return NuIteration(steps=self.steps, nu=self.nu)
        return NuIteration(self.alpha, nu=self.nu)


class Landweber(RegularizedScore):
    """Landweber's iteration: gradient descent stopped early, curl-free or diagonal.

    It takes what it is given and tunes nothing.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`KernelScore`.
    alpha : float, default=0.03
        Strength: as many steps as one over it and the step size.
    steps : int, optional
        The number of steps instead.
    step_size : float, optional
        Less than two over the largest eigenvalue of K/M; 0.9 over it when left out.
    length_scale, base, solver, tol, memory_limit, n_jobs
        As for :class:`KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Landweber
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> near = Landweber(steps=50).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(near[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        **_STRENGTH,
        "step_size": [None, Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        alpha: float = 0.03,
        steps: int | None = None,
        step_size: float | None = None,
        length_scale: Any = "median",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.alpha = alpha
        self.steps = steps
        self.step_size = step_size
        self.length_scale = length_scale
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _regularizer(self) -> Regularizer:
        if self.steps is not None:
            return LandweberIteration(steps=self.steps, step_size=self.step_size)
        return LandweberIteration(self.alpha, step_size=self.step_size)
