"""Score estimators of the literature, as presets of KernelScore."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT
from isopleth.core.errors import InputError
from isopleth.core.threads import DEFAULT_N_JOBS, slices
from isopleth.frames import Frame
from isopleth.kernels import Kernel
from isopleth.score.kernel_score import KernelScore
from isopleth.score.spaces import Diagonal
from isopleth.solvers.direct import Shifted
from isopleth.solvers.regularizers import LandweberIteration, NuIteration, Regularizer, SpectralCutoff, Tikhonov

_ALPHA: dict[str, list[Any]] = {"alpha": [Interval(Real, 0, None, closed="neither")]}
# Shares of the sum of eigenvalues that SSGE keeps. Of .4 to .999 they have the smallest mean error, or one near to it, over six
# densities in 2 and 8 columns.
_ENERGIES = {"diagonal": 0.95, "curl_free": 0.8}
_STEPS: dict[str, list[Any]] = {"steps": [None, Interval(Integral, 1, None, closed="left")]}


def _constraints(without: tuple[str, ...], own: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the constraints of KernelScore, without the parameters that a preset fixes and with its own ones."""
    inherited = KernelScore._parameter_constraints.items()
    return {name: rule for name, rule in inherited if name not in ("regularizer", "cv", *without)} | own


class _Preset(KernelScore):
    """Score estimator of a paper, whose length scale is the median distance unless it is given."""

    cv = 5
    verbose: bool | int = False

    def _searches_scale(self) -> bool:
        return False


class Stein(_Preset):
    r"""Stein gradient estimator: :class:`~isopleth.KernelScore` in the diagonal space with truncated Tikhonov regularisation.

    With the kernel matrix K of M samples and the vector h of :math:`\hat\zeta` at the samples, the score at the samples is [1]_

    .. math:: \hat s(X) = -\left(\tfrac1M K + \alpha I\right)^{-1} h.

    There are two rules for other rows. The "principled" one is the sum of kernels at the samples that interpolates these values
    [2]_. The "augmented" one is the original: it adds each new row to the samples and fits again with the same :math:`M\alpha`.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`~isopleth.KernelScore`.
    alpha : float, default=0.01
        The ridge, in units of the eigenvalues of K/M.
    length_scale : float, array, "auto", "scott" or "median", default="auto"
        As for :class:`~isopleth.KernelScore`, but "auto" is "median", as in the papers.
    frame : {"scale", "whiten", "smooth", "auto"} or Frame, default="scale"
        As for :class:`~isopleth.KernelScore`. "scale" is that of the paper; "whiten" is more accurate for correlated columns.
    out_of_sample : {"principled", "augmented"}, default="principled"
        The rule for rows that were not fitted. With "augmented" the divergence has no closed form.
    solver, tol, memory_limit, n_jobs
        As for :class:`~isopleth.KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`~isopleth.KernelScore`.

    References
    ----------
    .. [1] Y. Li, R. Turner, "Gradient Estimators for Implicit Models", ICLR 2018.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import Stein
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = Stein(alpha=0.01).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(score[0, 0] < -0.5)
    True
    """

    space, base = "diagonal", None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _constraints(
        ("space", "base", "verbose"), {**_ALPHA, "out_of_sample": [StrOptions({"principled", "augmented"})]}
    )

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        alpha: float = 0.01,
        length_scale: Any = "auto",
        frame: str | Frame = "scale",
        out_of_sample: str = "principled",
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.length_scale = length_scale
        self.frame = frame
        self.out_of_sample = out_of_sample
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def _fixed_regularizer(self) -> Regularizer:
        return Tikhonov(self.alpha)

    def _value(self, z: Array) -> Array:
        if self.out_of_sample == "principled":
            return super()._value(z)
        assert isinstance(self._space, Diagonal)
        weights = self._backend.array(self.weights_)
        return AugmentedStein(self._space, self._centers, weights, self.regularizer_.alpha).value(z)

    def divergence(self, X: Any) -> Array:
        """Compute the divergence of the score, as :meth:`~isopleth.KernelScore.divergence` does.

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
            If `out_of_sample` is "augmented".
        """
        self._refuse_augmented()
        return super().divergence(X)

    def hyvarinen_loss(self, X: Any) -> float:
        """Compute the mean Hyvarinen loss of rows, as :meth:`~isopleth.KernelScore.hyvarinen_loss` does.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            The loss, dimensionless.

        Raises
        ------
        InputError
            If `out_of_sample` is "augmented".
        """
        self._refuse_augmented()
        return super().hyvarinen_loss(X)

    def _refuse_augmented(self) -> None:
        if self.out_of_sample == "augmented":
            raise InputError("out_of_sample = 'augmented' has no divergence in closed form; use 'principled'.")


