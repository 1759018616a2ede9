"""``isopleth sample``: rows that are made look like those of the file."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from cli import shell
from isopleth import KDE, SOSREP, save

run = partial(shell.run, "sample")
fine = partial(shell.fine, "sample")
refused = partial(shell.refused, "sample")


def shop(n=300, seed=0):
    """Orders with an identifier, words, whole numbers, payments of which many are 0, dates, and gaps in bikes' payments."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["bike", "car", "bus"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "order_no": 1000 + 3 * np.arange(n),
            "kind": kind,
            "speed": np.round(rng.normal(np.where(kind == "car", 60, 18), 4), 1),
            "count": rng.poisson(2, n),
            "paid": np.where(rng.uniform(size=n) < 0.5, 0.0, np.round(rng.lognormal(3, 1, n), 2)),
            "day": [f"2024-{month:02d}-{day:02d}" for month, day in rng.integers(1, 13, (n, 2)).tolist()],
            "member": rng.choice(["true", "false"], n),
        }
    )
    frame.loc[(frame.kind == "bike") & (rng.uniform(size=n) < 0.6), "paid"] = np.nan
    return frame


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    shop().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def made(file):
    out = file.with_name("made.csv")
    result = fine(file, "-n", 1000, "--out", out)
    assert result.stdout == f"1,000 rows of 6 columns in {out}\n"
    assert (
        result.stderr
        == f"isopleth: {file}: 300 rows: 3 numbers, 2 categories, 1 time; left out: order_no (identifier)\n"
    )
    return out


def test_columns_keep_their_order_types_and_decimals(made):
    text = pd.read_csv(made, dtype=str)
    assert list(text) == ["kind", "speed", "count", "paid", "day", "member"]
    assert text["count"].str.fullmatch(r"\d+").all()
    assert text["speed"].str.fullmatch(r"\d+\.\d").all()
    assert text["paid"].dropna().str.fullmatch(r"\d+\.\d{1,2}").all()
    assert text["day"].str.fullmatch(r"2024-\d\d-\d\d").all()
    assert set(text["member"]) == {"true", "false"}
    assert set(text["kind"]) == {"bike", "car", "bus"}


def test_ranges_repeated_values_and_shares_are_kept(file, made):
    old, new = pd.read_csv(file), pd.read_csv(made)
    for name in ("speed", "count", "paid"):
        assert old[name].min() <= new[name].min()
        assert new[name].max() <= old[name].max()
        assert new[name].mean() == pytest.approx(old[name].mean(), abs=0.25 * old[name].std())
    assert (new["paid"] == 0).mean() == pytest.approx((old["paid"] == 0).mean(), abs=0.06)
    shares = old["kind"].value_counts(normalize=True)
    np.testing.assert_allclose(new["kind"].value_counts(normalize=True)[shares.index], shares, atol=0.08)
    assert not new.merge(old.drop(columns="order_no"), how="inner").shape[0] > 20


def test_gaps_keep_their_share_and_their_pattern(file, made):
    old, new = pd.read_csv(file), pd.read_csv(made)
    assert new["paid"].isna().mean() == pytest.approx(old["paid"].isna().mean(), abs=0.08)
    assert not new.drop(columns="paid").isna().any(axis=None)
    by_kind = new["paid"].isna().groupby(new["kind"]).mean()
    assert by_kind["bike"] > 0.4
    assert by_kind[["car", "bus"]].max() < 0.2


def test_columns_still_belong_together(file, made):
    old, new = pd.read_csv(file), pd.read_csv(made)
    medians = [frame.groupby("kind")["speed"].median() for frame in (old, new)]
    np.testing.assert_allclose(medians[1], medians[0], atol=3.0)


