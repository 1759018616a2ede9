"""Discrepancies of samples as losses: mean discrepancies, Stein discrepancies and direction, and the squared L2 distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isopleth.core.arrays import full_precision, host_view, on_processor, to_numpy
from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError, positive_number
from isopleth.core.scales import is_auto
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.frames import Frame
from isopleth.frames.compose import stein_transforms
from isopleth.kernels import Kernel
from isopleth.torch.checks import (
    check_finite,
    check_like,
    check_points,
    check_tensor,
    computed,
    constant,
    outside_graphs,
    unit_lengths,
)
from isopleth.torch.products import KernelSums, gradient_product, kernel_product, laplacian_product, scaled_points
from isopleth.torch.stacked_score import median_squared_distance


def median_distance(*samples: Tensor) -> Tensor:
    """Return the median distance of at most 256 rows, a constant of every graph, without waiting; 1 for one row."""
    return constant(_median_distance, *samples)


def _median_distance(*samples: Tensor) -> Tensor:
    """Return the median distance between rows of all samples."""
    rows = torch.cat([a.detach().to(torch.float64) for a in samples])
    if len(rows) < 2:
        return rows.new_ones((), dtype=samples[0].dtype)
    middle = host_view(rows - rows.mean(dim=0))
    found = torch.as_tensor(median_squared_distance(middle), device=rows.device).sqrt()
    return torch.where(found > 0.0, found, torch.ones_like(found)).to(samples[0].dtype)


@outside_graphs
def mmd(
    x: Tensor,
    y: Tensor,
    kernel: str | Kernel = "gaussian",
    length_scale: Any = "auto",
    *,
    biased: bool = False,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Estimate the squared maximum mean discrepancy of two samples, with gradients for both [1]_.

    .. math:: \mathrm{MMD}^2 = \mathbb{E}\,k(x, x') + \mathbb{E}\,k(y, y') - 2\,\mathbb{E}\,k(x, y).

    Parameters
    ----------
    x, y : Tensor of shape (n, d) and (m, d)
        The samples, of the types that :func:`kernel_product` takes.
    kernel : str or Kernel, default="gaussian"
        The kernel.
    length_scale : "auto", float or Tensor of shape () or (d,), default="auto"
        Length scale, one for all columns or one for each; a tensor gets a gradient. "auto" is the median distance between
        rows of both samples (of at most 256), a constant of the loss.
    biased : bool, default=False
        Whether to take the V-statistic, which includes the pairs of a row with itself: it is never negative, and too large by
        about (1/n + 1/m) times a mean of 1 - k. Otherwise the estimate is the U-statistic, without bias.
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
        If shapes, types, devices or parameters do not fit, entries of a tensor in
        CPU memory are not finite, or a sample has fewer than two rows (one, if `biased`).

    See Also
    --------
    isopleth.two_sample_test : Test whether two samples have one distribution.

    References
    ----------
    .. [1] A. Gretton, K. Borgwardt, M. Rasch, B. Schoelkopf, A. Smola, "A kernel two-sample test", JMLR 13, 2012.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import mmd
    >>> generator = torch.Generator().manual_seed(0)
    >>> x, y = torch.randn(300, 1, generator=generator), 1.0 + torch.randn(200, 1, generator=generator)
    >>> shift = torch.zeros(1, requires_grad=True)
    >>> mmd(x + shift, y).backward()
    >>> bool(shift.grad < 0)  # moving x to the right decreases the discrepancy
    True
    """
    check_points(x, y)
    for name, rows in (("x", x), ("y", y)):
        _check_count(name, rows, biased)
        check_finite(name, rows)
    scale = median_distance(x, y) if is_auto(length_scale) else length_scale
    wide_x, wide_y = computed(x), computed(y)

    def total(a: Tensor, b: Tensor) -> Tensor:
        return kernel_product(kernel, a, b, b.new_ones(len(b)), scale, memory_limit=memory_limit, n_jobs=n_jobs).sum()

    def within(a: Tensor) -> Tensor:
        n = len(a)
        return total(a, a) / n**2 if biased else (total(a, a) - n) / (n * (n - 1))

    # Between the samples all pairs count, also if both are one tensor.
    between = total(wide_x, wide_y) / (len(x) * len(y))
    return (within(wide_x) + within(wide_y) - 2.0 * between).to(x.dtype)


