"""Large tables are judged by a sample of their rows, which no order changes, and say what is usual where they are asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isopleth import CellwiseDetector
from isopleth.core.interval_cells import IntervalCells
from isopleth.results.result import ShownCells
from isopleth.tasks.cellwise import evidence, judged_rows, model
from isopleth.tasks.cellwise.judged_rows import JudgedRows, first_equal


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    monkeypatch.setattr(judged_rows, "MANY_ROWS", 100)
    monkeypatch.setattr(model, "_SHOWN_AT_ONCE", 100)
    monkeypatch.setattr(evidence, "_ROWS_AT_ONCE", 128)


def orders(n=400, seed=0):
    """Orders: the price follows the article, a total, some gaps, wrong cells in rows 7 and 30 and row 50 twice more."""
    rng = np.random.default_rng(seed)
    article = rng.integers(0, 4, n)
    price = np.round(np.array([5.0, 20.0, 80.0, 300.0])[article] * np.exp(0.1 * rng.normal(size=n)), 2)
    weight = np.round(0.1 * price * np.exp(0.05 * rng.normal(size=n)), 3)
    count = rng.integers(1, 9, n).astype(float)
    table = pd.DataFrame(
        {"article": np.array(["pen", "book", "lamp", "desk"])[article], "price": price, "count": count}
    )
    table = table.assign(weight=weight, total=np.round(price * count, 2))
    table.loc[::17, "weight"] = np.nan
    table.loc[7, "weight"] = table["weight"][7] * 1000.0
    table.loc[30, "total"] = table["total"][30] + 70.0
    return pd.concat([table, table.iloc[[50, 50]]], ignore_index=True)


def fitted(table):
    return CellwiseDetector(random_state=0, n_estimators=8, max_samples=150).fit(table)


def test_wrong_cells_are_found_and_repeated_rows_named():
    found = fitted(orders()).cells()
    assert isinstance(found.usual, ShownCells)
    flagged = {(i, found.names[j]) for i, j in np.argwhere(found.flagged)}
    assert {(7, "weight"), (30, "total")} <= flagged
    assert len(flagged) < 8
    assert found.repeats == {400: 50, 401: 50}
    assert found.scores[400].tolist() == found.scores[50].tolist()


def test_the_order_of_rows_and_columns_changes_nothing():
    table = orders()
    order = np.random.default_rng(1).permutation(len(table))
    one, two = fitted(table).cells(), fitted(table.iloc[order, ::-1]).cells()
    np.testing.assert_allclose(two.scores[:, ::-1], one.scores[order], rtol=1e-5, atol=1e-5)
    assert {(int(order[i]), two.names[j]) for i, j in two.repairs} == {(i, one.names[j]) for i, j in one.repairs}


def test_what_is_usual_is_the_same_where_it_was_kept_and_where_laws_are_asked():
    detector = fitted(orders())
    rows = detector._of_fit()
    table, judged, scores = rows.table, rows.judged, rows.scores
    assert (judged.columns >= 0).all()
    others = np.flatnonzero(~detector._known)  # rows of the fit are kept by laws that do not know them
    asked = replace(judged, columns=np.full(len(scores), -1))
    columns = table.order[judged.columns[others]]
    kept, again = (detector._model.quantiles(table, each, others, columns) for each in (judged, asked))
    np.testing.assert_allclose(again, kept)


def test_one_cell_and_whole_rows_are_shown_alike():
    found = fitted(orders()).cells()
    for i in (7, 30, 200):
        row = found.usual[i]
        assert [found.usual[i, j] for j in range(5)] == list(row)
        assert found.usual.at(np.array([i]), np.array([1]))[0] == row[1]


def test_equal_rows_are_found_up_to_rounding_and_permutations_are_not_equal():
    rows = np.array(
        [[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [np.nan, 2.0], [1.0 + 1e-15, 2.0], [np.nan, 2.0], [2.0, np.nan]]
    )
    assert first_equal(rows).tolist() == [0, 1, 0, 3, 0, 3, 6]


def test_rows_of_few_values_repeat_by_chance_as_in_small_tables(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 3, (300, 2)).astype(float)
    rows = np.vstack([rows, [[7.0, 7.0]] * 3])
    many = JudgedRows.of(rows, IntervalCells.none(len(rows)), 50)
    monkeypatch.setattr(judged_rows, "MANY_ROWS", 1000)
    few = JudgedRows.of(rows, IntervalCells.none(len(rows)), 50)
    assert many.repeats == few.repeats
    assert {301, 302} <= set(many.repeats)
    assert len(many.counted) == len(few.counted)
