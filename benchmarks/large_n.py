"""Fitting SOSREP to many rows: random features beside the exact fit, whose matrix is streamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.comparison import Comparison, Rival
from isopleth import SOSREP, RandomFeatureSOSREP

FRESH = 1000
# Times Scott's rule: in ten columns, a scale at which features tell nearly all rows from noise.
FACTOR = 4.0

# Log densities of fresh rows.
Answer = np.ndarray


@dataclass(frozen=True)
class Rows:
    """Rows to fit, fresh ones, and the length scale."""

    x: np.ndarray
    fresh: np.ndarray
    length_scale: float


def problem(n: int, d: int) -> Rows:
    """Normal rows."""
    fresh = np.random.default_rng(1).normal(size=(FRESH, d))
    return Rows(np.random.default_rng(0).normal(size=(n, d)), fresh, FACTOR * n ** (-1.0 / (d + 4)))


def exact(p: Rows) -> Answer:
    """Products with a matrix that is made anew for each once it does not fit in the memory limit of 1 GiB."""
    return SOSREP(length_scale=p.length_scale, tol=1e-6).fit(p.x).score_samples(p.fresh)


def features(number: int) -> Callable[[Rows], Answer]:
    """Newton's method in T unknowns to 1e-6, the check on a subsample included."""

    def run(p: Rows) -> Answer:
        model = RandomFeatureSOSREP(length_scale=p.length_scale, n_frequencies=number // 2, random_state=0)
        return model.fit(p.x).score_samples(p.fresh)

    return run


@lru_cache(maxsize=1)
def _expected(n: int, d: int) -> Answer:
    return exact(problem(n, d))


def difference(p: Rows, answer: Answer) -> float:
    """From the exact fit at fresh rows, where the answer is finite; root mean square, in nats."""
    told = np.isfinite(answer)
    return float(np.sqrt(np.mean((answer - _expected(*p.x.shape))[told] ** 2)))


COMPARISONS = [
    Comparison(
        "large-n",
        "A fit of SOSREP to n rows and log densities of 1,000 others, n = {n:,}, d = {d}",
        problem,
        {f"isopleth RandomFeatureSOSREP, T = {number:,}": Rival(features(number)) for number in (1000, 300)}
        | {"isopleth SOSREP, exact, matrix streamed": Rival(exact)},
        difference,
        "from the exact fit, nats",
        rows=(25_000, 50_000, 100_000),
        columns=10,
        quick_rows=(150, 300),
        slowest=300.0,
    )
]
