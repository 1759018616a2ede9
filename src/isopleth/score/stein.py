"""Stein: the Stein gradient estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from isopleth._namespace import Array
from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.score.augmented import AugmentedStein
from isopleth.score.regularized import ALPHA, RegularizedScore
from isopleth.score.spaces import Diagonal
from isopleth.solvers.regularizers import Regularizer, Tikhonov


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
        weights = self._home.send(self.weights_)
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
