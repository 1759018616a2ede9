"""SSGE: the spectral Stein gradient estimator."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.regularized import SPACE, RegularizedScore
from isopleth.solvers.regularizers import Regularizer, SpectralCutoff


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
