"""Tests of the theory of kernel scores: shares of eigenvalues, rates and saturation, spread of spectra and steps.

    python -m experiments.score_theory [--runs 5] [--quick] [--out FILE]

- shares: the cut-off, curl-free against diagonal, on the mixtures of ``experiments.score_grid`` (inverse multiquadric, median
  distance). The smallest share of all eigenvalues with which each comes within 5 % of its own best error ("own"), and the
  curl-free one within 5 % of the best error of the diagonal one ("equal"); a dash where it does not in most runs. Section 5.2 of
  the paper has 13 % against 97 %.
- rates: errors in L2(p) against the number of rows M with strengths M^(-1/(2r+2)) (theorem 4.2), in one column, on top of a
  known normal base. The density is made so that the score less that of the base is L^r f for a known f: the source condition
  holds by construction. Theory bounds the error by M^-((r + 1/2)/(2r+2)) as long as r is at most the qualification less 1/2;
  beyond, the bias falls like the strength to the qualification, and Tikhonov's rate saturates at M^(-1/(2r+2)). The bias itself,
  which endless rows would leave, is computed by eigenvectors: its slope in the strength is printed beside that of theory.
- spread: how many of the eigenvalues of a Gram matrix hold 95 % of its trace, against d, and what conjugate gradients take.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.score_grid import Judge, path_errors, sample, true_score, typical_distance, vertices
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ, Gaussian
from isopleth.score import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
from isopleth.score.field import GaussianBase
from isopleth.score.selection import FitPath, FitsAtRows
from isopleth.score.spaces import SPACES
from isopleth.score.system import Accuracy, SampleSystem, solve
from isopleth.solvers import conjugate_gradients
from isopleth.solvers.regularizers import Regularizer

SHARES = (0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)
REGULARIZERS: dict[str, Regularizer] = {
    "Tikhonov": Tikhonov(),
    "nu = 1": NuIteration(1.0, nu=1.0),
    "nu = 2": NuIteration(1.0, nu=2.0),
    "Landweber": LandweberIteration(1.0),
    "cut-off": SpectralCutoff(1.0),
}
BASE = GaussianBase(np.zeros(1), np.eye(1), np.ones(1))


def share_needed(target: str, dim: int, rows: int, seed: int) -> dict[str, float]:
    """Return for each space the smallest error over all shares and its share, and the share of curl-free for equal error."""
    rng = np.random.default_rng([seed, dim, rows])
    modes = vertices(target, dim)
    X, x = sample(modes, rows, rng), sample(modes, 512, rng)
    judge = Judge(x, true_score(modes, x))
    ways = [SpectralCutoff(count=share) for share in SHARES]
    found = {}
    for name, kind in SPACES.items():
        space = kind(IMQ(dim=dim), budget=Budget(n_jobs=1))
        found[name] = path_errors(space, X, judge, typical_distance(X), ways, Accuracy(1e-6, 300), bases=(None,))[0]

    def needed(name: str, best_of: str) -> float:
        near = np.flatnonzero(found[name] <= 1.05 * found[best_of].min())
        return SHARES[near[0]] if len(near) else np.inf

    out = {f"error {name}": float(errors.min()) for name, errors in found.items()}
    out |= {f"own {name}": needed(name, name) for name in found}
    return out | {"equal": needed("curl_free", "diagonal")}


def shares(runs: int, sizes: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """Print the first table: medians over runs."""
    yield f"{'target':<10}{'d':>4}{'M':>6}{'error diag.':>13}{'curl-free':>11}{'own diag.':>11}{'curl-free':>11}{'equal':>8}"
    for target, dim, rows in sizes:
        found = [share_needed(target, dim, rows, seed) for seed in range(runs)]
        middle = {name: float(np.median([f[name] for f in found])) for name in found[0]}
        line = f"{target:<10}{dim:>4}{rows:>6}{middle['error diagonal']:>13.3g}{middle['error curl_free']:>11.3g}"
        line += f"{middle['own diagonal']:>11.0%}{middle['own curl_free']:>11.0%}"
        yield line + (f"{middle['equal']:>8.0%}" if np.isfinite(middle["equal"]) else f"{'-':>8}")


class Source:
    """A density of one column, exp(-x^2/2) times a perturbation, whose score is -x + L^r f: L is its own operator.

    Parameters
    ----------
    r : float
        The smoothness.
    size : int
        Nodes of the grid that it is computed on.
    """

    def __init__(self, r: float, size: int = 601) -> None:
        self.x = np.linspace(-7.0, 7.0, size)
        step = self.x[1] - self.x[0]
        kernel = Gaussian(dim=1)(np.subtract.outer(self.x, self.x) ** 2)
        f = 1.5 * (Gaussian(dim=1)((self.x - 1.0) ** 2) - Gaussian(dim=1)((self.x + 0.5) ** 2))
        log_density = -0.5 * self.x**2
        for _ in range(60):
            mass = np.exp(log_density - log_density.max())
            self.mass = mass / mass.sum()
            self.rest = self._power(kernel, r) @ f
            # the trapezium rule from the left; the constant is the normaliser's business
            energy = np.concatenate([[0.0], np.cumsum(0.5 * step * (self.rest[1:] + self.rest[:-1]))])
            before, log_density = log_density, -0.5 * self.x**2 + energy
            if np.abs(log_density - before).max() < 1e-12:
                break
        self.gap = float(np.abs(log_density - before).max())

    def bias(self, regularizer: Regularizer) -> float:
        """Return the error for infinitely many rows."""
        root = np.sqrt(self.mass)
        values, vectors = np.linalg.eigh(root[:, None] * Gaussian(dim=1)(np.subtract.outer(self.x, self.x) ** 2) * root)
        values = np.maximum(values, 0.0)
        left = 1.0 - values * regularizer.filter(values, values[-1])
        return float(np.linalg.norm(left * (vectors.T @ (root * self.rest))))

    def _power(self, kernel: np.ndarray, r: float) -> np.ndarray:
        """L^r on the grid, by the eigenvectors of its symmetric form."""
        root = np.sqrt(np.maximum(self.mass, 1e-300))
        values, vectors = np.linalg.eigh(root[:, None] * kernel * root)
        counts = values > 1e-13
        power = (vectors[:, counts] * values[counts] ** (r - 1.0)) @ vectors[:, counts].T
        # L^r = k W^(1/2) B^(r-1) W^(1/2), which needs no division by masses that are nothing
        return (kernel * root) @ power * root

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw rows by the inverse of the distribution function."""
        below = np.concatenate([[0.0], np.cumsum(0.5 * (self.mass[1:] + self.mass[:-1]))])
        return np.interp(rng.uniform(0.0, below[-1], size=n), below, self.x)[:, None]

    def error(self, value: np.ndarray) -> float:
        """Root mean square, under the density, of the distance to what is to be fitted."""
        return float(np.sqrt(self.mass @ (value - self.rest) ** 2))


