"""Models and interrupted runs in files; tables are in :mod:`isopleth.tables`.

Modules are imported when they are first used: checking a path needs none of them.
"""

import lazy_loader  # type: ignore[import-untyped]

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"models": ["load", "save"]})
