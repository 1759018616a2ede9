"""Mixtures of normal densities with a covariance matrix each: what a sum of kernels of one shape cannot be near clusters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import logsumexp

from isopleth.core.arrays import NUMPY, Backend
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.covariance import ledoit_wolf, row_space
from isopleth.core.rows import sample_places
from isopleth.core.threads import check_stopped, slices
from isopleth.density.frame_density import FrameDensity

# Components at the start of the EM algorithm; those without enough rows are dropped on the way.
MOST_NORMALS = 16

# Most rows by which components are dropped. All rows have the last steps.
_MOST_ROWS, _STEPS, _LAST_STEPS = 2048, 60, 10

# Variance of the components at the start, and what is added to every variance, in units of the variance of the rows. With 1e-4,
# held-out rows of one table in thirty lost .1 nats and more; with 1e-2, narrow clusters were described worse.
_START, _RIDGE = 0.25, 1e-3

# Components that exceed the least number of rows by less than this share of it are dropped. Those of far rows have as many as
# there are of these, and if that is the least number, rounding errors would decide.
_TIE = 1e-9

# Numbers in a block of rows: those of a component and row stay in the cache of a core.
_BLOCK = 2**17


@dataclass(frozen=True)
class NormalMixture(FrameDensity):
    r"""Density :math:`\sum_k \pi_k\, N(\mu_k, L_k L_k^\top)` of `shares` (k,), `means` (k, d) and lower roots (k, d, d)."""

    shares: np.ndarray
    means: np.ndarray
    roots: np.ndarray

    @property
    def _backend(self) -> Backend:
        return NUMPY

    @cached_property
    def log_normalizer(self) -> float:
        """0: the mixture is normalised."""
        return 0.0

    def wider(self, factor: float) -> NormalMixture:
        """Return the mixture with deviations multiplied by a factor."""
        return NormalMixture(self.shares, self.means, factor * self.roots)

    def _blocks(self, z: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield places of rows, log densities of the components with their weights, (k, n), and L^-1 (z - mean), (k, n, d)."""
        inverses = np.linalg.inv(self.roots).transpose(0, 2, 1)
        volumes = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(self.shares) - volumes - 0.5 * z.shape[1] * math.log(2.0 * math.pi)
        for place in slices(len(z), _BLOCK // self.means.size):
            check_stopped()
            steps = np.matmul(z[place] - self.means[:, None], inverses)
            yield place, constants[:, None] - 0.5 * np.einsum("kni,kni->kn", steps, steps), steps

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log p at rows."""
        out = np.empty(len(z))
        for place, logs, _ in self._blocks(z):
            out[place] = logsumexp(logs, axis=0)
        return out

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p and its gradient at rows."""
        log_p, gradient = np.empty(len(z)), np.empty(z.shape)
        inverses = np.linalg.inv(self.roots)
        for place, logs, steps in self._blocks(z):
            log_p[place] = logsumexp(logs, axis=0)
            gradient[place] = -np.einsum("kn,kni->ni", np.exp(logs - log_p[place]), np.matmul(steps, inverses))
        return log_p, gradient

    def improved(self, blocks: Iterable[tuple[np.ndarray, np.ndarray]], least: float) -> NormalMixture:
        """Return the mixture after a step of EM on :func:`_products`; components of fewer rows than `least` are dropped."""
        d = self.means.shape[1]
        inverses = np.linalg.inv(self.roots)
        precisions = inverses.transpose(0, 2, 1) @ inverses
        slopes = (precisions @ self.means[:, :, None])[:, :, 0]
        volumes = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(self.shares) - volumes - 0.5 * (slopes * self.means).sum(axis=1)
        rows, columns = _upper(d)
        curvatures = np.where(rows == columns, -0.5, -1.0) * precisions[:, rows, columns]
        form = np.column_stack([constants, slopes, curvatures])
        sums = np.zeros(form.shape)
        for products, w in blocks:
            r = form @ products
            r -= r.max(axis=0)
            np.exp(r, out=r)
            r *= w / r.sum(axis=0)
            sums += r @ products.T
        least = min(least, 0.5 * sums[:, 0].max())
        shares = sums[:, 0] - least
        kept = shares > _TIE * least
        moments = sums[kept, 1:] / sums[kept, :1]
        means, covariances = moments[:, :d], np.empty((len(moments), d, d))
        covariances[:, rows, columns] = covariances[:, columns, rows] = moments[:, d:]
        covariances += _RIDGE * np.eye(d) - means[:, :, None] * means[:, None]
        return NormalMixture(shares[kept] / shares[kept].sum(), means, np.linalg.cholesky(covariances))

    def sample(self, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw components by their weights, then rows of each."""
        chosen = rng.choice(len(self.shares), size=n_samples, p=self.shares)
        noise = rng.standard_normal((n_samples, self.means.shape[1]))
        return np.asarray(self.means[chosen] + np.einsum("nij,nj->ni", self.roots[chosen], noise))


def fit_normals(z: np.ndarray, weights: np.ndarray, one: bool = False) -> NormalMixture:
    r"""Fit normal densities to distinct rows of unit variance: one of shrunken covariance, or a mixture by EM.

    Components begin at :data:`MOST_NORMALS` of the rows. The weight of each is proportional to
    :math:`\max(0, \sum_i r_{ik} - c)`, where c is half the number of parameters of a component [1]_, so that components drop out
    that describe too few rows to pay for these. c grows from 0 over the first half of the steps: all components would drop out
    at once where none has enough rows yet. The numbers of steps are fixed, so that the fit is continuous in the rows.

    References
    ----------
    .. [1] M. A. T. Figueiredo, A. K. Jain, "Unsupervised learning of finite mixture models", IEEE Transactions on Pattern
       Analysis and Machine Intelligence 24, 2002.
    """
    middle = weights @ z / weights.sum()  # far from 0 if rows are fewer than columns
    basis = None if one else row_space(z - middle)
    if basis is None:
        found = _shrunken(z - middle, weights, z.shape[1])[0] if one else _mixture(z - middle, weights, z.shape[1])
        return NormalMixture(found.shares, found.means + middle, found.roots)
    inner = _mixture((z - middle) @ basis, weights, z.shape[1])
    return NormalMixture(inner.shares, inner.means @ basis.T + middle, _lifted(inner.roots, basis, _RIDGE))


def _mixture(z: np.ndarray, weights: np.ndarray, columns: int) -> NormalMixture:
    """Fit a mixture to rows about 0, which may be coordinates in a subspace of so many columns: the others have the ridge."""
    d = z.shape[1]
    rows = sample_places(len(z), _MOST_ROWS)
    some, w = z[rows], weights[rows] / weights[rows].sum()
    means = some[sample_places(len(some), max(1, min(MOST_NORMALS, len(some) // 10)))]
    k = len(means)
    found = NormalMixture(np.full(k, 1.0 / k), means, np.tile(math.sqrt(_START) * np.eye(d), (k, 1, 1)))
    most = columns * (columns + 3) / 4.0 * float(w @ w)  # c as a share of the rows
    blocks = list(_products(some, w))
    for step in range(_STEPS):
        check_stopped()
        several = len(found.shares) > 1
        found = found.improved(blocks, most * min(1.0, 2.0 * step / _STEPS))
        if not several:  # all rows belong to the only component, so that no further step changes it
            break
    if len(rows) < len(z):
        w = weights / weights.sum()
        for _ in range(_LAST_STEPS):
            found = found.improved(_products(z, w), 0.0)
    return found


def _shrunken(z: np.ndarray, weights: np.ndarray, columns: int) -> tuple[NormalMixture, float]:
    """Fit one normal density to rows about 0, and return the variance of columns beside those of `z` too.

    Its covariance is shrunk as far as few rows of many columns need. In columns that are each scaled or made normal, the rule of
    Ledoit and Wolf stands for whitening, which fits noise there.
    """
    w = weights / weights.sum()
    covariance, delta = ledoit_wolf(z, w, columns=columns)
    beside = delta * float(w @ (z * z).sum(axis=1)) / columns + _RIDGE
    covariance[np.diag_indices(len(covariance))] += _RIDGE
    return NormalMixture(np.ones(1), np.zeros((1, z.shape[1])), np.linalg.cholesky(covariance)[None]), beside


def held_out_normals(z: np.ndarray, weights: np.ndarray, rows: np.ndarray, one: bool) -> np.ndarray:
    """Return log densities of `rows` by normal densities fitted to `z`: one, shrunken, or a mixture.

    If both are fewer than columns, this is a problem in the space of all these rows.
    """
    middle, columns = weights @ z / weights.sum(), z.shape[1]
    z, rows = z - middle, rows - middle
    basis = row_space(np.concatenate([z, rows]))
    if basis is not None:
        z, rows = z @ basis, rows @ basis
    found, variance = _shrunken(z, weights, columns) if one else (_mixture(z, weights, columns), _RIDGE)
    beside = 0.5 * (columns - z.shape[1]) * math.log(2.0 * math.pi * variance)
    return found.log_density(rows) - beside


def _lifted(roots: np.ndarray, basis: np.ndarray, variance: float) -> np.ndarray:
    """Return lower roots of covariances that are given in a subspace, and `variance` in all directions beside it."""
    inside = basis @ (roots @ roots.transpose(0, 2, 1) - variance * np.eye(roots.shape[1])) @ basis.T
    return np.linalg.cholesky(inside + variance * np.eye(len(basis)))


# Each step of EM asks for them; those of the folds, which differ by a row, are kept.
_upper = lru_cache(maxsize=4)(np.triu_indices)


def _products(z: np.ndarray, w: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield 1, columns and products of two for blocks of rows, and weights: a step of EM is two matrix products of these."""
    i, j = _upper(z.shape[1])
    for part in slices(len(z), _BLOCK // (len(i) + MOST_NORMALS)):
        check_stopped()
        columns = np.ascontiguousarray(z[part].T)
        yield np.concatenate([np.ones((1, columns.shape[1])), columns, columns[i] * columns[j]]), w[part]
