"""Hyvarinen loss of a fitted density: exact, and by the papers' random probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import squared_distances
from isopleth import SOSREP
from isopleth.density import hutchinson_loss

PROBES = 300
# Step of the papers' forward difference, in units of the length scale; the papers do not state it.
STEP = 1e-4


@dataclass(frozen=True)
class Loss:
    """Rows to fit and held-out rows."""

    x: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """Density and held-out rows."""

    model: SOSREP
    rows: np.ndarray


def problem(n: int, d: int) -> Loss:
    """Draw n rows of each kind."""
    rng = np.random.default_rng(0)
    return Loss(rng.normal(size=(n, d)), rng.normal(size=(n, d)))


def fitted(p: Loss) -> Fitted:
    """Fit the density, which is not timed."""
    return Fitted(SOSREP(frame="scale").fit(p.x), p.held_out)


def exact(f: Fitted) -> float:
    """Return the exact loss of the estimator."""
    return f.model.hyvarinen_loss(f.rows)


def published(draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> Callable[[Fitted], float]:
    """Return the papers' estimate: forward differences of the score along random probes.

    Their scores are by automatic differentiation; ours, in closed form, are given to them.
    """

    def run(f: Fitted) -> float:
        rng = np.random.default_rng(1)
        unit = f.model.unit_
        score = f.model.grad_log_density(f.rows)
        trace = 0.0
        for _ in range(PROBES):
            probe = draw(rng, f.rows.shape)
            moved = f.model.grad_log_density(f.rows + STEP * unit * probe)
            trace += float(np.mean(np.sum((moved - score) * unit * probe, axis=1))) / STEP
        return trace / PROBES + 0.5 * float(np.mean(np.sum((unit * score) ** 2, axis=1)))

    return run


def probed(f: Fitted) -> float:
    """Return the library's estimate for densities of which only values are known, with the same number of probes."""
    return hutchinson_loss(f.model.score_samples, f.rows, f.model.unit_, n_probes=PROBES, random_state=1).value


def error(p: Loss, got: float) -> float:
    """Return the relative error, against dense sums: 2 Delta f / f for the Gaussian kernel, in units of `unit_`."""
    model = SOSREP(frame="scale").fit(p.x)
    s = squared_distances(p.held_out / model.length_scale_, model.centers_ / model.length_scale_)
    k = np.exp(-0.5 * s)
    d = p.x.shape[1]
    terms = 2.0 * ((s - d) * k @ model.dual_coef_) / (k @ model.dual_coef_)
    want = float((model.unit_[0] / model.length_scale_[0]) ** 2 * terms.mean())
    return abs(got - want) / abs(want)


COMPARISONS = [
    Comparison(
        "fisher",
        "Hyvarinen loss of a Gaussian SOSREP of n rows at n rows held out, n = {n:,}, d = {d}",
        problem,
        {
            "isopleth, exact": Program(exact, setup=fitted),
            "isopleth hutchinson_loss, 300 probes": Program(probed, setup=fitted),
            "papers, 300 normal probes": Program(published(lambda rng, shape: rng.normal(size=shape)), setup=fitted),
            "papers, 300 probes from {-1, 0, 1}": Program(
                published(lambda rng, shape: rng.integers(-1, 2, size=shape).astype(float)), setup=fitted
            ),
        },
        error,
        "relative error",
        rows=(125, 250, 500),
        columns=10,
        column_range=(2, 4, 8, 16, 32),
        column_rows=250,
    )
]
