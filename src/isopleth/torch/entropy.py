"""Compute gradients of the entropy of samples, and of mutual information, from an estimated score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from isopleth.core.arrays import host_view
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, whole_number
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.score.base import ScoreEstimator
from isopleth.torch.checks import (
    TensorFunction,
    check_finite,
    check_like,
    check_points,
    computed,
    first_derivatives,
    outside_graphs,
)
from isopleth.torch.stacked_score import Stack, stacked_score

_NO_SECOND = (
    "the gradient of an entropy surrogate is an estimated score, which has no derivative; differentiate it once only."
)


class _Surrogate(TensorFunction):
    """The number -mean(score . x), where the score at the rows x is estimated from them and is a constant."""

    @staticmethod
    def forward(x: Tensor, estimate: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        wide = computed(x)
        slope = estimate(wide) / -len(x)
        return (slope * wide).sum().to(x.dtype), slope.to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(inputs[0], output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None]:
        # It depends on the rows, so that its derivative is refused instead of 0.
        (slope,) = first_derivatives(lambda x, slope: (slope.clone(),), *ctx.saved_tensors, refusal=_NO_SECOND)
        return grad * slope, None


@outside_graphs
def entropy_surrogate(
    x: Tensor,
    estimator: Any = None,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Return a number whose gradient is that of the entropy of the distribution of `x`.

    For :math:`x_i = g_\phi(z_i)` with density q, :math:`\nabla_\phi H(q) = -\mathbb{E}\,[\nabla_\phi g_\phi(z)^\top \nabla \log
    q(x)]`, because the mean of :math:`\nabla_\phi \log q` is 0.
    So only the score is needed, estimated at the samples and held constant [1]_:

    .. math:: -\frac1n \sum_i \hat s(x_i)\cdot x_i, \qquad \hat s \approx \nabla \log q.

    Only its gradient has a meaning, its value does not. For the entropy itself see :meth:`isopleth.KDE.score_samples`.

    By default the score is a weighted sum of the scores of simple models: Gaussians of four shrinkages of the covariance,
    elliptical models with heavy tails, kernel density estimates of six length scales, and, for up to four columns, score
    matching with kernels at landmarks. All but the last also stand in a smooth frame, a sinh-arcsinh map of each column and
    whitening. At each sample the models are fitted to the other ones, which is possible in closed
    form. Weights of 0 or more are chosen by the Hyvarinen loss [2]_ at the samples, in the coordinates of the columns; a model
    enters only if it decreases the loss by more than the standard error. Samples far from all others, in the metric of their
    covariance, count less in this choice. If the standard deviations of two columns differ by more than a factor of five,
    columns are divided by them first. Columns of which 80 % of the samples have one value have the score 0, and on the CPU so
    have directions in which no sample extends, such as the difference of two equal columns.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        Samples, with the graph that made them: float64, float32, float16 or bfloat16. The score is estimated in float64.
    estimator : estimator, optional
        Estimator of the score: :class:`~isopleth.KernelScore` or one of its presets, :class:`~isopleth.SOSREP` or
        :class:`~isopleth.KDE`. A clone is fitted to `x` in each call; set its length scale and strength to avoid a search
        each time, or use :class:`EntropyGradient`.
    memory_limit : float, default=2**30
        Memory for arrays over pairs of rows, in bytes. An estimator has its own limit.
    n_jobs : int or None, default=-1
        CPU threads; -1 is all processors, None is one or what joblib.parallel_config says. An estimator has its own number.

    Returns
    -------
    Tensor of shape ()
        The surrogate, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If `x` is not a table of floating-point numbers, has fewer than two distinct rows or entries that are not finite, or if
        the estimator cannot be fitted to it. On other devices than the CPU, the default estimator does not look at the values,
        because that would wait for the device; the gradient has NaN then.

    See Also
    --------
    EntropyGradient : The same for a training loop; keeps choices between steps.
    mutual_information_surrogate : The mutual information of two sets of columns.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.
    .. [2] A. Hyvarinen, "Estimation of non-normalized statistical models by score matching", JMLR 6, 2005.

    Examples
    --------
    The entropy of a normal distribution is log scale plus a constant; its derivative is 1/scale.

    >>> import torch
    >>> from isopleth.torch import entropy_surrogate
    >>> z = torch.randn(300, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> scale = torch.tensor(2.0, requires_grad=True)
    >>> entropy_surrogate(scale * z).backward()
    >>> abs(float(scale.grad) - 0.5) < 0.1
    True
    """
    check_points(x, x)
    if estimator is None:
        check_rows(x)

    def estimate(rows: Tensor) -> Tensor:
        if estimator is not None:
            return _fitted_score(rows, clone(estimator))[0]
        return _stacked(rows, None, Budget(memory_limit, n_jobs))[0]

    return _Surrogate.apply(x, estimate)[0]


