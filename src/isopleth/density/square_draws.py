r"""Exact draws from the square of a sum of kernels, by rejection, for every kernel whose square integrates.

With :math:`f = \sum_i \alpha_i k_i`, :math:`\alpha > 0`, each proposal is a draw from :math:`k_i^2` around a centre i that is
chosen with probability proportional to :math:`\alpha_i`. For kernels without negative values,

.. math:: f^2 = \sum_{ij} \alpha_i \alpha_j k_i k_j \le \sum_{ij} \alpha_i \alpha_j \tfrac12 (k_i^2 + k_j^2),

so with a second centre j, chosen in the same way, the proposal x is accepted with probability
:math:`2 k_i k_j/(k_i^2 + k_j^2)` at x: two values of the kernel for each proposal. For other kernels
:math:`f^2 \le \sum_i \alpha_i \sum_i \alpha_i k_i^2` (Cauchy and Schwarz), and x is accepted with the ratio of the two sides,
which takes a sum over all centres. In both cases the share that is accepted is
:math:`\int f^2 \big/ \bigl((\sum_i\alpha_i)^2 \int k^2\bigr)`, at least one over the number of centres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isopleth.backend import to_numpy
from isopleth.expansion import KernelExpansion
from isopleth.kernels import Kernel, Workspace
from isopleth.operators import Operator
from isopleth.operators.blocks import Matrix
from isopleth.operators.threads import check_stopped
from isopleth.progress import Progress

# Proposals made at once: their arrays fit in the cache of a core.
_PROPOSALS = 2**14

# Cells of the table from which radii are proposed, and the bound of the density over the proposal: 1 plus the error of
# linear interpolation in them.
_CELLS, _BOUND = 2**14, 1.01

# The table ends where the logarithm of the density of log r is this much below its largest value.
_DEPTH = 75.0


@dataclass(frozen=True)
class RadiusDraws:
    r"""Draws of the radius of the density :math:`\propto \varphi(r^2)^2` in d dimensions.

    :math:`t = \log r` has the density :math:`g(t) \propto e^{dt} \varphi(e^{2t})^2`. It is proposed from a linear interpolation
    of g in narrow cells and accepted with the ratio of the two, so the draws are exact up to rounding.
    """

    kernel: Kernel  # bound to d
    # t, density: (cells + 1,): ends of the cells, and g there, in units of its largest value
    t: np.ndarray
    density: np.ndarray
    log_peak: float  # logarithm of that value

    @classmethod
    def of(cls, kernel: Kernel) -> RadiusDraws:
        """Return the draws for a kernel, with the table of its radial density."""
        coarse = np.linspace(-60.0, 60.0, 24_001)
        values = _log_radial(kernel, coarse)
        inside = np.flatnonzero(values > values.max() - _DEPTH)
        t = np.linspace(coarse[max(0, inside[0] - 1)], coarse[min(len(coarse) - 1, inside[-1] + 1)], _CELLS + 1)
        values = _log_radial(kernel, t)
        return cls(kernel, t, np.exp(values - values.max()), float(values.max()))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` radii."""
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (self.density[1:] + self.density[:-1]))])
        out = np.empty(0)
        while len(out) < n:
            asked = n - len(out)
            cell = np.searchsorted(cumulative, rng.uniform(size=asked) * cumulative[-1], side="right") - 1
            left, right = self.density[cell], self.density[cell + 1]
            # The density is linear in the cell: the larger of two uniform draws rises from 0, one alone is constant.
            rising = rng.uniform(size=asked) * (left + right) < np.abs(right - left)
            place = rng.uniform(size=asked)
            place = np.where(rising, np.maximum(place, rng.uniform(size=asked)), place)
            place = np.where(rising & (right < left), 1.0 - place, place)
            t = self.t[cell] + place * (self.t[1] - self.t[0])
            proposed = left + place * (right - left)
            with np.errstate(invalid="ignore"):
                wanted = np.exp(_log_radial(self.kernel, t) - self.log_peak)
            out = np.concatenate([out, np.exp(t[rng.uniform(size=asked) * proposed * _BOUND < wanted])])
        return out


def _log_radial(kernel: Kernel, t: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.asarray(kernel.bound_dim * t + 2.0 * np.log(np.abs(kernel(np.exp(2.0 * t)))))


@lru_cache(maxsize=16)
def radius_draws(kernel: Kernel) -> RadiusDraws:
    """Return the draws for a kernel; the tables of the last few kernels are kept."""
    return RadiusDraws.of(kernel)


def sample_square(
    expansion: KernelExpansion, n_samples: int, rng: np.random.Generator, verbose: bool | int = False
) -> np.ndarray:
    """Draw independent rows from the normalised square of an expansion."""
    centers, alpha = to_numpy(expansion.centers), to_numpy(expansion.coefficients)
    share = np.cumsum(alpha) / alpha.sum()
    radii = radius_draws(expansion.kernel)
    draw = _by_pairs if expansion.kernel.nonnegative else _by_all
    found: list[np.ndarray] = []
    missing = n_samples
    accepted, proposed = 1.0, 1.0
    with Progress("samples", n_samples, verbose) as tick:
        while missing > 0:
            check_stopped()
            count = min(_PROPOSALS, math.ceil(1.1 * missing * proposed / accepted) + 16)
            i = np.searchsorted(share, rng.uniform(size=count))
            direction = rng.standard_normal((count, centers.shape[1]))
            direction /= np.linalg.norm(direction, axis=1, keepdims=True)
            radius = radii.sample(count, rng)
            rows = centers[i] + radius[:, None] * direction
            j = np.searchsorted(share, rng.uniform(size=count))
            rows = rows[rng.uniform(size=count) < draw(expansion, centers, rows, radius, j)][:missing]
            found.append(rows)
            missing -= len(rows)
            accepted, proposed = accepted + len(rows), proposed + count
            tick(len(rows))
    return np.concatenate(found)


def _by_pairs(
    expansion: KernelExpansion, centers: np.ndarray, rows: np.ndarray, radius: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the probabilities of acceptance with a second centre `j`, from logarithms, which do not underflow."""
    log_first = expansion.kernel.log(radius**2)
    log_second = expansion.kernel.log(np.sum((rows - centers[j]) ** 2, axis=1))
    return np.asarray(1.0 / np.cosh(np.minimum(700.0, np.abs(log_first - log_second))))


_SQUARE = Matrix("square", lambda kernel: _Square(kernel))


@dataclass(frozen=True)
class _Square:
    """Square of a kernel as a function of squared distances, for sums over centres."""

    kernel: Kernel

    def __call__(self, s: np.ndarray, work: Workspace) -> np.ndarray:
        value = self.kernel._product(s, 0, work)
        value *= value
        return value


def _by_all(
    expansion: KernelExpansion, centers: np.ndarray, rows: np.ndarray, radius: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the probabilities of acceptance by the sums over all centres."""
    alpha = to_numpy(expansion.coefficients)
    own = KernelExpansion(expansion.kernel, centers, alpha, expansion.memory_limit, expansion.n_jobs)
    squares = Operator(
        own.kernel, rows, centers, block=_SQUARE, memory_limit=own.memory_limit, n_jobs=own.n_jobs
    ).matvec(alpha)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(own.value(rows) ** 2 / (alpha.sum() * squares))
