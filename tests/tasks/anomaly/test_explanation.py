"""Explanations: the best value of each cell, compared with scores of changed rows and refits without a column."""

import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from isopleth import AnomalyDetector, load, save
from isopleth.core.errors import InputError
from isopleth.tasks.anomaly.explanation import MOST_VALUES, Counterfactuals, Explanation
from isopleth.tasks.anomaly.training_table import sums_of_others


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


def changed(row, column, values):
    out = np.tile(row, (len(values), 1))
    out[:, column] = values
    return out


def test_rises_of_new_rows_are_the_best_of_all_scores_of_moved_rows(detector):
    new = table(6, seed=5) * [1.0, 1.0, 3.0, 1.0]
    explanation = detector.explain(new)
    np.testing.assert_allclose(explanation.scores, detector.score_samples(new))
    values = detector._counterfactuals.values
    for i, row in enumerate(new):
        for j in range(4):
            gained = detector.score_samples(changed(row, j, values[:, j])) - explanation.scores[i]
            assert explanation.rise[i, j] == pytest.approx(max(0.0, gained.max()), abs=1e-9)
            if gained.max() > 0:
                assert explanation.best[i, j] == values[gained.argmax(), j]
            else:
                assert explanation.best[i, j] == row[j]


def test_rises_of_training_rows_are_by_the_rule_without_them(detector, rows):
    explanation = detector.explain(rows[:20])
    np.testing.assert_allclose(explanation.scores, detector.training_scores_[:20])
    z = detector._frame.enter(rows[:20])
    known = detector._index.find(z)
    assert (known >= 0).all()
    moved_to = detector._frame.enter(detector._counterfactuals.values)
    surprise = detector._rule.counterfactual_surprise(z, known, moved_to)
    for i in range(0, 20, 4):
        for j in range(4):
            gained = surprise[i, j, 0] - surprise[i, j, 1:].min()
            assert explanation.rise[i, j] == pytest.approx(max(0.0, gained), abs=1e-9)


def test_rows_of_common_values_are_judged_by_all_densities():
    X = np.concatenate([np.zeros((100, 2)), np.random.default_rng(0).normal(size=(60, 2))])
    detector = AnomalyDetector(n_estimators=25, random_state=0).fit(X)
    explanation = detector.explain([[0.0, 0.0], [0.0, 3.5]])
    np.testing.assert_allclose(explanation.scores, detector.score_samples([[0.0, 0.0], [0.0, 3.5]]))
    assert (explanation.rise[0] == 0.0).all()
    assert explanation.best[1, 1] == 0.0


def test_a_row_with_its_best_value_gains_nothing_more_there(detector):
    new = table(5, seed=9) * [1.0, 1.0, 4.0, 1.0]
    first = detector.explain(new)
    for j in range(4):
        better = new.copy()
        better[:, j] = first.best[:, j]
        again = detector.explain(better)
        np.testing.assert_array_equal(again.rise[:, j], 0.0)
        np.testing.assert_array_equal(again.best[:, j], better[:, j])
        np.testing.assert_allclose(again.scores, first.scores + first.rise[:, j])


