"""Densities whose formula is known, for studies of densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, t


@dataclass(frozen=True)
class Target:
    """A density with draws.

    Parameters
    ----------
    dim : int
        Number of columns.
    draw : callable
        Returns that many rows, drawn with a generator.
    log_density : callable
        Log density of rows.
    """

    dim: int
    draw: Callable[[int, np.random.Generator], np.ndarray]
    log_density: Callable[[np.ndarray], np.ndarray]


def correlated_normal(dim: int, condition: float) -> Target:
    """Return a normal distribution with a covariance matrix of this condition number, in random directions."""
    Q, _ = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))
    deviations = np.geomspace(1.0, condition**-0.5, dim)
    law = multivariate_normal(np.zeros(dim), (Q * deviations**2) @ Q.T)
    return Target(dim, lambda n, rng: (rng.normal(size=(n, dim)) * deviations) @ Q.T, law.logpdf)


def mixture(means: np.ndarray, deviations: np.ndarray, weights: np.ndarray) -> Target:
    """Return a mixture of round normal distributions."""
    k, dim = means.shape

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        which = rng.choice(k, size=n, p=weights)
        return means[which] + deviations[which, None] * rng.normal(size=(n, dim))

    def log_density(X: np.ndarray) -> np.ndarray:
        terms = norm.logpdf(X[:, None], means, deviations[:, None]).sum(axis=2)
        return np.asarray(logsumexp(terms, axis=1, b=weights))

    return Target(dim, draw, log_density)


def banana() -> Target:
    """Return a curved density of two columns."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        x = rng.normal(size=n)
        return np.column_stack([x, x**2 + 0.3 * rng.normal(size=n)])

    return Target(2, draw, lambda X: norm.logpdf(X[:, 0]) + norm.logpdf(X[:, 1], X[:, 0] ** 2, 0.3))


def mapped(base: Target, forward: Callable[..., np.ndarray], inverse: Callable[..., np.ndarray], log_slope) -> Target:  # type: ignore[no-untyped-def]
    """Return the density of forward(x), column by column; `log_slope` is that of the inverse at the mapped rows."""
    return Target(
        base.dim,
        lambda n, rng: forward(base.draw(n, rng)),
        lambda X: base.log_density(inverse(X)) + log_slope(X).sum(axis=1),
    )


def heavy_tails(dim: int) -> Target:
    """Return independent columns of Student's t with 3 degrees of freedom, rotated."""
    Q, _ = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))
    return Target(dim, lambda n, rng: rng.standard_t(3, size=(n, dim)) @ Q.T, lambda X: t.logpdf(X @ Q, 3).sum(axis=1))


_MODES = np.random.default_rng(5)

TARGETS = {
    "claw, d = 1": mixture(
        np.array([[0.0], [-1.0], [-0.5], [0.0], [0.5], [1.0]]), np.array([1.0] + [0.1] * 5), np.array([0.5] + [0.1] * 5)
    ),
    "banana, d = 2": banana(),
    "five modes, d = 2": mixture(4 * _MODES.normal(size=(5, 2)), np.array([0.2, 0.4, 0.8, 1.2, 1.6]), np.full(5, 0.2)),
    "five modes, d = 8": mixture(3 * _MODES.normal(size=(5, 8)), np.array([0.3, 0.5, 0.8, 1.0, 1.4]), np.full(5, 0.2)),
    "lognormal, d = 3": mapped(correlated_normal(3, 10.0), np.exp, np.log, lambda X: -np.log(X)),
    "t3, d = 5": heavy_tails(5),
    "normal, condition 1,000, d = 8": correlated_normal(8, 1e3),
    "normal, condition 1,000, d = 50": correlated_normal(50, 1e3),
}


def gradient(log_density: Callable[[np.ndarray], np.ndarray], X: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the gradient of a log density by central differences."""
    out = np.empty(X.shape)
    for j in range(X.shape[1]):
        e = np.zeros(X.shape[1])
        e[j] = step
        out[:, j] = (log_density(X + e) - log_density(X - e)) / (2.0 * step)
    return out
