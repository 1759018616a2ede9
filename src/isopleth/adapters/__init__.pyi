# The public names, for type checkers and for `__init__.py`, which imports each of them when it is first used.
from .pyod import PyODAdapter as PyODAdapter
from .quapy import QuaPyAdapter as QuaPyAdapter
from .river import RiverAnomalyDetector as RiverAnomalyDetector
from .river import RiverDriftDetector as RiverDriftDetector
from .skchange import SkchangeAdapter as SkchangeAdapter
from .sktime import SktimeAdapter as SktimeAdapter
