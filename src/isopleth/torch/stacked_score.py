"""Scores of samples at the samples themselves, by stacking simple leave-one-out estimates with score matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from isopleth.backend import Array, full_precision, namespace, on_processor
from isopleth.operators.threads import ONE_BLAS_THREAD, effective_n_jobs, map_threads
from isopleth.torch.landmark_models import inverses, landmark_scores, landmarks_of, many_copies

# Shrinkages of the covariances of the first two Gaussian models, as multiples of that of Ledoit and Wolf. The third has the
# covariance t I, where t is the mean variance.
_SHRINKAGES = (0.1, 1.0)

# Degrees of freedom of the elliptical model with heavy tails. Sums of it and the Gaussians approximate what is between.
_DEGREES = 2.0

# Squared length scales of the kernel density estimates are the median squared distance divided by 2, 4, ..., 2^6.
_HALVINGS = 6

# Length scales of the fits at landmarks, as multiples of the median distance, and their strengths.
_LANDMARK_MODELS = tuple((factor, alpha) for factor in (1.0, 4.0) for alpha in (0.1, 0.01, 0.001))

# Rows of which the median distance is taken.
_MEDIAN_ROWS = 256

# A model enters only if the derivative of the loss for its weight is below 0 by this many standard errors.
_ERRORS = 1.0

# Weights below this, in units of the norm of the model, are dropped if they are kept between steps.
_NEGLIGIBLE = 1e-4

# Ratio of the standard deviations of two columns above which columns are divided by them.
_UNLIKE = 5.0

# Squared distances below this share of the squared norms are rounding errors of equal rows.
_EQUAL = 1e-13

# Pairs that a thread takes at once: arrays over them stay in the cache. A device takes many more.
_HOST_PAIRS, _DEVICE_PAIRS = 2**17, 2**25

# Arrays over pairs that exist at once.
_ARRAYS = 4

# Steps of the interior-point method. Each reduces the gap to about a tenth.
_STEPS = 25


class Models(NamedTuple):
    """Leave-one-out scores of several models at the samples.

    Parameters
    ----------
    values : array of shape (k, n, d)
        The score of each model, fitted to the other samples, at each sample.
    divergences : array of shape (k, n)
        Their divergences.
    """

    values: Array
    divergences: Array

    @property
    def sizes(self) -> Array:
        """Root mean squared norms of the scores, of shape (k,)."""
        xp = namespace(self.values)
        sizes = xp.sqrt(xp.mean(xp.sum(self.values**2, axis=2), axis=1))
        return xp.where(sizes > 0.0, sizes, xp.ones_like(sizes))


@dataclass(frozen=True)
class Stack:
    """Weights of the models, which may serve for several batches.

    Parameters
    ----------
    weights : array of shape (k,)
        Weight of each model, 0 or more.
    kernels : tuple of int
        The kernel density estimates that are computed, each by the number of halvings of its squared length scale.
    landmarks : tuple of (float, float)
        The fits at landmarks that are computed, if there are few columns: factor of the length scale, and strength.
    """

    weights: Array
    kernels: tuple[int, ...] = tuple(range(1, _HALVINGS + 1))
    landmarks: tuple[tuple[float, float], ...] = _LANDMARK_MODELS

    def without_negligible(self, models: Models) -> Stack:
        """Return the stack without the kernel density estimates and landmark fits of negligible weight; it waits for a device."""
        shares = (self.weights * models.sizes).tolist()
        kept = [share > _NEGLIGIBLE for share in shares]
        kept[: len(_SHRINKAGES) + 2] = [True] * (len(_SHRINKAGES) + 2)  # the Gaussians and the heavy-tailed model
        first = len(_SHRINKAGES) + 2
        second = first + len(self.kernels)
        weights = namespace(self.weights).stack([self.weights[i] for i, keep in enumerate(kept) if keep])
        kernels = tuple(one for one, keep in zip(self.kernels, kept[first:second], strict=True) if keep)
        landmarks = tuple(one for one, keep in zip(self.landmarks, kept[second:], strict=True) if keep)
        return Stack(weights, kernels, landmarks)


def stacked_score(
    x: Array, stack: Stack | None, memory_limit: float, n_jobs: int | None
) -> tuple[Array, Stack, Models]:
    r"""Estimate the score of the distribution of rows at these rows, :math:`\hat s = \sum_k w_k s_k`.

    The models :math:`s_k` are three Gaussians of different shrinkage, an elliptical model with heavy tails, kernel density
    estimates of six length scales, and, for up to four columns, score matching with kernels at landmarks. At each row, all of
    them are fitted to the other rows in closed form, so that

    .. math:: J(w) = \frac1n \sum_i \tfrac12 |\hat s(x_i)|^2 + \operatorname{div} \hat s(x_i)

    is an unbiased estimate of half the Fisher divergence up to a constant, for each w. The weights are not negative and minimise
    J plus a penalty on each weight: the standard error of the derivative of J for that weight.

    Parameters
    ----------
    x : array of shape (n, d)
        At least two rows, float64.
    stack : Stack, optional
        The weights; by default they are computed, and also if they have fits at landmarks for which there are too few rows.
    memory_limit : float
        Bytes for arrays over pairs of rows.
    n_jobs : int or None
        Number of threads on the CPU.

    Returns
    -------
    score : array of shape (n, d)
        The score.
    stack : Stack
        The weights.
    models : Models
        The scores of the models, in other units.
    """
    xp = namespace(x)
    varying = xp.any(x != x[:1, :], axis=0)
    rows = xp.where(varying, x - xp.mean(x, axis=0), xp.zeros_like(x))
    largest = xp.max(xp.abs(rows))  # sums of fourth powers of large rows overflow
    scale = _column_scales(rows / largest, varying)
    rows, unit = rows / largest / scale, largest * scale
    with full_precision(rows), ONE_BLAS_THREAD:
        enough = landmarks_of(rows) is not None
        if stack is not None and stack.landmarks and not enough:
            stack = None  # weights for more rows than these
        kernels = Stack.kernels if stack is None else stack.kernels
        fits = () if not enough else Stack.landmarks if stack is None else stack.landmarks
        parts = [_elliptical(rows, varying)]
        if kernels:
            parts.append(_kernel_estimates(rows, varying, kernels, memory_limit, n_jobs))
        if fits:
            base = (parts[0].values[1, :, :], parts[0].divergences[1, :])
            parts.append(_landmark_fits(rows, varying, base, fits, memory_limit))
        models = Models(*(xp.concat(both) for both in zip(*parts, strict=True)))
        if stack is None:
            stack = Stack(_weights(models), kernels, fits)
        score = xp.tensordot(stack.weights, models.values, axes=1)
    return score / unit, stack, models


def _column_scales(rows: Array, varying: Array) -> Array:
    """Return the standard deviations of the columns if they are very different, and ones otherwise.

    The loss is a sum over columns, in which narrow columns would outweigh all others.
    """
    xp = namespace(rows)
    spread = xp.sqrt(xp.mean(rows * rows, axis=0))
    widest = xp.max(spread)
    unlike = widest > _UNLIKE * xp.min(xp.where(varying, spread, widest))
    return xp.where(varying & unlike, spread, xp.ones_like(spread))


def _elliptical(rows: Array, varying: Array) -> Models:
    r"""Return the scores of elliptical models at each row, fitted to the others; `rows` have mean 0.

    The covariances are :math:`(1 - \rho) S_{-i} + \rho t I`, where :math:`S_{-i}` is that of the other rows, a rank-one change
    of that of all. The shrinkage :math:`\rho` and the mean variance t are those of all rows.
    """
    xp = namespace(rows)
    n = rows.shape[0]
    d = xp.sum(xp.astype(varying, rows.dtype))
    covariance = rows.T @ rows / n
    eye = xp.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    size = xp.sum(covariance * eye) / d
    rho = _shrinkage(rows, covariance, size, d)
    shrinkage = xp.stack([*(factor * rho for factor in _SHRINKAGES), xp.ones_like(rho)])
    part = ((1.0 - shrinkage) * n / (n - 1))[:, None, None]
    precision = inverses(part * covariance + shrinkage[:, None, None] * size * eye)
    change = ((1.0 - shrinkage) * n / (n - 1) ** 2)[:, None]
    u = rows @ precision
    left = 1.0 - change * xp.sum(u * rows, axis=2)
    values = -(n / (n - 1)) * u / left[:, :, None]  # rows less the mean of the others are n / (n - 1) times `rows`
    # Constant columns have no part in divergences.
    traces = xp.sum(precision * (eye * varying), axis=(1, 2))[:, None] + change * xp.sum(u * u, axis=2) / left
    # The model with heavy tails has the shrinkage of Ledoit and Wolf. Its density is (nu + q)^(-(nu + d)/2) for Mahalanobis
    # distances q, up to a constant.
    score, trace = values[1, :, :], traces[1, :]
    below = _DEGREES - (n / (n - 1)) * xp.sum(score * rows, axis=1)
    factor = (_DEGREES + d) / below
    divergence = factor * (2.0 * xp.sum(score * score, axis=1) / below - trace)
    return Models(xp.concat([values, (factor[:, None] * score)[None, :, :]]), xp.concat([-traces, divergence[None, :]]))


def _shrinkage(rows: Array, covariance: Array, size: Array, d: Array) -> Array:
    """Return the shrinkage of Ledoit and Wolf for `d` columns that vary, at least one over the number of rows."""
    xp = namespace(rows)
    n = rows.shape[0]
    squares = xp.sum(covariance * covariance)
    spread = squares - d * size**2
    noise = (xp.mean(xp.sum(rows * rows, axis=1) ** 2) - squares) / n
    some = spread > noise
    share = xp.where(some, noise / xp.where(some, spread, xp.ones_like(spread)), xp.ones_like(noise))
    # Without clip, which waits for the device in old versions of array-api-compat.
    return xp.maximum(xp.minimum(share, xp.ones_like(share)), xp.full_like(share, 1.0 / n))


def _kernel_estimates(
    rows: Array, varying: Array, kernels: tuple[int, ...], memory_limit: float, n_jobs: int | None
) -> Models:
    """Return the scores of Gaussian kernel density estimates at each row, without the row itself and rows equal to it."""
    xp = namespace(rows)
    n = rows.shape[0]
    squares = xp.sum(rows * rows, axis=1)
    median = median_squared_distance(rows)
    d = xp.sum(xp.astype(varying, rows.dtype))
    extended = xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1)

    def work(part: slice) -> Models:
        pairs = RowDistances.of(rows, squares, part)
        weights = xp.exp(pairs.beyond_nearest / -median)  # for a squared length scale of half the median
        weights[pairs.equal] = 0.0
        found = []
        for halvings in range(1, max(kernels) + 1):
            if halvings > 1:
                weights *= weights
            if halvings in kernels:
                found.append(pairs.estimate(weights, extended, median / 2.0**halvings, d))
        return Models(*(xp.stack(one) for one in zip(*found, strict=True)))

    host = on_processor(rows)
    workers = effective_n_jobs(n_jobs) if host else 1
    most = memory_limit / (_ARRAYS * 8 * workers)
    step = int(min(n, max(1, min(_HOST_PAIRS if host else _DEVICE_PAIRS, most) // n)))
    slabs = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    return Models(
        *(xp.concat(one, axis=1) for one in zip(*map_threads(work, slabs, min(workers, len(slabs))), strict=True))
    )


def _landmark_fits(
    rows: Array,
    varying: Array,
    base: tuple[Array, Array],
    fits: tuple[tuple[float, float], ...],
    memory_limit: float,
) -> Models:
    """Return the scores of score matching with kernels at landmarks, on top of a Gaussian; 0 if many rows are equal."""
    xp = namespace(rows)
    d = xp.sum(xp.astype(varying, rows.dtype))
    scale = xp.sqrt(median_squared_distance(rows))
    found: list[tuple[Array, Array]] = []
    for factor in dict.fromkeys(factor for factor, _ in fits):
        alphas = [alpha for other, alpha in fits if other == factor]
        found += landmark_scores(rows, base, factor * scale, alphas, d, memory_limit)
    values, divergences = (xp.stack(one) for one in zip(*found, strict=True))
    unlike = xp.astype(xp.asarray(~many_copies(rows)), rows.dtype)  # NumPy makes a scalar of it
    return Models(unlike * values, unlike * divergences)


@dataclass(frozen=True)
class RowDistances:
    """Distances of some rows to all.

    Parameters
    ----------
    part : slice
        The rows.
    beyond_nearest : array of shape (m, n)
        Squared distances less that of the nearest other row.
    nearest : array of shape (m,)
        Squared distance of the nearest other row.
    equal : array of bool of shape (m, n)
        Pairs of equal rows.
    """

    part: slice
    beyond_nearest: Array
    nearest: Array
    equal: Array

    @classmethod
    def of(cls, rows: Array, squares: Array, part: slice) -> Self:
        """Compute the distances of the rows `part`."""
        xp = namespace(rows)
        distances = rows[part, :] @ rows.T
        distances *= -2.0
        limit = squares + squares[part, None]
        distances += limit
        limit *= _EQUAL
        equal = distances <= limit
        limit[...] = distances
        limit[equal] = xp.inf
        nearest = xp.min(limit, axis=1)
        nearest = xp.where(xp.isinf(nearest), xp.zeros_like(nearest), nearest)
        distances -= nearest[:, None]
        distances[equal] = 0.0
        return cls(part, distances, nearest, equal)

    def estimate(self, weights: Array, extended: Array, scale: Array, d: Array) -> Models:
        """Return one score at the rows for the squared length scale `scale`, given the weights of all rows at each.

        `d` is the number of columns that vary.
        """
        xp = namespace(weights)
        sums = weights @ extended
        total = sums[:, -1:]
        some = total > 0.0  # false if all rows are equal to this one
        total = xp.where(some, total, xp.ones_like(total))
        shift = sums[:, :-1] / total - extended[self.part, :-1]
        shift = xp.where(some, shift, xp.zeros_like(shift))
        mean = _row_products(weights, self.beyond_nearest) / total[:, 0] + self.nearest
        variance = mean - xp.sum(shift * shift, axis=1)
        return Models(shift / scale, (variance / scale - d) / scale)


def _row_products(a: Array, b: Array) -> Array:
    """Return sum_j a_ij b_ij without an array of all products."""
    return np.einsum("ij,ij->i", a, b) if isinstance(a, np.ndarray) else namespace(a).einsum("ij,ij->i", a, b)


def median_squared_distance(rows: Array) -> Array:
    """Return the median of the positive squared distances of some rows, or the mean of all rows if these are all equal."""
    xp = namespace(rows)
    some = rows[:: -(-rows.shape[0] // _MEDIAN_ROWS), :]
    squares = xp.sum(some * some, axis=1)
    pairs = RowDistances.of(some, squares, slice(0, some.shape[0]))
    distances = pairs.beyond_nearest + pairs.nearest[:, None]
    distances[pairs.equal] = xp.inf
    ordered = xp.sort(xp.reshape(distances, (-1,)))
    count = xp.sum(xp.astype(~pairs.equal, xp.int64))
    half = (count - 1) // 2
    middle = xp.take(ordered, xp.reshape(xp.maximum(half, xp.zeros_like(half)), (1,)))[0]
    return xp.where(count > 0, middle, 2.0 * xp.mean(xp.sum(rows * rows, axis=1)))


def _weights(models: Models) -> Array:
    """Return the weight of each model, of shape (k,)."""
    xp = namespace(models.values)
    sizes = models.sizes
    values, divergences = models.values / sizes[:, None, None], models.divergences / sizes[:, None]
    k, n = divergences.shape
    flat = xp.reshape(values, (k, -1))
    # Models may be equal; the ridge then gives them equal weights.
    gram = flat @ flat.T / n + 1e-6 * xp.eye(k, dtype=flat.dtype, device=flat.device)
    slope = xp.mean(divergences, axis=1)
    first = _nonnegative_minimum(gram, slope)
    score = xp.tensordot(first, values, axes=1)
    derivatives = xp.sum(values * score, axis=2) + divergences
    errors = xp.std(derivatives, axis=1) / n**0.5
    return _nonnegative_minimum(gram, slope + _ERRORS * errors) / sizes


def _nonnegative_minimum(matrix: Array, slope: Array) -> Array:
    """Minimise w.matrix w/2 + slope.w over w >= 0, by a primal-dual interior-point method with a fixed number of steps."""
    xp = namespace(matrix)
    eye = xp.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
    w, dual = xp.ones_like(slope), xp.ones_like(slope)
    for _ in range(_STEPS):
        gap = 0.1 * xp.mean(w * dual)
        residual = matrix @ w + slope - dual
        step = _solved(matrix + eye * (dual / w), gap / w - dual - residual)
        dual_step = (gap - dual * step) / w - dual
        longest = xp.max(xp.concat([-step / w, -dual_step / dual]))
        length = 0.95 / xp.maximum(longest, xp.full_like(longest, 0.95))
        w, dual = w + length * step, dual + length * dual_step
    return w


def _solved(matrix: Array, b: Array) -> Array:
    """Solve a small system; for torch, without waiting for a device to know whether it can be solved."""
    if isinstance(matrix, np.ndarray):
        return np.linalg.solve(matrix, b)
    return namespace(matrix).linalg.solve_ex(matrix, b).result
