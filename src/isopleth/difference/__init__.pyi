from .cross_validation import DifferenceSearchPath as DifferenceSearchPath
from .kde_difference import KDEDifference as KDEDifference
from .lsdd import LSDD as LSDD
