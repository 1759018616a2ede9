"""SOSREP of many rows: random features compared with the exact fit, whose matrix is computed in tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.comparison import Comparison, Program
from isopleth import SOSREP, RandomFeatureSOSREP

FRESH = 1000
# Multiple of Scott's rule: in ten columns, a scale at which features distinguish nearly all rows from noise.
FACTOR = 4.0

# Number of new rows to score.
Answer = np.ndarray


@dataclass(frozen=True)
class Rows:
    """Rows to fit, new rows and the length scale."""

    x: np.ndarray
    fresh: np.ndarray
    length_scale: float


def problem(n: int, d: int) -> Rows:
    """Draw normal rows."""
    fresh = np.random.default_rng(1).normal(size=(FRESH, d))
    return Rows(np.random.default_rng(0).normal(size=(n, d)), fresh, FACTOR * n ** (-1.0 / (d + 4)))


def exact(p: Rows) -> Answer:
    """Fit exactly; a matrix above the memory limit of 1 GiB is computed again for each product."""
    return SOSREP(length_scale=p.length_scale, tol=1e-6, frame="scale").fit(p.x).score_samples(p.fresh)


def features(number: int) -> Callable[[Rows], Answer]:
    """Fit by random features to 1e-6, including the check on a subsample."""

    def run(p: Rows) -> Answer:
        model = RandomFeatureSOSREP(length_scale=p.length_scale, n_frequencies=number // 2, random_state=0)
        return model.fit(p.x).score_samples(p.fresh)

    return run


@lru_cache(maxsize=1)
def _expected(n: int, d: int) -> Answer:
    return exact(problem(n, d))


def difference(p: Rows, answer: Answer) -> float:
    """Return the root mean squared difference from the exact fit at new rows with a finite answer, in nats."""
    finite = np.isfinite(answer)
    return float(np.sqrt(np.mean((answer - _expected(*p.x.shape))[finite] ** 2)))


COMPARISONS = [
    Comparison(
        "large-n",
        "A fit of SOSREP to n rows and log densities of 1,000 others, n = {n:,}, d = {d}",
        problem,
        {f"isopleth RandomFeatureSOSREP, T = {number:,}": Program(features(number)) for number in (1000, 300)}
        | {"isopleth SOSREP, exact, matrix streamed": Program(exact)},
        difference,
        "from the exact fit, nats",
        rows=(25_000, 50_000, 100_000),
        columns=10,
        quick_rows=(150, 300),
        slowest=300.0,
    )
]
