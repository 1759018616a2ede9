"""``isopleth expect`` and ``isopleth fill`` on a small file with identifiers, words, truth values, dates and gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.shell import fine, refused, run
from cli.shell import found as as_json
from isopleth import DensityImputer, read_table

N = 150


@pytest.fixture
def rides(tmp_path):
    """Bikes do 18 km/h and cars 60; each tenth speed and each twentieth kind is missing."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["bike", "car"], N)
    whole = pd.DataFrame(
        {
            "ride_id": np.arange(N),
            "kind": kind,
            "speed": rng.normal(np.where(kind == "car", 60.0, 18.0), 4.0).round(1),
            "wet": rng.random(N) < 0.3,
            "day": pd.date_range("2024-01-01", periods=N, freq="D").astype(str),
        }
    )
    gaps = whole.copy()
    gaps.loc[::10, "speed"] = np.nan
    gaps.loc[5::20, "kind"] = None
    gaps.to_csv(tmp_path / "rides.csv", index=False)
    return tmp_path / "rides.csv", whole


def test_what_to_expect_of_cars(rides):
    result = run("expect", rides[0], "--given", "kind=car,wet=true")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "Given kind = car and wet = true, by the laws of 142 of 150 rows; each column by itself."
    assert lines[2].split() == ["column", "expected", "low", "high", "probability", "or"]
    day = lines[4].split()
    assert day[0] == "day"
    assert [len(end) for end in day[1:]] == [len("2024-01-01")] * 3  # without a clock, which no day of the table has
    found = as_json("expect", rides[0], "--given", "kind=car")
    rows = {row["column"]: row for row in found["table"]}
    assert rows.keys() == {"speed", "wet", "day"}
    assert 45.0 < rows["speed"]["low"] < 58.0 < rows["speed"]["expected"] < 62.0 < rows["speed"]["high"] < 75.0
    assert (rows["wet"]["expected"], rows["wet"]["low"]) == (False, None)
    assert rows["speed"]["low"] == round(rows["speed"]["low"], 1)  # the decimals of the column
    assert rows["day"]["low"] < rows["day"]["expected"] < rows["day"]["high"]
    assert 0.55 < rows["wet"]["probability"] < 0.85
    narrow = as_json("expect", rides[0], "--given", "kind=car", "--confidence-level", "0.5")
    assert rows["speed"]["low"] < narrow["table"][0]["low"] < narrow["table"][0]["high"] < rows["speed"]["high"]


def test_words_are_expected_with_their_probabilities(rides):
    found = as_json("expect", rides[0], "--given", "speed=60")
    assert found["probabilities"]["kind"]["car"] > 0.95
    assert sum(found["probabilities"]["kind"].values()) == pytest.approx(1.0)
    assert found["given"] == {"speed": 60.0}


def test_values_of_several_options_are_all_known(rides):
    found = as_json("expect", rides[0], "--given", "kind=car", "--given", "wet=true")
    assert found["given"] == {"kind": "car", "wet": "true"}


def test_columns_of_arrays_have_the_names_of_the_file(tmp_path):
    x = np.random.default_rng(0).normal(size=60)
    np.save(tmp_path / "x.npy", np.column_stack([x, 2.0 * x + 0.1]))
    row = as_json("expect", tmp_path / "x.npy", "--given", "x1=1")["table"][0]
    assert row["column"] == "x2"
    assert row["low"] < 2.1 < row["high"]


def test_values_that_cannot_be_given(rides):
    assert "'speed' holds numbers; expected one" in run("expect", rides[0], "--given", "speed=fast").stderr
    assert (
        "'speed' holds numbers; expected one such as 3.5, with a point"
        in run("expect", rides[0], "--given", "speed=2,5").stderr
    )
    assert "names column 'nose', which is not used" in run("expect", rides[0], "--given", "nose=1").stderr
    assert "write a column and one value" in run("expect", rides[0], "--given", "speed>3").stderr
    assert "with a point, and no unit or range" in run("expect", rides[0], "--given", "speed=3-5").stderr
    assert (
        "'2024-13-01' in a given value; expected a time" in run("expect", rides[0], "--given", "day=2024-13-01").stderr
    )
    refused = run("expect", rides[0], "--given", "kind=kar")
    assert refused.exit_code == 2
    assert "--given kind=kar: column 'kind' has no such word; did you mean 'car'?" in refused.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("speed=200", "speed = 200 is beyond all rows, whose values are from"),
        ("day=2019-05-01", "day = 2019-05-01 is beyond all rows, whose values are from 2024-01-01 to 2024-05-29"),
        ("speed=18,day=2024-01-01,wet=false", ""),
    ],
)
def test_values_beyond_all_rows_are_said(rides, given, said):
    result = run("expect", rides[0], "--given", given)
    assert result.exit_code == 0
    assert said in " ".join(result.stdout.split())
    assert ("extrapolates" in result.stdout) == bool(said)
    assert bool(as_json("expect", rides[0], "--given", given)["beyond"]) == bool(said)


