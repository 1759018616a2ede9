r"""Marginals and conditionals of stacks of Gaussian kernels, in closed form.

In a frame of columns followed by an affine map, each kernel is a normal density with one covariance :math:`\Sigma` in the
coordinates t of the columns. For the columns A, with the others integrated out, the square of a sum of kernels is
:math:`a^\top G a` with :math:`a_i = \alpha_i \exp(-\tfrac12 |t_A - c_{iA}|^2_{\Sigma_{AA}})` and
:math:`\log G_{ij} = \tfrac14 |c_{iA} - c_{jA}|^2_{\Sigma_{AA}} - \tfrac14 |c_i - c_j|^2_\Sigma`, where
:math:`|v|^2_\Sigma = v^\top \Sigma^{-1} v`. Given the columns B, each kernel is a normal density of A whose covariance is a Schur
complement. So both operations lead to densities of the same form. A mixture of normal densities is one of such sums with a single
kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from isopleth.core.arrays import to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.rows import systematic_sample
from isopleth.density.column_density import patterns_of
from isopleth.density.frame_density import ExpansionDensity
from isopleth.density.normal_mixture import NormalMixture
from isopleth.density.stack import Component, StackDensity
from isopleth.frames import ColumnMap, ComposedMap, FrameMap, ScaleMap
from isopleth.kernels import Gaussian

# Draws by which means and intervals of columns in nonlinear maps are known, and their seed.
_DRAWS, _SEED = 1000, 0

# Kernels whose share is below e^-40 of the largest do not change a sum of double precision.
_DEPTH = 40.0

# Matrices of kernels by kernels in memory.
_MATRICES = 4


@dataclass(frozen=True)
class NormalColumns:
    """One component: Gaussian kernels of one covariance in the coordinates of a map of columns."""

    map: ColumnMap  # map t of the columns
    centers: np.ndarray  # (m, p): centres in t
    root: np.ndarray  # (p, p): lower triangular root of the covariance of the kernels in t
    log_alpha: np.ndarray  # (m,): logarithms of the coefficients
    squared: bool  # whether the density is the square of the sum
    log_overlap: np.ndarray | None  # (m, m): log G; None if nothing is integrated out, or the density is no square
    own: np.ndarray | None  # (m,): places of the centres among those of the fit; None for the mean of a normal density

    @classmethod
    def of(cls, one: Component, y: np.ndarray) -> list[tuple[float, NormalColumns]]:
        """Read a component with centres `y`, in the coordinates that its map takes, as densities with their weights."""
        columns, affine = split(one.map)
        jacobian = np.eye(len(one.scale))
        for part in affine:
            jacobian = part.pushforward(np.zeros_like(jacobian), jacobian)
        density = one.density
        if isinstance(density, NormalMixture):
            means = density.means
            for part in affine[::-1]:
                means = part.inverse(means)
            roots = [_lower(np.linalg.solve(jacobian.T, root)) for root in density.roots]
            each = zip(density.shares, means, roots, strict=True)
            zero = np.zeros(1)
            return [(one.weight * w, cls(columns, mean[None], root, zero, False, None, None)) for w, mean, root in each]
        assert isinstance(density, ExpansionDensity)
        root = _lower(np.linalg.solve(jacobian.T, np.diag(one.scale)))
        with np.errstate(divide="ignore"):
            log_alpha = np.log(to_numpy(density.expansion.coefficients))
        squared = density.squared
        return [(one.weight, cls(columns, columns.forward(y), root, log_alpha, squared, None, np.arange(len(y))))]

    def _scaled(self, t: np.ndarray) -> np.ndarray:
        """Return t in coordinates in which the kernels have unit covariance."""
        return np.ascontiguousarray(solve_triangular(self.root, t.T, lower=True).T)

    @cached_property
    def _distances(self) -> np.ndarray:
        """Squared distances of the centres."""
        u = self._scaled(self.centers)
        return np.asarray(cdist(u, u, "sqeuclidean"))

    @cached_property
    def log_pairs(self) -> np.ndarray:
        """Logarithms of the weights of pairs of centres, of which a square is a mixture."""
        out = self.log_alpha[:, None] + self.log_alpha - 0.25 * self._distances
        return out if self.log_overlap is None else out + self.log_overlap

    @cached_property
    def log_normalizer(self) -> float:
        """Logarithm of the integral in t."""
        log_volume = float(np.log(np.diag(self.root)).sum())
        if self.squared:
            return float(logsumexp(self.log_pairs)) + 0.5 * len(self.root) * math.log(math.pi) + log_volume
        return float(logsumexp(self.log_alpha)) + 0.5 * len(self.root) * math.log(2.0 * math.pi) + log_volume

    def _terms(self, t: np.ndarray) -> np.ndarray:
        """Return log a_i at points, of shape (n, m)."""
        return np.asarray(self.log_alpha - 0.5 * cdist(self._scaled(t), self._scaled(self.centers), "sqeuclidean"))

    def _shares(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log of the unnormalised density at points, and the share of each centre in its gradient."""
        logs = self._terms(t)
        top = logs.max(axis=1, keepdims=True)
        a = np.exp(logs - top)
        if self.squared and self.log_overlap is not None:
            a *= a @ np.exp(self.log_overlap)
            power = 2.0
        else:
            power = 2.0 if self.squared else 1.0
            total = a.sum(axis=1, keepdims=True)
            return power * (top + np.log(total))[:, 0], a / total
        total = a.sum(axis=1, keepdims=True)
        return (power * top + np.log(total))[:, 0], a / total

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of rows of the visible columns."""
        t = self.map.forward(y)
        return self._shares(t)[0] - self.log_normalizer + self.map.log_volume(y)

    def grad_log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the gradient of :meth:`log_density`."""
        t = self.map.forward(y)
        _, shares = self._shares(t)
        pull = cho_solve((self.root, True), (shares @ self.centers - t).T).T
        return self.map.pullback(y, (2.0 if self.squared else 1.0) * pull) + self.map.grad_log_volume(y)

    def marginal(self, columns: np.ndarray) -> NormalColumns:
        """Integrate out all columns but some."""
        out = replace(
            self,
            map=self.map.take(columns),
            centers=np.ascontiguousarray(self.centers[:, columns]),
            root=_lower(self.root[columns]),
        )
        if not self.squared or len(columns) == self.centers.shape[1]:
            return out
        overlap = 0.25 * (out._distances - self._distances)
        return replace(out, log_overlap=overlap if self.log_overlap is None else overlap + self.log_overlap)

    def conditional(self, given: np.ndarray, values: np.ndarray) -> NormalColumns:
        """Return the density of the other columns where the columns `given` have values (in y)."""
        rest = np.setdiff1d(np.arange(self.centers.shape[1]), given)
        known = self.marginal(given)
        t = known.map.forward(values[None])
        logs = known._terms(t)[0]
        kept = np.flatnonzero(logs > logs.max() - _DEPTH)
        both = _lower(self.root[np.concatenate([given, rest])])
        g = len(given)
        apart = solve_triangular(both[:g, :g], (t - self.centers[np.ix_(kept, given)]).T, lower=True).T
        return NormalColumns(
            self.map.take(rest),
            self.centers[np.ix_(kept, rest)] + apart @ both[g:, :g].T,
            both[g:, g:],
            logs[kept] - logs.max(),
            self.squared,
            None if self.log_overlap is None else self.log_overlap[np.ix_(kept, kept)],
            None if self.own is None else self.own[kept],
        )

    def draw(
        self, n: int, rng: np.random.Generator, fitted: np.ndarray, evenly: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw rows (in y) and the centres of each pair; a draw of a normal density counts as one about the nearest centre."""
        if self.squared:
            shares = np.exp(self.log_pairs - self.log_pairs.max())
            first = _places(shares.sum(axis=1), n, rng, evenly)
            cumulative = np.cumsum(shares[first], axis=1)
            second = (cumulative < rng.uniform(size=(n, 1)) * cumulative[:, -1:]).sum(axis=1)
        else:
            shares = np.exp(self.log_alpha - self.log_alpha.max())
            first = second = _places(shares, n, rng, evenly)
        noise = rng.standard_normal((n, len(self.root))) @ self.root.T
        t = 0.5 * (self.centers[first] + self.centers[second]) + noise * math.sqrt(0.5 if self.squared else 1.0)
        drawn = self.map.inverse(t)
        if self.own is None:
            nearest = cdist(self._scaled(t), self._scaled(self.map.forward(fitted))).argmin(axis=1)
            return drawn, nearest, nearest
        return drawn, self.own[first], self.own[second]


def _places(shares: np.ndarray, n: int, rng: np.random.Generator, evenly: bool) -> np.ndarray:
    """Draw places by shares, independently or `evenly`."""
    return systematic_sample(shares, n, rng) if evenly else rng.choice(len(shares), size=n, p=shares / shares.sum())


def _lower(root: np.ndarray) -> np.ndarray:
    """Return the lower triangular L with L L' = R R': no squares, which columns that depend on each other would make singular."""
    upper = np.asarray(np.linalg.qr(root.T, mode="r"))
    return np.ascontiguousarray((upper * np.where(np.diag(upper) < 0.0, -1.0, 1.0)[:, None]).T)


@dataclass(frozen=True)
class StackColumns:
    """Density of a stack that answers for some of the columns; it has the methods of `ColumnDensity` for numbers."""

    parts: tuple[NormalColumns, ...]  # components
    log_weights: np.ndarray  # (k,): logarithms of their weights
    centers: np.ndarray  # (m, d): centres of the fit
    columns: np.ndarray  # columns of the centres that belong to the density

    @classmethod
    def of(cls, stack: StackDensity, y: np.ndarray) -> StackColumns:
        """Read a stack whose kernels are at `y`."""
        kernels = [one.density for one in stack.components if not isinstance(one.density, NormalMixture)]
        if not (isinstance(kernels[0], ExpansionDensity) and isinstance(kernels[0].expansion.kernel, Gaussian)):
            raise InputError(
                "questions about some of the columns need kernel='gaussian' in this frame; fit with it, or with frame='scale'.",
                parameter="kernel",
            )
        each, memory_limit = 8.0 * _MATRICES, kernels[0].expansion.budget.memory
        most = int(math.sqrt(memory_limit / each))
        refuse_too_large(f"pairs of {len(y):,} centres", each * len(y) ** 2, memory_limit, "fit with landmarks", most)
        weights, parts = zip(*(part for one in stack.components for part in NormalColumns.of(one, y)), strict=True)
        return cls(parts, np.log(weights), y, np.arange(y.shape[1]))

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def size(self, column: int) -> int:
        """Return 0: all columns are numeric."""
        return 0

    def row_weights(self) -> np.ndarray:
        """Return the weights of the rows of the fit, up to a factor; those of a square follow from its equations."""
        one = next(part for part in self.parts if part.own is not None)
        a = np.exp(one.log_alpha - one.log_alpha.max())
        return np.asarray(a * (np.exp(-0.5 * one._distances) @ a) if one.squared else a)

    def own_centers(self, Z: np.ndarray) -> None:
        """Return None: all rows of the fit were complete."""
        return

    def _logs(self, z: np.ndarray) -> np.ndarray:
        return np.stack([one.log_density(z) for one in self.parts], axis=1) + self.log_weights

    def _of(self, observed: np.ndarray) -> StackColumns:
        return self if len(observed) == self.dim else self.marginal(observed)

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log density of the observed cells of each row; 0 where there are none."""
        out = np.zeros(len(Z))
        for pattern in patterns_of(Z):
            if len(pattern.observed):
                z = np.ascontiguousarray(Z[np.ix_(pattern.rows, pattern.observed)])
                out[pattern.rows] = logsumexp(self._of(pattern.observed)._logs(z), axis=1)
        return out

    def grad_log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the gradient of :meth:`log_density` by the observed cells, NaN elsewhere."""
        out = np.full(Z.shape, np.nan)
        for pattern in patterns_of(Z):
            if not len(pattern.observed):
                continue
            place = np.ix_(pattern.rows, pattern.observed)
            z, some = np.ascontiguousarray(Z[place]), self._of(pattern.observed)
            logs = some._logs(z)
            shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
            gradients = [one.grad_log_density(z) for one in some.parts]
            out[place] = sum(share[:, None] * g for share, g in zip(shares.T, gradients, strict=True))
        return out

    def marginal(self, columns: np.ndarray) -> StackColumns:
        """Return the density of some of the columns."""
        return replace(self, parts=tuple(one.marginal(columns) for one in self.parts), columns=self.columns[columns])

    def conditional(self, given: Mapping[int, float]) -> StackColumns:
        """Return the density of the other columns where some have values."""
        places, values = np.array(list(given), dtype=np.intp), np.array(list(given.values()))
        if not len(places):
            return self
        logs = self.marginal(places)._logs(values[None])[0]
        kept = np.flatnonzero(logs > logs.max() - _DEPTH)
        parts = tuple(self.parts[k].conditional(places, values) for k in kept)
        rest = np.setdiff1d(np.arange(self.dim), places)
        return replace(self, parts=parts, log_weights=logs[kept] - logsumexp(logs[kept]), columns=self.columns[rest])

    def sample(self, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw independent rows."""
        return self.draw(n_samples, rng)[0]

    def draw(
        self, n_samples: int, rng: np.random.Generator, *, evenly: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw rows, with the two centres of the fit from which each comes; see :meth:`ColumnDensity.draw`."""
        shares = np.exp(self.log_weights)
        counts = (
            np.bincount(systematic_sample(shares, n_samples, rng), minlength=len(shares))
            if evenly
            else rng.multinomial(n_samples, shares / shares.sum())
        )
        fitted = self.centers[:, self.columns]
        drawn = [
            one.draw(int(count), rng, fitted, evenly) for one, count in zip(self.parts, counts, strict=True) if count
        ]
        order = rng.permutation(n_samples)
        rows, first, second = (np.concatenate(part)[order] for part in zip(*drawn, strict=True))
        return rows, first, second

    def _given(self, row: np.ndarray) -> StackColumns:
        known = np.flatnonzero(~np.isnan(row))
        return self.conditional({int(j): float(row[j]) for j in known})

    def cumulative(self, column: int, place: float) -> float:
        """Return the share of draws in which a column is at most so large."""
        return float((self.draw(_DRAWS, np.random.default_rng(_SEED))[0][:, column] <= place).mean())

    def impute(
        self,
        Z: np.ndarray,
        strategy: str = "mean",
        rng: np.random.Generator | None = None,
        skip: np.ndarray | None = None,
        tick: Callable[[int], None] = lambda count: None,
    ) -> np.ndarray:
        """Fill gaps by the mean of draws given the observed cells, or by one draw."""
        out = Z.copy()
        for i in np.flatnonzero(np.isnan(Z).any(axis=1)):
            given = self._given(Z[i])
            n = 1 if strategy == "draw" else _DRAWS
            source = rng if strategy == "draw" and rng is not None else np.random.default_rng(_SEED)
            out[i, np.isnan(Z[i])] = given.draw(n, source)[0].mean(axis=0)
            tick(1)
        return out

    def means_of_draws(
        self, Z: np.ndarray, values: Callable[[np.ndarray], np.ndarray], skip: None = None
    ) -> np.ndarray:
        """Return for each row the mean of `values` of draws of its missing cells."""
        out = []
        for row in Z:
            drawn = np.tile(row, (_DRAWS, 1))
            drawn[:, np.isnan(row)] = self._given(row).draw(_DRAWS, np.random.default_rng(_SEED))[0]
            out.append(values(drawn).mean(axis=0))
        return np.array(out)

    def intervals(
        self, Z: np.ndarray, confidence_level: float, skip: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles of draws of missing cells given the observed ones."""
        low, high = Z.copy(), Z.copy()
        for i in np.flatnonzero(np.isnan(Z).any(axis=1)):
            drawn = self._given(Z[i]).draw(_DRAWS, np.random.default_rng(_SEED))[0]
            gaps = np.isnan(Z[i])
            low[i, gaps], high[i, gaps] = np.quantile(
                drawn, 0.5 + 0.5 * confidence_level * np.array([-1.0, 1.0]), axis=0
            )
        return low, high


def split(fitted: FrameMap) -> tuple[ColumnMap, tuple[FrameMap, ...]]:
    """Return the map as one of columns followed by affine ones."""
    maps: tuple[FrameMap, ...] = fitted.maps if isinstance(fitted, ComposedMap) else (fitted,)
    first: Any = maps[0]
    if not isinstance(first, ColumnMap):
        first, rest = ScaleMap(np.zeros(fitted.dim), np.ones(fitted.dim)), maps
    else:
        rest = maps[1:]
    if not all(one.affine for one in rest):
        raise InputError(
            "this frame mixes columns more than once, so it has no densities of some of the columns; fit with frame='auto', "
            "'gp1', 'marginal', 'whiten' or 'scale'.",
            parameter="frame",
        )
    return first, rest
