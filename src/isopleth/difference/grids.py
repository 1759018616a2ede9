"""Candidates for length scales and ridges, and the choice of centres."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import chi2

from isopleth.core.errors import InputError
from isopleth.core.parameters import given_numbers, given_points
from isopleth.core.scales import LEAST_SIZE, deviations, is_auto, refuse_sizes
from isopleth.difference.samples import TwoSamples

# Ridges over the volume of the kernel.
ALPHAS = 10.0 ** np.arange(-3.0, 4.25, 0.5)


# Half octaves from the smallest to the largest multiple of the standard deviations, and most further ones.
_STEPS, _MOST_FURTHER = 10, 12
# Share of the pairs of rows of a sample that are the close ones, and their least number, below which chance would decide.
_CLOSE, _FEW = 0.01, 20
# Rows of each sample whose distances are computed. Rows nearer than this, in standard deviations, are repeated: rounded values
# need no finer scale.
_ROWS_OF_DISTANCES, _REPEATED = 200, 1e-6
# Rows that are closer by less than this factor need no smaller scale: chance does as much to few rows, and the smallest scale is
# far below the deviation.
_ALLOWED = 2.0


def factors(dim: int, relative_spacing: np.ndarray | float = 1.0) -> np.ndarray:
    """Return default multiples of the standard deviations, (k, d), from fine ones for narrow clusters to the largest."""
    least = np.clip(np.atleast_1d(np.asarray(relative_spacing)), 2.0 ** (-0.5 * _MOST_FURTHER), 1.0)
    octaves = -math.log2(least.min())
    steps = 2.0 ** np.linspace(-3.5, 1.5 + octaves, _STEPS + round(2.0 * octaves) + 1)
    return math.sqrt(dim) * np.minimum(steps[:, None] * least, 2.0**1.5)


def relative_spacing(scaled: np.ndarray, weights: np.ndarray, seed: int) -> np.ndarray:
    """Return by column how much closer the closest rows within the samples are than those in normal samples."""
    chosen = [np.flatnonzero(weight > 0) for weight in weights.T]
    chosen = [np.sort(np.random.default_rng(seed).permutation(mine)[:_ROWS_OF_DISTANCES]) for mine in chosen]
    samples = [(scaled[mine], weight[mine]) for mine, weight in zip(chosen, weights.T, strict=True)]
    each = np.array([_closeness([(rows[:, [j]], weight) for rows, weight in samples]) for j in range(scaled.shape[1])])
    varying = np.any([np.ptp(rows, axis=0) > _REPEATED for rows, _ in samples], axis=0)
    return each * _closeness([(rows[:, varying] / each[varying], weight) for rows, weight in samples])


def _closeness(samples: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the distance of close rows over that in normal samples; 1 from half of it on."""
    distance = np.concatenate([pdist(rows) for rows, _ in samples])
    pairs = np.concatenate([(weight[:, None] * weight)[np.triu_indices(len(weight), 1)] for _, weight in samples])
    distance, pairs = distance[distance > _REPEATED], pairs[distance > _REPEATED]
    if not len(distance):
        return 1.0
    share = min(max(_CLOSE, _FEW / len(distance)), 0.5)
    order = np.argsort(distance)
    below = np.cumsum(pairs[order])
    found = distance[order[np.searchsorted(below, share * below[-1])]]
    expected = math.sqrt(2.0 * chi2.ppf(share, samples[0][0].shape[1]))
    ratio = found / expected
    return float(min(max(ratio, (_ALLOWED * ratio) ** 2), 1.0))  # the ratio itself from a quarter on


TAILS = (0.25, 0.1, 0.025)
# Interquartile ranges beyond the quartiles: 11 standard deviations of a normal distribution, which its values do not reach.
REACH = 8.0

# Smallest length scale over the standard deviation: scaled coordinates are bounded, and different rows must stay different.
LEAST = 1e-100


