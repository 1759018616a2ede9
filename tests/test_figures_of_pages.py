"""Figures of pages: each file of results has a record of its command and version, and the README says what the files say."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not beside an installed package")

NUMBER = re.compile(r"\d*\.\d+|\d+")


def records() -> dict[str, dict]:
    return json.loads((ROOT / "docs" / "figures.json").read_text(encoding="utf-8"))


def measured_rows() -> list[str]:
    text = README.read_text(encoding="utf-8")
    table = text[text.index("## What was measured") :]
    return [line for line in table.splitlines() if line.startswith("| [")]


def test_each_file_of_results_has_a_record_and_stands_on_a_page():
    files = {path.name for path in (ROOT / "docs").glob("*_results.txt")}
    assert files == set(records())
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.rst"))
    shown = set(re.findall(r"^ *\.\. measured:: (?:\.\./)?(\w+_results\.txt)$", pages, re.MULTILINE))
    assert shown == files


def minor(version: str) -> list[str]:
    return version.split(".")[:2]


@pytest.mark.parametrize("name", records() if README.exists() else [])
def test_records_are_of_this_minor_version_or_say_why_not(name):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    record = records()[name]
    assert (minor(record["version"]) != minor(version)) == bool(record.get("reason"))


@pytest.mark.parametrize("name", records() if README.exists() else [])
def test_commands_name_modules_that_exist(name):
    for step in records()[name]["command"].split(" && "):
        module = re.match(r"python -m ([\w.]+)", step)[1]
        assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("row", measured_rows() if README.exists() else [])
def test_figures_of_the_readme_are_those_of_the_files(row):
    name = re.search(r"\(docs/(\w+_results\.txt)\)", row)[1]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    known = {float(number) for number in NUMBER.findall((ROOT / "docs" / name).read_text(encoding="utf-8"))}
    figures = [float(number) for cell in row.split("|")[2:] for number in re.findall(r"\d*\.\d+", cell)]
    assert figures
    assert set(figures) <= known
    said = re.search(r"\(version ([\d.]+)\)", row)
    assert (said[1] if said else version) == records()[name]["version"]


# Paragraphs beneath these also quote published figures, ratios and lines of measured ones, and other runs.
WITH_OTHERS = {
    f"{name}_results.txt"
    for name in (
        "change_points",
        "class_prior_made_up",
        "coming_from",
        "consistency",
        "drift_anytime",
        "lsdd_intervals",
        "scale",
        "two_samples_mixed",
        "two_samples_power",
    )
}


def guides() -> list[tuple[str, str, str]]:
    """Each block of results with the paragraph that follows it: page, file of results, paragraph."""
    found = []
    for path in sorted((ROOT / "docs").rglob("*.rst")):
        parts = re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
        for block, paragraph in itertools.pairwise(parts):
            name = re.match(r"\s*\.\. measured:: (?:\.\./)?(\w+_results\.txt)", block)
            if name and name[1] not in WITH_OTHERS and not paragraph.lstrip().startswith(".."):
                found.append((path.stem, name[1], paragraph))
    return found


@pytest.mark.parametrize(("page", "name", "paragraph"), guides() if README.exists() else [])
def test_the_paragraph_beneath_a_table_says_what_the_table_says(page, name, paragraph):
    """A paragraph that names a command of its own is of other figures."""
    if "python -m" in paragraph or "``--" in paragraph:
        return
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    known = {abs(float(number)) for number in NUMBER.findall(text)}
    for figure in re.findall(r"(?<![\w.])\d*\.\d+(?![\w.])", re.sub(r":\w+:`[^`]*`|``[^`]*``", "", paragraph)):
        digits = len(figure.partition(".")[2])
        assert any(round(number, digits) == float(figure) for number in known), (page, figure)
