"""Explanations: the surprise of each cell by its law given the others of its row, and what is usual there."""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from isopleth import AnomalyDetector, CellwiseDetector, InputError, load, save
from isopleth.tasks import Explanation


def table(n=200, dim=4, seed=0):
    """Columns of different units, the second one following the first."""
    X = np.random.default_rng(seed).normal(size=(n, dim))
    X[:, 1] = X[:, 0] + 0.2 * X[:, 1]
    return X * np.resize([1.0, 30.0, 0.02, 5.0], dim) + np.resize([0.0, 7.0, -1.0], dim)


@pytest.fixture(scope="module")
def rows():
    X = table()
    X[0, 2] += 0.2  # ten deviations
    X[1, :2] = [1.5, -38.0]  # two columns apart that go together
    return X


@pytest.fixture(scope="module")
def detector(rows):
    return AnomalyDetector(n_estimators=60, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def orders():
    """Orders of chairs, lamps and few tables, whose price tells the article; one lamp has the price of a chair."""
    rng = np.random.default_rng(0)
    article = rng.choice(["chair", "lamp", "table"], 500, p=[0.6, 0.36, 0.04])
    price = np.array([{"chair": 60.0, "lamp": 25.0, "table": 400.0}[word] for word in article])
    frame = pd.DataFrame(
        {
            "article": article,
            "price": (price * np.exp(0.02 * rng.normal(size=500))).round(2),
            "quantity": rng.integers(1, 9, 500),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 500), unit="D"),
        }
    )
    frame.loc[7, ["article", "price"]] = ["lamp", 60.4]
    frame.loc[8, "day"] = pd.Timestamp("2031-05-05")
    frame.loc[20:30, "quantity"] = np.nan
    return frame


def test_a_cell_that_does_not_fit_and_a_rare_kind_are_told_apart(orders):
    tables = np.flatnonzero(orders["article"] == "table")[:3]
    found = AnomalyDetector(random_state=0).fit(orders).explain(orders.iloc[[7, 8, *tables]])
    assert not found.of_rare_kind(0)
    assert set(found.top()[0]) == {"article", "price"}
    assert re.search(r"price 60.4 \(2\d\S* to \d\d\S* is usual for lamp\)", found.describe(0))
    assert "article lamp (chair is usual" in found.describe(0)
    assert re.match(r"day 2031-05-05 \(2024-\S+ to 2024-\S+ is usual", found.describe(1))
    for i in range(2, 5):
        assert found.of_rare_kind(i)
        assert found.describe(i).startswith("a rare kind of row: ")
        assert set(found.top(2)[i]) == {"article", "price"}
        assert re.search(r"price \d+\S* \(3\d\d\S* to [34]\d\d\S* is usual for table\)", found.describe(i))


def test_the_excess_is_that_of_the_search_for_wrong_cells(rows, detector):
    """Forests differ in their trees, and laws of few rows by noise; the order of cells is the same."""
    ours, theirs = (
        detector.explain(rows).excess,
        np.maximum(CellwiseDetector(random_state=0).fit(rows)._judged.excess, 0),
    )
    for j in range(4):
        assert np.corrcoef(ours[:, j], theirs[:, j])[0, 1] > 0.9


