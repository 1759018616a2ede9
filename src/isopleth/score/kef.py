"""KEF: the kernel exponential family estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.regularized import ALPHA, RegularizedScore
from isopleth.solvers.regularizers import Regularizer, Tikhonov


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
