"""Examples of modules that need an extra run where it is installed."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDS = {
    "isopleth/torch/*": "torch",
    "isopleth/distributed/dask*": "dask",
    "isopleth/distributed/answers*": "dask",
    "isopleth/distributed/fitting*": "dask",
}

collect_ignore_glob = [pattern for pattern, package in _NEEDS.items() if find_spec(package) is None]
