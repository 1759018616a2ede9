"""The reference lists every public name, and every name that it lists exists."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import isopleth

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC = [
    "isopleth",
    "isopleth.adapters",
    "isopleth.density",
    "isopleth.difference",
    "isopleth.frames",
    "isopleth.io",
    "isopleth.kernels",
    "isopleth.score",
    "isopleth.torch",
    "isopleth.distributed",
    "isopleth.results",
    "isopleth.sampling",
    "isopleth.tasks",
]
EXTRA_OF = {
    "torch": "torch",
    "distributed": "dask",
    "adapters.PyODAdapter": "pyod",
    "adapters.QuaPyAdapter": "quapy",
    "adapters.RiverAnomalyDetector": "river",
    "adapters.RiverDriftDetector": "river",
    "adapters.SkchangeAdapter": "skchange",
    "adapters.SktimeAdapter": "sktime",
}

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the pages are not beside an installed package")


def listed() -> list[str]:
    """Return the entries of all autosummary directives on the pages of the reference."""
    names = []
    for page in sorted((DOCS / "reference").glob("*.rst")):
        for block in re.findall(r"\.\. autosummary::\n((?:   .*\n|\n)+)", page.read_text(encoding="utf-8") + "\n"):
            names += [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith(":")]
    return names


def resolve(name: str) -> object:
    """Return the object of a dotted name relative to the package; subpackages are imported on the way."""
    *path, last = name.split(".")
    return getattr(import_module(".".join(["isopleth", *path])), last)


def test_nothing_is_listed_twice():
    names = listed()
    assert len(names) > 80
    assert len(names) == len(set(names))


def test_listed_names_exist():
    for name in listed():
        extra = EXTRA_OF.get(name, EXTRA_OF.get(name.split(".")[0]))
        if extra is None or find_spec(extra) is not None:
            assert resolve(name).__doc__, name


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_listed(module):
    if module.removeprefix("isopleth.") in EXTRA_OF:
        pytest.importorskip(EXTRA_OF[module.removeprefix("isopleth.")])
    entries = listed()
    # A name of the package itself is listed under that name only.
    at_top = {name for name in isopleth.__all__ if not isinstance(getattr(isopleth, name), ModuleType)}
    prefix = module.removeprefix("isopleth").lstrip(".")
    names = at_top if module == "isopleth" else import_module(module).__all__
    for name in names:
        entry = f"{prefix}.{name}" if prefix and name not in at_top else name
        assert entry in entries, f"{module}.{name} is on no page in docs/reference"


def test_every_page_of_the_reference_is_in_its_table():
    table = (DOCS / "reference.rst").read_text(encoding="utf-8")
    for page in (DOCS / "reference").glob("*.rst"):
        assert f"reference/{page.stem}\n" in table
