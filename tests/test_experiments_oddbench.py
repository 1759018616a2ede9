"""The board of OddBench's tables with a clean reference, and the experiment on certificates."""

import csv
import sys

import numpy as np
import pytest
from experiments import certificates, oddbench


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in "abcde":
        X = rng.normal(size=(60, 3))
        X[:6] += 6.0
        np.savez(tmp_path / f"{name}.npz", train=rng.normal(size=(50, 3)), test=X, test_labels=np.arange(60) < 6)
    (tmp_path / "first57.txt").write_text("b\n")
    return tmp_path


def test_halves_are_disjoint_and_leave_out_tables_that_were_given_before(folder):
    halves = [[path.stem for path in oddbench.tables(folder, half)] for half in oddbench.HALVES]
    assert halves == [list("abcde"), ["a", "d"], ["c", "e"]]


def test_a_run_goes_on_and_the_page_compares_methods(folder, monkeypatch, capsys):
    out = folder / "out.csv"

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["oddbench", "--data", str(folder), "--out", str(out), *more])
        oddbench.main()
        with out.open(newline="") as file:
            return list(csv.DictReader(file))

    first = run("--methods", "5-NN")
    again = run("--methods", "5-NN", "isopleth", "--most", "40")
    assert again[: len(first)] == first
    assert len(again) == 2 * len(first) == 10
    assert all(float(line["auc"]) > 0.95 for line in again)
    monkeypatch.setattr(sys, "argv", ["oddbench", "--page", str(out)])
    oddbench.main()
    said = capsys.readouterr().out
    assert "5 tables" in said
    assert said.count("5-NN") == 1


def test_certificates_count_planted_anomalies_and_levels_are_shares(tmp_path, monkeypatch, capsys):
    out = tmp_path / "found.csv"
    for more in (["--runs", "60", "--rows", "200"], ["--levels", "--runs", "5", "--rows", "60"], ["--page", str(out)]):
        monkeypatch.setattr(
            sys, "argv", ["certificates", "--out", str(out), "--laws", "rounded", "words and gaps", *more]
        )
        certificates.main()
    with out.open(newline="") as file:
        lines = {(line["part"], line["law"]): line for line in csv.DictReader(file)}
    assert len(lines) == 3  # anomalies of words are not made
    found = lines["certificates", "rounded"]
    assert float(found["value 0"]) <= 0.15
    assert float(found["value 1"]) > float(found["value 0"])  # its upper limit
    assert float(found["value 2"]) >= 3
    assert 0.4 < float(lines["levels", "words and gaps"]["value 0"]) < 1.6
    assert "60 runs; reference rows: 200" in capsys.readouterr().out