def test_seeds_formats_and_complete_rows(tmp_path):
    file, model = tmp_path / "few.csv", tmp_path / "m.model"
    shop(80).to_csv(file, index=False)
    fine(file, "-n", 20, "--out", tmp_path / "a.csv", "--save", model)
    assert fine("-n", 20, "--out", tmp_path / "b.csv", "--model", model).stderr == ""
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    fine("-n", 20, "--out", tmp_path / "c.csv", "--model", model, "--seed", 1)
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "c.csv").read_bytes()
    expected = pd.read_csv(tmp_path / "a.csv")
    fine("-n", 20, "--out", tmp_path / "a.parquet", "--model", model)
    parquet = pd.read_parquet(tmp_path / "a.parquet")
    assert parquet["count"].tolist() == expected["count"].tolist()
    assert parquet["day"].dt.strftime("%Y-%m-%d").tolist() == expected["day"].tolist()
    fine("-n", 20, "--out", tmp_path / "a.jsonl", "--model", model)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line.get("paid") for line in lines] == [None if np.isnan(v) else v for v in expected["paid"]]
    fine("-n", 20, "--out", tmp_path / "a.tsv", "--model", model)
    assert pd.read_csv(tmp_path / "a.tsv", sep="\t").equals(expected)
    fine("-n", 20, "--out", tmp_path / "full.csv", "--model", model, "--complete")
    assert not pd.read_csv(tmp_path / "full.csv").isna().any(axis=None)
    assert "'kind'" in refused("-n", 5, "--out", tmp_path / "a.npy", "--model", model)


def test_given_values_are_in_every_row(file, tmp_path):
    out, model = tmp_path / "o.csv", tmp_path / "m.model"
    given = ("--given", "kind=car,day=2024-03-01", "--given", "count=2")
    result = fine(file, "-n", 200, "--out", out, "--save", model, "--json", *given)
    assert json.loads(result.stdout)["given"] == {"kind": "car", "day": "2024-03-01", "count": 2.0}
    found = pd.read_csv(out, dtype=str)
    assert list(found) == ["kind", "speed", "count", "paid", "day", "member"]
    assert (found[["kind", "day", "count"]] == ["car", "2024-03-01", "2"]).all(axis=None)
    assert 55.0 < found["speed"].astype(float).median() < 65.0  # the speed of cars; that of all rows is 19
    fine("--model", model, "-n", 200, "--out", tmp_path / "again.csv", *given)
    assert (tmp_path / "again.csv").read_bytes() == out.read_bytes()


def test_columns_of_arrays_are_given_by_the_names_of_the_file(tmp_path):
    x = np.random.default_rng(0).normal(size=100)
    np.save(tmp_path / "x.npy", np.column_stack([x, x + 0.1 * np.random.default_rng(1).normal(size=100)]).round(2))
    fine(tmp_path / "x.npy", "-n", 50, "--out", tmp_path / "y.npy", "--given", "x2=1.25")
    found = np.load(tmp_path / "y.npy")
    assert (found[:, 1] == 1.25).all()
    assert 1.0 < np.median(found[:, 0]) < 1.5


def test_a_sum_that_is_given_is_not_computed_from_its_parts(tmp_path):
    a, b = np.random.default_rng(0).integers(0, 20, (2, 100))
    pd.DataFrame({"a": a, "b": b, "sum": a + b}).to_csv(tmp_path / "t.csv", index=False)
    result = fine(tmp_path / "t.csv", "-n", 100, "--out", tmp_path / "o.csv", "--given", "sum=20")
    assert set(pd.read_csv(tmp_path / "o.csv")["sum"]) == {20}
    assert "Broken, and in no or few rows of the table: sum = a + b in" in result.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nose=1", "--given names column 'nose', which is not used; expected one of kind, speed, count, paid, day"),
        ("speed=fast", "--given speed=fast: column 'speed' holds numbers; expected one such as 3.5"),
        ("speed=inf", "--given speed=inf: column 'speed' holds numbers; expected one such as 3.5"),
        ("count=2.5", "--given has 2.5 for column 'count', which holds whole numbers; give a whole number."),
        ("kind=kar", "--given kind=kar: column 'kind' has no such word; did you mean 'car'?"),
        ("member=maybe", "column 'member' holds 'maybe' in a given value; expected a truth value."),
        ("day=2024-13-01", "column 'day' holds '2024-13-01' in a given value; expected a time"),
        ("kind=car,kind=bus", "--given names column 'kind' twice; give it one value."),
    ],
)
def test_given_values_that_are_refused(file, tmp_path, given, said):
    assert said in refused(file, "-n", 5, "--size", 40, "--quiet", "--out", tmp_path / "o.csv", "--given", given)
    assert not (tmp_path / "o.csv").exists()


