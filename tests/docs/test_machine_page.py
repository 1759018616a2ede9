"""The page for language models lists what the reference lists."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the pages are not beside an installed package")


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("machine_page", DOCS / "_ext" / "machine_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_and_command_has_one_line(module):
    lines = module.page(DOCS, "A tagline.").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    names = [name for names in module.listed(DOCS).values() for name in names]
    assert len(names) > 100
    for name in names:
        (line,) = [line for line in entries if line.startswith(f"- [{name}](")]
        assert len(line.partition("): ")[2]) > 10
    assert any(line.startswith("- [isopleth anomalies](") for line in entries)
    assert ":class:" not in "".join(entries)
    assert len(entries) == len(names) + len(module.commands())
