"""Studies whose table has the form of a file: a quick run prints what it writes, a line for each of its cases."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

pytest.importorskip("experiments", reason="the studies are not beside an installed package")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process")
# Module, its arguments beside --quick, its number of lines, and a word in them.
STUDIES = [
    pytest.param("distributed", [], None, "1,000,000,000", marks=pytest.mark.slow),
    pytest.param("files", [], 3, "fit", marks=[pytest.mark.slow, LINUX]),
    pytest.param("random_features", ["--exact"], "CASES", "", marks=[]),
    pytest.param("score_theory", ["--runs", "1"], None, "of theory", marks=pytest.mark.slow),
    pytest.param("streamed_fits", [], 5, "", marks=pytest.mark.slow),
    pytest.param("tensors", [], "CASES", "", marks=[]),
]


@pytest.mark.parametrize(("name", "arguments", "lines", "word"), STUDIES)
def test_a_quick_run_prints_what_it_writes(name, arguments, lines, word, tmp_path, capsys):
    for library in {"distributed": ["dask.array", "distributed"], "tensors": ["torch"]}.get(name, []):
        pytest.importorskip(library)
    module, out = import_module(f"experiments.{name}"), tmp_path / "table.txt"
    module.main(["--quick", *arguments, "--out", str(out)])
    written = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() == written.strip()
    assert word in written
    if lines is not None:
        assert len(written.splitlines()) == (2 + len(module.CASES) if lines == "CASES" else lines)
    if name == "tensors":
        assert all(
            float(line.split()[-2]) > 0.0 and float(line.split()[-1]) < 1e-9 for line in written.splitlines()[2:]
        )


# Module, and the tables of settings that are cut to one setting each.
TABLES = [
    ("stein_test", "3", {"LEVEL": None, "POWER": None, "FITTED": None}),
    ("two_sample_level", "2", {"SETTINGS": "NAMED"}),
]
TABLES += [("two_sample_mixed", "20", {"NULL": None, "POWER": "gaps from 10 % to 25 %"})]


@pytest.mark.parametrize(("name", "runs", "settings"), TABLES)
def test_few_runs_of_one_setting_print_what_they_write(name, runs, settings, monkeypatch, tmp_path, capsys):
    module, out = import_module(f"experiments.{name}"), tmp_path / "table.txt"
    for table, one in settings.items():
        known = getattr(module, table)
        one = next(iter(known)) if one is None else getattr(module, one, one)
        monkeypatch.setattr(module, table, {one: known[one]})
    module.main(["--runs", runs, "--out", str(out)])
    assert out.read_text() == capsys.readouterr().out
    assert all(next(iter(getattr(module, table))) in out.read_text() for table in settings)
