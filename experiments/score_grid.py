"""Scores with default parameters, compared with a Gaussian, a kernel density estimate and an oracle (paper, Fig. 1).

    python -m experiments.score_grid [--runs 10] [--rows 32 128 512 2048] [--columns 1 2 8 32 128] [--out FILE]

Two targets: the paper's grid, a mixture of d standard normal densities of d columns at d distinct vertices of the unit cube,
which is close to one normal density; and the same with a cube of side 4, whose modes are apart. Each estimator is fitted to M
rows, and its error is the mean of |s - true score|^2/d over 1,024 other rows. The vertices are drawn once for each d, rows anew
in each run; a line of the table has medians over runs. The rules of the default were set on these two; ``--targets between``, a
cube of side 2, is one that they were not set on.

- default: KernelScore(frame="scale"), with nothing else given: the frame of the papers. `scores_in_frames` compares frames.
- Gaussian: the normal density with the covariance of Ledoit and Wolf (scikit-learn's).
- KDE: isopleth.KDE, Gaussian kernel, length scale by Search: the better one, line by line, of its held-out likelihood and its
  held-out Hyvarinen loss.
- oracle: the smallest error of a grid that includes everything the default can choose: full Tikhonov with alphas from 10 to a
  third of the default's floor, four a decade, times five length scales, times two bases, and the Gaussian base alone. "of the
  line" is one choice for all runs of a line, the best by the median of the true errors; "of the run" is the best one in each
  run, which nobody could know. For M d up to 16,000.
- KEF-CG, nu, Stein: as published (appendix A), the inverse multiquadric at the median distance, lambda 10^0 to 10^-8, at most
  40 steps of conjugate gradients for KEF-CG, 20 to 100 steps for nu; each at its best strength of the line by the true error.
  For M d up to 16,000.

"alone" counts the runs in which the default takes the Gaussian and no kernels.

Estimators run on one thread each, as many runs at a time as there are processors; seconds are processor time of the default,
of an even number of runs the lower one of the two in the middle: a machine that stops for a while stops all runs that are on it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import softmax
from sklearn.covariance import LedoitWolf
from threadpoolctl import threadpool_limits

from isopleth import KDE, DataWarning, KernelScore, Search
from isopleth.core.budget import Budget
from isopleth.core.scales import median
from isopleth.kernels import IMQ
from isopleth.score import NuIteration, Tikhonov
from isopleth.score.field import GaussianBase
from isopleth.score.selection import FACTORS, FLOOR, LARGEST_ALPHA, STEPS_A_DECADE, FitPath, FitsAtRows
from isopleth.score.spaces import SPACES, Space
from isopleth.score.system import Accuracy
from isopleth.solvers.regularizers import Regularizer

SIDES = {"grid": 1.0, "separated": 4.0, "between": 2.0}
N_TEST = 1024
ORACLE_UP_TO = 16_000
BASES = (None, "gaussian")


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    target: str
    dim: int
    rows: int

    @property
    def with_oracle(self) -> bool:
        """Return whether an oracle can be computed."""
        return self.rows * self.dim <= ORACLE_UP_TO


@dataclass(frozen=True)
class Errors:
    """Errors of one run, by strength or by base, scale and strength."""

    default: float
    seconds: float
    choice: str
    gaussian: float
    kde: np.ndarray
    oracle: np.ndarray | None
    published: dict[str, np.ndarray]


def vertices(target: str, dim: int) -> np.ndarray:
    """Return as many vertices of a cube as it has dimensions, always the same."""
    rng = np.random.default_rng(dim)
    found: set[tuple[int, ...]] = set()
    while len(found) < dim:
        found.add(tuple(rng.integers(0, 2, size=dim)))
    return SIDES[target] * np.array(sorted(found), dtype=np.float64)


def sample(modes: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of the mixture."""
    return modes[rng.integers(len(modes), size=n)] + rng.standard_normal((n, modes.shape[1]))


