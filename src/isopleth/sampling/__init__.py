"""Markov chains that draw from fitted densities and scores, and diagnostics of their convergence."""

from isopleth.sampling.chains import Chains
from isopleth.sampling.diagnostics import effective_sample_size, r_hat, tail_effective_sample_size
from isopleth.sampling.run import sample
from isopleth.sampling.target import Target

__all__ = [
    "Chains",
    "Target",
    "effective_sample_size",
    "r_hat",
    "sample",
    "tail_effective_sample_size",
]
