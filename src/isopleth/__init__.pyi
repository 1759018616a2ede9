# The public names, for type checkers and for `__init__.py`, which imports each of them when it is first used.
from . import conditional as conditional
from . import datasets as datasets
from . import density as density
from . import difference as difference
from . import frames as frames
from . import io as io
from . import kernels as kernels
from . import operators as operators
from . import results as results
from . import sampling as sampling
from . import score as score
from . import solvers as solvers
from . import tasks as tasks
from .conditional import ConditionalDensity as ConditionalDensity
from .conditional import DensityImputer as DensityImputer
from .core import errors as errors
from .core.errors import DataWarning as DataWarning
from .core.errors import InputError as InputError
from .core.errors import MissingExtraError as MissingExtraError
from .density import KDE as KDE
from .density import SOSREP as SOSREP
from .density import RandomFeatureSOSREP as RandomFeatureSOSREP
from .density.search import Search as Search
from .difference import LSDD as LSDD
from .files.read import read_table as read_table
from .io import load as load
from .io import save as save
from .score import KernelScore as KernelScore
from .score import NystromKEF as NystromKEF
from .tasks import AnomalyDetector as AnomalyDetector
from .tasks import ChangePointDetector as ChangePointDetector
from .tasks import ClassPriorEstimator as ClassPriorEstimator
from .tasks import DriftMonitor as DriftMonitor
from .tasks import stein_test as stein_test
from .tasks import two_sample_test as two_sample_test

__version__: str