def true_score(modes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the gradient of the log density of the mixture."""
    squares = np.sum(x * x, axis=1)[:, None] - 2.0 * x @ modes.T + np.sum(modes * modes, axis=1)
    return np.asarray(softmax(-0.5 * squares, axis=1) @ modes - x)


@dataclass(frozen=True)
class Judge:
    """Draw test rows and their scores."""

    x: np.ndarray
    truth: np.ndarray

    def error(self, score: np.ndarray) -> float:
        """Return the mean squared distance to the truth divided by the number of columns."""
        return float(np.mean(np.sum((score - self.truth) ** 2, axis=1)) / self.x.shape[1])


def gaussian_error(X: np.ndarray, judge: Judge) -> float:
    """Return the error of a normal density with shrunk covariance."""
    model = LedoitWolf().fit(X)
    return judge.error(-(judge.x - model.location_) @ model.precision_)


def kde_errors(X: np.ndarray, judge: Judge) -> np.ndarray:
    """Return the errors of kernel density estimates by two criteria."""
    found = []
    for criterion in ("likelihood", "hyvarinen"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # fewer rows than columns, which is what the table is about
            model = KDE("gaussian", Search(criterion), n_jobs=1, frame="scale").fit(X)
        found.append(judge.error(model.grad_log_density(judge.x)))
    return np.array(found)


def path_errors(
    space: Space,
    X: np.ndarray,
    judge: Judge,
    scale: float,
    ways: Sequence[Regularizer],
    accuracy: Accuracy,
    bases=BASES,
) -> np.ndarray:
    """Return the errors of fits at one length scale, of shape (bases, strengths)."""
    middle = np.median(X, axis=0)
    z, x = (X - middle) / scale, (judge.x - middle) / scale
    path = FitPath(space, z, np.ones(len(z)), ways, accuracy)
    view = FitsAtRows(space, path, x)

    def errors(name: str | None) -> list[float]:
        base = GaussianBase.fit(z, np.ones(len(z))) if name == "gaussian" else None
        return [judge.error(value / scale) for value in view.value(path.on(base), base)]

    return np.array([errors(name) for name in bases])


def typical_distance(X: np.ndarray) -> float:
    """Return the median distance between rows."""
    return float(median(X - np.median(X, axis=0), np.ones(len(X)))[0])


def oracle_errors(X: np.ndarray, judge: Judge) -> np.ndarray:
    """Return errors of shape (scales, bases, strengths); the last strength is the Gaussian base alone."""
    decades = np.log10(3.0 * LARGEST_ALPHA * len(X) / FLOOR)
    alphas = LARGEST_ALPHA * 10.0 ** (-np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE)
    ways = [Tikhonov(float(alpha), truncated=False) for alpha in (*alphas, 1e6)]
    space = SPACES["curl_free"](IMQ(dim=X.shape[1]), budget=Budget(n_jobs=1))
    scales = [factor * typical_distance(X) for factor in FACTORS]
    return np.array([path_errors(space, X, judge, scale, ways, Accuracy(1e-3, 200)) for scale in scales])


def published_errors(X: np.ndarray, judge: Judge) -> dict[str, np.ndarray]:
    """Return the errors of the paper's estimators, by strength."""
    scale = typical_distance(X)
    spaces = {name: kind(IMQ(dim=X.shape[1]), budget=Budget(n_jobs=1)) for name, kind in SPACES.items()}
    lambdas = 10.0 ** -np.arange(9.0)
    curl_free = [Tikhonov(float(a), truncated=False) for a in lambdas * scale**2]  # its kernel lacks our factor scale^2
    diagonal = [Tikhonov(float(a)) for a in lambdas]
    nu = [NuIteration(steps=steps) for steps in range(20, 101, 10)]
    errors = partial(path_errors, X=X, judge=judge, scale=scale, bases=(None,))
    return {
        "KEF-CG": errors(spaces["curl_free"], ways=curl_free, accuracy=Accuracy(1e-4, 40))[0],
        "nu": errors(spaces["curl_free"], ways=nu, accuracy=Accuracy(1e-8, 100))[0],
        "Stein": errors(spaces["diagonal"], ways=diagonal, accuracy=Accuracy(1e-8, 300))[0],
    }


def run(cell: Cell, seed: int) -> Errors:
    """Compute one run of one line."""
    rng = np.random.default_rng([seed, cell.dim, cell.rows, int(SIDES[cell.target])])
    modes = vertices(cell.target, cell.dim)
    X, x = sample(modes, cell.rows, rng), sample(modes, N_TEST, rng)
    judge = Judge(x, true_score(modes, x))
    with threadpool_limits(1):
        start = time.process_time()
        model = KernelScore(frame="scale", n_jobs=1).fit(X)
        seconds = time.process_time() - start
        path = model.search_path_
        alone = path.best_index == 0
        return Errors(
            judge.error(model.grad_log_density(x)),
            seconds,
            "alone" if alone else f"{path.base or 'none'}",
            gaussian_error(X, judge),
            kde_errors(X, judge),
            oracle_errors(X, judge) if cell.with_oracle else None,
            published_errors(X, judge) if cell.with_oracle else {},
        )


@dataclass(frozen=True)
class Line:
    """Return medians over the runs of a cell."""

    cell: Cell
    runs: int
    default: float
    gaussian: float
    kde: float
    of_line: float
    of_run: float
    published: dict[str, float]
    alone: int
    seconds: float

    @property
    def to_simple(self) -> float:
        """Return the error relative to the better of the Gaussian and the KDE."""
        return self.default / min(self.gaussian, self.kde)

    @property
    def to_oracle(self) -> float:
        """Return the error relative to the best single choice for the line."""
        return self.default / self.of_line

    @property
    def to_oracle_of_run(self) -> float:
        """Return the error relative to the best choice for each run."""
        return self.default / self.of_run


def summarise(cell: Cell, runs: Sequence[Errors]) -> Line:
    """Return the line of a cell."""
    grids = [r.oracle for r in runs if r.oracle is not None]
    return Line(
        cell,
        len(runs),
        float(np.median([r.default for r in runs])),
        float(np.median([r.gaussian for r in runs])),
        float(np.median([r.kde for r in runs], axis=0).min()),
        float(np.median(grids, axis=0).min()) if grids else np.nan,
        float(np.median([grid.min() for grid in grids])) if grids else np.nan,
        {name: float(np.median([r.published[name] for r in runs], axis=0).min()) for name in runs[0].published},
        sum(r.choice == "alone" for r in runs),
        float(np.percentile([r.seconds for r in runs], 50, method="lower")),
    )


HEAD = f"{'target':<10}{'d':>4}{'M':>6}{'runs':>5} {'default':>9}{'Gaussian':>9}{'KDE':>9}{'ratio':>7} "
HEAD += f"{'oracle of':>10}{'ratio':>7}{'oracle of':>10}{'ratio':>7} "
HEAD += f"{'KEF-CG':>8}{'nu':>8}{'Stein':>8}{'alone':>6}{'seconds':>9}"
UNDER = f"{'':<60}{'the line':>10}{'':>7}{'the run':>10}"


def number(value: float, width: int) -> str:
    """Format with three digits, or a dash if not computed."""
    return f"{'-':>{width}}" if np.isnan(value) else f"{value:>{width}.3g}"


def text(line: Line) -> str:
    """One line of the table."""
    cell = line.cell
    out = f"{cell.target:<10}{cell.dim:>4}{cell.rows:>6}{line.runs:>5} {number(line.default, 9)}{number(line.gaussian, 9)}"
    out += f"{number(line.kde, 9)}{line.to_simple:>7.2f} {number(line.of_line, 10)}{number(line.to_oracle, 7)}"
    out += f"{number(line.of_run, 10)}{number(line.to_oracle_of_run, 7)} "
    out += "".join(number(line.published.get(name, np.nan), 8) for name in ("KEF-CG", "nu", "Stein"))
    return out + f"{line.alone:>6}{line.seconds:>9.2f}"


def verdict(lines: Sequence[Line]) -> Iterator[str]:
    """Return a summary of the default's errors."""
    worst = max(lines, key=lambda line: line.to_simple)
    above = [line for line in lines if line.to_simple > 1.1]
    yield f"error over that of the better of Gaussian and KDE: at most 1.1 on {len(lines) - len(above)} of {len(lines)} lines;"
    yield f"  worst {worst.to_simple:.2f}, {worst.cell.target}, d = {worst.cell.dim}, M = {worst.cell.rows}"
    known = [line for line in lines if line.cell.with_oracle]
    if known:
        for name, ratios in (
            ("line", [line.to_oracle for line in known]),
            ("run", [line.to_oracle_of_run for line in known]),
        ):
            within = np.array(ratios) <= 1.2
            yield f"error over that of the oracle of the {name}: at most 1.2 on {within.sum()} of {len(known)} lines,"
            yield f"  {within.mean():.0%}; median {np.median(ratios):.2f}, worst {max(ratios):.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Scores by default beside a Gaussian, a KDE and an oracle.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--targets", nargs="+", choices=list(SIDES), default=["grid", "separated"])
    parser.add_argument("--rows", nargs="+", type=int, default=[32, 128, 512, 2048])
    parser.add_argument("--columns", nargs="+", type=int, default=[1, 2, 8, 32, 128])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if min(options.runs, options.workers, *options.columns) < 1 or min(options.rows) < 10:
        parser.error("expected at least one run, worker and column, and at least 10 rows")
    cells = [Cell(target, d, m) for target in options.targets for d in options.columns for m in options.rows]
    written = [HEAD, UNDER]
    print(*written, sep="\n", flush=True)
    lines = []
    with ProcessPoolExecutor(options.workers) as pool:
        jobs = [(cell, [pool.submit(run, cell, seed) for seed in range(options.runs)]) for cell in cells]
        for cell, runs in jobs:
            lines.append(summarise(cell, [job.result() for job in runs]))
            written.append(text(lines[-1]))
            print(written[-1], flush=True)
    written += ["", *verdict(lines)]
    print("", *verdict(lines), sep="\n")
    if options.out is not None:
        options.out.write_text("\n".join(written) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
