"""Known cells of a filled table: value and type are those that were given, for all kinds of columns and libraries."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from isopleth import SOSREP, DensityImputer
from isopleth.core.errors import DataWarning

N = 60


def _gappy(cells, first):
    return [None if i in (first, first + 20) else cell for i, cell in enumerate(cells)]


def _columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(3)
    start = dt.datetime(2024, 1, 1, 3)
    return {
        "x": x.tolist(),
        "count": rng.integers(0, 2**40, N).tolist(),
        "flag": (rng.random(N) < 0.5).tolist(),
        "word": rng.choice(["a", "b"], N).tolist(),
        "day": [(start + dt.timedelta(days=i)).date() for i in range(N)],
        "naive": [start + dt.timedelta(hours=7 * i) for i in range(N)],
        "took": [dt.timedelta(seconds=int(s)) for s in rng.integers(1, 1000, N)],
        "clock": [dt.time(int(h), 3) for h in rng.integers(0, 24, N)],
    }


def _pandas():
    gappy = {name: _gappy(cells, 2 + j) for j, (name, cells) in enumerate(_columns().items())}
    out = pd.DataFrame(gappy, index=[f"row {i}" for i in range(N)])
    aware = pd.date_range("2024-01-01 03:00", periods=N, freq="7h", tz="Asia/Tokyo")
    out["aware"] = aware.where(np.arange(N) != 11)
    out["nullable"] = pd.array(gappy["count"], dtype="Int64")
    out["truth"] = pd.array(gappy["flag"], dtype="boolean")
    out["single"] = out["x"].astype("float32")
    out["category"] = out["word"].astype("category")
    out["arrow"] = pd.Series(gappy["count"], dtype="int64[pyarrow]", index=out.index)
    return out


def _polars():
    gappy = {name: _gappy(cells, 2 + j) for j, (name, cells) in enumerate(_columns().items())}
    out = pl.DataFrame(gappy)
    return out.with_columns(
        aware=pl.col("naive").dt.replace_time_zone("Asia/Tokyo"),
        single=pl.col("x").cast(pl.Float32),
        decimal=pl.Series(
            [None if cell is None else Decimal(str(cell)) for cell in gappy["x"]], dtype=pl.Decimal(10, 3)
        ),
        category=pl.col("word").cast(pl.Categorical),
        enum=pl.col("word").cast(pl.Enum(["a", "b"])),
        unsigned=pl.col("count").cast(pl.UInt64),
    )


@pytest.mark.parametrize("table", [_pandas(), _polars()], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "fill", [DensityImputer().fit_transform, lambda X: SOSREP(frame="scale").fit(X).impute(X, "draw", 0)]
)
def test_known_cells_keep_their_values_and_types(table, fill):
    filled = fill(table)
    for name in table.columns:
        before, after = table[name], filled[name]
        assert before.dtype == after.dtype, name
        gaps = before.isna().to_numpy() if isinstance(table, pd.DataFrame) else before.is_null().to_numpy()
        cells = list(zip(before.to_list(), after.to_list(), gaps, strict=True))
        known = [(old, new) for old, new, gap in cells if not gap]
        assert [old for old, _ in known] == [new for _, new in known], name
        kinds = {type(old) for old, _ in known}
        assert {type(new) for _, new, _ in cells} == kinds, name
        assert gaps.any()
    if isinstance(table, pd.DataFrame):
        assert filled.index.equals(table.index)


def test_arrays_of_objects_keep_whole_numbers_and_times():
    x = np.empty((N, 2), dtype=object)
    x[:, 0] = _gappy(range(N), 4)
    x[:, 1] = np.random.default_rng(0).normal(size=N)
    filled = DensityImputer().fit_transform(x)
    assert all(type(cell) is int for cell in filled[:, 0])


def test_columns_of_whole_days_are_filled_with_the_nearest_day():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, N), unit="D")
    table = pd.DataFrame({"day": days, "x": rng.normal(size=N)})
    table.loc[[3, 7], "day"] = pd.NaT
    filled = DensityImputer().fit_transform(table)["day"]
    assert (filled == filled.dt.normalize()).all()
    dates = DensityImputer().fit_transform(pl.from_pandas(table).with_columns(pl.col("day").cast(pl.Date)))["day"]
    assert dates.to_list() == filled.dt.date.tolist()


def test_arrays_are_filled_after_a_fit_to_a_frame_of_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    rows = np.array([[0.5, np.nan]])
    imputer = DensityImputer().fit(table)
    with pytest.warns(UserWarning, match="valid feature names"):
        filled = imputer.transform(rows)
    np.testing.assert_array_equal(filled, imputer.transform(pd.DataFrame(rows, columns=["a", "b"])))


def test_errors_about_columns_name_the_imputer():
    with pytest.raises(ValueError, match="required by DensityImputer"):
        DensityImputer().fit(np.empty((5, 0)))
    with pytest.raises(ValueError, match="but DensityImputer is expecting 2 features"):
        DensityImputer().fit(np.random.default_rng(0).normal(size=(20, 2))).transform(np.zeros((3, 3)))


def test_means_that_a_few_far_cells_decide_are_warned_of_with_the_farthest_cell():
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"temp": rng.normal(12.0, 3.0, 400), "ph": rng.normal(7.4, 0.1, 400).round(2)})
    table.loc[380:, "ph"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        DensityImputer().fit(table).transform(table)
    table.loc[3, "ph"] = 7450.0
    imputer = DensityImputer().fit(table)
    with pytest.warns(DataWarning, match=r"20 of the 20 means that fill column 'ph' are outside .* such as 7450;"):
        imputer.transform(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        median = DensityImputer("median").fit(table).transform(table)
    assert median.loc[380:, "ph"].between(7.0, 7.8).all()
