"""Tables as people have them, one kind of trouble at a time: each is used, left out with a note, or refused in one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli import shell
from cli.shell import refused
from isopleth.io import load

N = 60


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.normal(size=N).round(3), "word": rng.choice(["u", "v"], N)})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


def run(path, *options):
    """Fit a density to a table, score the table by it, and make rows like it."""
    folder = path.parent
    fit = shell.run("fit", path, "--out", folder / "m", *options)
    if fit.exit_code:
        assert fit.exit_code == 2, fit.output
        assert fit.stderr.count("\n") == 1
        return fit.stderr
    score = shell.run("score", folder / "m", path, "--out", folder / "o.csv")
    assert score.exit_code == 0, score.output
    assert np.isfinite(pd.read_csv(folder / "o.csv")["log_density"]).all()
    sample = shell.run("sample", path, "-n", 20, "--out", folder / "s.csv", *options)
    assert sample.exit_code == 0, sample.output
    assert sample.stderr == fit.stderr
    return fit.stderr


def write(path, frame):
    frame.to_csv(path, index=False)


def test_a_row_without_values_is_left_out(path):
    write(path, numbers())
    path.write_text(path.read_text() + ",\n")
    told = run(path)
    assert "warning: rows without a known cell are left out: 1." in told


def test_a_category_with_one_level_is_left_out_and_with_gaps_is_used(path):
    write(path, numbers().assign(one="x"))
    assert "left out: one (one value only)" in run(path)
    frame = numbers().assign(one="x")
    frame.loc[::2, "one"] = None
    write(path, frame)
    assert run(path) == ""
    assert "one" in load(path.parent / "m").feature_names_in_
    made = pd.read_csv(path.parent / "s.csv")
    assert set(made["one"].dropna()) <= {"x"}


@pytest.mark.parametrize("levels", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_levels(path, levels):
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(levels)]
    frame = pd.DataFrame({"a": rng.normal(size=2 * levels).round(3), "word": words + words})
    write(path, frame)
    told = run(path, "--size", "100")
    assert f"the density is fitted to 100 of {2 * levels:,} rows" in told
    assert set(pd.read_csv(path.parent / "s.csv")["word"]) <= set(words)


def test_other_words_that_mean_missing(path):
    cells = [str(v) for v in np.arange(1.5, N + 1)]
    cells[3] = "gone"
    write(path, numbers().assign(b=cells))
    assert "'b' holds 'gone'" in run(path)
    frame = pd.read_csv(path)
    frame["word"] = frame["word"].replace("u", "none said")
    write(path, frame)
    made = shell.run("sample", path, "-n", 40, "--out", path.parent / "s.csv", "--missing", "gone,none said")
    assert made.exit_code == 0, made.output
    assert set(pd.read_csv(path.parent / "s.csv")["word"].dropna()) == {"v"}


def test_what_an_estimator_refuses_of_rows_and_labels_names_file_and_column(path):
    path.write_text("a,b\n" + "1,2\n" * 4)
    for more in (
        ["anomalies"],
        ["fit", "--out", path.parent / "m"],
        ["sample", "-n", "3", "--out", path.parent / "o.csv"],
    ):
        assert refused(more[0], path, *more[1:]).startswith(f"isopleth: {path}: all rows of the table are equal")
    numbers().to_csv(path, index=False)
    assert f"{path}: column 'a' has the class '" in shell.run("prior", path, path, "--target", "a").stderr
