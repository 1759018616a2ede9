"""Tests whether two samples differ: time, memory and p-value, compared with hyppo and SciPy."""

from __future__ import annotations

import numpy as np

from benchmarks.comparison import Comparison, Program
from isopleth import two_sample_test

PERMUTATIONS = 500
Pair = tuple[np.ndarray, np.ndarray]


def problem(n: int, d: int) -> Pair:
    """Draw n/2 rows for each sample; the first column of the second sample is shifted."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n // 2, d))
    y[:, 0] += 8.0 * np.sqrt(d / n)
    return x, y


def ours(pair: Pair) -> float:
    """Run the permutation test over all scales."""
    return two_sample_test(*pair, n_resamples=PERMUTATIONS - 1, random_state=0).pvalue


def hyppo_mmd(pair: Pair) -> float:
    """Run hyppo's MMD with its defaults: one scale, a chi-squared approximation."""
    from hyppo.ksample import MMD

    return float(MMD().test(*pair)[1])


def scipy_energy(pair: Pair) -> float:
    """Run SciPy's energy distance under permutations, in one column."""
    from scipy.stats import energy_distance

    n, z, rng = len(pair[0]), np.concatenate(pair)[:, 0], np.random.default_rng(0)
    orders = [np.arange(len(z)), *(rng.permutation(len(z)) for _ in range(PERMUTATIONS - 1))]
    distances = np.array([energy_distance(z[order[:n]], z[order[n:]]) for order in orders])
    return float((distances >= distances[0] * (1.0 - 1e-9)).mean())


def pvalue(_: Pair, answer: float) -> float:
    """Return the p-value itself: the samples do differ."""
    return answer


COMPARISONS = [
    Comparison(
        "two-samples",
        f"Test whether two samples differ, {PERMUTATIONS - 1} permutations, n + n' = {{n:,}}, d = {{d}}",
        problem,
        {
            "isopleth two_sample_test": Program(ours),
            "hyppo MMD, chi-squared": Program(hyppo_mmd, needs="hyppo", array_bytes=lambda n, d: 40.0 * n**2),
            "SciPy energy distance": Program(scipy_energy, dims=(1,)),
        },
        pvalue,
        "p-value",
        rows=(500, 1000, 2000, 4000),
        columns=10,
        column_range=(1, 4, 16, 64),
        column_rows=1000,
    )
]