def source_errors(source: Source, rows: int, strength: float, seed: int) -> list[float]:
    """Return the error of each regulariser at one strength."""
    z = source.sample(rows, np.random.default_rng([seed, rows]))
    space = SPACES["diagonal"](Gaussian(dim=1), budget=Budget(n_jobs=1))
    path = FitPath(space, z, np.ones(rows), [r.at(strength) for r in REGULARIZERS.values()], Accuracy(1e-5, 200))
    view = FitsAtRows(space, path, source.x[:, None])
    return [source.error(value[:, 0] + source.x) for value in view.value(path.on(BASE), BASE)]


def rates(runs: int, sizes: Sequence[int], smoothness: Sequence[float]) -> Iterator[str]:
    """Print the second table: medians over runs, and slopes in the logarithm of M."""
    yield f"{'r':>4}{'M':>7}" + "".join(f"{name:>11}" for name in REGULARIZERS)
    for r in smoothness:
        source = Source(r)
        table = []
        for rows in sizes:
            strength = 0.3 * float(rows) ** (-1.0 / (2.0 * r + 2.0))
            table.append(np.median([source_errors(source, rows, strength, seed) for seed in range(runs)], axis=0))
            yield f"{r:>4g}{rows:>7}" + "".join(f"{e:>11.4f}" for e in table[-1])
        slopes = np.polyfit(np.log(sizes), np.log(table), 1)[0]
        bound = [-min(r + 0.5, way.at(0.1).qualification) / (2.0 * r + 2.0) for way in REGULARIZERS.values()]
        yield f"{'slope':>11}" + "".join(f"{s:>11.2f}" for s in slopes)
        yield f"{'of theory':>11}" + "".join(f"{s:>11.2f}" for s in bound)
        strengths = np.geomspace(1e-4, 1e-2, 9)
        biases = [[source.bias(way.at(float(a))) for way in REGULARIZERS.values()] for a in strengths]
        slopes = np.polyfit(np.log(strengths), np.log(biases), 1)[0]
        bound = [min(r + 0.5, way.at(0.1).qualification) for way in REGULARIZERS.values()]
        yield f"{'bias':>11}" + "".join(f"{s:>11.2f}" for s in slopes)
        yield f"{'of theory':>11}" + "".join(f"{s:>11.2f}" for s in bound)


