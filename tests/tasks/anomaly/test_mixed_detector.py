"""The detector on tables with words, truth values, times and missing cells."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from isopleth import AnomalyDetector, DataWarning, InputError, load, read_table, save
from isopleth.core.budget import Budget
from isopleth.tasks.anomaly.covariance import CovarianceEvidence, Indicators
from isopleth.tasks.anomaly.pooled_rule import CategoryShares, ColumnTails
from isopleth.tasks.anomaly.training_table import (
    NEW,
    CategoryColumns,
    TrainingTable,
    distances_between,
)

LIMITS = Budget(2.0**30, 1)
N = 200


def mixed(n=N, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["bike", "car", "tram"], size=n, p=[0.5, 0.4, 0.1])
    X = pd.DataFrame(
        {
            "kind": kind,
            "speed": rng.normal(np.where(kind == "bike", 18.0, 60.0), 4.0),
            "lit": rng.random(n) < 0.3,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5000, size=n), unit="h"),
            "load": rng.normal(size=n),
        }
    )
    X.loc[0, "kind"] = "ship"  # a word of its own
    X.loc[1, ["kind", "speed"]] = ["bike", 70.0]  # a broken relation
    X.loc[2, "load"] = 9.0
    X.loc[10::7, "load"] = np.nan
    X.loc[11::9, "kind"] = None
    return X


@pytest.fixture(scope="module", params=[False, True], ids=["pooled", "novelty"])
def fitted(request):
    return AnomalyDetector(novelty=request.param, random_state=0).fit(mixed())


def test_planted_anomalies_are_found(fitted):
    y = np.arange(N) < 3
    assert roc_auc_score(y, -fitted.training_scores_) > 0.93


def test_methods_agree(fitted):
    X = mixed()
    np.testing.assert_allclose(fitted.score_samples(X), fitted.training_scores_, rtol=1e-9)
    np.testing.assert_allclose(fitted.decision_function(X), fitted.training_scores_ - fitted.offset_, rtol=1e-9)
    np.testing.assert_array_equal(fitted.predict(X), fitted.training_labels_)
    assert fitted.select().dtype == bool
    for values in (fitted.p_values(X), fitted.anomaly_probability(X), fitted.select(X)):
        assert np.isfinite(values).all()
        assert values.shape == (N,)
    one_by_one = np.concatenate([fitted.score_samples(X.iloc[[i]]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, fitted.training_scores_[:20], rtol=1e-9)


def test_files_explain_alike_and_the_order_of_rows_does_not_matter(fitted, tmp_path):
    X = mixed()
    save(fitted, tmp_path / "m.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "m.isopleth").explain(X[:3]).excess, fitted.explain(X[:3]).excess)
    order = np.random.default_rng(1).permutation(N)
    shuffled = AnomalyDetector(novelty=fitted.novelty, random_state=0).fit(X.iloc[order])
    np.testing.assert_allclose(shuffled.training_scores_, fitted.training_scores_[order], rtol=1e-9)


def test_new_words_are_unlikely_and_unlike_words_all_alike(fitted):
    X = mixed().iloc[[30, 30, 30]].reset_index(drop=True).assign(kind=["plane", "rocket", "car"])
    with pytest.warns(DataWarning):
        plane, rocket, car = fitted.score_samples(X)
    assert plane == rocket
    assert plane < car - 2.0


def test_explanations_name_words_and_gaps(fitted):
    X = mixed()
    explanation = fitted.explain(X.iloc[[0, 2, 10]])
    assert explanation.names == list(X.columns)
    assert explanation.top(k=1)[:2] == [["kind"], ["load"]]
    assert explanation.describe(0, k=1).startswith("kind ship (")
    assert explanation.describe(1, k=1).startswith("load 9 (")
    assert explanation.values[2, 4] is None
    assert explanation.excess[2, 4] == 0.0  # a gap
    assert explanation.values[0, 3] == X.when[0]
    frame = explanation.table()
    assert frame.value[0] == "ship"
    assert (explanation.excess >= 0.0).all()
    axes = explanation.plot()
    assert "kind" in [label.get_text() for label in axes.get_yticklabels()]


def test_arrays_with_gaps_and_named_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(N, 3)), rng.integers(0, 3, size=N)])
    X[5, 3] = 7.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[5, 3] = 7.0
    plain, named = (AnomalyDetector(random_state=0, categorical=c).fit(X) for c in (None, [3]))
    assert (plain.training_scores_ != named.training_scores_).any()
    np.testing.assert_allclose(named.score_samples(X), named.training_scores_, rtol=1e-9)
    explanation = named.explain(X[5:6])
    assert explanation.names == ["column 0", "column 1", "column 2", "column 3"]
    assert "column 3 7 (" in explanation.describe(0)
    missing = plain.explain(X[np.isnan(X[:, 0])][:1])
    assert np.isnan(missing.values[0, 0])


def test_tensors_with_gaps():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[::5, 1] = np.nan
    tensor = AnomalyDetector(random_state=0).fit(torch.tensor(X))
    np.testing.assert_array_equal(
        tensor.training_scores_.numpy(), AnomalyDetector(random_state=0).fit(X).training_scores_
    )


@pytest.mark.parametrize("novelty", [False, True])
def test_hard_tables(novelty):
    rng = np.random.default_rng(0)
    many = pd.DataFrame({"u": [f"w{i}" for i in rng.integers(0, 10_000, size=900)], "x": rng.normal(size=900)})
    words = pd.DataFrame({"u": list("ab") * 20, "v": list("aabb") * 10})
    empty_row = pd.DataFrame({"x": [np.nan, *rng.normal(size=39)], "y": [np.nan, *rng.normal(size=39)]})
    alone = pd.DataFrame({"x": rng.normal(size=40), "u": ["a"] * 39 + ["b"]})
    for table in (many, words, empty_row, alone):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            detector = AnomalyDetector(novelty=novelty, random_state=0).fit(table)
        assert np.isfinite(detector.training_scores_).all()
        assert np.isfinite(detector.explain(table[:3]).excess).all()
    assert np.argmin(detector.training_scores_) == 39


def test_a_missing_cell_where_training_rows_had_none():
    X = mixed().dropna().reset_index(drop=True)
    detector = AnomalyDetector(random_state=0).fit(X)
    new = X.iloc[[20]].assign(load=0.0)
    gone = new.assign(kind=None), new.assign(load=np.nan), new.assign(speed=np.nan)
    for table in gone:  # a gap says little
        assert detector.score_samples(table)[0] > detector.offset_


def test_nothing_varies():
    with pytest.raises(InputError, match="two rows that differ"):
        AnomalyDetector().fit(np.array([[1.0, np.nan], [1.0, 2.0]]))
    with pytest.warns(DataWarning, match="constant columns are dropped: column 1"):
        AnomalyDetector(random_state=0).fit(np.column_stack([np.arange(9.0), np.full(9, np.nan)]))
    one = AnomalyDetector(random_state=0).fit(np.column_stack([np.arange(9.0), [np.nan, *np.ones(8)]]))
    ordinary, gone, other = one.score_samples([[4.5, 1.0], [4.5, np.nan], [4.5, 2.0]])
    assert ordinary == gone > other


def test_gaps_cost_little_where_columns_say_the_same():
    """Missing cells count with what the other cells of the row say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 1)) + 0.3 * rng.normal(size=(500, 6))
    X[:15] += rng.choice([-1.0, 1.0], size=(15, 6))  # relations broken
    y = np.arange(500) < 15
    complete = roc_auc_score(y, -AnomalyDetector(random_state=0).fit(X).training_scores_)
    gone = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    filled = np.where(np.isnan(gone), np.nanmean(gone, axis=0), gone)
    with_gaps, with_means = (
        roc_auc_score(y, -AnomalyDetector(random_state=0).fit(Z).training_scores_) for Z in (gone, filled)
    )
    assert with_gaps > complete - 0.1
    assert with_gaps > with_means + 0.03