def test_planted_columns_are_named(detector, rows):
    explanation = detector.explain(rows[:2])
    assert explanation.top(1)[0] == ["column 2"]
    assert set(explanation.top(2)[1]) == {"column 0", "column 1"}
    assert explanation.best[0, 2] == pytest.approx(-1.0, abs=0.05)


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
        ours += hits(planted, detector.explain(X[:6]).rise)
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
        np.testing.assert_allclose(alone.rise[0], together.rise[i], rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(alone.best[0], together.best[i])
    turned = detector.explain(mixed[::-1])
    np.testing.assert_allclose(turned.rise[::-1], together.rise, rtol=1e-9, atol=1e-9)


def test_threads_and_memory_limit_change_nothing(detector, rows):
    want = detector.explain(rows[:40])
    for parameters in ({"n_jobs": 1}, {"n_jobs": 2, "memory_limit": 1e5}):
        other = AnomalyDetector(n_estimators=60, random_state=0, **parameters).fit(rows)
        np.testing.assert_allclose(other.explain(rows[:40]).rise, want.rise, rtol=1e-9, atol=1e-9)


def test_explanations_follow_the_units_of_the_columns(detector, rows):
    scale, shift = np.array([1e-3, 1e4, 7.0, 1.0]), np.array([1e3, -5.0, 0.0, 1.0])
    other = AnomalyDetector(n_estimators=60, random_state=0).fit(rows * scale + shift)
    new = table(10, seed=3) * [1.0, 1.0, 3.0, 1.0]
    for X in (rows[:10], new):
        want, got = detector.explain(X), other.explain(X * scale + shift)
        np.testing.assert_allclose(got.rise, want.rise, rtol=1e-5, atol=1e-5)
        far = want.rise > 1e-3  # where a value is hardly better than the row's own, rounding decides between them
        np.testing.assert_allclose(got.best[far], (want.best * scale + shift)[far], rtol=1e-9)


@pytest.mark.parametrize("novelty", [False, True])
@pytest.mark.parametrize("constant", [0.0, -3e-9])
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
    step = len(detector._rule.kinds) * np.log(
        len(rows) + 1
    )  # the tail share of each kind of evidence is 1/(n + 1) of it
    np.testing.assert_allclose(found[2:], usual[2:] - step)  # another number, and a gap
    explanation = detector.explain(asked[:3])
    np.testing.assert_allclose(explanation.rise[:, 1], [0.0, 0.0, step], atol=1e-9)
    assert explanation.top(1)[2] == ["column 1"]
    assert (explanation.best[:, 1] == np.where(explanation.rise[:, 1] > 0.0, constant, cells[:3])).all()
    np.testing.assert_allclose(np.delete(explanation.rise, 1, axis=1), plain.explain(new[:3]).rise, atol=1e-9)
    save(detector, tmp_path / "d.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "d.isopleth").score_samples(asked), found)
    np.testing.assert_array_equal(detector.anomalies(asked).drawn[0], np.where(np.isnan(asked), constant, asked))


@pytest.mark.parametrize("wild", [1e9, 1e300])
def test_an_extreme_cell_is_the_reason_and_costs_the_others_no_digits(detector, wild):
    row = table(1, seed=8)
    row[0, 3] = wild
    explanation = detector.explain(row)
    assert explanation.top(1) == [["column 3"]]
    assert np.isfinite(explanation.rise).all()
    calm = row.copy()
    calm[0, 3] = explanation.best[0, 3]
    gained = [detector.score_samples(changed(calm[0], 3, [v]))[0] for v in detector._counterfactuals.values[:, 3]]
    assert max(gained) == pytest.approx(detector.score_samples(calm)[0], abs=1e-9)


def testsums_of_others_keep_the_small_beside_the_great():
    terms = np.array([1.0, 1e300, 1e-5, 3.0])[:, None]
    np.testing.assert_allclose(sums_of_others(terms)[:, 0], [1e300, 4.00001, 1e300, 1e300], rtol=1e-15)
    assert sums_of_others(np.array([[5.0]])).tolist() == [[0.0]]


def test_values_to_try_are_values_of_rows():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=500), rng.integers(0, 3, size=500), np.full(500, 2.5)]
    values = Counterfactuals.of(X, X.shape[1], X[:9]).values
    assert values.shape == (MOST_VALUES, 3)
    assert np.isin(values[:, 0], X[:, 0]).all()
    assert (values[0, 0], values[-1, 0]) == (X[:, 0].min(), X[:, 0].max())
    assert (np.diff(values[:, 0]) > 0).all()
    np.testing.assert_array_equal(np.unique(values[:, 1]), [0.0, 1.0, 2.0])
    assert (values[:, 2] == 2.5).all()
    np.testing.assert_array_equal(Counterfactuals.of(rng.permutation(X), X.shape[1], X[:9]).values, values)


def test_codes_are_explained_by_codes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(300, 1)).astype(float)
    X = np.c_[codes, 10.0 * codes + rng.normal(size=(300, 1))]
    X[0] = [0.0, 20.0]
    explanation = AnomalyDetector(n_estimators=100, random_state=0).fit(X).explain(X[:1])
    assert explanation.best[0, 0] == 2.0
    assert explanation.best[0, 1] == pytest.approx(0.0, abs=3.0)


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
    assert list(clean.evidence) == ["density", "rank density", "rank neighbours", "conditionals"]
    assert clean.top(1)[2] == ["column 3"]


def test_rises_that_are_equal_up_to_rounding_are_in_the_order_of_the_columns():
    rise = np.array([[1.0, 2.0, 2.0 + 1e-13, 0.0, 2.0 - 1e-12]])
    none = np.zeros((1, 5))
    evidence = {"joint": np.array([1.0]), "columns": np.array([1.0 + 1e-13])}
    explanation = Explanation(list("abcde"), none, rise, none, none, none, -np.ones(1), evidence)
    assert explanation.top(9) == [["b", "c", "e", "a"]]
    assert explanation.leading_evidence() == ["joint"]


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (lambda X: pd.DataFrame(X, columns=["height", "it's", "a b", "d"]), ["height", "it's", "a b", "d"]),
        (lambda X: pl.DataFrame(X, schema=["height", "it's", "a b", "d"]), ["height", "it's", "a b", "d"]),
        (pd.DataFrame, ["0", "1", "2", "3"]),
        (lambda X: X, ["column 0", "column 1", "column 2", "column 3"]),
        (lambda X: X.tolist(), ["column 0", "column 1", "column 2", "column 3"]),
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
        assert list(cells.columns) == ["row", "score", "column", "value", "best", "rise"]
        assert len(cells) == 12
    explanation = detector.explain(rows[:3])
    cells = explanation.table().pivot(index="row", columns="column", values="rise")
    np.testing.assert_array_equal(cells[explanation.names], explanation.rise)