@outside_graphs
def mutual_information_surrogate(
    x: Tensor,
    z: Tensor,
    estimator: Any = None,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Return a number whose gradient is that of the mutual information of `x` and `z`, paired row by row.

    It is the sum of three entropy surrogates, :math:`I(x, z) = H(x) + H(z) - H(x, z)`, with one score for each [1]_. Only its
    gradient has a meaning, its value does not. A tensor that does not require a gradient costs the same.

    Parameters
    ----------
    x, z : Tensor of shape (n, d) and (n, k)
        Samples, with the graphs that made them.
    estimator, memory_limit, n_jobs
        As for :func:`entropy_surrogate`.

    Returns
    -------
    Tensor of shape ()
        The surrogate, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If the tensors have different numbers of rows, or one of them is not as :func:`entropy_surrogate` expects.

    References
    ----------
    .. [1] L. Wen, Y. Zhou, L. He, M. Zhou, Z. Xu, "Mutual information gradient estimation for representation learning", ICLR
       2020.

    Examples
    --------
    Noise of variance :math:`s^2` on a standard normal column leaves the information :math:`\log(1 + s^{-2})/2`, whose derivative
    at s = 1 is -1/2.

    >>> import torch
    >>> from isopleth.torch import mutual_information_surrogate
    >>> generator = torch.Generator().manual_seed(0)
    >>> x, noise = torch.randn(2, 1000, 1, generator=generator, dtype=torch.float64)
    >>> s = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    >>> mutual_information_surrogate(x, x + s * noise).backward()
    >>> abs(float(s.grad) + 0.5) < 0.1
    True
    """
    for name, a in (("x", x), ("z", z)):
        check_points(a, a, name, name)
    if len(x) != len(z):
        raise InputError(f"x has {len(x)} rows and z has {len(z)}; expected as many, paired row by row.")
    check_like("z", z, "x", x)
    of_x, of_z, of_both = (
        entropy_surrogate(rows, estimator, memory_limit=memory_limit, n_jobs=n_jobs)
        for rows in (x, z, torch.cat([x, z], dim=1))
    )
    return of_x + of_z - of_both


class EntropyGradient:
    """Entropy surrogate for training loops, which keeps length scale and strength between steps.

    Calling it with samples returns :func:`entropy_surrogate` of them. In the first call and then every `renew_every` calls, the
    length scale and the strength are chosen anew; in between, they are kept, which saves time and noise. The score itself is
    estimated from the samples of each call.

    Parameters
    ----------
    estimator : estimator, optional
        As for :func:`entropy_surrogate`. The weights of the default are kept, relative to the spread of the samples; of
        an estimator, the length scale, the regularizer and the base that its search has found are kept as they are.
    renew_every : int, default=50
        Number of calls for which the choices are used.
    memory_limit : float, default=2**30
        As for :func:`entropy_surrogate`.
    n_jobs : int or None, default=-1
        As for :func:`entropy_surrogate`.

    Attributes
    ----------
    n_calls_ : int
        Number of calls so far.

    Raises
    ------
    InputError
        If `renew_every` is not a positive integer.

    Notes
    -----
    Choosing anew waits for the device once; the calls in between do not.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import EntropyGradient
    >>> z = torch.randn(300, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> scale = torch.tensor(0.5, requires_grad=True)
    >>> entropy = EntropyGradient(renew_every=10)
    >>> optimiser = torch.optim.SGD([scale], lr=0.2)
    >>> for step in range(40):  # minimise the divergence from the standard normal density
    ...     optimiser.zero_grad()
    ...     x = scale * z
    ...     (0.5 * (x**2).sum(dim=1).mean() - entropy(x)).backward()
    ...     optimiser.step()
    >>> bool(((scale * z).std() - 1.0).abs() < 0.1)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        renew_every: int = 50,
        *,
        memory_limit: float = DEFAULT_MEMORY_LIMIT,
        n_jobs: int | None = DEFAULT_N_JOBS,
    ) -> None:
        self.estimator: Any = estimator
        self.renew_every: int = whole_number("renew_every", renew_every)
        self.memory_limit: float = memory_limit
        self.n_jobs: int | None = n_jobs
        self.n_calls_: int = 0
        # The Stack of the default, or an estimator whose parameters are fixed.
        self._kept: Any = None
        self._n_columns: int = -1

    @outside_graphs
    def __call__(self, x: Tensor) -> Tensor:
        """Return a number whose gradient is that of the entropy of the distribution of `x`.

        Parameters
        ----------
        x : Tensor of shape (n, d)
            Samples, as for :func:`entropy_surrogate`. The choices are made anew if the number of columns changes.

        Returns
        -------
        Tensor of shape ()
            The surrogate, of the type and on the device of `x`.
        """
        check_points(x, x)
        if self.estimator is None:
            check_rows(x)
        if self.n_calls_ % self.renew_every == 0 or x.shape[1] != self._n_columns:
            self._kept, self._n_columns = None, x.shape[1]
        surrogate = _Surrogate.apply(x, self._estimate)[0]
        self.n_calls_ += 1
        return surrogate

    def _estimate(self, rows: Tensor) -> Tensor:
        """Return the score at the rows, and keep what was chosen for it."""
        if self.estimator is None:
            score, stack = _stacked(rows, self._kept, Budget.of(self), keep=self._kept is None)
            if self._kept is None:
                self._kept = stack
            return score
        score, model = _fitted_score(rows, clone(self.estimator if self._kept is None else self._kept))
        if self._kept is None:
            self._kept = _without_search(clone(self.estimator), model)
        return score


def _fitted_score(rows: Tensor, estimator: Any) -> tuple[Tensor, Any]:
    """Return the score of a fitted estimator at the rows that it was fitted to, and the estimator."""
    rows = rows.detach()
    model = estimator.fit(rows)
    at_rows = getattr(model, "grad_log_density_", None)
    score = model.grad_log_density(rows) if at_rows is None else at_rows
    return torch.as_tensor(score, dtype=rows.dtype, device=rows.device), model


def _stacked(rows: Tensor, stack: Stack | None, budget: Budget, keep: bool = False) -> tuple[Tensor, Stack]:
    """Return the default score at the rows and its weights, without negligible ones if they are to be kept."""
    double = host_view(rows.detach().to(torch.float64))
    score, stack, models = stacked_score(double, stack, budget)
    score = torch.as_tensor(score, dtype=rows.dtype, device=rows.device)
    return score, stack.without_negligible(models) if keep else stack


def _without_search(estimator: Any, fitted: Any) -> Any:
    """Return the estimator with the parameters that a fit of it has chosen."""
    if isinstance(fitted, ScoreEstimator):
        return estimator.set_params(**fitted.chosen())
    return estimator.set_params(length_scale=fitted.length_scale_)


def check_rows(x: Tensor) -> None:
    """Refuse fewer than two distinct rows, or values not finite, which on other devices are not waited for."""
    check_finite("x", x)
    if len(x) < 2 or (x.device.type == "cpu" and bool((x == x[:1]).all())):
        raise InputError("x has fewer than two distinct rows; the score of its distribution needs at least two.")
