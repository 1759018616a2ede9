"""The experiments on certificates, levels of p-values and false discoveries."""

import csv
import sys

import numpy as np
import pytest
from experiments import certificates, levels


def run(monkeypatch, module, *options):
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, options)])
    module.main()


def test_limits_count_planted_anomalies_and_a_run_goes_on(tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.csv"
    some = ("--out", out, "--rows", 200, "--laws", "normal, 3 columns", "groups of five")
    run(monkeypatch, certificates, *some, "--runs", 50)
    first = out.read_text()
    run(monkeypatch, certificates, *some, "--runs", 50)
    assert out.read_text() == first
    run(monkeypatch, certificates, "--out", out, "--rows", 60, "--laws", "normal, 3 columns", "--runs", 6, "--unsplit")
    with out.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["way"] != "nonconform"]
    assert [line["law"] for line in lines] == ["normal, 3 columns", "groups of five", "normal, 3 columns"]
    for line in lines[:2]:
        assert float(line["violations"]) <= 0.2
        assert float(line["limit"]) > float(line["violations"])
        assert 3 < float(line["mean"]) <= 11
        assert float(line["first 5"]) <= 5
    run(monkeypatch, certificates, "--page", out, "--picture", tmp_path / "limits.png")
    assert "200 reference rows: violations (limit), mean" in capsys.readouterr().out
    assert (tmp_path / "limits.png").stat().st_size > 10_000


def test_peers_limits_are_those_of_their_bounds():
    pytest.importorskip("nonconform")
    rng = np.random.default_rng(0)
    new = np.r_[np.full(10, 9.0), rng.normal(size=90)]
    found = certificates.theirs(rng.normal(size=500), new, 10)
    assert not found.false
    assert 4 <= found.limits[-1] <= 10


def test_levels_and_false_discoveries_are_shares(tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.csv"
    some = ("--out", out, "--runs", 4, "--fast", "--laws", "words and gaps", "normal, 3 columns")
    run(monkeypatch, levels, *some, "--rows", 60)
    run(monkeypatch, levels, *some, "--rows", 200, "--select")
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["law"] for line in lines] == ["words and gaps", "normal, 3 columns", "normal, 3 columns"]
    assert all(0.3 < float(line["value 0"]) < 1.9 for line in lines[:2])
    assert float(lines[2]["value 3"]) < 0.3  # false discoveries among many anomalies
    assert float(lines[2]["value 5"]) > 60
    run(monkeypatch, levels, "--page", out)
    assert "60 rows, 4 runs" in capsys.readouterr().out
    widest = {f"value {i}": "100" for i in range(6)}
    line = levels.page([{"part": "false discoveries", "law": "truth values", "rows": "60", "runs": "4", **widest}])
    assert len(line.splitlines()[-1].split()) == 2 + 6  # columns do not run together
