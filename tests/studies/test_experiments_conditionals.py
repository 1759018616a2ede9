"""The study of one column given the others."""

import numpy as np
import pandas as pd
import pytest
from experiments import conditionals


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    n = 100
    frame = pd.DataFrame({"x": rng.normal(size=n), "word": rng.choice(["a", "b"], n), "noise": rng.normal(size=n)})
    frame["y"] = 2.0 * frame["x"] + (frame["word"] == "b") + 0.3 * rng.normal(size=n)
    return conditionals.Task(frame[:70], frame[70:].reset_index(drop=True), "y")


@pytest.mark.parametrize("method", ["expect", "KDE", "kernel", "neighbours", "normal"])
def test_laws_are_sharper_than_the_column_by_itself_and_integrate_to_one(task, method):
    log_density, cdf = conditionals.METHODS[method](task)
    assert cdf.shape == (30, len(conditionals.GRID))
    np.testing.assert_allclose(cdf[:, -1], 1.0, atol=2e-3)
    found = conditionals.figures(task, method)
    assert found["crps"] < 0.7  # 1.1 by the column itself
    assert 0.3 <= found["coverage"] <= 1.0
    assert (log_density > -20.0).all()


def test_the_law_of_a_normal_regression_has_the_crps_of_its_formula(task):
    _, cdf = conditionals.by_normal(task)
    grid, truth = conditionals.GRID, task.test["y"].to_numpy()
    mean = np.array([np.interp(0.5, law, grid) for law in cdf])
    deviation = np.array([np.interp(0.841345, law, grid) for law in cdf]) - mean
    z = (truth - mean) / deviation
    known = deviation * (
        z * (2.0 * conditionals.norm.cdf(z) - 1.0) + 2.0 * conditionals.norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    )
    assert conditionals.figures(task, "normal")["crps"] == pytest.approx(known.mean(), abs=2e-3)


def test_results_are_resumed_and_shown(tmp_path):
    (tmp_path / "mixed").mkdir()
    rng = np.random.default_rng(0)
    x = rng.normal(size=80).round(3)
    pd.DataFrame({"a": x, "b": (x + rng.normal(size=80)).round(2)}).to_csv(
        tmp_path / "mixed" / "autos.csv", index=False
    )
    out = tmp_path / "found.csv"
    out.write_text(
        "table,seed,method,figure,value\n"
        + "".join(
            f"autos,0,{method},{figure},1\n" for method in ("forest", "SOSREP()") for figure in conditionals.FIGURES
        )
    )
    for _ in range(2):
        conditionals.run(tmp_path, out, ["autos"], [0])
    assert len(out.read_text().splitlines()) == 1 + len(conditionals.METHODS) * len(conditionals.FIGURES)
    page = conditionals.page(out)
    assert "1 tables of the reporting half: autos" in page
