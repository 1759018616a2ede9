"""Fitting and scoring a density beside the papers' algorithm and scikit-learn's KernelDensity.

python -m benchmarks.sosrep
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

from benchmarks.timing import interleaved, machine, table
from isopleth import SOSREP
from isopleth.expansion import KernelExpansion
from isopleth.kernels import get_kernel
from isopleth.operators import Operator

PUBLISHED_STEPS = 30_000


def natural_gradient(op: Operator, steps: int, rate: float = 0.25) -> np.ndarray:
    """The papers' iteration, alpha <- alpha - rate * 2 (alpha - w / K alpha), with the matrix kept and BLAS unhindered."""
    n = op.shape[0]
    k = op.dense()
    alpha = np.full(n, 1.0 / np.sqrt(k.sum()))
    for _ in range(steps):
        alpha -= rate * 2.0 * (alpha - 1.0 / (n * (k @ alpha)))
    return alpha


def fit() -> None:
    """n = 3000, d = 20 to 1e-8, beside 30,000 steps extrapolated from 300."""
    x = np.random.default_rng(0).normal(size=(3000, 20))
    for kernel in ("gaussian", "laplacian", "sdo"):
        model = SOSREP(kernel=kernel)
        seconds = interleaved({"fit": lambda model=model: model.fit(x)}, rounds=5)["fit"]
        op = Operator(get_kernel(kernel), x / model.length_scale_)
        start = time.perf_counter()
        natural_gradient(op, 300)
        steps = (time.perf_counter() - start) * PUBLISHED_STEPS / 300
        print(
            f"{kernel:<10} fit {seconds:.3f} s, residual {model.residual_:.1e}, {model.n_iter_} products; "
            f"{PUBLISHED_STEPS} natural-gradient steps {steps:.0f} s (extrapolated from 300): {steps / seconds:.0f} times"
        )


def score() -> None:
    """1e5 rows against 7000 centres, d = 10, both in double precision and both to full accuracy."""
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=(7000, 10)), rng.normal(size=(100_000, 10))
    bandwidth = 0.5
    peer = KernelDensity(bandwidth=bandwidth).fit(x)
    # The same function for both: equal coefficients make the expansion a kernel density estimate.
    ours = KernelExpansion(get_kernel("gaussian").bind(10), x / bandwidth, np.full(7000, 1 / 7000))
    constant = 10 * np.log(bandwidth) + 5 * np.log(2 * np.pi)
    few = q[:200]
    exact = logsumexp(-0.5 * ((few[:, None] - x) ** 2).sum(axis=2) / bandwidth**2, axis=1) - np.log(7000) - constant
    for name, got in (
        ("isopleth", ours.log_abs(few / bandwidth) - constant),
        ("scikit-learn", peer.score_samples(few)),
    ):
        print(f"{name}: largest error of the log density {np.max(np.abs(got - exact)):.1e}")
    seconds = interleaved(
        {"isopleth": lambda: ours.log_abs(q / bandwidth), "scikit-learn KernelDensity": lambda: peer.score_samples(q)},
        rounds=3,
    )
    table("scoring 100,000 rows against 7,000, d = 10", seconds, "isopleth")


if __name__ == "__main__":
    print(machine())
    fit()
    score()