class SSGE(_Preset):
    r"""Spectral Stein gradient estimator: :class:`~isopleth.KernelScore` with a spectral cut-off.

    With the eigenvalues :math:`\sigma_j` and orthonormal eigenfunctions :math:`e_j` of the operator :math:`\hat L` of
    :class:`~isopleth.KernelScore`, the J largest of which are kept, the score is [1]_

    .. math:: \hat s = -\sum_{j \le J} \sigma_j^{-1} \langle \hat\zeta, e_j \rangle\, e_j.

    The original estimator is in the diagonal space; section 5.2 of [2]_ has the curl-free form.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`~isopleth.KernelScore`.
    space : {"diagonal", "curl_free"}, default="diagonal"
        As for :class:`~isopleth.KernelScore`. "diagonal" is more accurate in few columns.
    energy : float, optional
        Share of the sum of the eigenvalues to keep, unless `threshold` or `count` is given. None is 0.95 in the diagonal space
        and 0.8 in the curl-free one, whose eigenvalues decrease more slowly: the same share keeps more of those that are noise.
        The best share depends on the density, and is larger for separate modes and more rows.
    threshold : float, optional
        Keep the eigenvalues of K/M of at least this size instead.
    count : int or float, optional
        Keep this number of the largest eigenvalues instead; a number between 0 and 1 is a share of all of them.
    frame : {"scale", "whiten", "smooth", "auto"} or Frame, default="scale"
        As for :class:`~isopleth.KernelScore`. "scale" is that of the papers; "whiten" is more accurate for correlated columns.
    length_scale, base, solver, tol, memory_limit, n_jobs, verbose
        As for :class:`~isopleth.KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`~isopleth.KernelScore`.

    References
    ----------
    .. [1] J. Shi, S. Sun, J. Zhu, "A Spectral Approach to Gradient Estimation for Implicit Distributions", ICML 2018.
    .. [2] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import SSGE
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = SSGE(kernel="gaussian", energy=0.9).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(score[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _constraints(
        (),
        {
            "energy": [None, Interval(Real, 0, 1, closed="neither")],
            "threshold": [None, Interval(Real, 0, None, closed="neither")],
            "count": [None, Interval(Real, 0, None, closed="neither")],
        },
    )

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "diagonal",
        energy: float | None = None,
        threshold: float | None = None,
        count: int | float | None = None,
        length_scale: Any = "auto",
        frame: str | Frame = "scale",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.energy = energy
        self.threshold = threshold
        self.count = count
        self.length_scale = length_scale
        self.frame = frame
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fixed_regularizer(self) -> Regularizer:
        if self.threshold is None and self.count is None:
            return SpectralCutoff(energy=_ENERGIES[self.space] if self.energy is None else self.energy)
        return SpectralCutoff(threshold=self.threshold, count=self.count)


class KEF(_Preset):
    r"""Kernel exponential family estimator: :class:`~isopleth.KernelScore` in the curl-free space with Tikhonov regularisation.

    The log density is a sum of kernels fitted by score matching [1]_. With :math:`\hat L` and :math:`\hat\zeta` of
    :class:`~isopleth.KernelScore`, its gradient is in the full form

    .. math:: \hat s = -(\hat L + \alpha I)^{-1} \hat\zeta = -\tfrac1\alpha \hat\zeta + \sum_m K(\cdot, x_m)\, c_m.

    The truncated form omits the term :math:`\hat\zeta`: it is the sum of kernels at the samples that has the same values there.
    For small `alpha` the full form takes very large values away from the samples, the truncated one does not.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`~isopleth.KernelScore`.
    alpha : float, default=0.03
        The ridge, in units of the eigenvalues of K/M.
    truncated : bool, default=True
        Whether to omit the term :math:`\hat\zeta`; False is the form of the paper.
    frame : {"scale", "whiten", "smooth", "auto"} or Frame, default="scale"
        As for :class:`~isopleth.KernelScore`. "scale" is that of the papers; "whiten" is more accurate for correlated columns.
    length_scale, base, solver, tol, memory_limit, n_jobs, verbose
        As for :class:`~isopleth.KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`~isopleth.KernelScore`.

    References
    ----------
    .. [1] B. Sriperumbudur et al., "Density Estimation in Infinite Dimensional Exponential Families", JMLR 18, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import KEF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = KEF(alpha=0.01).fit(X)
    >>> near, far = model.log_density([[0.0, 0.0], [2.0, 2.0]])
    >>> bool(near > far + 2.0)  # the difference is 4 for the true density
    True
    """

    space = "curl_free"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _constraints(
        ("space",), {**_ALPHA, "truncated": ["boolean"]}
    )

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        alpha: float = 0.03,
        truncated: bool = True,
        length_scale: Any = "auto",
        frame: str | Frame = "scale",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.truncated = truncated
        self.length_scale = length_scale
        self.frame = frame
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fixed_regularizer(self) -> Regularizer:
        return Tikhonov(self.alpha, bool(self.truncated))


class NuMethod(_Preset):
    r"""Nu-method: :class:`~isopleth.KernelScore` with an accelerated iteration that is stopped early.

    With :math:`\hat L` and :math:`\hat\zeta` of :class:`~isopleth.KernelScore` and the largest eigenvalue :math:`\kappa^2` of
    :math:`\hat L`, step t of the iteration from :math:`s_0 = 0` is [1]_

    .. math:: s_t = s_{t-1} + \mu_t (s_{t-1} - s_{t-2}) - \frac{\omega_t}{\kappa^2} (\hat L s_{t-1} + \hat\zeta),

    where :math:`\mu_t` and :math:`\omega_t` depend on t and `nu` alone.

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`~isopleth.KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`~isopleth.KernelScore`.
    alpha : float, default=0.03
        Strength: the number of steps is :math:`\kappa/\sqrt\alpha`, rounded up.
    steps : int, optional
        The number of steps; takes precedence over `alpha`.
    nu : float, default=1.0
        The qualification of the method.
    frame : {"scale", "whiten", "smooth", "auto"} or Frame, default="scale"
        As for :class:`~isopleth.KernelScore`. "scale" is that of the papers; "whiten" is more accurate for correlated columns.
    length_scale, base, solver, tol, memory_limit, n_jobs, verbose
        As for :class:`~isopleth.KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`~isopleth.KernelScore`.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import NuMethod
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = NuMethod(steps=8).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(score[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _constraints(
        (), {**_ALPHA, **_STEPS, "nu": [Interval(Real, 0, None, closed="neither")]}
    )

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        alpha: float = 0.03,
        steps: int | None = None,
        nu: float = 1.0,
        length_scale: Any = "auto",
        frame: str | Frame = "scale",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.alpha = alpha
        self.steps = steps
        self.nu = nu
        self.length_scale = length_scale
        self.frame = frame
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fixed_regularizer(self) -> Regularizer:
        if self.steps is not None:
            return NuIteration(steps=self.steps, nu=self.nu)
        return NuIteration(self.alpha, nu=self.nu)


class Landweber(_Preset):
    r"""Landweber iteration: :class:`~isopleth.KernelScore` with gradient descent that is stopped early.

    With :math:`\hat L` and :math:`\hat\zeta` of :class:`~isopleth.KernelScore` and the step size :math:`\eta`, the iteration from
    :math:`s_0 = 0` is [1]_

    .. math:: s_{t+1} = s_t - \eta\,(\hat L s_t + \hat\zeta).

    Parameters
    ----------
    kernel : str or Kernel, default="imq"
        As for :class:`~isopleth.KernelScore`.
    space : {"curl_free", "diagonal"}, default="curl_free"
        As for :class:`~isopleth.KernelScore`.
    alpha : float, default=0.03
        Strength: the number of steps is :math:`1/(\eta\alpha)`, rounded up.
    steps : int, optional
        The number of steps; takes precedence over `alpha`.
    step_size : float, optional
        :math:`\eta`, less than two over the largest eigenvalue of K/M. None is 0.9 over that eigenvalue.
    frame : {"scale", "whiten", "smooth", "auto"} or Frame, default="scale"
        As for :class:`~isopleth.KernelScore`. "scale" is that of the papers; "whiten" is more accurate for correlated columns.
    length_scale, base, solver, tol, memory_limit, n_jobs, verbose
        As for :class:`~isopleth.KernelScore`.

    Attributes
    ----------
    grad_log_density_ : ndarray of shape (n_samples, n_features)
        The score at the rows of `fit`. The other attributes are those of :class:`~isopleth.KernelScore`.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score import Landweber
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = Landweber(steps=50).fit(X).grad_log_density([[1.0, 0.0]])
    >>> bool(score[0, 0] < -0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _constraints(
        (), {**_ALPHA, **_STEPS, "step_size": [None, Interval(Real, 0, None, closed="neither")]}
    )

    def __init__(
        self,
        kernel: str | Kernel = "imq",
        space: str = "curl_free",
        alpha: float = 0.03,
        steps: int | None = None,
        step_size: float | None = None,
        length_scale: Any = "auto",
        frame: str | Frame = "scale",
        base: str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.space = space
        self.alpha = alpha
        self.steps = steps
        self.step_size = step_size
        self.length_scale = length_scale
        self.frame = frame
        self.base = base
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fixed_regularizer(self) -> Regularizer:
        if self.steps is not None:
            return LandweberIteration(steps=self.steps, step_size=self.step_size)
        return LandweberIteration(self.alpha, step_size=self.step_size)


class AugmentedStein:
    r"""Scores of new rows, each by a fit to the samples and that row.

    With :math:`N` samples, :math:`\eta = N\alpha` and :math:`r = N\zeta`, the refit solves :math:`(K + \eta I)\, s = -r` for
    N + 1 rows. All refits share one factorisation; extending it by the row q gives

    .. math:: s_q = -\frac{r_q - k_q^\top (K + \eta I)^{-1} (r + t_q)}{k(q, q) + \eta - k_q^\top (K + \eta I)^{-1} k_q},

    where :math:`t_q` is the change of r at the samples by the new row.
    """

    def __init__(self, space: Diagonal, z: Array, weights: Array, alpha: float) -> None:
        self.space, self.z = space, z
        xp = namespace(z)
        total = float(xp.sum(weights))
        share = weights / total
        self.count = max(total, float(z.shape[0]))
        self.share, self.ridge = share, self.count * alpha
        self.root = xp.sqrt(self.count * share)
        self.factor = Shifted(self.root[:, None] * space.gram(z) * self.root, self.ridge)
        self.data = self.count * space.zeta(z, z, share)

    def value(self, x: Array) -> Array:
        """Return the score at each of the rows `x`, in frame coordinates."""
        bytes_a_row = 6 * 8 * self.z.shape[0]
        parts = slices(x.shape[0], self.space.budget.memory // bytes_a_row)
        return namespace(x).concat([self._block(x[part, :]) for part in parts])

    def _block(self, x: Array) -> Array:
        """Return the score at rows, each of which has been added to the samples."""
        xp = namespace(x)
        k = self.space.gram(x, self.z) * self.root
        solved = self.factor.solve(k.T).T
        own = self.count * self.space.zeta(x, self.z, self.share)
        # The row changes the data at sample m by -2 phi' (z_m - x).
        pairs = solved * self.root * self.space.slopes(x, self.z)
        added = pairs @ self.z - xp.sum(pairs, axis=1, keepdims=True) * x
        schur = float(self.space.kernel(0.0)) + self.ridge - xp.sum(k * solved, axis=1)
        return -(own - (solved * self.root) @ self.data - added) / schur[:, None]