def test_gaps_are_filled_and_known_cells_stay(rides, tmp_path):
    path, whole = rides
    result = run("fill", path, "--out", tmp_path / "filled.csv", "--interval")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("23 missing cells of 150 rows were filled, in 2 of 4 columns.")
    filled, gaps = pd.read_csv(tmp_path / "filled.csv"), pd.read_csv(path)
    assert list(filled.columns) == [*whole.columns, "speed_low", "speed_high"]
    for name in whole.columns:
        known = gaps[name].notna()
        assert (filled[name][known].astype(str) == gaps[name][known].astype(str)).all()
    assert (filled["kind"] == whole["kind"]).mean() > 0.99
    lost = gaps["speed"].isna()
    assert (filled["speed"] - whole["speed"])[lost].abs().max() < 15.0
    assert filled["speed"].round(1).equals(filled["speed"])  # the decimals that the column has
    inside = (filled["speed_low"] <= whole["speed"]) & (whole["speed"] <= filled["speed_high"])
    assert inside[lost].mean() >= 0.8  # 12 of the 15


def test_ends_of_intervals_are_recorded_as_the_column_is_and_lose_no_such_value(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    made = pd.DataFrame({"x": x.round(3), "rides": (50.0 + 10.0 * x + rng.normal(size=100)).round()})
    made["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(made["rides"], unit="D")
    made.loc[3, ["rides", "day"]] = None
    made.to_csv(tmp_path / "days.csv", index=False)
    assert run("fill", tmp_path / "days.csv", "--out", tmp_path / "filled.csv", "--interval").exit_code == 0
    row = pd.read_csv(tmp_path / "filled.csv", dtype=str).loc[3]
    table = read_table(tmp_path / "days.csv")
    low, high = DensityImputer().fit(table).impute_interval(table)
    ends = low.column("rides")[3].as_py(), high.column("rides")[3].as_py()
    recorded = float(row["rides_low"]), float(row["rides_high"])
    assert recorded == tuple(np.rint(ends))
    assert {n for n in range(200) if ends[0] <= n <= ends[1]} <= {
        n for n in range(200) if recorded[0] <= n <= recorded[1]
    }
    for end, exact in (("day_low", low), ("day_high", high)):
        assert abs(pd.Timestamp(row[end]) - exact.column("day")[3].as_py()) <= pd.Timedelta(hours=12)
    assert {pd.Timestamp(row[end]).time() for end in ("day", "day_low", "day_high")} == {pd.Timestamp(0).time()}


def test_whole_numbers_are_filled_by_whole_numbers(tmp_path):
    rows = [f"{20 + i % 30 if i % 9 else ''},{40 + 2 * (i % 30) + i % 4}" for i in range(60)]
    (tmp_path / "ages.csv").write_text("age,size\n" + "\n".join(rows) + "\n")
    result = run("fill", tmp_path / "ages.csv", "--interval", "--out", "-")
    assert (result.exit_code, "." in result.stdout) == (0, False)


def test_a_table_without_gaps_is_written_as_it_is(tmp_path):
    path = tmp_path / "whole.csv"
    path.write_text("a,b\n1,x\n2,y\n3,x\n")
    assert run("fill", path, "--out", tmp_path / "same.csv").stdout.startswith("0 missing cells of 3 rows were filled")
    assert (tmp_path / "same.csv").read_text() == path.read_text()
    assert "same file" in refused("fill", path, "--out", path)


def test_delimiter_decimal_sign_and_encoding_stay(tmp_path):
    rows = [f"{'Köln' if i % 2 else 'Bonn'};{f'{i % 7},5' if i % 9 else ''}" for i in range(40)]
    (tmp_path / "orte.csv").write_text("Ort;Größe\n" + "\n".join(rows) + "\n", encoding="latin-1")
    for to, delimiter in (("filled.csv", ";"), ("filled.tsv", "\t")):
        fine("fill", tmp_path / "orte.csv", "--out", tmp_path / to, "--encoding", "auto")
        written = (tmp_path / to).read_text(encoding="latin-1").splitlines()
        assert written[:3] == [f"Ort{delimiter}Größe", written[1], f"Köln{delimiter}1,5"]
        assert len(written) == 41
        assert "." not in "".join(written)
        assert written[1].startswith(f"Bonn{delimiter}")
    (tmp_path / "plain.csv").write_text("1,2.5\n,3.5\n2,4.5\n" * 9)
    told = fine("fill", tmp_path / "plain.csv", "--out", tmp_path / "filled.csv").stderr
    assert "plain.csv names no columns; " in told
    assert told.endswith("filled.csv names them 'x1', 'x2'.\n")
    assert (tmp_path / "filled.csv").read_text().startswith("x1,x2\n1,2.5\n")
    fine("sample", tmp_path / "orte.csv", "-n", 3, "--out", tmp_path / "made.csv", "--encoding", "latin-1")
    assert (tmp_path / "made.csv").read_text(encoding="latin-1").startswith("Ort;Größe\n")


def test_no_interval_ends_beyond_the_values_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    counts, x = rng.poisson(1.0, N), rng.normal(size=N)
    path = tmp_path / "counts.csv"
    pd.DataFrame({"count": counts, "x": x}).to_csv(path, index=False)
    row = as_json("expect", path, "--given", "x=0.1", "--confidence-level", "0.99")["table"][0]
    assert row["low"] == counts.min()
    assert row["high"] <= counts.max()


def test_intervals_go_beyond_the_values_of_the_table_where_a_given_value_does(tmp_path):
    rng = np.random.default_rng(0)
    depth = rng.uniform(0.0, 30.0, N)
    path = tmp_path / "wells.csv"
    frame = pd.DataFrame({"depth": depth, "temp": 60.0 - depth + rng.normal(size=N)})
    frame.round(2).to_csv(path, index=False)
    row = as_json("expect", path, "--given", "depth=33")["table"][0]
    assert row["low"] < frame["temp"].min() - 1.0
    assert row["low"] < 60.0 - 33.0 < row["high"]


def test_the_page_shows_one_interval_for_each_column(rides, tmp_path):
    """The picture had the interval of the default level, with ends that no value of the table reaches."""
    page = tmp_path / "page.html"
    result = run("expect", rides[0], "--given", "kind=car", "--confidence-level", "0.5", "--report", page)
    assert result.exit_code == 0, result.stderr
    cells = {line.split()[0]: line.split()[1:4] for line in result.stdout.splitlines()[3:6]}
    text = page.read_text()
    for name in ("speed", "day"):
        middle, low, high = cells[name]
        assert f"{name}: {middle}, {low} to {high} with 50 %" in text
    assert "with 90 %" not in text


def test_laws_of_a_long_table_are_fitted_to_some_rows_whatever_their_order(tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=300).round(3)
    made = pd.DataFrame({"x": x, "y": (2.0 * x + 0.1 * rng.normal(size=300)).round(3)})
    found = []
    for i, rows in enumerate((made, made.sample(frac=1.0, random_state=1))):
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
        answer = as_json("expect", tmp_path / f"{i}.csv", "--given", "x=1", "--size", 100, "--json")
        assert (answer["rows"], answer["fitted_rows"]) == (300, 100)
        found.append(answer["table"])
    assert found[0] == found[1]
    assert abs(found[0][0]["expected"] - 2.0) < 0.2
    said = run("expect", tmp_path / "0.csv", "--given", "x=1", "--size", 100).stdout
    assert said.startswith("Given x = 1, by the laws of 100 of 300 rows; each column by itself.")
    filled = made.astype({"y": object})
    filled.loc[::30, "y"] = None
    filled.to_csv(tmp_path / "gaps.csv", index=False)
    said = run("fill", tmp_path / "gaps.csv", "--out", tmp_path / "o.csv", "--size", 100).stdout
    assert "fitted to 100 rows with a known cell, drawn by what they hold; --size sets how many." in " ".join(
        said.split()
    )