@outside_graphs
def ksd(
    x: Tensor,
    score: Tensor | Callable[[Tensor], Tensor],
    kernel: str | Kernel = "imq",
    length_scale: Any = "auto",
    *,
    frame: str | Frame = "scale",
    biased: bool = False,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Estimate the squared kernel Stein discrepancy of a sample from a density with a known score [1]_ [2]_.

    .. math:: \mathrm{KSD}^2 = \mathbb{E}\,u(x, x'), \quad u(x, y) = s(x)\cdot s(y)\,k + s(x)\cdot\nabla_y k + s(y)\cdot\nabla_x k
        + \operatorname{tr} \nabla_x\nabla_y k,

    with the score :math:`s = \nabla\log p`. The density p need not be normalised. It is 0 if and only if the sample has the
    density p, under mild conditions.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        The sample, of the types that :func:`kernel_product` takes.
    score : Tensor of shape (n, d) or callable
        The score of p at the rows of `x`, or a function that returns it for `x`. Gradients pass through both.
    kernel : str or Kernel, default="imq"
        The kernel, of :attr:`~isopleth.kernels.Kernel.smoothness` at least 2. The default decreases slowly, which is what detects
        samples that miss parts of p [2]_.
    length_scale : "auto", float or Tensor of shape (), default="auto"
        Length scale, one for all columns, in the coordinates of the frame; a tensor gets a gradient. "auto" is the median
        distance between rows (of at most 256), a constant of the loss.
    frame : {"scale", "balanced", "whiten"} or Frame, default="scale"
        Coordinates z = J x in which kernels stand; there the score is :math:`J^{-\top} s`. "scale": the columns as they are
        given, as in the papers, so that values of several samples can be compared. "balanced": those in which rows and scores
        have the same covariance matrix, as for :func:`isopleth.stein_test`; recommended for correlated columns and columns of
        different units. "whiten": uncorrelated columns of unit variance. In these two the value does not change under
        invertible affine maps of the rows. J is computed from `x` and `score` on the CPU, and is a constant of the loss.
    biased : bool, default=False
        Whether to take the V-statistic, which includes the pairs of a row with itself and is never negative. Otherwise the
        estimate is the U-statistic, without bias.
    memory_limit : float, default=2**30
        Memory for tiles and scratch arrays, in bytes.
    n_jobs : int or None, default=-1
        CPU threads; -1 is all processors, None is one or what joblib.parallel_config says.

    Returns
    -------
    Tensor of shape ()
        The estimate, of the type and on the device of `x`, in reciprocal squared units of the coordinates.

    Raises
    ------
    InputError
        If the kernel is too rough, the frame is not affine, shapes, types, devices or parameters do not fit, entries of a tensor
        in CPU memory are not finite, or there are fewer than two rows (one, if `biased`).

    See Also
    --------
    isopleth.stein_test : Test whether a sample has a density.
    svgd_direction : Direction in which rows move towards p.

    References
    ----------
    .. [1] Q. Liu, J. Lee, M. Jordan, "A kernelized Stein discrepancy for goodness-of-fit tests", ICML 2016.
    .. [2] J. Gorham, L. Mackey, "Measuring sample quality with kernels", ICML 2017.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import ksd
    >>> x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> right, wrong = (float(ksd(shift + x, lambda rows: -rows)) for shift in (0.0, 1.0))  # against the normal density
    >>> abs(right) < 0.01 and wrong > 0.3
    True
    """
    check_points(x, x)
    _check_count("x", x, biased)
    rows, s, _ = _framed(frame, computed(x), score, x.dtype)
    scale = median_distance(rows) if is_auto(length_scale) else length_scale
    if isinstance(scale, (list, tuple)) or getattr(scale, "ndim", 0) != 0:
        raise InputError(
            "length_scale has several numbers; expected one for all columns, as ksd is in units of the frame."
        )
    z, _, each = scaled_points(rows, rows, scale)
    sums = KernelSums.of(kernel, x.shape[1], Budget(memory_limit, n_jobs))
    if sums.kernel.smoothness < 2.0:
        raise InputError(f"kernel = {kernel!r} is too rough for gradients of ksd; use 'imq', 'gaussian' or 'matern52'.")
    n, ones = len(rows), rows.new_ones(len(rows))
    in_units, budget = s * each, dict[str, Any](memory_limit=memory_limit, n_jobs=n_jobs)
    drift = kernel_product(sums.kernel, z, z, in_units, **budget)
    force = gradient_product(sums.kernel, z, z, ones, **budget)
    # By symmetry both mixed terms have one sum: that of the gradients for the second argument is minus the first.
    total = (in_units * (drift - 2.0 * force)).sum() - laplacian_product(z, z, ones, sums).sum()
    if biased:
        out = total / n**2
    else:
        at_zero = float(sums.kernel.laplacian(0.0))
        out = (total - in_units.square().sum() + n * at_zero) / (n * (n - 1))
    return (out / each[0] ** 2).to(x.dtype)


@outside_graphs
def svgd_direction(
    x: Tensor,
    score: Tensor | Callable[[Tensor], Tensor],
    kernel: str | Kernel = "gaussian",
    length_scale: Any = "auto",
    *,
    frame: str | Frame = "scale",
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Compute the direction of Stein variational gradient descent, in which rows approach a density with a known score [1]_.

    .. math:: \phi(x_i) = \frac1n \sum_j k(x_i, x_j)\, s(x_j) + \nabla_{x_j} k(x_j, x_i).

    The first term moves rows to where the density is high, the second one keeps them apart. Take steps
    ``x = x + step * svgd_direction(x, score)``. In a frame z = J x the direction is :math:`J^{-1}` times that of z, which is a
    constant matrix kernel [2]_.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        The rows, of the types that :func:`kernel_product` takes.
    score : Tensor of shape (n, d) or callable
        The score of the density, :math:`s = \nabla\log p`, at the rows of `x`, or a function that returns it for `x`.
    kernel : str or Kernel, default="gaussian"
        The kernel, of :attr:`~isopleth.kernels.Kernel.smoothness` above 1.
    length_scale : "auto", float or Tensor of shape () or (d,), default="auto"
        Length scale, one for all columns or one for each column of the frame. "auto" is the median distance between rows (of at
        most 256) over the root of 2 log(n + 1).
    frame : {"scale", "balanced", "whiten"} or Frame, default="scale"
        Coordinates of the kernel. "scale": the columns as they are given, as in the paper, with exact derivatives. "balanced":
        those in which rows and scores have the same covariance matrix; recommended for correlated columns and columns of
        different units, because one size of steps suits all directions. For a normal density they are those in which it is
        standard normal, wherever the rows are. "whiten": uncorrelated columns of unit variance; rows that start in a heap take
        small steps. In these two, directions follow affine maps of the rows. J is computed on the CPU, and derivatives take it
        as constant.
    memory_limit : float, default=2**30
        Memory for tiles and scratch arrays, in bytes.
    n_jobs : int or None, default=-1
        CPU threads; -1 is all processors, None is one or what joblib.parallel_config says.

    Returns
    -------
    Tensor of shape (n, d)
        The direction, of the type and on the device of `x`. It has first derivatives.

    Raises
    ------
    InputError
        If the kernel is too rough, the frame is not affine, shapes, types, devices or parameters do not fit, or entries of a
        tensor in CPU memory are not finite.

    References
    ----------
    .. [1] Q. Liu, D. Wang, "Stein variational gradient descent: a general purpose Bayesian inference algorithm", NeurIPS 2016.
    .. [2] D. Wang, Z. Tang, C. Bajaj, Q. Liu, "Stein variational gradient descent with matrix-valued kernels", NeurIPS 2019.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import svgd_direction
    >>> x = 3.0 + 0.1 * torch.randn(100, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> for step in range(500):
    ...     x = x + 0.2 * svgd_direction(x, lambda rows: -rows)
    >>> bool(x.mean().abs() < 0.1), bool((x.std() - 1.0).abs() < 0.1)
    (True, True)
    """
    check_points(x, x)
    rows, s, back = _framed(frame, computed(x), score, x.dtype)
    scale = length_scale
    if is_auto(scale):
        scale = median_distance(rows) / math.sqrt(2.0 * math.log(len(x) + 1.0)) if len(x) else 1.0
    budget = dict[str, Any](memory_limit=memory_limit, n_jobs=n_jobs)
    drift = kernel_product(kernel, rows, rows, s, scale, **budget)
    force = gradient_product(kernel, rows, rows, rows.new_ones(len(rows)), scale, **budget)
    direction = (drift - force) / max(len(rows), 1)
    return (direction if back is None else direction @ back).to(x.dtype)


class _Framed(NamedTuple):
    """Rows and scores in a frame, and the matrix that takes directions back, which is None for the columns themselves."""

    rows: Tensor
    score: Tensor
    back: Tensor | None


def _framed(frame: str | Frame, rows: Tensor, score: Any, dtype: torch.dtype) -> _Framed:
    """Return rows and their scores in a frame. Its matrices are constants of every graph; they are computed on the CPU."""
    s = _score_at(rows, score, dtype)
    if isinstance(frame, str) and frame == "scale":
        return _Framed(rows, s, None)

    def matrices(x: Tensor, given: Tensor) -> Tensor:
        wide, at = (to_numpy(a.detach().to(torch.float64)) for a in (x, given))
        if len(wide) < 2 or not (np.isfinite(wide).all() and np.isfinite(at).all()):
            wide = at = np.zeros((1, x.shape[1]))  # columns as they are; what is not finite stays so
        return torch.as_tensor(np.stack(stein_transforms(frame, wide, at)), dtype=x.dtype, device=x.device)

    of_rows, of_scores = constant(matrices, rows, s)
    return _Framed(rows @ of_rows, s @ of_scores, of_scores.T)


def _check_count(name: str, rows: Tensor, biased: bool) -> None:
    least = 1 if biased else 2
    if len(rows) < least:
        raise InputError(f"{name} has {len(rows)} rows; expected at least {least}.")


def _score_at(rows: Tensor, score: Any, dtype: torch.dtype) -> Tensor:
    """Return the score at the rows, in their type."""
    check_finite("x", rows)
    found = score(rows) if callable(score) else score
    check_tensor("score", found)
    if found.shape != rows.shape:
        raise InputError(
            f"score has shape {tuple(found.shape)}; expected {tuple(rows.shape)}, one vector for each row of x."
        )
    if found.dtype not in (rows.dtype, dtype) or found.device != rows.device:
        check_like("score", found, "x", rows)
    check_finite("score", found)
    return computed(found)


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
    gram = constant(lambda z: GaussianSystem(z, 0.0, Budget(memory_limit, n_jobs)).gram(), centers / scale)
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
