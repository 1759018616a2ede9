"""Estimators in the conventions of other libraries: PyOD, QuaPy, river, skchange and sktime.

Each adapter inherits from a class of the other library, which is imported when the adapter is first used
(extra ``adapters``).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