# ---- the parts -----------------------------------------------------------------------------------------------------------


def encoded(n=60, seed=0):
    """Two numeric columns, of which one has gaps, and codes of two categories."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, size=n), rng.integers(0, 2, size=n)])
    X[::8, 1] = np.nan
    return X


def test_distances_of_numbers_and_words():
    rows, centers = np.nan_to_num(encoded(9)), np.nan_to_num(encoded(4, seed=1))
    mismatch = np.array([1.5, 0.7])
    by_hand = [
        [np.abs(c[:2] - x[:2]).sum() + 1.5 * (c[2] != x[2]) + 0.7 * (c[3] != x[3]) for x in rows] for c in centers
    ]
    np.testing.assert_allclose(distances_between(centers, rows, mismatch), by_hand)


def test_a_column_of_categories_counts_as_one_of_numbers():
    categories = CategoryColumns(0, [np.array([50.0, 50.0]), np.array([99.0, 1.0])])
    even, rare = categories.mismatch
    assert even == pytest.approx(1 / np.sqrt(0.5))
    assert rare == pytest.approx(1 / np.sqrt(2 * 0.99 * 0.01))


def test_indicators():
    weights = np.array([3.0, 0.0, 1.0])
    indicators = Indicators.of(CategoryColumns(1, [weights]))
    s = np.sqrt(0.75 * 0.25 * 2)
    expanded = indicators.expand(np.array([[5.0, 0.0], [6.0, 2.0], [7.0, 9.0]]))
    np.testing.assert_allclose(expanded, [[5, 1 / s, 0, 0, 0], [6, 0, 0, 1 / s, 0], [7, 0, 0, 0, 1 / s]])
    shares = np.array([0.75, 0.2, 0.25, 0.2])  # 1/(4 + 1) for what no row has
    np.testing.assert_allclose(indicators.floors, [0.0, *(shares * (1 - shares) / s**2)])
    many = Indicators.of(CategoryColumns(0, [np.arange(1.0, 101.0)]))
    assert many.expand(np.arange(100.0)[:, None]).shape == (100, 33)
    assert (many.vectors(0, np.array([0.0, 50.0]))[:, -1] > 0).all()  # rare ones share an indicator


def test_gaps_have_conditional_means_and_distances_of_the_known_cells():
    table = TrainingTable.of(encoded(), 2)
    ellipsoid, _ = CovarianceEvidence.fit(table, LIMITS)
    filled = ellipsoid.fill(table.rows, LIMITS)
    np.testing.assert_array_equal(filled[~np.isnan(table.rows)], table.rows[~np.isnan(table.rows)])
    covariance = ellipsoid.factor @ ellipsoid.factor.T
    row = np.flatnonzero(np.isnan(table.rows[:, 1]))[0]
    z = ellipsoid.indicators.expand(table.rows[row : row + 1] / ellipsoid.scale)[0]
    seen, gone = np.flatnonzero(~np.isnan(z)), np.flatnonzero(np.isnan(z))
    u = z[seen] - ellipsoid.centre[seen]
    solved = np.linalg.solve(covariance[np.ix_(seen, seen)], u)
    mean = ellipsoid.centre[gone] + covariance[np.ix_(gone, seen)] @ solved
    np.testing.assert_allclose(filled[row, 1] / ellipsoid.scale[1], mean[0], rtol=1e-8)
    q = ellipsoid.evidence(filled[row : row + 1], np.array([NEW]), LIMITS)
    assert q[0] == pytest.approx(u @ solved, rel=1e-8)


def test_column_evidence_of_words_and_gaps():
    X = encoded()
    table = TrainingTable.of(X, 2)
    tails, _ = ColumnTails.fit(table)
    assert isinstance(tails.laws[2], CategoryShares)
    codes, new = np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4)
    counts = np.array([(X[:, 2] == c).sum() for c in codes])
    np.testing.assert_allclose(tails.terms(2, codes, new), -np.log((counts + 1) / (len(X) + 1)))
    own = np.ones(4)
    np.testing.assert_allclose(tails.terms(2, codes, own), -np.log(np.maximum(counts, 1) / len(X)))
    known = X[~np.isnan(X[:, 1]), 1]
    rank = np.argsort(np.argsort(known)) + 1.0
    share = np.minimum(2 * np.minimum(rank, len(known) - rank + 1) / len(known), 1.0)
    assert tails.terms(1, np.array([np.nan]), np.zeros(1))[0] == pytest.approx(-np.log(share).mean())


def test_rows_with_gaps_are_merged_if_they_agree_and_count_in_full():
    X = np.array([[1.0, np.nan]] * 3 + [[1.0, 2.0]] * 3 + [[3.0, np.nan], [np.nan, 2.0]])
    table = TrainingTable.of(X)
    assert len(table.rows) == 4
    gaps = table.rows[table.place[0]]
    assert gaps[0] == 1.0
    assert np.isnan(gaps[1])
    assert table.weights[table.place[0]] == 3.0  # rows with gaps need not be copies
    assert table.weights[table.place[3]] == 1.0  # a few copies are one observation
    assert (table.index.find(X) >= 0).tolist() == [False] * 3 + [True] * 5


def test_times_beyond_those_of_the_fit_are_named():
    """Rows of the next month are all odd by their date; that is said, with the way out."""
    rng = np.random.default_rng(0)
    march, april = (
        pd.DataFrame(
            {"day": pd.Timestamp(start) + pd.to_timedelta(rng.integers(0, 28, 60), unit="D"), "x": rng.normal(size=60)}
        )
        for start in ("2024-03-01", "2024-04-01")
    )
    detector = AnomalyDetector(random_state=0).fit(march)
    for judged in (detector.predict, detector.p_values, detector.anomalies):
        with pytest.warns(
            DataWarning, match="column 'day': nearly all times are later than those of the fit; fit without it"
        ) as told:
            found = judged(april)
        assert len(told) == 1
    assert "if ordinary rows come from the distribution of the fitted ones" in " ".join(found._notes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = detector.anomalies(march)
    assert "fall off beyond the others" in " ".join(again._notes())


@pytest.mark.parametrize("novelty", [False, True])
def test_any_cell_that_no_training_row_has_in_a_constant_column_counts_alike(novelty, tmp_path):
    """A frame, and the same columns of a file, whose schema travels with the model."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    X = X.assign(word="calm", flag=True, day=pd.Timestamp("2024-01-01"), number=3.0)
    settings = {"novelty": novelty, "fast": True, "n_estimators": 20, "random_state": 0}
    numbers = AnomalyDetector(**settings).fit(X[["a", "b"]])
    detector = AnomalyDetector(**settings).fit(X)
    np.testing.assert_allclose(detector.training_scores_, numbers.training_scores_, rtol=1e-9)
    new = pd.concat([X.iloc[[0]].assign(a=0.1)] * 9, ignore_index=True).astype({"word": object, "flag": object})
    cells = {"word": "rough", "flag": False, "day": pd.Timestamp("2024-01-02"), "number": 4.0}
    for row, (name, cell) in enumerate(cells.items(), 1):
        new.loc[row, name], new.loc[row + 4, name] = cell, None
    with pytest.warns(DataWarning, match="'word' \\(1\\), 'flag' \\(1\\)"):
        scores = detector.score_samples(new)
    step = len(detector._rule.kinds) * np.log(61.0)
    np.testing.assert_allclose(scores, numbers.score_samples(new[["a", "b"]]) - step * (np.arange(9) > 0), rtol=1e-9)
    for name, table in (("usual", X), ("new", new)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.warns(DataWarning, match="one value only"):
        usual = read_table(tmp_path / "usual.csv")
    save(AnomalyDetector(**settings).fit(usual), tmp_path / "d.isopleth")
    model = load(tmp_path / "d.isopleth")
    with pytest.warns(DataWarning, match="were not among"):
        np.testing.assert_allclose(model.score_samples(new), scores, rtol=1e-9)


def test_a_missing_word_in_a_column_that_was_whole_is_told():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(["x", "y"], 60, p=[0.7, 0.3]), "b": rng.normal(size=60)})
    detector = AnomalyDetector(n_estimators=25, random_state=0).fit(rows)
    asked = pd.DataFrame({"a": ["x", None], "b": [0.0, 0.0]})
    with pytest.warns(match="words are missing in 'a'.*most frequent word"):
        scores = detector.score_samples(asked)
    assert scores[0] == scores[1]