def clipped(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Clip values far from the quartiles (wider quantiles if these are equal), so that a few do not determine the scale."""
    order = np.argsort(rows, axis=0)
    ranked, mass = np.take_along_axis(rows, order, axis=0), weights[order]
    lower = np.cumsum(mass, axis=0) / weights.sum()
    upper = np.cumsum(mass[::-1], axis=0) / weights.sum()
    low, high = np.full((2, rows.shape[1]), np.nan)
    for tail in TAILS:
        here = tail * (1.0 - 1e-12)
        first = np.take_along_axis(ranked, np.argmax(lower >= here, axis=0)[None], axis=0)[0]
        last = np.take_along_axis(ranked[::-1], np.argmax(upper >= here, axis=0)[None], axis=0)[0]
        open_still = np.isnan(low) & (first < last)
        with np.errstate(over="ignore"):
            low = np.where(open_still, first - REACH * (last - first), low)
            high = np.where(open_still, last + REACH * (last - first), high)
    return np.clip(rows, np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _deviations(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    counted = weights > 0
    values = clipped(rows[counted], weights[counted])
    varying = values.min(axis=0) < values.max(axis=0)  # a mean may differ from equal values by rounding
    return np.where(varying, deviations(values, weights[counted]), 0.0)


def spread_within(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return standard deviations within the samples, which do not grow with their difference; of all rows if constant in both."""
    within = np.array([_deviations(rows, w) for w in weights.T])
    share = np.sqrt(weights.sum(axis=0) / weights.sum())
    pooled = np.hypot(*(within * share[:, None]))
    return np.where(pooled > 0, pooled, deviations(rows, weights.sum(axis=1)))


def length_scales(
    given: Any, rows: np.ndarray, weights: np.ndarray, keep: np.ndarray, names: list[str], seed: int
) -> tuple[np.ndarray, bool]:
    """Return candidates, (k, d), for the kept columns of the centred `rows`, and whether there are several."""
    if is_auto(given):
        spread = spread_within(rows, weights)
        refuse_sizes(spread, keep, names.__getitem__, LEAST_SIZE)
        return factors(rows.shape[1], relative_spacing(rows / spread, weights, seed)) * spread, True
    expected = f"'auto', a number, one for each of {len(keep)} columns, or a table with one candidate a row"
    table = given_numbers("length_scale", given, expected)
    shape = table.shape
    if (
        table.ndim > 2
        or not table.size
        or (table.ndim and shape[-1] != len(keep) and (table.ndim == 1 or shape[1] != 1))
    ):
        raise InputError(f"length_scale has shape {shape}; expected {expected}.")
    table = np.broadcast_to(np.atleast_2d(table), (shape[0] if table.ndim == 2 else 1, len(keep)))
    if not ((np.isfinite(table) & (table > 0)) | (np.isnan(table) & ~keep)).all():
        raise InputError(f"length_scale = {given!r}: expected positive, finite numbers in the units of the columns.")
    table = table[:, keep]
    if (table < LEAST * spread_within(rows, weights)).any():
        raise InputError(
            f"length_scale = {given!r}: too small for the columns, whose rows it sets apart beyond all numbers."
        )
    return table, len(table) > 1


def ridges(given: Any) -> tuple[np.ndarray, bool]:
    """Return candidates for alpha, and whether there are several."""
    if given is None:
        return ALPHAS, True
    expected = "None, a number or a sequence of numbers, finite and >= 0"
    alphas = np.atleast_1d(given_numbers("alpha", given, expected))
    if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas) & (alphas >= 0)).all():
        raise InputError(f"alpha = {given!r}: expected {expected}.")
    return alphas, len(alphas) > 1


def choose_centers(given: Any, samples: TwoSamples, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return centres in the units of the data and their indices among the distinct rows, None for centres given by the user."""
    if given is None or isinstance(given, Integral):
        count = len(samples.rows) if given is None else min(int(given), len(samples.rows))
        chosen = _drawn_evenly(samples.weights > 0, count, seed)
        return samples.rows[chosen], chosen
    columns = samples.rows.shape[1]
    expected = f"a number of centers, or finite points of {columns} columns as the samples have"
    return given_points("centers", given, columns, expected), None


def _drawn_evenly(member: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw the indices of `count` rows, half from each sample if it has as many, whichever is called X."""
    priority = np.random.default_rng(seed).permutation(len(member))
    if count == len(member):
        return np.arange(count)
    rank = np.full(member.shape, np.inf)
    for sample in range(2):
        rows = np.flatnonzero(member[:, sample])
        rank[rows[np.argsort(priority[rows])], sample] = np.arange(len(rows))
    order = np.lexsort([priority, rank.min(axis=1)])
    return np.sort(order[:count])
