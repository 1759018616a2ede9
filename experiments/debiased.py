"""Mean integrated squared error of kernel density estimates with and without the bias of smoothing.

    python -m experiments.debiased [--runs 10] [--columns 2 3 4 5] [--seed 0] [--quick]

Samples of 1,000 rows of four mixtures of normal densities in 2 to 5 columns are fitted by `KDE` with and without `debias`. The
integrated squared error has a closed form, because the truth and the estimates are mixtures of normal densities. Printed are the
means over the runs at the best of 25 length scales for each estimate, their ratio, the same ratio at the default length scales,
and the ratio if rows were moved by the true score, which no estimate can use. Below are the errors for growing samples of one
mixture, the slope of a line through their logarithms, and the slopes of theory, -4/(d + 4) and -8/(d + 8).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from isopleth import KDE, KernelScore

SCALES = np.geomspace(0.12, 1.2, 25)
ROWS = 1000
SIZES = (250, 500, 1000, 2000)


@dataclass(frozen=True)
class Mixture:
    """Mixture of normal densities whose covariances are multiples of the identity."""

    shares: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw `n` rows."""
        k = rng.choice(len(self.shares), size=n, p=self.shares)
        return self.means[k] + np.sqrt(self.variances[k])[:, None] * rng.normal(size=(n, self.means.shape[1]))

    def smoothed(self, x: np.ndarray, variance: float) -> np.ndarray:
        """Return the components of the density convolved with a normal one of this variance, at rows `x`."""
        whole = self.variances + variance
        squares = ((x[:, None, :] - self.means) ** 2).sum(axis=2)
        return np.asarray(self.shares * np.exp(-0.5 * squares / whole) / (2.0 * np.pi * whole) ** (0.5 * x.shape[1]))

    def score(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of the log density at rows `x`."""
        parts = self.smoothed(x, 0.0)
        parts /= parts.sum(axis=1, keepdims=True)
        return np.einsum("ik,ikj->ij", parts / self.variances, self.means - x[:, None, :])

    def error(self, centers: np.ndarray, scale: float) -> float:
        """Return the integrated squared error of the estimate with kernels of length `scale` at `centers`."""
        d = centers.shape[1]
        norms = (centers**2).sum(axis=1)
        squares = np.maximum(0.0, norms[:, None] + norms - 2.0 * centers @ centers.T)
        own = np.exp(-0.25 * squares / scale**2).mean() / (4.0 * np.pi * scale**2) ** (0.5 * d)
        mixed = self.smoothed(centers, scale**2).sum(axis=1).mean()
        # The integral of the squared truth: each component smoothed by each other one, at its mean.
        truth = sum(
            w * self.smoothed(m[None], v).sum() for w, m, v in zip(self.shares, self.means, self.variances, strict=True)
        )
        return float(own - 2.0 * mixed + truth)


def mixtures(d: int) -> dict[str, Mixture]:
    """Return the four mixtures in `d` columns."""
    axes, diagonal = np.eye(d), np.ones(d) / np.sqrt(d)
    return {
        "normal": Mixture(np.ones(1), np.zeros((1, d)), np.ones(1)),
        "two modes": Mixture(np.full(2, 0.5), np.array([-1.5 * axes[0], 1.5 * axes[0]]), np.full(2, 0.8)),
        "skewed": Mixture(
            np.array([0.6, 0.3, 0.1]),
            np.array([0.0 * diagonal, 1.2 * diagonal, 2.2 * diagonal]),
            np.array([1.0, 0.5, 0.25]),
        ),
        "four modes": Mixture(
            np.full(4, 0.25), np.array([2 * axes[0], -2 * axes[0], 2 * axes[1], -2 * axes[1]]), np.full(4, 0.6)
        ),
    }


@dataclass(frozen=True)
class Errors:
    """Errors of one sample: at each of the scales without a move, with an estimated and with the true score, and by default."""

    by_scale: np.ndarray
    default: np.ndarray

    @classmethod
    def of(cls, mixture: Mixture, n: int, seed: list[int]) -> Errors:
        """Compute them for a sample of `n` rows."""
        rows = mixture.draw(np.random.default_rng(seed), n)
        fits = [KDE(n_jobs=1, frame="scale").fit(rows), KDE(debias=KernelScore(), n_jobs=1, frame="scale").fit(rows)]
        ordered = fits[1].rows_
        estimated = (fits[1].centers_ - ordered) / (0.5 * fits[1].length_scale_ ** 2)
        scores = [np.zeros_like(ordered), estimated, mixture.score(ordered)]
        by_scale = [[mixture.error(ordered + 0.5 * h**2 * score, h) for h in SCALES] for score in scores]
        # The default scale differs between columns; its geometric mean stands for it in the closed form.
        scales = [float(np.exp(np.mean(np.log(fit.length_scale_)))) for fit in fits]
        moves = [0.0, 0.5 * scales[1] ** 2 * scores[1]]
        default = [mixture.error(ordered + move, h) for move, h in zip(moves, scales, strict=True)]
        return cls(np.array(by_scale), np.array(default))


def mean_errors(mixture: Mixture, n: int, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best mean error of each kind, its scale, and the mean errors at the default scales."""
    found = [Errors.of(mixture, n, [seed, run, n, mixture.means.shape[1]]) for run in range(runs)]
    means = np.mean([errors.by_scale for errors in found], axis=0)
    return means.min(axis=1), SCALES[means.argmin(axis=1)], np.mean([errors.default for errors in found], axis=0)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="samples of each mixture")
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 3, 4, 5], help="numbers of columns")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--quick", action="store_true", help="two columns and 250 rows only")
    options = parser.parse_args(arguments)
    rows, columns, sizes = (250, (2,), SIZES[:2]) if options.quick else (ROWS, options.columns, SIZES)
    print(f"mean integrated squared errors of {rows} rows, {options.runs} runs")
    print(
        f"{'d':<3}{'mixture':<12}{'KDE':>10}{'scale':>7}{'debiased':>10}{'scale':>7}{'ratio':>7}{'default':>9}{'true score':>12}"
    )
    for d in columns:
        for name, mixture in mixtures(d).items():
            best, at, default = mean_errors(mixture, rows, options.runs, options.seed)
            print(
                f"{d:<3}{name:<12}{best[0]:>10.3g}{at[0]:>7.2f}{best[1]:>10.3g}{at[1]:>7.2f}{best[1] / best[0]:>7.2f}"
                f"{default[1] / default[0]:>9.2f}{best[2] / best[0]:>12.2f}",
                flush=True,
            )
    for d in columns[::2]:
        print(f"two modes, d = {d}" + "".join(f"{n:>10}" for n in sizes) + f"{'slope':>8}{'theory':>8}")
        found = np.array([mean_errors(mixtures(d)["two modes"], n, options.runs, options.seed)[0] for n in sizes])
        for errors, who, theory in zip(found.T, ("KDE", "debiased"), (-4 / (d + 4), -8 / (d + 8)), strict=False):
            slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
            print(f"{who:<16}" + "".join(f"{e:>10.3g}" for e in errors) + f"{slope:>8.2f}{theory:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
