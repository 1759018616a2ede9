"""Tasks: anomalies, two-sample tests, goodness of fit, drift, change points and class priors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
