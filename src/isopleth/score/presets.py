"""Stein: the Stein gradient estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.backend import Array
from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.base import ALPHA, SPACE, RegularizedScore
from isopleth.score.spaces import Diagonal
from isopleth.score.stein_refit import AugmentedStein
from isopleth.solvers.regularizers import LandweberIteration, NuIteration, Regularizer, SpectralCutoff, Tikhonov


class Stein(RegularizedScore):
    r"""The Stein gradient estimator: diagonal, Tikhonov.

    At the samples :math:`s = -(K/M + \alpha I)^{-1} h` [1]_. For other rows there are two rules. The principled one is the sum of
    kernels that has these values at the samples [2]_; the original one, "augmented", adds each new row to the samples and fits
    again with the same :math:`M\alpha`. It takes what it is given and tunes nothing.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    alpha : float, default=0.01
        The ridge, in units of the eigenvalues of K/M.
    length_scale : float, array, "scott" or "median", default="median"
        As for :class:`KernelScore`.
    out_of_sample : {"principled", "augmented"}, default="principled"
        The rule for rows that were not fitted. The augmented one has no divergence in closed form.
    solver, tol, memory_limit, n_jobs
        As for :class:`KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    References
    ----------
    .. [1] Y. Li, R. Turner, "Gradient Estimators for Implicit Models", ICLR 2018.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Stein
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> near = Stein(alpha=0.01).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(near[0, 0] < -0.5)
    True
    """

    base = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in RegularizedScore._parameter_constraints.items() if name != "base"},
        **ALPHA,
        "out_of_sample": [StrOptions({"principled", "augmented"})],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        alpha: float = 0.01,
        length_scale: Any = "median",
        out_of_sample: str = "principled",
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.length_scale = length_scale
        self.out_of_sample = out_of_sample
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return "diagonal"

    def _regularizer(self) -> Regularizer:
        return Tikhonov(self.alpha)

    def _value(self, z: Array) -> Array:
        if self.out_of_sample == "principled":
            return super()._value(z)
        assert isinstance(self._space, Diagonal)
        weights = self._backend.array(self.weights_)
        return AugmentedStein(self._space, self._centers, weights, self.regularizer_.alpha).value(z)

    def divergence(self, X: Any) -> Array:
        """As that of :class:`KernelScore`, for the principled rule.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of the data.

        Raises
        ------
        InputError
            For the augmented rule.
        """
        self._refuse_augmented()
        return super().divergence(X)

    def hyvarinen_loss(self, X: Any) -> float:
        """As that of :class:`KernelScore`, for the principled rule.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            Without a unit.

        Raises
        ------
        InputError
            For the augmented rule.
        """
        self._refuse_augmented()
        return super().hyvarinen_loss(X)

    def _refuse_augmented(self) -> None:
        if self.out_of_sample == "augmented":
            raise InputError("out_of_sample = 'augmented' has no divergence in closed form; use 'principled'.")


class SSGE(RegularizedScore):
    """The spectral Stein gradient estimator: cut-off, diagonal or, as section 5.2 of [2]_, curl-free.

    It takes what it is given and tunes nothing.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    space : {"diagonal", "curl_free"}, default="diagonal"
        Of many columns, curl-free kernels need a smaller share of the eigenvalues; of few, diagonal ones do better.
    energy : float, default=0.95
        Share of the sum of eigenvalues to keep, unless `threshold` or `count` is given.
    threshold : float, optional
        Keep eigenvalues of K/M of at least this size instead.
    count : int or float, optional
        Keep so many of the largest instead; a number between 0 and 1 is a share of all.
    length_scale, base, solver, tol, memory_limit, n_jobs
        As for :class:`KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    References
    ----------
    .. [1] J. Shi, S. Sun, J. Zhu, "A Spectral Approach to Gradient Estimation for Implicit Distributions", ICML 2018.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SSGE
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> near = SSGE(kernel="gaussian", energy=0.9).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(near[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        **SPACE,
        "energy": [Interval(Real, 0, 1, closed="neither")],
        "threshold": [None, Interval(Real, 0, None, closed="neither")],
        "count": [None, Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "diagonal",
        energy: float = 0.95,
        threshold: float | None = None,
        count: int | float | None = None,
        length_scale: Any = "median",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.energy = energy
        self.threshold = threshold
        self.count = count
        self.length_scale = length_scale
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return self.space

    def _regularizer(self) -> Regularizer:
        if self.threshold is None and self.count is None:
            return SpectralCutoff(energy=self.energy)
        return SpectralCutoff(threshold=self.threshold, count=self.count)


class KEF(RegularizedScore):
    r"""The kernel exponential family estimator: curl-free, Tikhonov.

    Its log density is a sum of kernels, fitted by score matching [1]_. The paper's full form, had by ``truncated=False``, has the
    same score at the samples and explodes away from them for small `alpha`. It takes what it is given and tunes nothing.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`KernelScore`.
    alpha : float, default=0.03
        The ridge, in units of the eigenvalues of K/M.
    truncated : bool, default=True
        Leave out the term zeta.
    length_scale, base, solver, tol, memory_limit, n_jobs
        As for :class:`KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. All others are those of :class:`KernelScore`.

    References
    ----------
    .. [1] B. Sriperumbudur et al., "Density Estimation in Infinite Dimensional Exponential Families", JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import KEF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KEF(alpha=0.01).fit(X)
    >>> near, far = model.log_density([[0.0, 0.0], [2.0, 2.0]])
    >>> bool(near > far + 2.0)  # 4 for the true density
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizedScore._parameter_constraints,
        **ALPHA,
        "truncated": ["boolean"],
    }

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        alpha: float = 0.03,
        truncated: bool = True,
        length_scale: Any = "median",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.truncated = truncated
        self.length_scale = length_scale
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _space_name(self) -> str:
        return "curl_free"

    def _regularizer(self) -> Regularizer:
        return Tikhonov(self.alpha, bool(self.truncated))


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
