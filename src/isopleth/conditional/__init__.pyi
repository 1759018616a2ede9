from .estimator import ConditionalDensity as ConditionalDensity
from .imputer import DensityImputer as DensityImputer
