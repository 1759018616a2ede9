"""Fits to Dask collections are those of one machine, also if workers are lost."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest
from sklearn.base import clone

from isopleth import (
    KDE,
    LSDD,
    AnomalyDetector,
    DataWarning,
    DensityImputer,
    InputError,
    NystromKEF,
    RandomFeatureSOSREP,
    Search,
    distributed,
)
from isopleth.score import Tikhonov

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")
workers = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
DaskParts = pytest.importorskip("isopleth.distributed.dask_parts").DaskParts


@pytest.fixture(scope="module")
def cluster():
    """A client of two worker processes on this machine that nobody has asked for by default."""
    patient = {
        "distributed.comm.timeouts.connect": "30s",  # connections to a worker that was killed are tried again until then
        "distributed.comm.timeouts.tcp": "300s",  # machines are busy
        # Workers fork from a process that has imported what they need: imports take a new process seconds.
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    alone = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with dask.config.set(patient):
        workers.utils.get_mp_context()  # sets a list of its own
        multiprocessing.set_forkserver_preload(["dask.dataframe", "isopleth.distributed.dask_parts", "sklearn.cluster"])
        with (
            workers.LocalCluster(**alone, processes=True, silence_logs=logging.CRITICAL) as two,
            workers.Client(two, set_as_default=False) as found,
        ):
            yield found


@pytest.fixture
def client(cluster):
    """The client, as a user has it."""
    with cluster.as_current():
        yield cluster


def rows(n=900, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 5.0, -3.0]


QUERY = rows(50, 9)


def density(**options):
    return RandomFeatureSOSREP(**{"n_frequencies": 40, "random_state": 0, **options})


def score():
    return NystromKEF(regularizer=Tikhonov(1e-3), landmarks=rows(20, 5), length_scale=[2.0, 4.0, 1.0])


def contrast():
    return LSDD(length_scale=[1.0, 2.0, 0.5], alpha=0.1, centers=rows(20, 5))


def in_parts(X, chunk=250):
    return da.from_array(X, chunks=(chunk, 2))


def assert_same(one, other, rtol=1e-10):
    """Finite answers alike; and each finite where the other is."""
    assert (np.isfinite(one) == np.isfinite(other)).all()
    known = np.isfinite(one)
    assert known.any()
    np.testing.assert_allclose(np.asarray(one)[known], np.asarray(other)[known], rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "options", [{}, {"length_scale": 1.5}, {"length_scale": "median"}, {"bounds": {1: (-20, None)}}]
)
def test_a_density_is_that_of_one_machine(client, options):
    X = rows()
    there, here = density(**options).fit(X), distributed.fit(density(**options), in_parts(X))
    assert_same(here.score_samples(QUERY), there.score_samples(QUERY))
    assert_same(here.length_scale_, there.length_scale_)
    for name in ("log_normalizer_", "share_below_noise_", "approximation_error_"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), rel=1e-10)
    assert here.n_iter_ == there.n_iter_
    assert here.n_features_in_ == 3


@pytest.mark.slow
def test_a_score_is_that_of_one_machine(client):
    X = rows()
    here, there = distributed.fit(score(), in_parts(X)), score().fit(X)
    assert_same(here.grad_log_density(QUERY), there.grad_log_density(QUERY))


def test_a_difference_is_that_of_one_machine(client):
    X, Y = rows(), rows(700, 1) + 0.3
    here, there = distributed.fit(contrast(), in_parts(X), in_parts(Y, 300)), contrast().fit(X, Y)
    assert_same(here.difference(QUERY), there.difference(QUERY))


def test_frames_with_names_and_weights(client):
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    weights = pd.Series(np.arange(900) % 4.0)
    table = dd.from_pandas(X.assign(w=weights), npartitions=4)
    here = distributed.fit(density(), table[["a", "b", "c"]], sample_weight=table["w"])
    there = density().fit(X, sample_weight=weights)
    frame = pd.DataFrame(QUERY, columns=["a", "b", "c"])
    assert_same(here.score_samples(frame), there.score_samples(frame))
    assert list(here.feature_names_in_) == ["a", "b", "c"]


def test_lengths_of_partitions_need_not_be_known():
    X, w = rows(), np.arange(900) % 3.0
    lazy = in_parts(X)
    chosen, weights = lazy[lazy[:, 0] > 0.0], da.from_array(w, chunks=250)[lazy[:, 0] > 0.0]
    assert np.isnan(chosen.shape[0])
    here = distributed.fit(density(length_scale=1.5), chosen, sample_weight=weights)
    there = density(length_scale=1.5).fit(X[X[:, 0] > 0.0], sample_weight=w[X[:, 0] > 0.0])
    assert_same(here.score_samples(QUERY), there.score_samples(QUERY))


def test_partitions_of_many_sizes_and_empty_ones(client):
    X = rows()
    lazy = da.from_array(X, chunks=((1, 2, 400, 497), 3))
    few = lazy[lazy[:, 0] > 1.0]
    assert_same(
        distributed.fit(density(length_scale=1.5), few).score_samples(QUERY),
        density(length_scale=1.5).fit(X[X[:, 0] > 1.0]).score_samples(QUERY),
    )


def test_no_more_than_sums_and_a_sample_travels(monkeypatch):
    sums, sizes = DaskParts.sums, []

    def watched(self, start, add):
        found = sums(self, start, add)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(DaskParts, "sums", watched)
    model = distributed.fit(density(length_scale=1.5), in_parts(rows(4_000), 1_000))
    assert len(sizes) == 1 + model.n_iter_
    assert sizes[0] < 8 * 2001 * (3 + 2) + 5_000  # rows, weights and keys
    assert max(sizes[1:]) < 8 * 80**2 + 8_000


def test_the_same_bits_every_time_with_and_without_a_cluster(cluster):
    X = in_parts(rows(), 60)  # more partitions than are merged at once
    model = density(length_scale=1.5)
    alone = distributed.fit(clone(model), X).coef_
    with cluster.as_current():
        np.testing.assert_array_equal(distributed.fit(clone(model), X).coef_, alone)


def test_answers_of_workers_are_those_in_memory(client):
    model = density(length_scale=1.5).fit(rows())
    assert_same(distributed.score_samples(model, in_parts(QUERY, 20)).compute(), model.score_samples(QUERY), 1e-12)


def test_a_killed_worker_changes_nothing(client, tmp_path):
    """One process takes its own life in the third pass; its work is done again by others."""
    marker, X = tmp_path / "passes", in_parts(rows()).rechunk((250, 3))

    def dies(block, block_id=None):
        if block_id == (2, 0):
            passes = int(marker.read_text()) if marker.exists() else 0
            marker.write_text(str(passes + 1))
            if passes == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    model = density(length_scale=1.5)
    pids = set(client.run(os.getpid).values())
    found = distributed.fit(clone(model), X.map_blocks(dies, dtype=float))
    assert int(marker.read_text()) > 1 + found.n_iter_  # it happened
    client.wait_for_workers(2, timeout=300)
    assert set(client.run(os.getpid).values()) != pids
    np.testing.assert_array_equal(found.coef_, distributed.fit(clone(model), X).coef_)


@pytest.mark.parametrize("most", [300, 5000])
def test_a_detector_is_that_of_one_machine_though_a_worker_is_killed(client, tmp_path, most):
    """Rows of the sample go by their contents; a process takes its own life in the last pass, that of the scores."""
    marker, X = tmp_path / "passes", np.concatenate([rows(), [[9.0, -30.0, 4.0]]])

    def dies(block, block_id=None):
        if block_id == (1, 0):
            passes = int(marker.read_text()) if marker.exists() else 0
            marker.write_text(str(passes + 1))
            if passes == (2 if most < len(X) else 1):
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    detector = AnomalyDetector(max_fit_rows=most, n_estimators=10, random_state=0)
    blocks = da.from_array(X, chunks=(300, 3)).map_blocks(dies, dtype=float)
    here, there = distributed.fit(clone(detector), blocks), clone(detector).fit(X)
    assert int(marker.read_text()) > (3 if most < len(X) else 2)  # it happened
    client.wait_for_workers(2, timeout=300)
    np.testing.assert_allclose(here.training_scores_, there.training_scores_, rtol=1e-9)
    np.testing.assert_allclose(here.p_values_, there.p_values_, rtol=1e-9)
    assert here.training_scores_.argmin() == 900
    lazy = distributed.decision_function(here, da.from_array(QUERY, chunks=(20, 3)))
    np.testing.assert_allclose(lazy.compute(), there.decision_function(QUERY), rtol=1e-9, atol=1e-9)


def test_a_sample_is_that_of_one_machine_though_a_worker_is_killed(client, tmp_path):
    """A process takes its own life in the second of three passes, that of the keys; then partitions are filled."""
    marker, X = tmp_path / "passes", rows()
    X[::9, 1] = np.nan

    def dies(block, block_id=None):
        if block_id == (1, 0):
            passes = int(marker.read_text()) if marker.exists() else 0
            marker.write_text(str(passes + 1))
            if passes == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    imputer = DensityImputer(n_estimators=5, n_jobs=1)
    blocks = da.from_array(X, chunks=(300, 3)).map_blocks(dies, dtype=float)
    with pytest.warns(DataWarning, match="900 rows, of which"):
        here = distributed.fit(clone(imputer), blocks, max_rows=200)
    assert int(marker.read_text()) > 3  # it happened
    client.wait_for_workers(2, timeout=300)
    there = clone(imputer).fit(distributed.sample(X, 200))
    filled = distributed.transform(here, da.from_array(X, chunks=(200, 3))).compute()
    np.testing.assert_allclose(filled, there.transform(X), rtol=1e-9)


def spoiled(value, j=1):
    X = rows()
    X[600, j] = value
    return X


@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN in column 1"), (-np.inf, "inf in column 1")])
def test_cells_that_are_not_finite_are_named_with_their_partition(client, value, said):
    with pytest.raises(InputError, match=rf"X contains {said} \(1 row in partition 2\)"):
        distributed.fit(density(), in_parts(spoiled(value)))


def test_columns_of_frames_are_named():
    table = dd.from_pandas(pd.DataFrame(spoiled(np.nan), columns=["a", "b", "c"]), npartitions=3)
    with pytest.raises(InputError, match=r"NaN in 'b' \(1 row in partition [12]\)"):
        distributed.fit(density(), table)
    with pytest.raises(InputError, match="other than numbers in column 'd'"):
        distributed.fit(density(), dd.from_pandas(pd.DataFrame({"c": [1.0, 2.0], "d": ["x", "y"]}), npartitions=1))
    holes = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 5.0]})
    with pytest.raises(InputError, match=r"NaN in 'a' \(1 row in partition 0\)"):
        distributed.fit(density(), dd.from_pandas(holes, npartitions=1))
    numbered = dd.from_pandas(pd.DataFrame(spoiled(np.nan), columns=[5, 7, 9]), npartitions=1)
    with pytest.raises(InputError, match=r"NaN in '7' \(1 row in partition 0\)"):
        distributed.fit(density(), numbered)
    twice = dd.from_pandas(pd.DataFrame(rows(), columns=["a", "b", "b"]), npartitions=1)
    with pytest.raises(InputError, match="several columns named 'b'"):
        distributed.fit(density(), twice)


def test_masked_cells_are_no_numbers():
    with pytest.raises(InputError, match=r"X has \d+ masked cells in partition \d"):
        distributed.fit(density(), da.ma.masked_greater(in_parts(rows()), 1.0))


def test_rows_beyond_a_bound_are_named_with_their_partition():
    with pytest.raises(InputError, match=r"partition 2: X has -99.0 in column 1, on or beyond its bounds"):
        distributed.fit(density(bounds={1: (-20, None)}), in_parts(spoiled(-99.0)))


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.r_[np.ones(899), -1.0], "partition 3: sample_weight is negative in 1 row"),
        (np.zeros(900), "no rows of positive weight"),
        (np.ones(800), "partitions of other lengths"),
    ],
)
def test_weights_that_are_none(weights, said):
    with pytest.raises(InputError, match=said):
        distributed.fit(density(), in_parts(rows()), sample_weight=da.from_array(weights, chunks=250))


def test_what_cannot_be_fitted():
    X = in_parts(rows())
    refusals = [
        (lambda: distributed.fit(density(length_scale=Search()), X), "search on a sample"),
        (lambda: distributed.fit(KDE(), X), "KDE is not fitted to rows in parts"),
        (lambda: distributed.fit(AnomalyDetector(novelty=True), X), "novelty=True is fitted to a reference in memory"),
        (lambda: distributed.fit(AnomalyDetector(), X, sample_weight=X[:, 0]), "takes no weights"),
        (lambda: distributed.fit(density(), rows()), "rows in memory go to the estimator's own fit"),
        (lambda: distributed.fit(density(), X, X), "leave Y"),
        (lambda: distributed.fit(contrast(), X), "pass Y"),
        (lambda: distributed.fit(density(), DaskParts(X), sample_weight=X[:, 0]), "weights of its own"),
        (lambda: distributed.fit(density(), X[:, 0]), "Array of 1 dimensions; expected a two-dimensional"),
        (lambda: distributed.fit(density(), X.to_dask_dataframe()[0]), "Series; expected a two-dimensional"),
        (lambda: distributed.fit(density(), dask.delayed(rows)()), "Delayed; expected a two-dimensional"),
        (lambda: distributed.fit(density(), da.ones((30, 2), chunks=10)), "all rows of X are equal"),
        (lambda: distributed.fit(density(), X, sample_weight=X), "one-dimensional"),
        (lambda: distributed.fit(density(), X.astype("datetime64[s]")), "expected numbers"),
    ]
    for attempt, said in refusals:
        with pytest.raises(InputError, match=said):
            attempt()
