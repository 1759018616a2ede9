"""Fit of SOSREP, compared with the papers' natural gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.comparison import Comparison, Program
from isopleth import SOSREP
from isopleth.core.scales import scott
from isopleth.kernels import get_kernel
from isopleth.operators import Operator

# Steps that are timed, of the published number.
STEPS = 100


def problem(n: int, d: int) -> np.ndarray:
    """Draw normal rows."""
    return np.random.default_rng(0).normal(size=(n, d))


def ours(kernel: str, solver: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, str]]:
    """Fit the estimator: checks of the rows, solution and normaliser."""

    def run(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        model = SOSREP(kernel=kernel, solver=solver, frame="scale").fit(x)
        return model.centers_ / model.length_scale_, model.dual_coef_, kernel

    return run


@dataclass(frozen=True)
class Matrix:
    """Rows in units of the length scale, and their kernel matrix."""

    z: np.ndarray
    k: np.ndarray


def matrix_of(kernel: str) -> Callable[[np.ndarray], Matrix]:
    """Compute the matrix that the papers' iteration starts from; this is not timed."""

    def setup(x: np.ndarray) -> Matrix:
        z = x / scott(x, np.ones(len(x)))
        return Matrix(z, Operator(get_kernel(kernel), z).dense())

    return setup


def natural_gradient(kernel: str, steps: int = STEPS, rate: float = 0.25) -> Callable[[Matrix], Any]:
    """Run the papers' iteration, alpha <- alpha - rate * 2 (alpha - w / K alpha), with the matrix kept and BLAS unhindered.

    Not the package's solver of this name: that one measures each step and stops, and a program is best written apart.
    """

    def run(matrix: Matrix) -> tuple[np.ndarray, np.ndarray, str]:
        n = len(matrix.k)
        alpha = np.full(n, 1.0 / np.sqrt(matrix.k.sum()))
        for _ in range(steps):
            alpha -= rate * 2.0 * (alpha - 1.0 / (n * (matrix.k @ alpha)))
        return matrix.z, alpha, kernel

    return run


def residual(x: np.ndarray, answer: tuple[np.ndarray, np.ndarray, str]) -> float:
    """Return the largest deviation of n alpha_i (K alpha)_i from 1."""
    z, alpha, kernel = answer
    return float(np.max(np.abs(len(z) * alpha * (Operator(get_kernel(kernel), z).dense() @ alpha) - 1.0)))


def _comparison(kernel: str, solvers: list[str]) -> Comparison:
    programs = {f"isopleth SOSREP, solver={solver!r}": Program(ours(kernel, solver)) for solver in solvers}
    for published in (1_000, 30_000):
        programs[f"papers' natural gradient, {published:,} steps (from {STEPS})"] = Program(
            natural_gradient(kernel), setup=matrix_of(kernel), times=published / STEPS
        )
    return Comparison(
        f"sosrep-{kernel}",
        f"Fit of SOSREP with the {kernel} kernel, n = {{n:,}}, d = {{d}}",
        problem,
        programs,
        residual,
        "residual of the optimum",
        rows=(375, 750, 1500, 3000),
        columns=20,
        column_range=(2, 5, 10, 20, 40) if kernel == "gaussian" else (),
        column_rows=1000,
    )


COMPARISONS = [
    _comparison("gaussian", ["auto", "natural_gradient", "coordinate_descent"]),
    _comparison("laplacian", ["auto", "natural_gradient"]),
    _comparison("sdo", ["auto", "natural_gradient"]),
]
