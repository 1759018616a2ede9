"""Examples are sought in modules other than tests; those that need an extra run where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

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


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Leave out the search of a file of tests for examples: it has none, and the search takes longer than its collection."""
    collectors = yield
    if not file_path.name.startswith("test_"):
        return collectors
    return [collector for collector in collectors if type(collector) is pytest.Module]
