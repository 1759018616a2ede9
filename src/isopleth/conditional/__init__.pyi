from .estimator import ConditionalDensity as ConditionalDensity
