"""``isopleth anomalies --explain``: why rows are unlikely, in the table that is printed and in the file."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from cli import shell
from cli.shell import rows_of
from isopleth import AnomalyDetector, load, save
from isopleth.cli import anomalies as explaining
from isopleth.conditional.binned_law import BinnedLaw

run = partial(shell.fine, "anomalies")

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(60, 3)), [[30.0, 0.0, 0.5]]])


def written(path, values, names):
    np.savetxt(path, values, delimiter=",", header=",".join(names), comments="")
    return path


@pytest.fixture
def file(tmp_path):
    """61 rows of which the last stands out in one column, behind a header."""
    return written(tmp_path / "table.csv", X, "abc")


def test_the_table_says_which_columns_and_what_would_be_better(file):
    result = run(file, "--explain", "--top", 4)
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.endswith("explained by")) + 1
    explanation = AnomalyDetector(random_state=0).fit(X).explain(X[60:])
    low, high = explanation.low[0, 0], explanation.high[0, 0]
    assert -3.0 < low < explanation.usual[0, 0] < high < 3.0  # the others are standard normal
    assert f"a 30 ({low:.6g} to {high:.6g} is usual" in lines[first]
    assert all(re.search(r"[abc] \S+ \(\S+( to \S+)? is usual", line) for line in lines[first : first + 4])
    assert lines[-1].startswith("explained by: ")
    assert "explained by" not in run(file, "--top", 4).stdout


def test_laws_of_columns_are_fitted_once_and_kept_where_rows_are_explained(file, tmp_path, monkeypatch):
    fitted, fit = [], BinnedLaw.fit_judging
    monkeypatch.setattr(BinnedLaw, "fit_judging", lambda *args: fitted.append(args[2]) or fit(*args))
    for option, kept in (("--explain", {"0", "1", "2"}), ("--quiet", set())):
        fitted.clear()
        run(file, option, "--save", tmp_path / "model")
        assert sorted(fitted) == [0, 1, 2]  # by the sentences about cells, and by the explanations
        assert load(tmp_path / "model")._reasons.laws.keys() == kept


def test_out_names_the_first_column_of_shown_and_flagged_rows(file, tmp_path):
    run(file, "--explain", "--top", 40, "--out", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == ["line", "score", "pvalue", "label", "certain", "explained_by", "usual", "excess"]
    detector = AnomalyDetector(random_state=0).fit(X)
    shown = detector.training_scores_.argsort()[:40]
    explanation = detector.explain(X[shown])
    for k, i in enumerate(shown):
        names = explanation.top()[k] if explanation.of_rare_kind(k) else explanation.top(1)[k]
        assert rows[i]["explained_by"] == " and ".join(
            name[-1].translate(str.maketrans("012", "abc")) for name in names
        )
        first = explanation.surprise(k).argmax()
        if names:
            assert float(rows[i]["excess"]) == explanation.excess[k, first]
            assert float(rows[i]["usual"]) == explanation.usual[k, first]
    assert any(explanation.of_rare_kind(k) for k in range(40))
    others = [row for i, row in enumerate(rows) if i not in shown and row["label"] == "0"]
    assert {(row["explained_by"], row["usual"], row["excess"]) for row in others} == {("", "nan", "nan")}


def test_flagged_rows_are_explained_though_none_is_shown(file, tmp_path):
    assert "rank" not in run(file, "--explain", "--top", 0, "--out", tmp_path / "out.csv").stdout
    rows = rows_of(tmp_path / "out.csv")
    assert [bool(row["explained_by"]) for row in rows] == [row["label"] == "1" for row in rows]
    assert rows[60]["label"] == "1"


def test_nothing_to_explain(tmp_path):
    quiet = written(tmp_path / "quiet.csv", np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (15, 1)), "ab")
    assert run(quiet, "--explain", "--top", 0, "--out", tmp_path / "out.csv").stdout.startswith("0 of 60")
    assert len(rows_of(tmp_path / "out.csv")) == 60


def test_new_rows_of_a_model_are_explained_by_its_columns(file, tmp_path):
    model = tmp_path / "model"
    run(file, "--save", model)
    (tmp_path / "new.csv").write_text("c,name,b,a\n0,x,25,0\n0,y,0,1\n")
    result = run(tmp_path / "new.csv", "--model", model, "--explain")
    assert result.stderr == ""
    assert re.search(r"  b 25 \(\S+ to \S+ is usual", result.stdout)


def test_most_flagged_rows_of_a_large_file_are_left_out_and_it_is_said(file, tmp_path, monkeypatch):
    run(file, "--save", tmp_path / "model")
    monkeypatch.setattr(explaining, "MOST_FLAGGED", 5)
    new = written(tmp_path / "new.csv", RNG.normal(size=(12, 3)) + 40.0, "abc")
    out = tmp_path / "out.csv"
    result = run(new, "--model", tmp_path / "model", "--explain", "--top", 2, "--out", out)
    assert result.stderr == (
        "isopleth: of 12 flagged rows the 5 least likely are explained; a larger --top explains more.\n"
    )
    assert sum(bool(row["explained_by"]) for row in rows_of(out)) == 5
    assert run(new, "--model", tmp_path / "model", "--explain", "--top", 2).stderr == ""  # the others are not shown
    assert run(new, "--model", tmp_path / "model", "--explain", "--top", 12, "--out", out).stderr == ""
    assert all(row["explained_by"] for row in rows_of(out))


def test_a_model_of_another_version_that_cannot_explain(file, tmp_path):
    run(file, "--save", tmp_path / "model")
    detector = load(tmp_path / "model")
    del detector._reasons
    save(detector, tmp_path / "older")
    result = shell.run("anomalies", file, "--model", tmp_path / "older", "--explain", "--top", 1)
    assert result.exit_code == 2
    assert result.stderr.endswith("older does not fit this version of isopleth: fit and save it again.\n")
