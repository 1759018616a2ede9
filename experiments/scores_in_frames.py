"""Errors of estimated scores in the frames of `isopleth.frames`, on targets whose score is known.

    python -m experiments.scores_in_frames [--runs 4] [--rows 256 1000] [--columns 2 8 16] [--methods NAME ...] [--out FILE]
        [--first-seed 0] [--far DISTANCE ...]

Targets: a correlated normal density (condition 1,000 and, with ``--targets condition``, 10 to 10,000), mixtures of three normal
densities far apart and near to each other, Student's t with 5 degrees of freedom and correlated columns, correlated log-normal
columns, and a bent normal density. An error is the mean of |s - true score|^2 over that of |true score|^2, at 1,000 new rows or,
for the entropy surrogate, at the rows themselves. The "fitted normal" has the mean and the covariance of the rows. A line of the
table has means over runs. Seconds are processor time of a fit with its evaluation. With ``--far``, one more row a number is
fitted, at that many standard deviations of the columns in a random direction; errors are at the other rows.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from isopleth import KernelScore, NystromKEF
from isopleth.score import KEF, SSGE, Stein

N_TEST = 1000

# Rows and the true score at rows.
Draw = Callable[[int, np.random.Generator], np.ndarray]
Score = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Target:
    """A density that can be drawn from, and its score."""

    draw: Draw
    score: Score


def rotated(d: int, condition: float) -> np.ndarray:
    """Return a root of a covariance with eigenvalues from 1/condition to 1 in random directions, always the same for d."""
    basis = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    return basis * np.geomspace(1.0, condition**-0.5, d)


def normal(d: int, condition: float = 1000.0) -> Target:
    """Return a correlated normal density."""
    root = rotated(d, condition)
    precision = np.linalg.inv(root @ root.T)
    return Target(lambda n, rng: rng.standard_normal((n, d)) @ root.T, lambda x: -x @ precision)


def mixture(d: int, side: float) -> Target:
    """Return three standard normal densities at random vertices of a cube."""
    signs = np.random.default_rng(d).permutation(2**d if d < 3 else 8)[:3]
    modes = side * np.array([[(int(k) >> (j % 3)) & 1 for j in range(d)] for k in signs], dtype=float)

    def score(x: np.ndarray) -> np.ndarray:
        logits = x @ modes.T - 0.5 * np.sum(modes**2, axis=1)
        return np.asarray(softmax(logits, axis=1) @ modes - x)

    return Target(lambda n, rng: modes[rng.integers(3, size=n)] + rng.standard_normal((n, d)), score)


def student(d: int, degrees: float = 5.0) -> Target:
    """Return a correlated t density."""
    root = rotated(d, 10.0)
    precision = np.linalg.inv(root @ root.T)

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((n, d)) @ root.T / np.sqrt(rng.chisquare(degrees, size=(n, 1)) / degrees)

    def score(x: np.ndarray) -> np.ndarray:
        pull = x @ precision
        return np.asarray(-(degrees + d) * pull / (degrees + np.sum(pull * x, axis=1))[:, None])

    return Target(draw, score)


def lognormal(d: int, spread: float = 0.5) -> Target:
    """Return log-normal columns whose logarithms have correlation 0.5."""
    covariance = spread**2 * (0.5 * np.eye(d) + 0.5)
    root, precision = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    return Target(
        lambda n, rng: np.exp(rng.standard_normal((n, d)) @ root.T), lambda x: -(np.log(x) @ precision + 1.0) / x
    )


def banana(d: int) -> Target:
    """Return pairs of columns of which the second is bent by the square of the first; a last odd column is normal."""

    def bend(x: np.ndarray, sign: float) -> np.ndarray:
        out = x.copy()
        first = out[:, 0 : 2 * (d // 2) : 2]
        out[:, 1 : 2 * (d // 2) : 2] += sign * 0.7 * (first**2 - 1.0)
        return out

    def score(x: np.ndarray) -> np.ndarray:
        g = bend(x, -1.0)
        out = -g
        first, second = x[:, 0 : 2 * (d // 2) : 2], g[:, 1 : 2 * (d // 2) : 2]
        out[:, 0 : 2 * (d // 2) : 2] += 1.4 * first * second
        return out

    return Target(lambda n, rng: bend(rng.standard_normal((n, d)), 1.0), score)


TARGETS: dict[str, Callable[[int], Target]] = {
    "normal": normal,
    "far modes": lambda d: mixture(d, 4.0),
    "near modes": lambda d: mixture(d, 1.5),
    "t5": student,
    "log-normal": lognormal,
    "banana": banana,
}
CONDITIONS = {f"condition {c:g}": lambda d, c=c: normal(d, c) for c in (10.0, 100.0, 1000.0, 10000.0)}


def fitted_normal(x: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the score of a normal density with the mean and the covariance of the rows."""
    return np.asarray(-(new - x.mean(axis=0)) @ np.linalg.inv(np.cov(x.T, bias=True).reshape(x.shape[1], -1)))


