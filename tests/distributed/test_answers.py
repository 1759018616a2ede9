"""Answers for the rows of a Dask collection are those for the rows in memory, and are computed lazily."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from isopleth import KDE, LSDD, AnomalyDetector, DensityImputer, InputError, distributed

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

X = np.random.default_rng(0).normal(size=(120, 2))
FRAME = pd.DataFrame(X, columns=["a", "b"])
BAG = pytest.importorskip("dask.bag").from_sequence([[1.0, 2.0]])


@pytest.fixture(scope="module")
def models():
    detector = AnomalyDetector(n_estimators=10, max_samples=32, random_state=0).fit(X)
    return {
        "score_samples": KDE(frame="scale").fit(X),
        "grad_log_density": KDE(frame="scale").fit(X),
        "difference": LSDD(length_scale=1.0, alpha=0.1).fit(X, X + 1.0),
        "decision_function": detector,
        "p_values": detector,
        "predict": detector,
        "transform": DensityImputer(n_estimators=5, n_jobs=1).fit(X),
    }


@pytest.mark.parametrize("method", distributed.answers.__all__)
def test_answers_are_those_in_memory(models, method):
    model, answer = models[method], getattr(distributed, method)
    wanted = getattr(model, method)(X)
    lazy = answer(model, da.from_array(X, chunks=(50, 1)))
    assert lazy.shape == wanted.shape
    assert lazy.dtype == wanted.dtype
    np.testing.assert_allclose(lazy.compute(), wanted, rtol=1e-12)


@pytest.mark.parametrize("method", ["score_samples", "grad_log_density"])
def test_frames_of_unknown_length(method):
    model = KDE(frame="scale").fit(FRAME)
    table = dd.from_pandas(FRAME, npartitions=3)
    lazy = getattr(distributed, method)(model, table[table.a > 1.0])  # a partition may be empty
    assert np.isnan(lazy.shape[0])
    np.testing.assert_allclose(lazy.compute(), getattr(model, method)(FRAME[FRAME.a > 1.0]), rtol=1e-12)
    assert len(getattr(distributed, method)(model, table[table.a > 9.0]).compute()) == 0


def test_arrays_of_unknown_length_and_empty_partitions():
    model, lazy = KDE(frame="scale").fit(X), da.from_array(X, chunks=(50, 1))
    for least in (1.0, 9.0):
        answer = distributed.grad_log_density(model, lazy[lazy[:, 0] > least]).compute()
        np.testing.assert_allclose(answer, model.grad_log_density(X)[X[:, 0] > least], rtol=1e-12)


def test_another_fit_before_it_is_computed_changes_nothing():
    model = KDE(frame="scale").fit(X)
    wanted, lazy = model.score_samples(X), distributed.score_samples(model, da.from_array(X, chunks=(50, 2)))
    model.fit(X + 9.0)
    np.testing.assert_allclose(lazy.compute(), wanted, rtol=1e-12)


def test_the_model_is_in_the_graph_once():
    model = KDE(frame="scale").fit(X)
    graph = distributed.score_samples(model, da.from_array(X, chunks=(10, 2))).__dask_graph__()
    assert sum("KDE-" in str(key) for key in graph) == 1


def test_refusals(models):
    model, lazy = models["score_samples"], da.from_array(X, chunks=(50, 2))
    bad = X.copy()
    bad[70, 1] = np.nan
    with pytest.raises(InputError, match=r"partition 1: X contains NaN in column 1 \(1 row\)"):
        distributed.difference(models["difference"], da.from_array(bad, chunks=(50, 2))).compute()
    with pytest.raises(InputError, match="KDE has no p_values"):
        distributed.p_values(model, lazy)
    with pytest.raises(InputError, match="no Dask collection"):
        distributed.score_samples(model, X)
    with pytest.raises(InputError, match="1 columns; expected 2, as at fit"):
        distributed.score_samples(model, lazy[:, :1])
    for other, kind in (
        (lazy[:, 0], "Array of 1 dim"),
        (dd.from_pandas(FRAME, npartitions=2)["a"], "Series"),
        (BAG, "Bag"),
    ):
        with pytest.raises(InputError, match=f"the table of rows is {kind}"):
            distributed.score_samples(model, other)
    with pytest.raises(NotFittedError):
        distributed.score_samples(KDE(frame="scale"), lazy)
    with pytest.raises(
        InputError, match="has its columns in another order than at fit; expected 'a', 'b', in this order"
    ):
        distributed.score_samples(KDE(frame="scale").fit(FRAME), dd.from_pandas(FRAME[["b", "a"]], npartitions=2))
