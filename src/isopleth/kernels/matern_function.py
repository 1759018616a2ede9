"""The Matern function, which the self-convolutions of Matern kernels are made of."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import kve

from isopleth.kernels.radial_table import RadialTable
from isopleth.kernels.tabulation import tabulate

_END = 1e-17


def matern_function(u: np.ndarray, mu: float) -> np.ndarray:
    r""":math:`M_\mu(u) = \tfrac{2^{1-\mu}}{\Gamma(\mu)} u^\mu K_\mu(u)` for u > 0 and whole or half-whole mu >= 1/2.

    The recurrence :math:`M_{\mu+1} = M_\mu + \tfrac{u^2}{4\mu(\mu-1)} M_{\mu-1}` adds positive terms only: nothing is
    lost and nothing overflows, whatever mu.
    """
    if (2 * mu) % 1 or mu < 0.5:
        raise ValueError(f"mu = {mu!r}: expected a positive multiple of 1/2.")
    decay = np.exp(-u)
    if mu % 1:
        start, below, here = 1.5, decay, (1.0 + u) * decay
    else:
        start, below, here = 2.0, u * kve(1, u) * decay, 0.5 * u * u * kve(2, u) * decay
    if mu < start:
        return below
    for nu in np.arange(start, mu):
        below, here = here, here + u * u / (4.0 * nu * (nu - 1.0)) * below
    return here


@lru_cache(maxsize=64)
def matern_table(mu: float) -> RadialTable:
    """M_mu as a table in s = u^2."""
    octaves = np.arange(2, 40)
    gone = matern_function(np.sqrt(np.ldexp(1.0, octaves)), mu) < _END
    return tabulate(lambda s: matern_function(np.sqrt(s), mu), 1.0, int(octaves[np.argmax(gone)]), 1.0)