def test_rows_of_the_fit_are_judged_by_laws_that_do_not_know_them():
    """A wild value of which each law has one row: a law that knew the row would find it usual."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in rng.integers(0, 3, 300)], dtype=object)
    frame = pd.DataFrame({"word": words, "x": rng.normal(size=300)})
    frame.loc[4, ["word", "x"]] = ["odd", 1.0]
    found = AnomalyDetector(random_state=0).fit(frame).explain(frame.iloc[[4]])
    assert found.excess[0, 0] > 3.0
    assert found.rarity[0, 0] > 3.0


def test_planted_columns_are_named(detector, rows):
    explanation = detector.explain(rows[:2])
    assert explanation.top(1)[0] == ["column 2"]
    assert set(explanation.top(2)[1]) == {"column 0", "column 1"}
    assert explanation.usual[0, 2] == pytest.approx(-1.0, abs=0.02)


def hits(planted, weight):
    """Planted columns among as many of the largest weight."""
    return sum(found[np.argsort(-w)[: found.sum()]].sum() for found, w in zip(planted, weight, strict=True))


def test_planted_columns_are_found_as_well_as_by_refits_without_each_column():
    ours = refits = count = 0
    for seed in range(3):
        X = table(150, dim=6, seed=seed)
        rng = np.random.default_rng(seed)
        planted = np.zeros((6, 6), dtype=bool)
        middle, spread = X.mean(axis=0), X.std(axis=0)
        for i, columns in enumerate([[2], [4], [2, 5], [3, 4], [0, 1], [0, 1]]):
            planted[i, columns] = True
            apart = np.resize([1.5, -1.5], len(columns)) if columns[0] == 0 else rng.choice([-4.0, 4.0], len(columns))
            X[i, columns] = middle[columns] + apart * spread[columns]
        detector = AnomalyDetector(n_estimators=60, random_state=seed).fit(X)
        found = detector.explain(X[:6])
        ours += hits(planted, [found.surprise(i) for i in range(6)])
        others = [AnomalyDetector(n_estimators=60, random_state=seed).fit(np.delete(X, j, axis=1)) for j in range(6)]
        without = np.stack([other.training_scores_[:6] for other in others], axis=1)
        refits += hits(planted, without - detector.training_scores_[:6, None])
        count += planted.sum()
    assert ours >= refits
    assert ours >= 0.85 * count


def test_the_result_for_a_row_does_not_depend_on_the_others(detector, rows):
    mixed = np.concatenate([rows[:30], table(25, seed=3)])
    together = detector.explain(mixed)
    for i in (0, 1, 29, 30, 54):
        alone = detector.explain(mixed[i : i + 1])
        for name in ("excess", "rarity", "usual", "low", "high"):
            np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[i], rtol=1e-9, atol=1e-9)
    turned = detector.explain(mixed[::-1])
    np.testing.assert_allclose(turned.excess[::-1], together.excess, rtol=1e-9, atol=1e-9)


def test_the_order_of_rows_and_columns_and_threads_change_nothing(detector, rows):
    want = detector.explain(rows[:40])
    other = AnomalyDetector(n_estimators=60, random_state=0, n_jobs=2, memory_limit=1e5).fit(rows[::-1, ::-1])
    got = other.explain(rows[:40, ::-1])
    np.testing.assert_allclose(got.excess[:, ::-1], want.excess, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got.rarity[:, ::-1], want.rarity, rtol=1e-6, atol=1e-6)


def test_explanations_follow_the_units_of_the_columns(detector, rows):
    scale, shift = np.array([1e-3, 1e4, 7.0, 1.0]), np.array([1e3, -5.0, 0.0, 1.0])
    other = AnomalyDetector(n_estimators=60, random_state=0).fit(rows * scale + shift)
    new = table(10, seed=3) * [1.0, 1.0, 3.0, 1.0]
    for X in (rows[:10], new):
        want, got = detector.explain(X), other.explain(X * scale + shift)
        np.testing.assert_allclose(got.excess, want.excess, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got.usual, want.usual * scale + shift, rtol=1e-9)


@pytest.mark.parametrize(("novelty", "constant"), [(False, -3e-9), (True, 0.0)])
def test_another_value_than_that_of_a_constant_column_is_beyond_all_training_rows(rows, novelty, constant, tmp_path):
    settings = {"n_estimators": 40, "novelty": novelty, "fast": True, "random_state": 0}
    plain = AnomalyDetector(**settings).fit(rows)
    detector = AnomalyDetector(**settings).fit(np.insert(rows, 1, constant, axis=1))
    np.testing.assert_allclose(detector.training_scores_, plain.training_scores_, rtol=1e-12)
    new = rows[:4] + 0.01
    cells = constant + np.array([0.0, 1e-12 * constant, 1e-3 * constant + 1e-30 * (constant == 0.0), np.nan])
    asked = np.insert(new, 1, cells, axis=1)
    found, usual = detector.score_samples(asked), plain.score_samples(new)
    np.testing.assert_allclose(found[:2], usual[:2], rtol=1e-12)
    share = np.log(len(rows) + 1)  # the tail share of each kind of evidence is 1/(n + 1) of it
    np.testing.assert_allclose(found[2:], usual[2:] - len(detector._rule.kinds) * share)  # another number, and a gap
    explanation = detector.explain(asked)
    np.testing.assert_allclose(explanation.excess[:, 1], [0.0, 0.0, share, share], atol=1e-9)
    assert [names[0] for names in explanation.top(1)[2:]] == ["column 1", "column 1"]
    assert (explanation.usual[:, 1] == constant).all()
    np.testing.assert_allclose(np.delete(explanation.excess, 1, axis=1), plain.explain(new).excess, atol=1e-9)
    save(detector, tmp_path / "d.isopleth")
    again = load(tmp_path / "d.isopleth")
    np.testing.assert_array_equal(again.score_samples(asked), found)
    np.testing.assert_array_equal(again.explain(asked).excess, explanation.excess)
    np.testing.assert_array_equal(detector.anomalies(asked).drawn[0], np.where(np.isnan(asked), constant, asked))


@pytest.mark.parametrize("wild", [1e9, 1e300])
def test_an_extreme_cell_is_the_reason_and_spoils_no_other(detector, wild):
    row = table(1, seed=8)
    calm = detector.explain(row)
    row[0, 3] = wild
    explanation = detector.explain(row)
    assert explanation.top(1) == [["column 3"]]
    assert np.isfinite(explanation.excess).all()
    np.testing.assert_array_equal(explanation.usual[0, 3], calm.usual[0, 3])


def test_wide_tables_are_explained_by_the_oddest_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 60)) + 0.3 * rng.normal(size=(150, 60))
    X[0, 17] += 5.0 * X[:, 17].std()
    X[1, 33] = X[:, 33].mean() - 2.0 * (X[1, 33] - X[:, 33].mean() + X[:, 33].std())
    detector = AnomalyDetector(n_estimators=20, random_state=0).fit(X)
    found = detector.explain(X[:2])
    assert [names[0] for names in found.top(1)] == ["column 17", "column 33"]
    assert len(detector._reasons.laws) <= 16
    alone = AnomalyDetector(n_estimators=20, random_state=0).fit(X).explain(X[1:2])
    np.testing.assert_allclose(alone.excess[0], found.excess[1], rtol=1e-9, atol=1e-9)


def test_codes_are_explained_by_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(300, 1)).astype(float)
    X = np.c_[codes, 10.0 * codes + rng.normal(size=(300, 1))]
    X[0] = [0.0, 20.0]
    explanation = AnomalyDetector(n_estimators=100, random_state=0).fit(X).explain(X[:1])
    assert explanation.usual[0, 0] == 2.0
    assert explanation.usual[0, 1] == pytest.approx(0.0, abs=3.0)


def test_evidence_adds_up_and_the_strongest_is_named(rows):
    X = rows.copy()
    X[2, 3] = 500.0
    fitted = AnomalyDetector(random_state=0).fit(X)
    explanation = fitted.explain(X[:10])
    np.testing.assert_allclose(-sum(explanation.evidence.values()), explanation.scores)
    assert list(explanation.evidence) == ["joint", "covariance", "columns"]
    assert explanation.leading_evidence()[1] == "covariance"  # a broken relation of two columns
    clean = AnomalyDetector(novelty=True).fit(rows[10:]).explain(X[:3])
    np.testing.assert_allclose(-sum(clean.evidence.values()), clean.scores)
    assert list(clean.evidence) == ["density", "rank density", "rank neighbours", "new values", "conditionals"]
    assert clean.top(1)[2] == ["column 3"]


def explained(excess, rarity=None, **more):
    excess = np.atleast_2d(np.asarray(excess, dtype=float))
    none = np.zeros(excess.shape)
    cells = {"values": none, "rarity": none if rarity is None else rarity, "usual": none, "low": none, "high": none}
    cells |= {"scores": -np.ones(len(excess)), **more}
    return Explanation([*"abcdefgh"[: excess.shape[1]]], excess=excess, **cells)


def test_surprises_that_are_equal_up_to_rounding_are_in_the_order_of_the_columns():
    evidence = {"joint": np.array([1.0]), "columns": np.array([1.0 + 1e-13])}
    explanation = explained([1.0, 2.0, 2.0 + 1e-13, 0.0, 2.0 - 1e-12], evidence=evidence)
    assert explanation.top(9) == [["b", "c", "e", "a"]]
    assert explanation.leading_evidence() == ["joint"]


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (lambda X: pd.DataFrame(X, columns=["height", "it's", "a b", "d"]), ["height", "it's", "a b", "d"]),
        (lambda X: pl.DataFrame(X, schema=["height", "it's", "a b", "d"]), ["height", "it's", "a b", "d"]),
        (pd.DataFrame, ["0", "1", "2", "3"]),
        (lambda X: X, ["column 0", "column 1", "column 2", "column 3"]),
    ],
)
def test_names_are_those_at_fit(rows, frame, names):
    X = frame(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation = AnomalyDetector(n_estimators=25, random_state=0).fit(X).explain(X[:2])
    assert explanation.names == names
    assert explanation.top(1)[0] == [names[2]]


def test_frames_take_the_cells(detector, rows):
    for make in (pd.DataFrame, pl.DataFrame):
        frame = make(rows[:3], **{"columns" if make is pd.DataFrame else "schema": list("abcd")})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the detector was fitted without names
            explanation = detector.explain(frame)
        cells = explanation.table()
        assert isinstance(cells, make)
        wanted = ["row", "score", "column", "value", "usual", "low", "high", "excess", "rarity"]
        assert list(cells.columns) == wanted
        assert len(cells) == 12
    explanation = detector.explain(rows[:3])
    cells = explanation.table().pivot(index="row", columns="column", values="excess")
    np.testing.assert_array_equal(cells[explanation.names], explanation.excess)


def test_text_for_people(detector, rows):
    explanation = detector.explain(rows)
    assert len(explanation) == 200
    assert repr(explanation) == str(explanation)
    lines = str(explanation).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 190 more rows"
    assert re.match(r"row 0, score -\d\S+: column 2 -\S+ \(\S+( to \S+)? is usual", lines[0])
    still = explained(np.zeros((1, 2)), scores=np.zeros(1))
    assert still.top() == [[]]
    assert str(still) == "row 0, score 0: no column alone"
    moving = explained([[4.0, 14.1]], values=np.ones((1, 2)), high=np.array([[0.0, 0.5]]), telling=np.array([[-1, 0]]))
    assert moving.describe(0) == moving.describe(-1) == "b 1 (0 to 0.5 is usual for a 1); a 1 (0 is usual)"
    assert moving.describe(0, k=1) == "b 1 (0 to 0.5 is usual for a 1)"
    rare = explained([[0.0, 1.0]], rarity=np.array([[6.0, 0.0]]), values=np.array([["Tisch", 5.0]], dtype=object))
    rare.usual[0, 0] = rare.usual[0, 1]
    assert rare.describe(0) == "a rare kind of row: a Tisch (0 is usual)"
    for row in (1, -2):
        with pytest.raises(InputError, match="one of the 1 rows"):
            moving.describe(row)


def test_wrong_input(detector):
    with pytest.raises(NotFittedError):
        AnomalyDetector().explain([[1.0]])
    with pytest.raises(ValueError, match="3 features"):
        detector.explain([[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="column 1"):
        detector.explain([[1.0, np.inf, 3.0, 4.0]])


def test_pictures(detector, rows):
    pytest.importorskip("matplotlib")
    explanation = detector.explain(rows[:2])
    axes = explanation.plot()
    assert "column 2" in [label.get_text() for label in axes.get_yticklabels()]
    assert explanation.plot(axes, row=1) is axes
    with pytest.raises(InputError, match="row"):
        explanation.plot(row=2)


def test_matplotlib_is_only_wanted_for_pictures(detector, rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert detector.explain(rows[:1]).top(1) == [["column 2"]]


def test_the_usual_values_of_a_cell_depend_on_the_rest_of_the_row():
    """y is 10 x within 1: in a row with x = 2 and y = 90, values of y near 20 would be usual, and of x near 9."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, 300)
    X = np.column_stack([x, 10.0 * x + rng.normal(0.0, 1.0, 300)])
    found = AnomalyDetector(random_state=0).fit(X).explain([[2.0, 90.0]])
    assert 8.0 < found.low[0, 0] < found.high[0, 0] < 10.0
    assert 13.0 < found.low[0, 1] < 20.0 < found.high[0, 1] < 27.0
    assert (found.low <= found.usual).all()
    assert (found.usual <= found.high).all()
    assert re.search(r"column 0 2 \(8\S+ to 9\S+ is usual for column 1 90\)", found.describe(0))


