"""Compute gradients of the entropy of samples from an estimated score."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from isopleth.torch.checks import check_points, outside_graphs


@outside_graphs
def entropy_surrogate(x: Tensor, estimator: Any) -> Tensor:
    r"""Return a number whose gradient is that of the entropy of the distribution of `x`.

    For :math:`x_i = g_\phi(z_i)` with density q, :math:`\nabla_\phi H(q) = -\mathbb{E}\,[\nabla_\phi g_\phi(z)^\top \nabla \log
    q(x)]`, because the mean of :math:`\nabla_\phi \log q` is 0.
    So only the score is needed, estimated at the samples and held constant [1]_:

    .. math:: -\frac1n \sum_i \hat s(x_i)\cdot x_i, \qquad \hat s \approx \nabla \log q.

    Only its gradient has a meaning, its value does not. For the entropy itself see :meth:`isopleth.KDE.score_samples`.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        Samples, with the graph that made them.
    estimator : estimator
        Estimator of the score: :class:`~isopleth.KernelScore` or one of its presets, :class:`~isopleth.SOSREP` or
        :class:`~isopleth.KDE`. A clone is fitted to `x` in each call; set its length scale and strength to avoid a search
        each time.

    Returns
    -------
    Tensor of shape ()
        The surrogate, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If `x` is not a table of float32 or float64, or the estimator cannot be fitted to it.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric Score Estimators", ICML 2020.

    Examples
    --------
    The entropy of a normal distribution is log scale plus a constant; its derivative is 1/scale.

    >>> import torch
    >>> from isopleth import Stein
    >>> from isopleth.torch import entropy_surrogate
    >>> z = torch.randn(300, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> scale = torch.tensor(2.0, requires_grad=True)
    >>> entropy_surrogate(scale * z, Stein(alpha=0.01)).backward()
    >>> abs(float(scale.grad) - 0.5) < 0.1
    True
    """
    check_points(x, x)
    rows = x.detach()
    model = clone(estimator).fit(rows)
    at_rows = getattr(model, "grad_log_density_", None)
    scores = model.grad_log_density(rows) if at_rows is None else at_rows
    return -(torch.as_tensor(scores, dtype=x.dtype, device=x.device) * x).sum() / len(x)