def entropy(x: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the score of the rows themselves by the entropy surrogate."""
    import torch

    from isopleth.torch import entropy_surrogate

    rows = torch.as_tensor(x).requires_grad_()
    (slope,) = torch.autograd.grad(entropy_surrogate(rows, n_jobs=1), rows)
    return -len(x) * slope.numpy()


def by(estimator: type, **parameters: object) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function that fits an estimator and returns its score at new rows."""
    return lambda x, new: estimator(n_jobs=1, **parameters).fit(x).grad_log_density(new)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "fitted normal": fitted_normal,
    "KernelScore": by(KernelScore),
    "KernelScore scale": by(KernelScore, frame="scale"),
    "KernelScore whiten": by(KernelScore, frame="whiten"),
    "KernelScore smooth": by(KernelScore, frame="smooth"),
    "NystromKEF": by(NystromKEF, random_state=0),
    "NystromKEF scale": by(NystromKEF, random_state=0, frame="scale"),
    "Stein": by(Stein),
    "Stein whiten": by(Stein, frame="whiten"),
    "SSGE whiten": by(SSGE, frame="whiten"),
    "SSGE curl-free": by(SSGE, frame="whiten", space="curl_free"),
    "SSGE curl-free .95": by(SSGE, frame="whiten", space="curl_free", energy=0.95),
    "KEF": by(KEF),
    "KEF whiten": by(KEF, frame="whiten"),
    "entropy": entropy,
}
AT_ROWS = {"entropy"}


def far_rows(x: np.ndarray, distances: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    """Return a row at each distance from the mean, in standard deviations of the columns and a random direction."""
    directions = rng.standard_normal((len(distances), x.shape[1]))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return np.asarray(x.mean(axis=0) + np.array(distances)[:, None] * directions * x.std(axis=0))


def error(method: str, target: Target, n: int, seed: int, far: Sequence[float] = ()) -> tuple[float, float]:
    """Return the relative error of one run, and its seconds."""
    rng = np.random.default_rng([seed, n])
    x = target.draw(n, rng)
    new = x if method in AT_ROWS else target.draw(N_TEST, rng)
    truth = target.score(new)
    if far:
        x = np.concatenate([x, far_rows(x, far, rng)])
        new = x if method in AT_ROWS else new
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](x, new)
    seconds = time.process_time() - start
    found = found[: len(truth)]
    return float(np.sum((found - truth) ** 2) / np.sum(truth**2)), seconds


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--rows", type=int, nargs="+", default=[256, 1000])
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 8, 16])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--far", type=float, nargs="+", default=[])
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout)
    chosen = parser.parse_args(arguments)
    known = TARGETS | CONDITIONS
    names = [name for given in chosen.targets for name in (CONDITIONS if given == "condition" else [given])]
    width = max(len(m) for m in chosen.methods) + 1

    def line(*cells: object) -> None:
        head, *rest = cells
        print(f"{head!s:<30}" + "".join(f"{cell!s:>{width}}" for cell in rest), file=chosen.out, flush=True)

    line("target, columns, rows", *chosen.methods)
    rows = []
    for name in names:
        for d in chosen.columns:
            for n in chosen.rows:
                target = known[name](d)
                seeds = range(chosen.first_seed, chosen.first_seed + chosen.runs)
                runs = np.array([[error(m, target, n, s, chosen.far) for m in chosen.methods] for s in seeds])
                rows.append(runs.mean(axis=0))
                line(f"{name}, {d}, {n}", *(f"{value:.3f}" for value in rows[-1][:, 0]))
    line("mean", *(f"{value:.3f}" for value in np.mean(rows, axis=0)[:, 0]))
    line("seconds", *(f"{value:.2f}" for value in np.mean(rows, axis=0)[:, 1]))


if __name__ == "__main__":
    main()
