"""Markov chains that draw from fitted densities and scores, and diagnostics of their convergence."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