def test_arrays_give_arrays(tmp_path):
    rows = np.round(np.random.default_rng(0).normal(size=(100, 2)), 1)
    np.save(tmp_path / "x.npy", rows)
    fine(tmp_path / "x.npy", "-n", 20, "--out", tmp_path / "y.npy", "--save", tmp_path / "m.model")
    found = np.load(tmp_path / "y.npy")
    assert found.shape == (20, 2)
    np.testing.assert_allclose(found, np.round(found, 1))
    fine("--model", tmp_path / "m.model", "-n", 20, "--out", tmp_path / "y.csv")
    again = pd.read_csv(tmp_path / "y.csv")
    assert list(again) == ["x1", "x2"]
    np.testing.assert_allclose(again, found)
    save(KDE(frame="scale").fit(rows), tmp_path / "m.model")  # of Python, without names
    fine("--model", tmp_path / "m.model", "-n", 20, "--out", tmp_path / "y.csv")
    assert list(pd.read_csv(tmp_path / "y.csv")) == ["x1", "x2"]


def test_long_tables_are_fitted_in_part_and_rare_columns_are_in_it(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "rare": np.nan})
    frame.loc[[3, 5], "rare"] = [1.5, 2.5]
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = fine(tmp_path / "t.csv", "-n", 10, "--size", 20, "--out", tmp_path / "o.csv").stderr
    assert "of 200 rows, drawn at random; --size sets how many." in told
    assert list(pd.read_csv(tmp_path / "o.csv")) == ["a", "rare"]


def test_options_of_columns_hold(file, tmp_path):
    fine(file, "-n", 20, "--out", tmp_path / "o.csv", "--keep-id", "--exclude", "day,member", "--categorical", "count")
    found = pd.read_csv(tmp_path / "o.csv")
    assert list(found) == ["order_no", "kind", "speed", "count", "paid"]
    assert set(found["count"]) <= set(shop()["count"])


def test_what_is_unclear_is_one_sentence(file, tmp_path):
    out = tmp_path / "o.csv"
    assert "name a table, FILE, or a fitted density" in refused("-n", 5, "--out", out)
    assert "same file" in refused(file, "-n", 5, "--out", file)
    assert "ends in none of" in refused(file, "-n", 5, "--out", tmp_path / "o.doc")
    density = SOSREP("laplacian", frame="scale").fit(np.random.default_rng(0).normal(size=(20, 2)))
    save(density, tmp_path / "m.model")
    assert "no product over columns" in refused("-n", 5, "--out", out, "--model", tmp_path / "m.model")
    options = ("--model", tmp_path / "m.model", "--save", tmp_path / "other.model")
    assert "--save and --model exclude each other" in refused("-n", 5, "--out", out, *options)
    assert "leave out the options of columns" in refused(
        "-n", 5, "--out", out, "--model", tmp_path / "m.model", "--exclude", "a"
    )
    assert not out.exists()


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%Y-%m-%d %H:%M", None])
def test_a_column_that_never_comes_before_another_does_not_in_new_rows(tmp_path, form):
    rng = np.random.default_rng(1)
    start, length = rng.integers(0, 400, 120), rng.integers(1, 8, 120)
    first = pd.Timestamp("2023-01-01")

    def cell(day):
        return f"{day}.0" if form is None else (first + pd.Timedelta(days=int(day))).strftime(form)

    rows = [f"{cell(a)},{cell(a + b)},{rng.normal():.2f}" for a, b in zip(start, length, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["start,end,v", *rows]) + "\n")
    result = fine(tmp_path / "t.csv", "-n", 80, "--out", tmp_path / "o.csv")
    assert "Kept, as in all or nearly all rows of the table: start <= end." in result.stdout
    made = pd.read_csv(tmp_path / "o.csv")
    ends = [made[name] if form is None else pd.to_datetime(made[name], format=form) for name in ("start", "end")]
    assert (ends[0] <= ends[1]).all()
    apart = ends[1] - ends[0] if form is None else (ends[1] - ends[0]) / pd.Timedelta(days=1)
    assert apart.mean() < 4 * length.mean()  # about 130 days if each column had its own law
