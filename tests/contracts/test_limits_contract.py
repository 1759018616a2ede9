"""What every estimator promises of tables with cells that say a limit: orders, libraries, copies, last digits and files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from isopleth import KDE, AnomalyDetector, CellwiseDetector, ConditionalDensity, DensityImputer, load, save


def table(n=90):
    """Numbers that go together, one of them with limits on both sides, and words."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    y = np.exp(z + 0.3 * rng.normal(size=n))
    low = np.where(rng.random(n) < 0.5, 0.4, 0.6)
    lower = np.where(y < low, -np.inf, np.where(y > 3.0, 3.0, y))
    upper = np.where(y < low, low, np.where(y > 3.0, np.inf, y))
    lower[5] = upper[5] = np.nan
    cells = {"lead": pd.arrays.IntervalArray.from_arrays(lower, upper, closed="both"), "z": z, "b": rng.normal(size=n)}
    return pd.DataFrame(cells | {"word": np.where(rng.random(n) < 0.4, "x", "y")})


def target(rows):
    return 2.0 * rows["z"].to_numpy()


# Each is fitted to rows and answers for them with one number a row, or for cells in the order of the columns.
CASES = {
    "imputer": (
        DensityImputer(n_estimators=10, random_state=0),
        lambda model, rows: np.asarray(model.transform(rows)["lead"], dtype=float),
    ),
    "conditional": (
        ConditionalDensity(n_estimators=10, random_state=0),
        lambda model, rows: model.predict(rows),
    ),
    "density": (KDE(frame="marginal"), lambda model, rows: model.score_samples(rows)),
    "cells": (CellwiseDetector(n_estimators=10, random_state=0), lambda model, rows: model.score_samples(rows)),
    "anomalies": (AnomalyDetector(random_state=0), lambda model, rows: model.score_samples(rows)),
}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return CASES[request.param]


def answers(case, rows, asked=None):
    """Fit a clone to rows, and return its answers for them."""
    model, ask = case
    y = (target(rows),) if isinstance(model, ConditionalDensity) else ()
    given = rows.drop(columns="z") if y else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).fit(given, *y)
        return np.asarray(ask(fitted, given if asked is None else asked), dtype=float), fitted, given


def test_orders_of_rows_and_columns_do_not_matter(case):
    rows = table()
    found, _, _ = answers(case, rows)
    # The small samples of an anomaly detector draw their columns by place, with limits or without.
    columns = rows.columns if isinstance(case[0], AnomalyDetector) else rows.columns[::-1]
    turned, _, _ = answers(case, rows.iloc[::-1][columns])
    np.testing.assert_allclose(turned[::-1], found, rtol=1e-7, atol=1e-9)
    assert np.isfinite(found).all()


def test_last_digits_do_not_matter(case):
    rows = table()
    found, _, _ = answers(case, rows)
    moved = rows.assign(z=rows["z"] * (1.0 + 1e-12), b=rows["b"] + 1e-12)
    np.testing.assert_allclose(answers(case, moved)[0], found, rtol=1e-6, atol=1e-6)


def test_libraries_do_not_matter(case):
    found, fitted, rows = answers(case, table())
    cells = rows["lead"].array
    missing = np.asarray(rows["lead"].isna())
    ends = {"lower": np.asarray(cells.left, dtype=float), "upper": np.asarray(cells.right, dtype=float)}
    rest = {name: rows[name].to_numpy() for name in rows.columns if name != "lead"}
    structs = pa.StructArray.from_arrays([pa.array(end, mask=missing) for end in ends.values()], list(ends))
    arrow = pa.table({"lead": structs, **rest})
    for other in (arrow, pl.from_arrow(arrow), pa.Table.from_pandas(rows)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_allclose(np.asarray(case[1](fitted, other), dtype=float), found, rtol=1e-12)


def test_models_are_saved(case, tmp_path):
    found, fitted, rows = answers(case, table())
    save(fitted, tmp_path / "m.isopleth")
    np.testing.assert_array_equal(np.asarray(case[1](load(tmp_path / "m.isopleth"), rows), dtype=float), found)


def test_limits_are_no_gaps(case):
    rows = table()
    found, _, _ = answers(case, rows)
    lower = np.asarray(rows["lead"].array.left, dtype=float)
    gaps = rows.assign(lead=np.where(lower == np.asarray(rows["lead"].array.right, dtype=float), lower, np.nan))
    others, _, _ = answers(case, gaps)
    hidden = np.isinf(lower)
    assert np.abs(found - others)[hidden].max() > 1e-3
