from .estimator import ConditionalDensity as ConditionalDensity
from .expected import ExpectedCells as ExpectedCells
from .expected import LawsGiven as LawsGiven
from .imputer import DensityImputer as DensityImputer
