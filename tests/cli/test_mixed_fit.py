"""``isopleth fit`` and ``isopleth score`` on tables with words, times and missing cells, read in chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.shell import fine, refused, run
from isopleth import SOSREP, save
from isopleth.io import load


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["bike", "car"], n)
    frame = pd.DataFrame(
        {
            "order_no": 1000 + 3 * np.arange(n),
            "kind": kind,
            "speed": np.round(rng.normal(np.where(kind == "car", 60, 18), 4), 1),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
            "price": np.round(rng.lognormal(3, 0.3, n), 2),
        }
    )
    frame.loc[rng.uniform(size=n) < 0.2, "price"] = np.nan
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed")
    table().to_csv(path / "t.csv", index=False)
    table().to_parquet(path / "t.parquet")
    return path


def test_a_density_of_words_times_and_gaps_is_that_of_a_fit_in_memory(folder):
    out = folder / "m.model"
    result = fine("fit", folder / "t.csv", "--out", out, "--chunk-rows", 70)
    assert (
        result.stderr
        == f"isopleth: {folder / 't.csv'}: 300 rows: 2 numbers, 1 category, 1 time; left out: order_no (identifier)\n"
    )
    assert result.stdout.startswith(
        f"SOSREP of 300 rows of 4 columns in {out}\nThis density is for tables of any length"
    )
    frame = table()
    there = SOSREP(length_scale="leave_one_out", frame="scale").fit(frame.drop(columns="order_no"))
    expected = there.score_samples(frame)
    for name in ("t.csv", "t.parquet"):
        fine("score", out, folder / name, "--out", folder / "o.parquet", "--chunk-rows", 64)
        found = pd.read_parquet(folder / "o.parquet")
        np.testing.assert_allclose(found["log_density"], expected, rtol=1e-6, atol=1e-6)
    assert "row" in found
    np.save(folder / "x.npy", np.zeros((5, 4)))
    told = refused("score", out, folder / "x.npy", "--out", folder / "x.csv")
    assert "names no columns; add a header with those of the model: 'kind', 'speed', 'day', 'price'" in told


def test_a_random_part_of_a_long_table_is_fitted(folder):
    result = fine("fit", folder / "t.csv", "--out", folder / "small.model", "--size", 100, "--chunk-rows", 30)
    assert "the density is fitted to 100 of 300 rows, drawn at random" in result.stderr
    again = folder / "again.model"
    fine("fit", folder / "t.csv", "--out", again, "--size", 100, "--chunk-rows", 1000)
    assert load(again).centers_.shape[0] <= 600  # a row with gaps is filled up to six times
    one, other = (load(path).score_samples(table()) for path in (folder / "small.model", again))
    np.testing.assert_array_equal(one, other)  # whatever the chunks


def test_scores_take_numbers_only_and_say_so(folder):
    told = run("fit", folder / "t.csv", "--out", folder / "s.model", "--kind", "score").stderr
    assert (
        "--kind score takes complete rows of numbers only; leave out the words and times with --exclude kind,day"
        in told
    )
    told = refused("fit", folder / "t.csv", "--out", folder / "s.model", "--kind", "score", "--columns", "speed,price")
    assert "fill the missing cells, or drop their rows" in told


def test_models_fitted_in_python_to_arrays(folder):
    rows = np.random.default_rng(0).normal(size=(80, 2))
    rows[::4, 1] = np.nan
    density = SOSREP(frame="scale").fit(rows)
    save(density, folder / "a.model")
    np.save(folder / "x.npy", rows)
    fine("score", folder / "a.model", folder / "x.npy", "--out", folder / "o.npy")
    np.testing.assert_allclose(np.load(folder / "o.npy")[:, 0], density.score_samples(rows), rtol=1e-12)
    assert "columns" in refused("score", folder / "a.model", folder / "t.csv", "--out", folder / "x.csv")
