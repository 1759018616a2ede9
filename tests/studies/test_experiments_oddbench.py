"""The board of OddBench's tables with a clean reference."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments import adbench_methods, oddbench, probabilities


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "oddbench").mkdir()
    for name in "abcde":
        X = rng.normal(size=(60, 3))
        X[:6] += 6.0
        np.savez(
            tmp_path / "oddbench" / f"{name}.npz", train=rng.normal(size=(50, 3)), test=X, test_labels=np.arange(60) < 6
        )
    (tmp_path / "oddbench" / "first57.txt").write_text("b\n")
    return tmp_path


def test_halves_are_disjoint_and_leave_out_tables_that_were_given_before(folder):
    halves = [[path.stem for path in oddbench.tables(folder, half)] for half in oddbench.HALVES]
    assert halves == [list("abcde"), ["a", "d"], ["c", "e"]]


def run(monkeypatch, out, *arguments):
    """Run the command, and return the lines of its file."""
    monkeypatch.setattr(sys, "argv", ["oddbench", "--out", str(out), *arguments])
    oddbench.main()
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_goes_on_and_the_page_compares_methods(folder, monkeypatch, capsys):
    monkeypatch.setitem(adbench_methods.OWN, "isopleth", adbench_methods.OWN[adbench_methods.FAST])
    out, data = folder / "out.csv", ["--data", str(folder), "--every", "2"]
    first = run(monkeypatch, out, *data, "--methods", "5-NN", "--seeds", "1", "2")
    again = run(monkeypatch, out, *data, "--methods", "5-NN", "isopleth", "--most", "40", "--seeds", "1")
    assert again[: len(first)] == first
    assert len(again) == 2 * len(first) == 6  # a method without chance is run once
    assert all(float(line["auc"]) > 0.95 for line in again)
    run(monkeypatch, out, "--page", str(out))
    said = capsys.readouterr().out
    assert "3 tables" in said
    assert said.count("5-NN") == 1
    leads = [float(b["auc"]) - float(a["auc"]) for a, b in zip(first, again[3:], strict=True)]
    assert f"{100 * np.mean(leads):+.1f} ({100 * np.std(leads, ddof=1) / 3**0.5:.1f})" in said


def test_a_file_of_ten_lines_enters_the_board_and_failures_are_named(folder, monkeypatch, capsys):
    own = Path(oddbench.__file__).parent / "own_method.py"
    assert len(own.read_text().splitlines()) <= 12
    (folder / "broken.py").write_text("def half(train, test, seed):\n    return test[:3, 0]\n")
    methods = [f"{own}:mixture", f"{folder / 'broken.py'}:half", f"{own}:missing", "unknown"]
    arguments = ["--data", str(folder), "--half", "kept", "--methods", *methods]
    lines = run(monkeypatch, folder / "out.csv", *arguments, "--seeds", "1", "2")
    found = {line["method"]: line for line in lines}
    assert set(found) == {"mixture", "half"}
    assert len(lines) == 2 * 2 * 2
    assert float(found["mixture"]["auc"]) > 0.95
    assert found["half"]["failure"].startswith("ValueError")
    run(monkeypatch, folder / "out.csv", "--page", str(folder / "out.csv"))
    said = capsys.readouterr()
    assert "half failed on c: ValueError" in said.out
    assert "has no function missing" in said.err
    assert "unknown: expected FILE.py:FUNCTION or one of" in said.err


def test_probabilities_of_labelled_and_of_ordinary_rows(folder, monkeypatch, capsys):
    monkeypatch.setattr(probabilities, "JUDGED", 20)
    out = str(folder / "p.csv")
    for arguments in (["--data", str(folder), "--tables", "2", "--out", out], ["--page", out]):
        monkeypatch.setattr(sys, "argv", ["probabilities", *arguments])
        probabilities.main()
    said = capsys.readouterr().out
    assert "2 tables of OddBench" in said
    assert "0.00 to 0.05" in said
    assert "2 tables, 20 ordinary rows each" in said
