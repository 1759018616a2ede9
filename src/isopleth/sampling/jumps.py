"""Jumps of Markov chains to draws from a kernel density of the start rows, which bring them from mode to mode."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from isopleth.sampling.steps import Moved, metropolis
from isopleth.sampling.target import State, Whitened

# Multiples of Scott's length scale that are mixed: rows in thin or separate groups need narrower kernels than a normal density.
_WIDTHS = (0.25, 0.5, 1.0)

# Most start rows at which kernels are placed, so that a jump costs no more than a step.
_MOST_ROWS = 1000

# Exponents computed at once.
_MOST_NUMBERS = 2**20


class Jump:
    r"""Metropolis step whose proposals are independent of the place of the chain.

    A proposal x is a draw from a mixture q of Gaussian kernel densities of start rows at three length scales. It is accepted in
    place of y with probability :math:`\min(1, p(x) q(y)/p(y) q(x))`, so p stays the limit of the chain. If q is close to
    p, most jumps are accepted; in many columns few are, and the other steps do the work.
    """

    def __init__(self, target: Whitened, rng: np.random.Generator) -> None:
        rows = target.starts(min(len(target.target.start), _MOST_ROWS), rng)
        n, d = rows.shape
        self._target, self._rows = target, rows
        self._widths = np.array(_WIDTHS) * n ** (-1.0 / (d + 4))
        self._log_norm = -d * np.log(self._widths) - math.log(n * len(self._widths)) - 0.5 * d * math.log(2.0 * math.pi)

    def __call__(self, state: State, rng: np.random.Generator) -> Moved:
        """Return the chains after one jump."""
        count = len(state.u)
        width = rng.choice(self._widths, size=(count, 1))
        places = self._rows[rng.integers(len(self._rows), size=count)] + width * rng.standard_normal(state.u.shape)
        proposed = self._target.evaluate(places)
        assert proposed.log_density is not None
        assert state.log_density is not None
        log_q = self.log_density(np.concatenate([state.u, places]))
        with np.errstate(invalid="ignore", over="ignore"):
            log_ratio = proposed.log_density - state.log_density + log_q[:count] - log_q[count:]
        return metropolis(state, proposed, log_ratio, rng)

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """Return the logarithm of q."""
        step = max(1, _MOST_NUMBERS // (len(self._rows) * len(self._widths)))
        return np.concatenate([self._log_density(u[i : i + step]) for i in range(0, len(u), step)])

    def _log_density(self, u: np.ndarray) -> np.ndarray:
        s = np.maximum(0.0, np.sum(u * u, axis=1)[:, None] + np.sum(self._rows**2, axis=1) - 2.0 * u @ self._rows.T)
        exponents = -0.5 * s[:, :, None] / self._widths**2 + self._log_norm
        return np.asarray(logsumexp(exponents.reshape(len(u), -1), axis=1))