def test_text_for_people(detector, rows):
    explanation = detector.explain(rows)
    assert len(explanation) == 200
    assert repr(explanation) == str(explanation)
    lines = str(explanation).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 190 more rows"
    assert re.fullmatch(
        r"row 0, score -\d\S+: column 2 -\S+ \(\S+( to \S+)? would be usual given the rest, \d+ % .*", lines[0]
    )
    names, none = ["a", "b"], np.zeros((1, 2))
    still = Explanation(names, none, none, none, none, none, np.zeros(1))
    assert still.top() == [[]]
    assert str(still) == "row 0, score 0: no column alone"
    moving = Explanation(
        names, np.ones((1, 2)), np.array([[2.0, 14.14]]), none, none, np.array([[0.0, 0.5]]), np.array([-20.0])
    )
    assert (
        moving.describe(0)
        == moving.describe(-1)
        == ("b 1 (0 to 0.5 would be usual given the rest, 71 % of the surprise); a 1 (0, 10 %)")
    )
    assert moving.describe(0, k=1) == "b 1 (0 to 0.5 would be usual given the rest, 71 % of the surprise)"
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
    assert (found.low <= found.best).all()
    assert (found.best <= found.high).all()
    assert re.search(
        r"column 0 2 \(8\S+ to 9\S+ would be usual given the rest, \d\d % of the surprise\)", found.describe(0)
    )
    assert re.search(r"; column 1 90 \(1\d\S* to 2\d\S*, \d\d %\)", found.describe(0))


def test_labels_of_an_index_name_the_rows():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(60, 2)), index=pd.Index([f"s{i}" for i in range(60)], name="sample")
    )
    X.iloc[3] = 9.0
    found = AnomalyDetector(random_state=0).fit(X).anomalies(X)
    assert found.table()["sample"][0] == "s3"
    assert "The least likely one is sample s3" in found.text()


def test_two_mistyped_cells_are_named_together():
    """Neither alone takes away much: the other one still makes the row as unlikely."""
    rng = np.random.default_rng(0)
    quantity, price = rng.integers(1, 9, 300), rng.choice([2.5, 3.2, 4.1], 300)
    table = pd.DataFrame(
        {"quantity": quantity, "price": price, "total": quantity * price, "town": rng.choice(["a", "b"], 300)}
    )
    table.loc[7, ["price", "total"]] = [250.0, 250.0 * table["quantity"][7]]
    detector = AnomalyDetector(random_state=0).fit(table)
    found = detector.explain(table[7:9])
    assert found.top(2)[0] == ["price", "total"]
    changed = table[7:8].astype({"quantity": float}).copy()
    changed[["price", "total"]] = found.together.best[0, [1, 2]].astype(float)
    least = detector.training_scores_[detector.training_labels_ > 0].min()
    assert detector.score_samples(table[7:8].assign(price=2.5))[0] < least  # the total is as wrong
    assert detector.score_samples(changed)[0] >= least
    assert " together (" in found.describe(0)
    assert "together" not in found.describe(1)
    np.testing.assert_array_equal(found.joint(1), [])
    assert len(found.plot().get_yticklabels()) >= 1


def test_a_row_is_explained_together_as_by_itself_and_in_any_order():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4))
    X[:3] += [[6.0, 6.0, 0.0, 0.0], [0.0, 5.0, 5.0, 5.0], [9.0, 0.0, 0.0, 0.0]]
    found = AnomalyDetector(random_state=0).fit(X).explain(X[:3])
    assert [list(found.joint(i)) for i in range(3)] == [[0, 1], [1, 2, 3], []]
    turned = AnomalyDetector(random_state=0).fit(X[::-1, ::-1]).explain(X[2::-1, ::-1])
    assert [sorted(3 - turned.joint(i)) for i in (2, 1, 0)] == [[0, 1], [1, 2, 3], []]


def test_a_changed_training_row_is_judged_by_the_rule_without_the_row():
    X = np.random.default_rng(0).normal(size=(80, 3))
    detector = AnomalyDetector(novelty=True, random_state=0).fit(X)
    rule, known = detector._rule, np.arange(6)
    rows = detector._frame.enter(X)[detector._index.find(detector._frame.enter(X)).argsort()][:6]
    changed = rows.copy()
    changed[:, 1] = 2.5
    after = rule.counterfactual_surprise(rows, known, np.full((1, 3), 2.5))
    np.testing.assert_allclose(rule.surprises(changed, known, detector._budget).sum(axis=1), after[:, 1, 1], rtol=1e-9)
    np.testing.assert_allclose(rule.surprises(rows, known, detector._budget).sum(axis=1), after[:, 1, 0], rtol=1e-9)
