"""Curl-free scores: the product that all of them use, and the fit at the samples (KEF)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

from benchmarks import difference_tensor
from benchmarks.comparison import Comparison, Program
from benchmarks.difference_tensor import Differences, tensors
from benchmarks.nystrom import curl_free_block
from isopleth.kernels import IMQ
from isopleth.operators import CURL_FREE, Operator
from isopleth.score import KEF, Tikhonov
from isopleth.score.spaces import SPACES
from isopleth.score.system import Accuracy, SampleSystem, solve

# Ridge, in units of the eigenvalues of K/n for a kernel that is 1 at 0, and relative residual.
ALPHA, TOL = 1e-3, 1e-6


@dataclass(frozen=True)
class Product:
    """Points, and a vector of each."""

    x: np.ndarray
    v: np.ndarray


def product_problem(n: int, d: int) -> Product:
    """Draw normal points at distances of about 2, and normal vectors."""
    rng = np.random.default_rng(0)
    return Product(rng.normal(size=(n, d)) * np.sqrt(2.0 / d), rng.normal(size=(n, d)))


def operator(p: Product) -> Operator:
    """Return the product of the library."""
    return Operator(IMQ(), p.x, block=CURL_FREE)


def product_error(p: Product, got: np.ndarray) -> float:
    """Return the error of the first rows, relative to the largest entry."""
    want = Differences.of(p.x[:8], p.x).product(p.v)
    return float(np.max(np.abs(got[:8] - want)) / np.max(np.abs(want)))


@dataclass(frozen=True)
class Kept:
    """An operator that keeps its matrices, and what it is to multiply."""

    operator: Operator
    v: np.ndarray


@dataclass(frozen=True)
class Score:
    """A score at the rows, in units of a length scale."""

    length_scale: float
    values: np.ndarray


@dataclass(frozen=True)
class Ready:
    """A system that is to be solved."""

    length_scale: float
    system: SampleSystem


def rows(n: int, d: int) -> np.ndarray:
    """Draw normal rows."""
    return np.random.default_rng(0).normal(size=(n, d))


def fit(X: np.ndarray) -> Score:
    """Time the whole fit: checks, median distance, system and solution."""
    model = KEF(alpha=ALPHA, tol=TOL).fit(X)
    scale = float(model.length_scale_[0])
    return Score(scale, scale * model.grad_log_density_)


def ready(X: np.ndarray) -> Ready:
    """Set up everything except the solution."""
    scale = float(np.median(pdist(X)))
    z = (X - X.mean(axis=0)) / scale
    return Ready(scale, SampleSystem(SPACES["curl_free"](IMQ(dim=X.shape[1])), z, np.full(len(X), 1.0 / len(X))))


def solution(ready: Ready) -> Score:
    """Solve by the solver that `solver="auto"` chooses."""
    system = ready.system
    return Score(
        ready.length_scale, system.fitted(solve(system, Tikhonov(ALPHA), "auto", Accuracy(TOL, 2000)).at_samples)
    )


def literal(solver: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], Score]:
    """Fit by other means: the median distance, then a solution for rows in units of it."""

    def run(X: np.ndarray) -> Score:
        scale = float(np.median(pdist(X)))
        return Score(scale, solver(X / scale))

    return run


def by_tensor(z: np.ndarray) -> np.ndarray:
    """Solve by conjugate gradients on the tensor of differences."""
    return difference_tensor.conjugate_gradients(z, ALPHA, TOL)


def by_matrix(z: np.ndarray) -> np.ndarray:
    """Solve by a Cholesky factorisation of the nd x nd matrix."""
    matrix = curl_free_block(z, z)
    matrix /= len(z)
    matrix.flat[:: len(matrix) + 1] += ALPHA
    factor = cho_factor(matrix.T, overwrite_a=True, check_finite=False)  # the transpose is in LAPACK's order
    return np.asarray(cho_solve(factor, -difference_tensor.zeta(z).T.ravel())).reshape(z.T.shape).T


def residual(X: np.ndarray, found: Score) -> float:
    """Return the relative error, by sums over differences."""
    z, s = X / found.length_scale, found.values
    zeta = difference_tensor.zeta(z)
    rest = difference_tensor.row_by_row(z, s) / len(z) + ALPHA * s + zeta
    return float(np.linalg.norm(rest) / np.linalg.norm(zeta))


def _fits(n: int, d: int, smaller: tuple[int, ...], columns: tuple[int, ...]) -> Comparison:
    return Comparison(
        f"kef-{n}",
        "Score at its samples by KEF (curl-free, IMQ, median scale, ridge 1e-3, residual 1e-6), n = {n:,}, d = {d}",
        rows,
        {
            "isopleth KEF": Program(fit),
            "isopleth, the solution alone": Program(solution, setup=ready),
            "NumPy, tensor of differences, conjugate gradients": Program(
                literal(by_tensor), array_bytes=lambda n, d: tensors(n, n, d, 2)
            ),
            "SciPy, whole matrix, Cholesky": Program(literal(by_matrix), array_bytes=lambda n, d: 8.5 * (n * d) ** 2),
        },
        residual,
        "relative residual",
        rows=(*smaller, n),
        columns=d,
        column_range=columns,
        column_rows=n,
        quick_rows=(16, 32),
    )


COMPARISONS = [
    Comparison(
        "curl-free",
        "Curl-free IMQ kernel of n points with themselves times n vectors, n = {n:,}, d = {d}",
        product_problem,
        {
            "isopleth": Program(lambda p: operator(p).matvec(p.v)),
            "isopleth, two sets of points": Program(
                lambda p: Operator(IMQ(), p.x, p.x.copy(), block=CURL_FREE).matvec(p.v)
            ),
            "isopleth, two matrices kept": Program(
                lambda kept: kept.operator.matvec(kept.v), setup=lambda p: Kept(operator(p).store(), p.v)
            ),
            "NumPy, tensor of differences": Program(
                lambda p: difference_tensor.whole(p.x, p.v), array_bytes=lambda n, d: tensors(n, n, d, 3)
            ),
            f"NumPy, tensor of differences, {difference_tensor.CHUNK} rows at a time": Program(
                lambda p: difference_tensor.in_chunks(p.x, p.v)
            ),
            "NumPy, differences of one row at a time, contracted": Program(
                lambda p: difference_tensor.row_by_row(p.x, p.v)
            ),
        },
        product_error,
        "largest error over the largest number",
        rows=(256, 512, 1024, 2048),
        columns=128,
        column_range=(8, 16, 32, 64, 128),
        column_rows=1024,
        quick_rows=(60, 120),
        slowest=30.0,
    ),
    _fits(64, 128, smaller=(16, 32), columns=(32, 64, 128)),
    _fits(512, 32, smaller=(64, 128, 256), columns=(8, 16, 32)),
]
