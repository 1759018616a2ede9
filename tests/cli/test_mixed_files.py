"""Tables with words, times and missing cells in the commands for anomalies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.shell import fine, run
from cli.shell import rows_of as lines
from isopleth import AnomalyDetector, load

N = 120


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "order_no": np.arange(1000, 1000 + N),
            "colour": rng.choice(["red", "blue"], size=N, p=[0.8, 0.2]),
            "price": rng.normal(20, 3, size=N).round(2),
            "paid": rng.random(N) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, size=N), unit="D"),
            "weight": rng.normal(5, 1, size=N).round(3),
        }
    )
    X.loc[7, "colour"] = "purple"
    X.loc[9, "price"] = 95.0
    X.loc[::6, "weight"] = np.nan
    X.loc[3, "colour"] = None
    return X


@pytest.fixture
def file(tmp_path, table):
    path = tmp_path / "orders.csv"
    table.to_csv(path, index=False)
    return path


SUMMARY = (
    "isopleth: {}: 120 rows: 2 numbers, 2 categories, 1 time; left out: order_no (identifier); "
    "21 missing cells in 2 columns\n"
)


def test_a_table_with_words_and_gaps(file, tmp_path):
    result = fine("anomalies", file, "--explain", "--top", 4, "--out", tmp_path / "o.csv", "--plot", tmp_path / "o.png")
    assert result.stderr == SUMMARY.format(file)
    assert "colour purple (red is usual" in result.stdout
    assert "price 95 (" in result.stdout
    rows = lines(tmp_path / "o.csv")
    assert len(rows) == N
    assert rows[7]["line"] == "9"
    assert (rows[7]["explained_by"], rows[7]["usual"]) == ("colour", "red")
    assert {row["label"] for row in (rows[7], rows[9])} == {"1"}
    assert (tmp_path / "o.png").stat().st_size > 0


def test_the_scores_are_those_of_the_detector(file, table, tmp_path):
    fine("anomalies", file, "--out", tmp_path / "o.csv")
    with pytest.warns(UserWarning, match="order_no"):
        detector = AnomalyDetector(random_state=0).fit(table)
    np.testing.assert_allclose([float(row["score"]) for row in lines(tmp_path / "o.csv")], detector.training_scores_)


def test_without_explanation_the_rarest_words_are_shown(file):
    shown = fine("anomalies", file, "--top", 4).stdout
    assert "price=95 " in shown
    assert "colour=purple" in shown


def test_saved_models_score_other_tables(file, table, tmp_path):
    fine("anomalies", file, "--save", tmp_path / "m.isopleth", "--out", tmp_path / "o.csv")
    assert load(tmp_path / "m.isopleth").schema_.names == ["colour", "price", "paid", "day", "weight"]
    new = table[["weight", "day", "colour", "price", "paid"]].copy()  # in another order
    new.loc[[0, 100], "colour"] = "pink"
    new.to_csv(tmp_path / "new.csv", index=False)
    result = fine("score", tmp_path / "m.isopleth", tmp_path / "new.csv", "--out", tmp_path / "s.csv")
    assert "'colour' (2)" in result.stderr
    again = fine(
        "score", tmp_path / "m.isopleth", tmp_path / "new.csv", "--out", tmp_path / "t.csv", "--chunk-rows", 50
    )
    assert again.stderr == result.stderr
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    before, after = lines(tmp_path / "o.csv"), lines(tmp_path / "s.csv")
    assert [row["score"] for row in before[1:100]] == [row["score"] for row in after[1:100]]
    assert float(after[0]["score"]) < float(before[0]["score"])
    result = fine("anomalies", tmp_path / "new.csv", "--model", tmp_path / "m.isopleth", "--explain")
    assert result.stderr.count("'colour' (2)") == 1
    assert "colour pink (red is usual" in result.stdout or "colour a new word" in result.stdout


def test_a_reference_with_words(file, table, tmp_path):
    table.iloc[20:].to_csv(tmp_path / "ordinary.csv", index=False)
    result = fine("anomalies", file, "--reference", tmp_path / "ordinary.csv", "--out", tmp_path / "o.csv")
    assert "100 rows: 2 numbers, 2 categories, 1 time" in result.stderr
    assert np.argmin([float(row["score"]) for row in lines(tmp_path / "o.csv")]) in (7, 9)


def test_refusals_name_columns_and_lines(file, table, tmp_path):
    fine("anomalies", file, "--save", tmp_path / "m.isopleth")
    broken = table.astype({"price": object})
    broken.loc[4, "price"] = "abc"
    broken.to_csv(tmp_path / "broken.csv", index=False)
    for more in ([], ["--model", tmp_path / "m.isopleth"]):
        assert (
            "price': 1 cell is no number and counts as missing: 'abc' in line 6; correct it"
            in fine("anomalies", tmp_path / "broken.csv", *more).stderr
        )
    out = tmp_path / "s.csv"
    result = run("score", tmp_path / "m.isopleth", tmp_path / "broken.csv", "--out", out, "--chunk-rows", 3)
    assert "holds 'abc' in line 6" in result.stderr
    assert not out.exists()
    result = run("anomalies", tmp_path / "broken.csv", "--bad-cells", "refuse")
    assert "column 'price' holds 'abc' in line 6, and nearly all other cells are numbers" in result.stderr
    fine("anomalies", tmp_path / "broken.csv", "--categorical", "price")
    fine("anomalies", tmp_path / "broken.csv", "--missing", "abc")
    table.drop(columns="paid").to_csv(tmp_path / "lack.csv", index=False)
    result = run("anomalies", tmp_path / "lack.csv", "--model", tmp_path / "m.isopleth")
    assert "lacks 'paid' of the columns that the model was fitted on" in result.stderr


def test_identifiers_are_kept_if_asked_for(file, tmp_path):
    for option in (["--keep-id"], ["--numeric", "order_no"]):
        fine("anomalies", file, *option, "--save", tmp_path / "m.isopleth")
        assert "order_no" in load(tmp_path / "m.isopleth").schema_.names


def test_times_that_are_all_later_than_those_of_the_reference_do_not_flag_every_row(table, tmp_path):
    """The saved model has no such column either, so that the rows of the month after are judged alike."""
    old, new, saved = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "m.isopleth"
    table[["day", "price", "weight"]].to_csv(old, index=False)
    later = table.assign(day=table["day"] + pd.Timedelta(days=400), price=table["price"].mask(table.index == 9, 20.0))
    later.to_csv(new, index=False)
    result = fine("anomalies", new, "--reference", old, "--save", saved, "--out", tmp_path / "o.csv")
    assert (
        "warning: columns left out: 'day' (nearly all times of one table are later than those of the other); "
        "--time-columns day uses them.\n"
    ) in result.stderr
    assert sum(row["label"] == "1" for row in lines(tmp_path / "o.csv")) < N / 5
    assert fine("anomalies", new, "--model", saved).stdout == result.stdout
    kept = fine("anomalies", new, "--reference", old, "--time-columns", "day")
    warning, first, *_ = kept.stdout.splitlines()
    assert warning == "Column 'day': nearly all times are later than those of the fit."
    assert first.startswith("120 of 120 new rows are certain: the table differs from the reference as a whole")
    assert "Column 'day' alone decides" in kept.stdout
    assert "nearly all times are later than those of the fit" in kept.stderr


def test_an_error_of_the_fit_names_the_reference(table, tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    table[["price", "weight"]].to_csv(new, index=False)
    table[["price", "weight"]].assign(price=1.0, weight=2.0).to_csv(old, index=False)
    assert f"{old}: all rows" in run("anomalies", new, "--reference", old).stderr
