"""The Python code in the README runs; tagline and version are the same wherever they stand."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not beside an installed package")


def test_the_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, {})
    assert (tmp_path / "detector.isopleth").exists()


def project() -> dict:
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version():
    assert f"version: {project()['version']}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()


def test_one_tagline():
    tagline = project()["description"]
    for page in (README, ROOT / "docs" / "index.rst"):
        lines = page.read_text(encoding="utf-8").splitlines()
        assert tagline in lines, f"{page.name} has another tagline"
