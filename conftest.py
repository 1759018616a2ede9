"""Examples of modules that need an extra run where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDS = {
    "src/isopleth/adapters/pyod*": "pyod",
    "src/isopleth/adapters/quapy*": "quapy",
    "src/isopleth/adapters/river*": "river",
    "src/isopleth/adapters/skchange*": "skchange",
    "src/isopleth/adapters/sktime*": "sktime",
    "src/isopleth/torch/*": "torch",
    "src/isopleth/distributed/dask*": "dask",
    "src/isopleth/distributed/answers*": "dask",
    "src/isopleth/distributed/fitting*": "dask",
}

# A search for examples would import the settings of several folders by one name.
collect_ignore_glob = ["tests/*/conftest.py", *(name for name, package in _NEEDS.items() if find_spec(package) is None)]
