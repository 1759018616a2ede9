"""Tasks that are fitted to a sample of a Dask collection answer as they do in memory; samples go by what rows hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from isopleth import (
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ConditionalDensity,
    DataWarning,
    DensityImputer,
    DriftMonitor,
    InputError,
    distributed,
    two_sample_test,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="sync"):
        yield


def table(n=240, seed=0):
    """Numbers, whole numbers, words and times with gaps; a name for each row."""
    rng = np.random.default_rng(seed)
    out = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n), "k": rng.integers(0, 9, n)})
    out["t"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n), "s")
    out["y"] = 2.0 * out.a + (out.b == "x") + 0.1 * rng.normal(size=n)
    out.loc[::7, "a"], out.loc[3::11, "b"] = np.nan, None
    return out


TABLE = table()
LAZY = dd.from_pandas(TABLE, npartitions=5)
HERE = LAZY.compute()


def test_an_imputer_and_its_filled_partitions_are_those_in_memory():
    model = distributed.fit(DensityImputer(n_estimators=10, n_jobs=1), LAZY)
    filled = distributed.transform(model, LAZY)
    assert filled.npartitions == 5
    known = DensityImputer(n_estimators=10, n_jobs=1).fit(HERE).transform(HERE)
    pd.testing.assert_frame_equal(filled.compute(), known, rtol=1e-9)
    assert not filled.compute().isna().to_numpy().any()


def test_gaps_of_an_array_are_filled_and_draws_of_partitions_differ():
    X = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0]
    X[:, 1] += np.random.default_rng(1).normal(size=60)
    X[[3, 33], 1], X[33, 0] = np.nan, X[3, 0]
    lazy = da.from_array(X, chunks=(30, 1))
    drawing = distributed.fit(DensityImputer("draw", n_estimators=5, n_jobs=1, random_state=0), lazy)
    filled = distributed.transform(drawing, lazy).compute()
    assert np.isfinite(filled).all()
    assert filled[3, 1] != filled[33, 1]
    np.testing.assert_array_equal(filled, distributed.transform(drawing, lazy).compute())


@pytest.mark.parametrize(("most", "fitted"), [(1000, 1000), (1000, 100), (120, 1000), (120, 100)])
def test_a_detector_of_words_times_and_gaps_is_that_in_memory(most, fitted):
    """Words that the sample of the columns lacks are known, and times begin with the earliest of all rows."""
    rare = TABLE.assign(b=TABLE.b.where(TABLE.index != 203, "rare"), a=TABLE.a.where(TABLE.index != 90, 9.0))
    lazy = dd.from_pandas(rare, npartitions=5)
    assert "rare" not in distributed.sample(lazy, 120).b.fillna("").tolist()
    detector = AnomalyDetector(max_fit_rows=fitted, n_estimators=5, random_state=0, n_jobs=1)
    here, there = distributed.fit(clone(detector), lazy, max_rows=most), clone(detector).fit(lazy.compute())
    np.testing.assert_allclose(here.training_scores_, there.training_scores_, rtol=1e-9)
    assert here.training_scores_.argmin() in (90, 203)
    asked = distributed.decision_function(here, lazy).compute()
    np.testing.assert_allclose(asked, there.decision_function(lazy.compute()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("as_name", [True, False])
def test_a_law_of_a_column_is_that_in_memory(as_name):
    X = LAZY.drop(columns="y")
    model = ConditionalDensity(n_estimators=10, random_state=0, n_jobs=1)
    here = distributed.fit(model, LAZY, "y") if as_name else distributed.fit(model, X, LAZY["y"])
    there = ConditionalDensity(n_estimators=10, random_state=0, n_jobs=1).fit(HERE.drop(columns="y"), HERE["y"])
    asked = distributed.predict(here, X).compute()
    np.testing.assert_allclose(asked, there.predict(HERE.drop(columns="y")), rtol=1e-9)


def test_words_are_predicted():
    X, words = np.random.default_rng(0).normal(size=(80, 2)), np.repeat(["no", "yes"], 40)
    X[:, 0] += 4.0 * (words == "yes")
    lazy = da.from_array(X, chunks=(30, 2))
    model = ConditionalDensity(n_estimators=5, random_state=0, n_jobs=1)
    found = distributed.predict(distributed.fit(model, lazy, da.from_array(words, chunks=30)), lazy).compute()
    assert (found == words).mean() > 0.9


def test_a_comparison_is_that_in_memory():
    Y = table(150, 1).assign(a=lambda frame: frame.a + 0.5)
    how = {"n_resamples": 49, "random_state": 0, "n_jobs": 1}
    here = distributed.two_sample_test(LAZY, dd.from_pandas(Y, npartitions=2), **how)
    there = two_sample_test(HERE, Y, **how)
    assert here.pvalue == there.pvalue
    assert here.statistic == pytest.approx(there.statistic, rel=1e-9)
    assert distributed.two_sample_test(LAZY, Y, **how).pvalue == there.pvalue


def test_a_monitor_takes_the_last_rows_in_their_order():
    how = {"window": 10, "expected_run_length": 100, "random_state": 0, "n_jobs": 1}
    reference = LAZY[["a", "b", "k"]]
    here = distributed.fit(DriftMonitor(**how), reference)
    there = DriftMonitor(**how).fit(HERE[["a", "b", "k"]])
    assert here.threshold_ == pytest.approx(there.threshold_, rel=1e-9)
    with pytest.warns(DataWarning, match="240 rows, of which 90 are used: the last rows"):
        few = distributed.fit(DriftMonitor(**how), reference, max_rows=90)
    assert few.has_reference(HERE[["a", "b", "k"]][-90:])


def rows_of(found):
    return found.sort_index().drop(columns="b").to_numpy(dtype=str).tolist(), found.sort_index().b.fillna("").tolist()


def test_samples_depend_on_neither_partitions_nor_orders():
    some = distributed.sample(LAZY, 60)
    assert 30 < len(some) < 90
    assert rows_of(distributed.sample(TABLE, 60)) == rows_of(some)
    assert rows_of(distributed.sample(LAZY.repartition(npartitions=2), 60)) == rows_of(some)
    other_order = TABLE.sample(frac=1.0, random_state=1)
    assert rows_of(distributed.sample(other_order, 60)) == rows_of(some)
    by_columns = distributed.sample(TABLE[TABLE.columns[::-1]], 60)
    assert rows_of(by_columns[TABLE.columns]) == rows_of(some)
    assert rows_of(distributed.sample(TABLE, 60, seed=1)) != rows_of(some)
    as_arrow = distributed.sample(pa.Table.from_pandas(TABLE), 60)
    assert rows_of(as_arrow.to_pandas().set_axis(some.sort_index().index)) == rows_of(some)
    nearly = TABLE.assign(a=TABLE.a * (1.0 + 1e-13), y=TABLE.y * (1.0 - 1e-13))
    assert distributed.sample(nearly, 60).index.equals(distributed.sample(TABLE, 60).index)


@pytest.mark.parametrize("kinds", [12, 400])
def test_copies_are_drawn_as_often_as_independent_rows(kinds):
    """Numbers of drawn copies have the mean and the variance of a binomial law, common rows and rare ones."""
    rng = np.random.default_rng(0)
    values = rng.choice(kinds, 3000, p=rng.dirichlet(np.ones(kinds)))
    X, counts = values[:, None] + [0.5, 2.5], np.bincount(values, minlength=kinds)
    samples = [distributed.sample(X, 600, seed=seed)[:, 0].astype(int) for seed in range(60)]
    drawn = np.array([np.bincount(found, minlength=kinds) for found in samples])
    assert (drawn <= counts).all()
    wanted = 0.2 * counts
    assert np.abs(drawn.mean(axis=0) - wanted).max() < 5.0 * np.sqrt(0.16 * counts.max() / 60)
    spread = ((drawn - wanted) ** 2).sum() / (60 * 0.16 * counts.sum())
    assert 0.8 < spread < 1.2


def test_rows_whose_cells_change_places_are_drawn_independently():
    """Numbers of drawn copies of (j, k) and (k, j) are not correlated."""
    X = np.random.default_rng(0).integers(4, size=(4000, 2)).astype(np.float64)
    drawn = np.zeros((100, 4, 4))
    for seed, counts in enumerate(drawn):
        np.add.at(counts, tuple(distributed.sample(X, 800, seed=seed).astype(int).T), 1.0)
    drawn -= drawn.mean(axis=0)
    above, below = (
        np.concatenate([part[:, j, k] for j in range(4) for k in range(j)]) for part in (drawn, drawn.swapaxes(1, 2))
    )
    assert abs(np.corrcoef(above, below)[0, 1]) < 0.2


def test_large_tables_are_fitted_to_their_sample():
    with pytest.warns(DataWarning, match="240 rows, of which 1.. are used: rows drawn by what they hold"):
        here = distributed.fit(DensityImputer(n_estimators=5, n_jobs=1), LAZY, max_rows=120)
    there = DensityImputer(n_estimators=5, n_jobs=1).fit(distributed.sample(HERE, 120))
    pd.testing.assert_frame_equal(here.transform(HERE), there.transform(HERE), rtol=1e-9)


def test_empty_partitions_and_masked_cells():
    X = da.ma.masked_greater(da.from_array(np.random.default_rng(0).normal(size=(90, 2)), chunks=(30, 2)), 1.5)
    kept = X[da.from_array(np.arange(90) >= 30, chunks=30)]
    filled = distributed.transform(distributed.fit(DensityImputer(n_estimators=5, n_jobs=1), kept), kept).compute()
    assert filled.shape == (60, 2)
    assert np.isfinite(np.asarray(filled)).all()


def test_what_cannot_be_asked_is_refused_in_a_sentence():
    X = da.from_array(np.random.default_rng(0).normal(size=(60, 2)), chunks=(30, 2))
    fit = distributed.fit
    refusals = [
        (lambda: fit(ChangePointDetector(), X), "a series is one"),
        (lambda: fit(CellwiseDetector(), X), "sample in memory, such as that of isopleth.distributed.sample"),
        (lambda: fit(ConditionalDensity(), X), "pass the target as Y"),
        (lambda: fit(ConditionalDensity(), X, "y"), "no column 'y'"),
        (lambda: fit(ConditionalDensity(), X, X), "expected a one-dimensional dask.array"),
        (lambda: fit(ConditionalDensity(), X, X[:30, 0]), "2 and 1 partitions"),
        (
            lambda: fit(ConditionalDensity(), X, X[:, 0].rechunk(((10, 50),))),
            "partition [01]: X has 30 rows and its target [15]0",
        ),
        (lambda: fit(ConditionalDensity(), X, np.ones(60)), "Dask collection and one in memory"),
        (lambda: fit(DensityImputer(), X, X[:, 0]), "leave Y out"),
        (lambda: fit(DriftMonitor(), X, X), "leave Y out"),
        (lambda: fit(DensityImputer(), X, sample_weight=X[:, 0]), "no weights"),
        (lambda: fit(DensityImputer(), X, max_rows=0), "max_rows"),
        (lambda: fit(DensityImputer(), np.ones((3, 2))), "rows in memory by its own fit"),
        (lambda: distributed.two_sample_test(X, X, groups=(1, 2)), "tears them apart"),
        (lambda: distributed.two_sample_test(X, X[:, :1]), "features"),
        (lambda: distributed.transform(ConditionalDensity(), X), "fills no cells"),
        (lambda: distributed.transform(DensityImputer().fit(np.ones((3, 2))), X[:, :1]), "1 columns; expected 2"),
        (lambda: distributed.transform(DensityImputer().fit(np.ones((3, 2))), np.ones((3, 2))), "no Dask collection"),
        (lambda: distributed.sample(3.0), "expected a table"),
        (lambda: two_sample_test(LAZY, LAZY), "or a Dask frame to the functions of isopleth.distributed"),
    ]
    for attempt, said in refusals:
        with pytest.raises(InputError, match=said):
            attempt()


def test_rows_that_a_model_refuses_are_named_with_their_partition():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = DensityImputer(n_estimators=5, n_jobs=1).fit(X)
    X[45, 1] = np.inf
    with pytest.raises(InputError, match=r"partition 1: .*inf"):
        distributed.transform(model, da.from_array(X, chunks=(30, 2))).compute()
