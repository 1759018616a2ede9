"""Exact kernel densities, scores and density differences for tables, and tasks that are built on them.

`__init__.pyi` lists the public names. Each is imported when it is first used, so that ``import isopleth`` takes no time.
"""

import lazy_loader

_import_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("isopleth")
    return _import_public(name)