def test_labels_of_an_index_name_the_rows():
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(60, 2)), index=pd.Index([f"s{i}" for i in range(60)], name="sample")
    )
    X.iloc[3] = 9.0
    found = AnomalyDetector(random_state=0).fit(X).anomalies(X)
    assert found.table()["sample"][0] == "s3"
    assert "The least likely one is sample s3" in found.text()


def test_two_mistyped_cells_that_agree_are_both_named():
    rng = np.random.default_rng(0)
    quantity, price = rng.integers(1, 9, 300), rng.choice([2.5, 3.2, 4.1], 300)
    table = pd.DataFrame(
        {"quantity": quantity, "price": price, "total": quantity * price, "town": rng.choice(["a", "b"], 300)}
    )
    table.loc[7, ["price", "total"]] = [250.0, 250.0 * table["quantity"][7]]
    found = AnomalyDetector(random_state=0).fit(table).explain(table[7:8])
    assert found.top(1)[0] == ["total"]
    assert "price" in found.top()[0]
    assert len(found.plot().get_yticklabels()) >= 1


def test_gaps_and_new_words_are_explained():
    rng = np.random.default_rng(1)
    words = {
        c: np.where(rng.uniform(size=80) < 0.5, None, np.array(list("abcdef"), dtype=object)[rng.integers(6, size=80)])
        for c in "uvw"
    }
    table = pd.DataFrame(words | {"t": rng.normal(size=80)})
    table.loc[::7, "t"] = np.nan
    detector = AnomalyDetector(random_state=0, n_jobs=1).fit(table)
    found = detector.explain(table)
    assert np.isfinite(found.excess).all()
    assert (found.excess[::7, 3] == 0.0).all()
    cells = set(found.usual[:, :3].ravel())
    assert cells <= {None, *"abcdef"}
    with pytest.warns(UserWarning, match="not among the training rows"):
        new = detector.explain(table[:1].assign(u="zebra"))
    assert new.top(1) == [["u"]]


def test_an_end_of_a_range_is_not_said_to_be_usual_and_shared_words_have_their_column():
    values = np.array([[1, "no", "no"], [12, "yes", "red"]], dtype=object)
    ends = {"usual": np.array([[0, "a", "b"], [7, "a", "b"]], dtype=object)}
    ends["low"], ends["high"] = ends["usual"].copy(), ends["usual"].copy()
    ends["low"][:, 0], ends["high"][:, 0] = [0, 3], [1, 20]
    telling = np.array([[1, -1, -1], [2, -1, -1]])
    explanation = explained([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]], values=values, telling=telling, **ends)
    assert explanation.describe(0) == "a 1 (0 is usual for b no)"
    assert explanation.describe(1) == "a 12 (3 to 20 is usual for red)"
