"""The study of anomalies in tables with words and gaps: tasks, encodings, what is printed."""

import numpy as np
import pandas as pd
import pytest
from experiments import mixed_anomalies as study


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"word": rng.choice(["a", "b", None], size=300), "x": rng.normal(size=300)})
    X.loc[::9, "x"] = np.nan
    return X.assign(target=["usual"] * 200 + ["other"] * 100)


def test_tasks_have_one_class_and_a_few_others(table):
    X, y = study.task(table, "usual", 0)
    assert X.columns.tolist() == ["word", "x"]
    assert (len(y), y.sum()) == (210, 10)
    assert not study.task(table, "usual", 1)[0].equals(X)


def test_the_tables_are_printed(table, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    (tmp_path / "mixed").mkdir()
    (tmp_path / "adbench").mkdir()
    for name in ("one", "two"):
        table.to_csv(tmp_path / "mixed" / f"{name}.csv", index=False)
        y = np.arange(150) < 10
        np.savez(tmp_path / "adbench" / f"1_{name}.npz", X=rng.normal(size=(150, 4)) + 6.0 * y[:, None], y=y)
    monkeypatch.setattr(study, "ORDINARY", {"one": "usual", "two": "usual"})
    study.words(tmp_path, 1)
    study.gaps(tmp_path, 1)
    printed = capsys.readouterr().out
    assert "IForest" in printed
    mean = next(line for line in printed.splitlines() if line.startswith("isopleth, complete"))
    assert float(mean.split()[2]) > 95.0


def test_a_clean_reference_has_half_of_the_ordinary_rows_and_scores_all_others(table):
    X, y = study.task(table, "usual", 0)
    X.loc[y == 1, "x"] += 50.0
    found, asked = study.scored_by_reference(X, y == 0, 0)
    assert len(asked) == 110
    assert (y[asked] == 1).sum() == 10
    for scores in found.values():
        assert scores[y[asked] == 1][:3].mean() > np.median(scores)
