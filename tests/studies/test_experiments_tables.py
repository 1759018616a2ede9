"""The studies of imputation and of made rows: they run, go on where they stopped, and measure what they say."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from experiments import imputation, made_rows, scores_of_tables


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    n = 90
    word = rng.choice(["u", "v"], n)
    x = rng.normal(size=n) + 2.0 * (word == "u")
    frame = pd.DataFrame(
        {
            "A1": word,
            "A2": x,
            "A3": 2 * x + 0.1 * rng.normal(size=n),
            "A4": rng.normal(size=n),
            "A5": rng.normal(size=n),
            "A6": rng.normal(size=n),
            "class": rng.choice(["+", "-"], n),
        }
    )
    (tmp_path / "mixed").mkdir()
    frame.mask(rng.uniform(size=frame.shape) < 0.02).to_csv(tmp_path / "mixed" / "credit_a.csv", index=False)
    return tmp_path


def lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_imputation_goes_on_and_makes_a_page(data, monkeypatch):
    out = data / "i.csv"
    monkeypatch.setattr(imputation, "OURS", {"SOSREP()": imputation.OURS["SOSREP()"]})
    monkeypatch.setattr(imputation, "OTHERS", {name: imputation.OTHERS[name] for name in ("KNNImputer", "means")})
    monkeypatch.setattr(
        imputation,
        "PARTS",
        {
            "errors": (imputation.errors, (0.1,), ["DensityImputer", "draws", "KNNImputer", "means"]),
            "densities": (imputation.densities, (0.3,), ["SOSREP()"]),
            "conditional": (imputation.conditional, (0.0,), ["SOSREP()"]),
        },
    )
    arguments = ["--data", str(data), "--out", str(out), "--tables", "credit_a", "--seeds", "0"]
    imputation.main(arguments)
    found = {(line["part"], line["method"], line["figure"]): float(line["value"]) for line in lines(out)}
    error = {
        method: found["errors", method, "error of numbers"] for method in ("DensityImputer", "KNNImputer", "means")
    }
    assert 0.0 < error["DensityImputer"] < error["means"]
    assert 0.5 < found["errors", "DensityImputer", "coverage"] <= 1.0
    assert 0.0 < found["errors", "draws", "MinMAE"] <= found["errors", "draws", "AvgMAE"]
    assert found["errors", "draws", "Wasserstein"] > 0.0
    assert np.isfinite(found["densities", "SOSREP()", "with gaps"])
    assert np.isfinite(found["conditional", "SOSREP()", "log density"])
    before = out.read_text()
    imputation.main(arguments)
    assert out.read_text() == before
    page = imputation.page(out)
    assert "share of wrong filled words, 10% missing" in page
    assert f"{error['KNNImputer']:.3f}" in page


def test_errors_of_fillings_are_counted_at_removed_cells_only():
    truth = pd.DataFrame({"x": [0.0, 2.0, 4.0, 6.0], "w": ["a", "b", "a", None]})
    asked = truth.mask(np.array([[True, False], [False, True], [False, False], [False, False]]))
    filled = pd.DataFrame({"x": [1.0, 9.0, 9.0, 9.0], "w": ["b", "b", "b", "b"]})
    found = imputation.judged(truth, asked, filled)
    assert found["error of numbers"] == pytest.approx(1.0 / truth["x"].std())
    assert found["wrong words"] == 0.0


def test_made_rows_are_judged(data):
    out = data / "m.csv"
    arguments = ["--data", str(data), "--out", str(out), "--tables", "credit_a", "--seeds", "0"]
    made_rows.main(
        [*arguments, "--methods", "SOSREP()", "the rows themselves", "bootstrap and noise", "Gaussian copula"]
    )
    found = {(line["method"], line["figure"]): float(line["value"]) for line in lines(out)}
    assert found["the rows themselves", "near"] == 1.0
    assert found["the rows themselves", "copies"] == 1.0
    assert found["SOSREP()", "copies"] < 0.1
    assert all(0.0 <= found[method, "accuracy"] <= 1.0 for method, _ in found)
    assert "processor seconds" in made_rows.page(out)


def test_scores_of_tables_go_on_and_make_a_page(tmp_path, capsys):
    (tmp_path / "adbench").mkdir()
    np.savez(tmp_path / "adbench" / "heavy.npz", X=np.random.default_rng(0).standard_t(3, size=(400, 3)))
    out = tmp_path / "s.csv"
    arguments = ["--data", str(tmp_path), "--out", str(out), "--rows", "200", "--methods"]
    scores_of_tables.main([*arguments, "fitted normal"])
    scores_of_tables.main([*arguments, "fitted normal", "Student t"])
    found = {line["method"]: float(line["loss"]) for line in lines(out)}
    assert len(lines(out)) == 2
    assert found["Student t"] < found["fitted normal"] < 0.0
    scores_of_tables.main(["--page", str(out)])
    assert "half, 1 tables" in capsys.readouterr().out
