"""Exact kernel densities, scores and density differences for tables, and tasks that are built on them.

`__init__.pyi` lists the public names. Each is imported when it is first used, so that ``import isopleth`` takes no time.
"""

import lazy_loader

_import_public, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name != "io"]  # a star import must not hide the standard one


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("isopleth")
    return _import_public(name)
