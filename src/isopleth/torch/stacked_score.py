"""Scores of samples at the samples themselves, by stacking simple leave-one-out estimates with score matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from isopleth.core.arrays import Array, full_precision, namespace, on_processor
from isopleth.core.budget import Budget
from isopleth.core.threads import ONE_BLAS_THREAD, map_threads, slices
from isopleth.score.pullback import far_discounts, inverses
from isopleth.score.selection import BASE_ALONE_ERRORS, NEARLY_CONSTANT
from isopleth.torch.landmark_models import landmark_scores, landmarks_of, many_copies

# Shrinkages of the covariances of Gaussian models, as multiples of that of Ledoit and Wolf, which hides small eigenvalues. A last
# model has the covariance t I, where t is the mean variance.
_SHRINKAGES = (1e-6, 0.1, 1.0)

# The Gaussian models that have elliptical models with heavy tails beside them, and the number of all these models.
_WITH_TAILS, _ELLIPTICAL = (0, 2), len(_SHRINKAGES) + 3

# The Gaussian model on which fits at landmarks stand.
_BASE = 2

# Cells are limited to this many robust standard deviations of their column.
_LIMIT = 1e9

# Quantiles of a normal distribution for which sinh-arcsinh maps are found in closed form: arsinh of the second is twice that of
# the first. The third number is the probability of the second.
_QUARTILE, _OUTER, _LEVEL = 0.6744897501960817, 1.6270903, 0.94814

# Ends of the exponent of the inverse of a sinh-arcsinh map, which is 1 for normal columns, and of the tangent of its skewness.
_TAILS, _SKEW = (0.3, 3.0), 0.98

# Standard errors of the exponent and of the tangent for normal rows, times the root of their number, and the multiple of them at
# which estimates are halved: noise of the map would be fitted to the rows at which scores are asked.
_EXPONENT_ERROR, _SKEW_ERROR, _SIGNIFICANT = 3.1, 1.8, 2.5

# Standardised cells are limited to this in the smooth map, because powers of far ones overflow.
_FARTHEST = 1e3

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

# The same for kernel density estimates in the smooth frame, whose whitening knows the row that is left out.
_WHITENED_ERRORS = 2.0

# Weights below this, in units of the norm of the model, are dropped if they are kept between steps.
_NEGLIGIBLE = 1e-4

# Ratio of the standard deviations of two columns above which columns are divided by them.
_UNLIKE = 5.0

# Shrinkage of the covariance by which rows are whitened, in addition to that of Ledoit and Wolf, as a multiple of columns over
# rows: whitening knows the row that is left out, the more so the fewer rows there are.
_WHITENING = 5.0

# Squared distances below this share of the squared norms are rounding errors of equal rows.
_EQUAL = 1e-13

# Variance in a direction over the largest one below which columns depend on each other.
_NO_EXTENT = 1e-12

# Pairs that a thread takes at once: arrays over them stay in the cache. A device takes many more.
_HOST_PAIRS, _DEVICE_PAIRS = 2**17, 2**25

# Arrays over pairs that exist at once.
_ARRAYS = 4

# Steps of the interior-point method. Each reduces the gap to about a tenth.
_STEPS = 25


class Models(NamedTuple):
    """Leave-one-out scores of several models at the samples."""

    values: Array  # (k, n, d): score of each model, fitted to the other samples, at each sample
    divergences: Array  # (k, n): their divergences

    def sizes(self, share: Array) -> Array:
        """Return root mean squared norms of the scores, of shape (k,), for shares of the rows."""
        xp = namespace(self.values)
        sizes = xp.sqrt(xp.sum(self.values**2, axis=2) @ share)
        return xp.where(sizes > 0.0, sizes, xp.ones_like(sizes))


@dataclass(frozen=True)
class Stack:
    """Weights of the models, which may serve for several batches."""

    weights: Array  # (k,): weight of each model, 0 or more
    # kernel density estimates that are computed, each by the number of halvings of its squared length scale
    kernels: tuple[int, ...] = tuple(range(1, _HALVINGS + 1))
    # same in the smooth frame, where there are elliptical models too; None if there is nothing in it
    smooth: tuple[int, ...] | None = tuple(range(1, _HALVINGS + 1))
    # fits at landmarks that are computed, if there are few columns: factor of the length scale, and strength
    landmarks: tuple[tuple[float, float], ...] = _LANDMARK_MODELS

    def without_negligible(self, models: Models) -> Stack:
        """Return the stack without estimates and fits of negligible weight; it waits for a device."""
        n = models.divergences.shape[1]
        share = namespace(self.weights).ones_like(models.divergences[0, :]) / n
        counts = (self.weights * models.sizes(share) > _NEGLIGIBLE).tolist()
        first, smooth = _ELLIPTICAL + len(self.kernels), 0 if self.smooth is None else _ELLIPTICAL + len(self.smooth)
        kept = [True] * _ELLIPTICAL + counts[_ELLIPTICAL:]
        inside = any(counts[first : first + smooth])
        kept[first : first + min(smooth, _ELLIPTICAL)] = [inside] * min(smooth, _ELLIPTICAL)
        weights = namespace(self.weights).stack([self.weights[i] for i, keep in enumerate(kept) if keep])
        return Stack(
            weights,
            _those(self.kernels, kept[_ELLIPTICAL:first]),
            _those(self.smooth or (), kept[first + _ELLIPTICAL : first + smooth]) if inside else None,
            _those(self.landmarks, kept[first + smooth :]),
        )


def _those(given: tuple[Any, ...], kept: list[bool]) -> tuple[Any, ...]:
    return tuple(one for one, keep in zip(given, kept, strict=True) if keep)


def stacked_score(x: Array, stack: Stack | None, budget: Budget) -> tuple[Array, Stack, Models]:
    r"""Estimate the score of the distribution of rows at these rows, :math:`\hat s = \sum_k w_k s_k`.

    The models :math:`s_k` are Gaussians of different shrinkage, elliptical models with heavy tails, kernel density estimates of
    six length scales, the same in a smooth frame (a sinh-arcsinh map of each column, then whitening), and, for up to four
    columns, score matching with kernels at landmarks. At each row, all of them are fitted to the other rows in closed form, so
    that

    .. math:: J(w) = \sum_i p_i \left(\tfrac12 |\hat s(x_i)|^2 + \operatorname{div} \hat s(x_i)\right)

    is an unbiased estimate of half the Fisher divergence up to a constant, for each w, in the coordinates of the rows. The shares
    p are equal except for rows very far from all others, one of which would decide all weights. The weights are not negative and
    minimise J plus a penalty on each weight: the standard error of the derivative of J for that weight. Only kernel density
    estimates in one of the two frames have weights. The smooth map has four parameters a column, which are fitted to all rows.
    Of what this differs from the best sum of Gaussians, only a share is kept: nearly all where J decreases by much more than the
    standard error, and nothing where it does not decrease.
    The weights are computed unless a stack is given that suits the rows. The scores of the models are in other units.
    """
    xp = namespace(x)
    quantiles = _quantiles(x)
    varying = _varying(x, quantiles[2, :])
    spread = _spreads(x, quantiles)
    # Far cells are limited, and about medians, because they would take the digits of all others.
    limit = xp.zeros_like(x) + _LIMIT * spread
    rows = xp.where(varying, xp.minimum(xp.maximum(x - quantiles[2, :], -limit), limit), xp.zeros_like(x))
    largest = xp.max(xp.abs(rows))  # sums of fourth powers of large rows overflow
    rows = rows / largest
    even = xp.ones_like(rows[:, 0]) / rows.shape[0]
    share = even * far_discounts(rows, even, xp.sum(xp.astype(varying, rows.dtype)))
    share = share / xp.sum(share)
    centre = share @ rows
    rows = xp.where(varying, rows - centre, xp.zeros_like(rows))
    scale = _column_scales(rows, varying, share)
    unit = largest * scale
    axes, varying = _extending(rows / scale, varying, share)
    rows = xp.where(varying, (rows / scale) @ axes, xp.zeros_like(rows))
    quantiles = _quantiles(rows)
    with full_precision(rows), ONE_BLAS_THREAD:
        enough = landmarks_of(rows) is not None
        if stack is not None and stack.landmarks and not enough:
            stack = None  # weights for more rows than these
        judged = stack is None
        kernels = Stack.kernels if stack is None else stack.kernels
        smooth = Stack.smooth if stack is None else stack.smooth
        fits = () if not enough else Stack.landmarks if stack is None else stack.landmarks
        parts = [_elliptical(rows, varying, share)]
        if kernels:
            parts.append(_kernel_estimates(rows, varying, kernels, budget, judged))
        if smooth is not None:
            parts += _in_smooth_frame(rows, varying, share, quantiles, smooth, budget, judged)
        if fits:
            base = (parts[0].values[_BASE, :, :], parts[0].divergences[_BASE, :])
            parts.append(_landmark_fits(rows, varying, base, fits, budget))
        models = Models(*(xp.concat(both) for both in zip(*parts, strict=True)))
        if stack is None:
            later = 2 * _ELLIPTICAL + len(kernels)
            places = range(_ELLIPTICAL, _ELLIPTICAL + len(kernels)), range(later, later + len(smooth or ()))
            stack = Stack(_weights(models, share, *map(tuple, places)), kernels, smooth, fits)
        score = xp.tensordot(stack.weights, models.values, axes=1)
    return score @ axes.T / unit, stack, models


def _varying(rows: Array, middle: Array) -> Array:
    """Return which columns have a score; where most rows have one value, models that are narrow about it have any loss."""
    xp = namespace(rows)
    equal = xp.abs(rows - middle) <= 1e-12 * xp.abs(middle)
    return xp.mean(xp.astype(equal, rows.dtype), axis=0) < NEARLY_CONSTANT


def _quantiles(rows: Array) -> Array:
    """Return five quantiles of each column, which a smooth map needs."""
    xp, n = namespace(rows), rows.shape[0]
    ordered = xp.sort(rows, axis=0)
    found = []
    for level in (1.0 - _LEVEL, 0.25, 0.5, 0.75, _LEVEL):
        low = min(int(level * (n - 1)), n - 2)
        part = level * (n - 1) - low
        found.append((1.0 - part) * ordered[low, :] + part * ordered[low + 1, :])
    return xp.stack(found)


def _spreads(rows: Array, quantiles: Array) -> Array:
    """Return a robust standard deviation of each column; where most values are equal, their mean distance to the median."""
    xp = namespace(rows)
    lowest, low, middle, high, highest = (quantiles[k, :] for k in range(5))
    spread = xp.maximum((high - low) / (2.0 * _QUARTILE), 0.3 * (highest - lowest) / (2.0 * _OUTER))
    return xp.where(spread > 0.0, spread, xp.mean(xp.abs(rows - middle), axis=0))


def _column_scales(rows: Array, varying: Array, share: Array) -> Array:
    """Return the standard deviations of very different columns, else ones: narrow ones would outweigh others in the loss."""
    xp = namespace(rows)
    spread = xp.sqrt(share @ (rows * rows))
    widest = xp.max(spread)
    unlike = widest > _UNLIKE * xp.min(xp.where(varying, spread, widest))
    return xp.where(varying & unlike, spread, xp.ones_like(spread))


def _elliptical(rows: Array, varying: Array, share: Array, metric: Array | None = None) -> Models:
    r"""Return the scores of elliptical models at each row, fitted to the others; `rows` have mean 0.

    Covariances :math:`(1 - \rho) S_{-i} + \rho t I` are rank-one changes with shrinkage and mean variance of all; divergences are
    sums over columns times `metric` (n, d).
    """
    xp = namespace(rows)
    d = xp.sum(xp.astype(varying, rows.dtype))
    rest = 1.0 - share
    usual = 1.0 - xp.max(share)  # that of all rows but far ones
    weighted = rows * share[:, None]
    covariance = rows.T @ weighted
    eye = xp.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    size = xp.sum(covariance * eye) / d
    rho = _shrinkage(rows, share, covariance, size, d)
    shrinkage = xp.stack([*(factor * rho for factor in _SHRINKAGES), xp.ones_like(rho)])
    precision = inverses(
        ((1.0 - shrinkage) / usual)[:, None, None] * covariance + (shrinkage * size)[:, None, None] * eye
    )
    change = (1.0 - shrinkage)[:, None] * (share / rest**2)
    u = rows @ precision
    left = 1.0 - change * xp.sum(u * rows, axis=2)
    values = -u / (rest * left)[:, :, None]  # rows less the mean of the others are `rows` / (1 - share)
    # Constant columns have no part in divergences.
    metric = xp.ones_like(rows) * varying if metric is None else metric * varying
    traces = xp.sum(precision * eye, axis=2) @ metric.T + change * xp.sum(metric * u * u, axis=2) / left
    found, divergences = [values], [-traces]
    # A model with heavy tails has the density (nu + q)^(-(nu + d)/2) for Mahalanobis distances q, up to a constant.
    for k in _WITH_TAILS:
        score, trace = values[k, :, :], traces[k, :]
        below = _DEGREES - xp.sum(score * rows, axis=1) / rest
        factor = (_DEGREES + d) / below
        found.append((factor[:, None] * score)[None, :, :])
        divergences.append((factor * (2.0 * xp.sum(metric * score * score, axis=1) / below - trace))[None, :])
    return Models(xp.concat(found), xp.concat(divergences))


def _extending(rows: Array, varying: Array, share: Array) -> tuple[Array, Array]:
    """Return orthogonal axes and which of them rows extend along; a score across a plane of rows would cost nothing."""
    xp = namespace(rows)
    eye = xp.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
    # Few rows have dependent columns always; an eigendecomposition would wait for another device than the CPU.
    if rows.shape[0] <= rows.shape[1] or not on_processor(rows):
        return eye, varying
    variances, axes = xp.linalg.eigh(rows.T @ (rows * share[:, None]))
    long = variances > _NO_EXTENT * variances[-1]
    dependent = xp.sum(xp.astype(long, rows.dtype)) < xp.sum(xp.astype(varying, rows.dtype))
    return xp.where(dependent, axes, eye), xp.where(dependent, long, varying)


def _shrinkage(rows: Array, share: Array, covariance: Array, size: Array, d: Array) -> Array:
    """Return the shrinkage of Ledoit and Wolf for `d` columns that vary, at least one over the number of rows."""
    xp = namespace(rows)
    least = xp.max(share)
    squares = xp.sum(covariance * covariance)
    spread = squares - d * size**2
    noise = (share @ xp.sum(rows * rows, axis=1) ** 2 - squares) * least
    some = spread > noise
    found = xp.where(some, noise / xp.where(some, spread, xp.ones_like(spread)), xp.ones_like(noise))
    # Without clip, which waits for the device in old versions of array-api-compat.
    return xp.maximum(xp.minimum(found, xp.ones_like(found)), least)


def _in_smooth_frame(
    rows: Array,
    varying: Array,
    share: Array,
    quantiles: Array,
    kernels: tuple[int, ...],
    budget: Budget,
    judged: bool = True,
) -> list[Models]:
    """Return elliptical and kernel models fitted in the smooth frame, in the coordinates of the rows."""
    xp = namespace(rows)
    shift, scale, tail, skew = _smooth_map(rows, quantiles, varying)
    y = (rows - shift) / scale
    y = xp.minimum(xp.maximum(y, xp.full_like(y, -_FARTHEST)), xp.full_like(y, _FARTHEST))
    square, u = 1.0 + y * y, tail * xp.asinh(y) - skew
    t, tanh = xp.sinh(u), xp.tanh(u)
    slope = xp.cosh(u) * tail / xp.sqrt(square) / scale
    # First and second derivatives of the logarithm of the slope.
    bend = (tail * tanh / xp.sqrt(square) - y / square) / scale
    curve = tail * tail * (1.0 - tanh * tanh) - tail * tanh * y / xp.sqrt(square) - (1.0 - y * y) / square
    curve = curve / square / scale**2
    t, bend, curve = (xp.where(varying, a, xp.zeros_like(a)) for a in (t, bend, curve))
    t = t - share @ t
    metric = slope * slope * varying
    parts = [_elliptical(t, varying, share, metric)]
    if kernels:
        covariance = t.T @ (t * share[:, None])
        eye = xp.eye(t.shape[1], dtype=t.dtype, device=t.device)
        size = xp.sum(covariance * eye) / xp.sum(xp.astype(varying, t.dtype))
        d = xp.sum(xp.astype(varying, t.dtype))
        rho = _shrinkage(t, share, covariance, size, d) + _WHITENING * d * xp.max(share)
        rho = xp.minimum(rho, xp.ones_like(rho))
        precision = inverses((1.0 - rho) * covariance + rho * size * eye)
        parts.append(_kernel_estimates(t, varying, kernels, budget, judged, (precision, metric)))

    def pulled(models: Models) -> Models:
        values, divergences = models
        of_map = xp.sum(slope * bend * values, axis=2) + xp.sum(curve, axis=1)
        return Models(slope * values + bend, divergences + of_map)

    return [pulled(models) for models in parts]


def _smooth_map(rows: Array, quantiles: Array, varying: Array) -> tuple[Array, Array, Array, Array]:
    """Return shift, scale, delta, epsilon of sinh-arcsinh maps that take five quantiles to normal ones, in closed form.

    Columns with many equal values, and tails beyond the ends, get the nearest map that is smooth.
    """
    xp = namespace(rows)
    lowest, low, middle, high, highest = (quantiles[k, :] for k in range(5))
    step = float(np.arcsinh(_QUARTILE))
    inner, outer = high - low, highest - lowest
    some = (inner > 0.0) & varying
    inner = xp.where(some, inner, xp.ones_like(inner))
    ratio = xp.where(some, outer / inner, xp.full_like(outer, 2.0 * float(np.cosh(step))))
    ends = [2.0 * float(np.cosh(step * end)) for end in _TAILS]
    ratio = xp.minimum(xp.maximum(ratio, xp.full_like(ratio, ends[0])), xp.full_like(ratio, ends[1]))
    root_n = rows.shape[0] ** 0.5
    exponent = 1.0 + _significant(xp.acosh(0.5 * ratio) / step - 1.0, _EXPONENT_ERROR / root_n)
    cosh, sinh = xp.cosh(step * exponent), xp.sinh(step * exponent)
    both = xp.where(some, (highest + lowest) - (high + low), xp.zeros_like(outer)) / inner
    skew = both * sinh / ((2.0 * cosh * cosh - 1.0) - cosh)
    skew = _SKEW * xp.tanh(skew / _SKEW)  # below 1 in size, and nearly what it was where it is small
    angle = xp.atanh(_significant(skew, _SKEW_ERROR / root_n))
    scale = inner / (2.0 * xp.cosh(angle) * sinh)
    spread = xp.std(rows, axis=0)
    scale = xp.where(some, scale, xp.where(spread > 0.0, spread, xp.ones_like(spread)))
    shift = xp.where(some, 0.5 * (high + low) - scale * xp.sinh(angle) * cosh, middle)
    return shift, scale, 1.0 / exponent, angle / exponent


def _significant(values: Array, error: float) -> Array:
    """Return values times a factor that is near 0 for those within their standard error and near 1 for large ones."""
    squares = (values / (_SIGNIFICANT * error)) ** 4
    return values * squares / (1.0 + squares)


def _kernel_estimates(
    rows: Array,
    varying: Array,
    kernels: tuple[int, ...],
    budget: Budget,
    judged: bool = True,
    whitening: tuple[Array, Array] | None = None,
) -> Models:
    """Return scores of Gaussian kernel density estimates at rows, without rows equal to them.

    `whitening` is a precision and a metric for divergences; these, which only weights need, are 0 unless `judged`.
    """
    xp = namespace(rows)
    n = rows.shape[0]
    d = xp.sum(xp.astype(varying, rows.dtype))
    extended = xp.concat([rows, xp.ones_like(rows[:, :1])], axis=1)
    if whitening is not None:
        precision, metric = whitening
        pulled = rows @ precision
        extended = xp.concat([pulled, xp.ones_like(rows[:, :1]), *([pulled * pulled] if judged else [])], axis=1)
        diagonal = xp.sum(precision * xp.eye(rows.shape[1], dtype=rows.dtype, device=rows.device), axis=1)
        rows = rows @ _root(precision)
    squares = xp.sum(rows * rows, axis=1)
    median = median_squared_distance(rows)

    def work(part: slice) -> Models:
        pairs = RowDistances.of(rows, squares, part)
        weights = xp.exp(pairs.beyond_nearest / -median)  # for a squared length scale of half the median
        weights[pairs.equal] = 0.0
        found = []
        for halvings in range(1, max(kernels) + 1):
            if halvings > 1:
                weights *= weights
            if halvings in kernels:
                scale = median / 2.0**halvings
                sums = pairs.sums(weights, extended)
                if not judged:
                    found.append(Models(sums.shift / scale, xp.zeros_like(sums.total[:, 0])))
                elif whitening is None:
                    found.append(pairs.estimate(weights, sums, scale, d))
                else:
                    found.append(pairs.whitened_estimate(sums, scale, diagonal, metric[part, :]))
        return Models(*(xp.stack(one) for one in zip(*found, strict=True)))

    host = on_processor(rows)
    workers = budget.threads if host else 1
    most = budget.memory / (_ARRAYS * 8 * workers)
    slabs = slices(n, min(_HOST_PAIRS if host else _DEVICE_PAIRS, most) // n)
    return Models(
        *(xp.concat(one, axis=1) for one in zip(*map_threads(work, slabs, min(workers, len(slabs))), strict=True))
    )


def _landmark_fits(
    rows: Array,
    varying: Array,
    base: tuple[Array, Array],
    fits: tuple[tuple[float, float], ...],
    budget: Budget,
) -> Models:
    """Return the scores of score matching with kernels at landmarks, on top of a Gaussian; 0 if many rows are equal."""
    xp = namespace(rows)
    d = xp.sum(xp.astype(varying, rows.dtype))
    scale = xp.sqrt(median_squared_distance(rows))
    found: list[tuple[Array, Array]] = []
    for factor in dict.fromkeys(factor for factor, _ in fits):
        alphas = [alpha for other, alpha in fits if other == factor]
        found += landmark_scores(rows, base, factor * scale, alphas, d, budget)
    values, divergences = (xp.stack(one) for one in zip(*found, strict=True))
    unlike = xp.astype(xp.asarray(~many_copies(rows)), rows.dtype)  # NumPy makes a scalar of it
    return Models(unlike * values, unlike * divergences)


class WeightedSums(NamedTuple):
    """Sums of weights at some rows, where there are any, weighted means of columns and what they differ by, and other sums."""

    total: Array
    some: Array
    mean: Array
    shift: Array
    more: Array


@dataclass(frozen=True)
class RowDistances:
    """Distances of some rows to all."""

    part: slice  # rows
    beyond_nearest: Array  # (m, n): squared distances less that of the nearest other row
    nearest: Array  # (m,): squared distance of the nearest other row
    equal: Array  # (m, n): pairs of equal rows
    columns: int  # number of columns

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
        return cls(part, distances, nearest, equal, rows.shape[1])

    def sums(self, weights: Array, extended: Array) -> WeightedSums:
        """Return the sums over all rows by their weights; `extended` has columns, ones, and perhaps more."""
        xp, d = namespace(weights), self.columns
        sums = weights @ extended
        total = sums[:, d : d + 1]
        some = total > 0.0  # false if all rows are equal to this one
        total = xp.where(some, total, xp.ones_like(total))
        mean = sums[:, :d] / total
        shift = xp.where(some, mean - extended[self.part, :d], xp.zeros_like(mean))
        return WeightedSums(total, some, mean, shift, sums[:, d + 1 :])

    def estimate(self, weights: Array, sums: WeightedSums, scale: Array, d: Array) -> Models:
        """Return a score at the rows for the squared length scale, given weights at each; d columns vary."""
        xp, shift = namespace(weights), sums.shift
        mean = _row_products(weights, self.beyond_nearest) / sums.total[:, 0] + self.nearest
        variance = mean - xp.sum(shift * shift, axis=1)
        return Models(shift / scale, (variance / scale - d) / scale)

    def whitened_estimate(self, sums: WeightedSums, scale: Array, diagonal: Array, metric: Array) -> Models:
        """Return one score for distances by a precision matrix with this diagonal; divergences are sums times the metric."""
        xp, mean = namespace(metric), sums.mean
        variance = xp.where(sums.some, sums.more / sums.total - mean * mean, xp.zeros_like(mean))
        return Models(sums.shift / scale, xp.sum(metric * (variance / scale - diagonal), axis=1) / scale)


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


def _weights(models: Models, share: Array, first: tuple[int, ...], second: tuple[int, ...]) -> Array:
    """Return the weight of each model, (k,). Of the sets `first` and `second`, only that of the smaller loss has weights."""
    xp = namespace(models.values)
    sizes = models.sizes(share)
    values, divergences = models.values / sizes[:, None, None], models.divergences / sizes[:, None]
    # Weights of about 1 in any units: the method that finds them takes a fixed number of steps from there.
    unit = xp.max(xp.abs(divergences @ share))
    unit = xp.where(unit > 0.0, unit, xp.ones_like(unit))
    divergences = divergences / unit
    k = divergences.shape[0]
    flat = xp.reshape(values * xp.sqrt(share)[:, None], (k, -1))
    # Models may be equal; the ridge then gives them equal weights.
    gram = flat @ flat.T + 1e-6 * xp.eye(k, dtype=flat.dtype, device=flat.device)
    slope = divergences @ share
    least = np.full(k, _ERRORS)
    least[list(second)] = _WHITENED_ERRORS
    allowed = xp.asarray(least, dtype=flat.dtype, device=flat.device)

    def of(left_out: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the weights without some models, and their penalised loss."""
        mask = np.ones(k)
        mask[list(left_out)] = 0.0
        kept = xp.asarray(mask, dtype=flat.dtype, device=flat.device)
        matrix = gram * kept * kept[:, None] + xp.eye(k, dtype=flat.dtype, device=flat.device) * (1.0 - kept)
        score = xp.tensordot(_nonnegative_minimum(matrix, slope * kept + (1.0 - kept)), values, axes=1)
        derivatives = xp.sum(values * score, axis=2) + divergences
        deviations = derivatives - (derivatives @ share)[:, None]
        errors = xp.sqrt((deviations * deviations) @ share * xp.sum(share * share))
        penalised = (slope + allowed * errors) * kept + (1.0 - kept)
        w = _nonnegative_minimum(matrix, penalised) * kept
        return w, 0.5 * (w @ (gram @ w)) + penalised @ w

    if first and second:
        (one, loss), (other, other_loss) = of(second), of(first)
        chosen = xp.where(loss <= other_loss, one, other)
    else:
        chosen = of(())[0]
    gaussians = len(_SHRINKAGES) + 1
    base = _nonnegative_minimum(gram[:gaussians, :gaussians], slope[:gaussians])
    base = xp.concat([base, xp.zeros_like(slope[gaussians:])])
    simple, other = (_losses(w, values, divergences) for w in (base, chosen))
    kept = _significant_share(simple, other, share)
    return (base + kept * (chosen - base)) * unit / sizes


def _losses(weights: Array, values: Array, divergences: Array) -> Array:
    """Return the Hyvarinen loss of the weighted sum at each row."""
    xp = namespace(values)
    score = xp.tensordot(weights, values, axes=1)
    return 0.5 * xp.sum(score * score, axis=1) + weights @ divergences


def _significant_share(simple: Array, other: Array, share: Array) -> Array:
    """Return the share kept of a step from a simple model to another, whose loss may be smaller by chance."""
    xp = namespace(simple)
    gains = simple - other
    gain = share @ gains
    error = xp.sqrt(((gains - gain) ** 2) @ share * xp.sum(share * share))
    odds = xp.maximum(gain, xp.zeros_like(gain)) ** 4
    total = odds + (BASE_ALONE_ERRORS * error) ** 4
    return odds / xp.where(total > 0.0, total, xp.ones_like(total))


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


def _root(matrix: Array) -> Array:
    """Return the lower triangular root of a positive definite matrix, without waiting for a device."""
    if isinstance(matrix, np.ndarray):
        return np.linalg.cholesky(matrix)
    return namespace(matrix).linalg.cholesky_ex(matrix).L
