"""Nystrom scores of many rows: sums of products of kernel blocks with 300 landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import squared_distances
from isopleth.kernels import IMQ
from isopleth.score import Tikhonov
from isopleth.score.spaces import SPACES
from isopleth.score.statistics import NystromStatistics, NystromSystem

LANDMARKS = 300
CHUNK = 512

# Space, averaged squares, right-hand side, precision.
Answer = tuple[str, np.ndarray, np.ndarray, type]


@dataclass(frozen=True)
class Rows:
    """Rows at distances of about 2; the first of them are the landmarks."""

    x: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Return the landmarks."""
        return self.x[:LANDMARKS]


def problem(n: int, d: int) -> Rows:
    """Draw normal rows."""
    return Rows(np.random.default_rng(0).normal(size=(n, d)) * np.sqrt(2.0 / d))


def ours(space: str, dtype: type) -> Callable[[Rows], Answer]:
    """Compute the sums in one pass over the rows."""

    def run(p: Rows) -> Answer:
        x = p.x.astype(dtype)
        system = NystromStatistics(SPACES[space](IMQ(dim=x.shape[1])), x[:LANDMARKS]).accumulate(x).system()
        return space, system.squares, system.rhs, dtype

    return run


def curl_free_block(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the blocks of d x d numbers, one component after another."""
    m, n, d = len(z), len(x), z.shape[1]
    q = 1.0 + squared_distances(z, x)
    out = np.empty((d, m, d, n))
    u = [np.subtract.outer(z[:, i], x[:, i]) for i in range(d)]
    for i in range(d):
        for j in range(d):
            out[i, :, j] = -3.0 * q**-2.5 * u[i] * u[j]
        out[i, :, i] += q**-1.5
    return out.reshape(d * m, d * n)


def diagonal_block(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the scalar kernel."""
    return (1.0 + squared_distances(z, x)) ** -0.5


BLOCKS = {"curl_free": curl_free_block, "diagonal": diagonal_block}


def literal(space: str) -> Callable[[Rows], Answer]:
    """Compute the sums directly: the blocks of a chunk, then their product."""

    def run(p: Rows) -> Answer:
        total: np.ndarray | float = 0.0
        for start in range(0, len(p.x), CHUNK):
            block = BLOCKS[space](p.z, p.x[start : start + CHUNK])
            total = total + block @ block.T
        here = SPACES[space](IMQ(dim=p.x.shape[1]))
        rhs = here.stack(here.zeta(p.z, p.x, np.full(len(p.x), 1.0 / len(p.x))))
        return space, np.asarray(total) / len(p.x), rhs, np.float64

    return run


@lru_cache(maxsize=1)
def _float64(n: int, d: int) -> np.ndarray:
    return _score(problem(n, d), ours("curl_free", np.float64)(problem(n, d)))


def distance(p: Rows, answer: Answer) -> float:
    """Return the difference of the score from that of float64 sums, where the direct form would take too long."""
    want = _float64(*p.x.shape)
    return float(np.linalg.norm(_score(p, answer) - want) / np.linalg.norm(want))


@lru_cache(maxsize=2)
def _expected(space: str, n: int, d: int) -> np.ndarray:
    return _score(problem(n, d), literal(space)(problem(n, d)))


def _score(p: Rows, answer: Answer) -> np.ndarray:
    """Return the score at some rows, by Tikhonov with ridge 1e-3."""
    name, squares, rhs, dtype = answer
    space = SPACES[name](IMQ(dim=p.x.shape[1]))
    system = NystromSystem(space.gram(p.z), squares, rhs, float(np.finfo(dtype).eps))
    found = space.unstack(system.solve(Tikhonov(alpha=1e-3)), p.x.shape[1])
    return np.asarray(space.operator(p.x[-200:], p.z).matvec(found))


def error(p: Rows, answer: Answer) -> float:
    """Return the error of the score that is computed from the sums."""
    want = _expected(answer[0], *p.x.shape)
    return float(np.linalg.norm(_score(p, answer) - want) / np.linalg.norm(want))


def _programs(space: str) -> dict[str, Program]:
    return {
        "isopleth": Program(ours(space, np.float64)),
        "isopleth, float32": Program(ours(space, np.float32)),
        "NumPy, blocks of a chunk, then their product": Program(literal(space)),
    }


COMPARISONS = [
    Comparison(
        "nystrom-curl-free",
        "Sums over n rows for a curl-free Nystrom score of 300 landmarks, n = {n:,}, d = {d}",
        problem,
        _programs("curl_free"),
        error,
        "relative error of the score",
        rows=(1024, 2048, 4096, 8192),
        columns=8,
        column_range=(2, 4, 8),
        column_rows=2048,
    ),
    Comparison(
        "nystrom-diagonal",
        "Sums over n rows for a diagonal Nystrom score of 300 landmarks, n = {n:,}, d = {d}",
        problem,
        _programs("diagonal"),
        error,
        "relative error of the score",
        rows=(12_500, 25_000, 50_000, 100_000),
        columns=8,
    ),
    Comparison(
        "nystrom-large",
        "Sums over many rows for a curl-free Nystrom score of 300 landmarks, n = {n:,}, d = {d}",
        problem,
        {name: program for name, program in _programs("curl_free").items() if name.startswith("isopleth")},
        distance,
        "distance of the score from that of float64",
        rows=(25_000, 100_000),
        columns=8,
        quick_rows=(240, 480),
        slowest=300.0,
    ),
]
