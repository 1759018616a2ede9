"""The squared L2 distance of two densities as a loss."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isopleth.backend import full_precision, on_processor
from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.errors import InputError, positive_number
from isopleth.length_scales import is_auto
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import DEFAULT_N_JOBS
from isopleth.torch.checks import check_finite, check_points, computed, constant, outside_graphs, unit_lengths
from isopleth.torch.discrepancies import median_distance
from isopleth.torch.products import kernel_product

# Number of default centres, half of them from each sample.
_CENTERS = 500


@outside_graphs
def squared_l2(
    x: Tensor,
    y: Tensor,
    length_scale: Any = "auto",
    alpha: float = 0.1,
    centers: Tensor | None = None,
    *,
    relative: bool = False,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Estimate :math:`\int (p - q)^2` by least squares from samples x of p and y of q, with gradients for both [1]_.

    It is the combined estimate (11) of the paper, which :class:`~isopleth.LSDD` calls ``"combined"``:

    .. math:: 2\,h\cdot\theta - \theta\cdot H\theta = h^\top M h, \quad (H + \lambda I)\,\theta = h, \quad
        M = G (H + 2\lambda I)\, G, \quad G = (H + \lambda I)^{-1},

    where H holds the inner products of Gaussians around the centres and h their means over x minus those over y. M depends on
    neither sample, so the gradient is :math:`2 M h` through the means. The estimate is never negative, and 0 for
    equal samples. For small samples it is too large because of their noise; for rough differences it is too small.

    Parameters
    ----------
    x, y : Tensor of shape (n, d) and (n', d)
        Rows of the two samples, of the types that :func:`kernel_product` takes, on any device.
    length_scale : "auto", float or Tensor of shape () or (d,), default="auto"
        Length scale of the Gaussians, one for all columns or one for each. It is a constant of the loss. "auto" is
        the median distance between rows of both samples (of at most 256) over the root of d, at the time of the call.
    alpha : float, default=0.1
        The ridge :math:`\lambda`, relative to the volume of the Gaussians, as for LSDD. Positive.
    centers : Tensor of shape (b, d), optional
        Centres of the Gaussians, constants of the loss. By default rows of both samples at the time of the call: all of them, or
        250 of each, evenly spaced. The loss is not differentiated through them.
    relative : bool, default=False
        Whether to multiply the result by the volume :math:`V = \pi^{d/2}\prod_j \sigma_j`. Use it if d is large, where the
        result in reciprocal units of the data would overflow or underflow.
    memory_limit : float, default=2**30
        Memory for tiles and scratch arrays, in bytes.
    n_jobs : int or None, default=-1
        CPU threads; -1 is all processors, None is one or what joblib.parallel_config says.

    Returns
    -------
    Tensor of shape ()
        The estimate, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If shapes, types, devices or parameters do not fit, or entries of a tensor in CPU memory are not finite.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import squared_l2
    >>> generator = torch.Generator().manual_seed(0)
    >>> x, y = torch.randn(300, 1, generator=generator), 1.0 + torch.randn(200, 1, generator=generator)
    >>> x.requires_grad_()
    tensor(...)
    >>> loss = squared_l2(x, y, length_scale=0.7, alpha=0.1)
    >>> loss.backward()
    >>> bool(x.grad.mean() < 0)  # a step against the gradient moves x to the right, towards y
    True
    """
    check_points(x, y)
    for name, sample in (("x", x), ("y", y)):
        if len(sample) == 0:
            raise InputError(f"{name} has no rows; expected at least one.")
        check_finite(name, sample)
    positive_number("alpha", alpha)
    dtype, (x, y) = x.dtype, (computed(x), computed(y))
    if is_auto(length_scale):  # wider Gaussians than that see little of a difference in many columns
        length_scale = median_distance(x, y) / math.sqrt(x.shape[1])
    scale = unit_lengths(length_scale, x).detach()
    if centers is None:
        centers = _spread(x, y)
    elif isinstance(centers, Tensor):
        centers = computed(centers)
    check_points(x, centers, "centers")
    centers = centers.detach()
    rows = torch.cat([x, y])
    contrast = torch.cat([x.new_full((len(x),), 1.0 / len(x)), x.new_full((len(y),), -1.0 / len(y))])
    h = kernel_product("gaussian", centers, rows, contrast, scale, memory_limit=memory_limit, n_jobs=n_jobs)
    gram = constant(lambda z: GaussianSystem(z, 0.0, memory_limit, n_jobs).gram(), centers / scale)
    with full_precision(x):  # theta is large, and the result is a small difference
        theta = _solved(gram, alpha, h)
        out = 2.0 * (h @ theta) - theta @ (gram @ theta)
    if relative:
        return out.to(dtype)
    log_volume = 0.5 * x.shape[1] * math.log(math.pi) + torch.log(scale).sum()
    return (out * torch.exp(-log_volume)).to(dtype)


def _solved(gram: Tensor, alpha: float, h: Tensor) -> Tensor:
    """Return (H + alpha I)^-1 h."""
    ridged = gram + alpha * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    factor, failed = torch.linalg.cholesky_ex(ridged)
    if on_processor(failed) and bool(failed):  # reading it would wait for another device, whose result is NaN then
        raise InputError(f"alpha = {alpha!r} is too small for {gram.dtype} and these centers; use a larger one.")
    return torch.cholesky_solve(h[:, None], factor)[:, 0]


def _spread(x: Tensor, y: Tensor) -> Tensor:
    """Return rows of both samples, evenly spaced if there are too many."""
    most = _CENTERS // 2
    return torch.cat([a.detach()[:: max(1, -(-len(a) // most))] for a in (x, y)])