def spread(rows: int, dims: Sequence[int]) -> Iterator[str]:
    """Print the third table."""
    yield f"{'d':>4}{'share of 95 % diag.':>21}{'curl-free':>11}{'steps plain':>13}{'split':>7}{'ms plain':>10}{'split':>8}"
    for dim in dims:
        X = np.random.default_rng(dim).normal(size=(rows, dim))
        z = X / typical_distance(X)
        part = {}
        for name, kind in SPACES.items():
            values = SampleSystem(
                kind(IMQ(dim=dim), budget=Budget(n_jobs=1)), z, np.full(rows, 1.0 / rows), whole=True
            ).spectrum.values
            below = np.cumsum(np.clip(values[::-1], 0.0, None))
            part[name] = float(np.searchsorted(below, 0.95 * below[-1]) + 1) / len(values)
        system = SampleSystem(SPACES["curl_free"](IMQ(dim=dim), budget=Budget(n_jobs=1)), z, np.full(rows, 1.0 / rows))
        (plain, slow), (steps, quick) = _steps(system, 1e-3)
        line = f"{dim:>4}{part['diagonal']:>21.1%}{part['curl_free']:>11.1%}{plain:>13}{steps:>7}"
        yield line + f"{1e3 * slow:>10.1f}{1e3 * quick:>8.1f}"


def _steps(system: SampleSystem, alpha: float) -> list[tuple[int, float]]:
    """Return products and seconds of conjugate gradients to 1e-6, without the preconditioner and as in the library."""

    def plain() -> int:
        return conjugate_gradients(lambda v: system.product(v) + alpha * v, system.rhs, tol=1e-6, max_iter=2000)[1]

    def ours() -> int:
        return solve(system, Tikhonov(alpha), "cg", Accuracy(1e-6, 2000)).n_iter

    out = []
    for run in (plain, ours):
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            steps = run()
            taken.append(time.perf_counter() - start)
        out.append((steps, min(taken)))
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="What the theory of kernel scores says, looked at.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("expected at least one run")
    quick = options.quick
    cells = [("grid", 2, 48)] if quick else [(t, d, 128) for t in ("grid", "separated") for d in (2, 8, 16)]
    tables = (
        shares(options.runs, cells),
        rates(
            options.runs, (64, 256) if quick else (64, 128, 256, 512, 1024, 2048), (1.0,) if quick else (0.5, 1.0, 2.0)
        ),
        spread(24 if quick else 64, (2, 16) if quick else (2, 4, 8, 16, 32)),
    )
    written = []
    for table in tables:
        for line in table:
            print(line, flush=True)
            written.append(line)
        print()
        written.append("")
    if options.out is not None:
        options.out.write_text("\n".join(written), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
