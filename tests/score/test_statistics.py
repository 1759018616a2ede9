"""Sums over samples: against dense blocks, and the same however the samples come."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Dense

from few_cases import pairs
from isopleth import InputError
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ, KERNELS, SDO
from isopleth.score import Tikhonov
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import stacked
from isopleth.score.spaces import SPACES
from isopleth.score.statistics import NystromStatistics


def rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def sums(z, kernel="imq", space="curl_free", base=None, **options):
    return NystromStatistics(SPACES[space](KERNELS[kernel].bind(z.shape[1]), **options), z, base)


def dense_squares(space, z, x, w):
    """Component after component, from the literal block matrix."""
    block = space.gram(z, x)
    return (block * np.tile(w, block.shape[1] // len(w))) @ block.T


@pytest.mark.parametrize(
    ("kernel", "d", "space"), pairs(["gaussian", "imq", "matern52", "matern72"], [1, 2, 5], SPACES)
)
def test_sums_are_those_of_the_literal_blocks(space, kernel, d):
    x = rows(90, d)
    z = np.concatenate([x[:20], rows(15, d, seed=1)])  # more than one tile, some of them samples
    system = sums(z, kernel, space).accumulate(x).system()
    dense = Dense(x, kernel, 1.0, space)
    block, gram = dense.block(z, x), dense.block(z, z)
    squares, rhs = block @ block.T / len(x), dense.zeta(z)
    got_squares, got_gram, got_rhs = system.squares, system.gram, system.rhs
    if space == "curl_free":
        order = np.arange(d * len(z)).reshape(len(z), d).T.ravel()  # ours are component after component
        squares, gram, rhs = squares[np.ix_(order, order)], gram[np.ix_(order, order)], rhs.T.reshape(-1, 1)
    for got, want in ((got_squares, squares), (got_gram, gram), (got_rhs, rhs)):
        assert np.linalg.norm(got - want) < 1e-13 * np.linalg.norm(want)
    np.testing.assert_array_equal(got_squares, got_squares.T)


@pytest.mark.parametrize("where", [0.0, 1e5])
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_no_digits_cancel_wherever_the_rows_lie(where, spread):
    """Differences of the rows themselves are exact to 1e-16 of their place, and nothing more is lost."""
    x = where + spread * rows(200, 3)
    got = sums(x[:30], "gaussian").accumulate(x).system().squares * len(x)
    u = x[:30, None] - x
    block = np.einsum("ij,ab->iajb", np.exp(-(u**2).sum(axis=2) / 2), np.eye(3))
    block -= np.exp(-(u**2).sum(axis=2) / 2)[:, None, :, None] * np.einsum("ija,ijb->iajb", u, u)
    block = block.transpose(1, 0, 3, 2).reshape(90, 600)
    want = block @ block.T
    assert np.linalg.norm(got - want) < 1e-14 * np.linalg.norm(want)


def test_smooth_enough_tables():
    kernel = SDO(order=6).bind(3)
    x, space = rows(60, 3), SPACES["curl_free"](SDO(order=6).bind(3))
    w = np.random.default_rng(1).uniform(size=60)
    got = stacked(NystromStatistics(space, x[:20]).accumulate(x, w)._squares)
    want = dense_squares(SPACES["curl_free"](kernel), x[:20], x, w)
    assert np.linalg.norm(got - want) < 1e-11 * np.linalg.norm(want)


def agree(a, b, tol=1e-13):
    assert a.total_weight == pytest.approx(b.total_weight, rel=1e-14)
    assert a.n_samples == b.n_samples
    for one, other in zip((a.system().squares, a.system().rhs), (b.system().squares, b.system().rhs), strict=True):
        assert np.linalg.norm(one - other) <= tol * np.linalg.norm(other)


@pytest.mark.parametrize("space", list(SPACES))
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 100))
def test_parts_merge_in_any_order_to_one_pass(space, cuts, seed):
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(60, 2)), random.uniform(size=60)
    base = GaussianBase.fit(x, w)
    parts = [sums(x[:9], space=space, base=base).accumulate(*both)
             for both in zip(np.split(x, sorted(cuts)), np.split(w, sorted(cuts)), strict=True)]  # fmt: skip
    random.shuffle(parts)
    while len(parts) > 1:
        other = parts.pop()
        parts[random.integers(len(parts))].merge(other)
    agree(parts[0], sums(x[:9], space=space, base=base).accumulate(x, w))


def test_merging_leaves_the_other_as_it_is():
    x = rows(50, 2)
    one, other = sums(x[:5]).accumulate(x[:20]), sums(x[:5]).accumulate(x[20:])
    before = pickle.dumps(other)
    one.merge(other)
    assert pickle.dumps(other) == before


@pytest.mark.parametrize("space", list(SPACES))
def test_memory_does_not_grow_with_the_data(space):
    x = rows(40_000, 4)
    limit = 16e6
    sums(x[:40], space=space, budget=Budget(limit)).accumulate(x[:100])  # what is set up once
    peaks = []
    for n in (10_000, 40_000):
        statistics = sums(x[:40], space=space, budget=Budget(limit))
        tracemalloc.start()
        statistics.accumulate(x[:n], np.ones(n))
        peaks.append(tracemalloc.get_traced_memory()[1] - 2 * x[:n].nbytes)
        tracemalloc.stop()
    assert max(peaks) < 1.1 * limit


@pytest.mark.parametrize(("space", "m", "limit"), [("curl_free", 60, 8e6), ("diagonal", 400, 10e6)])
def test_little_memory_means_small_blocks_of_samples(space, m, limit):
    """A block of 4,096 samples would take more than the limit."""
    x = rows(4096, 4)
    statistics = sums(x[:m], space=space, budget=Budget(limit, 1))
    tracemalloc.start()
    statistics.accumulate(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * limit


@pytest.mark.parametrize("space", list(SPACES))
def test_float32_is_near_and_never_nan(space):
    x = rows(2000, 3)
    exact = sums(x[:20], space=space).accumulate(x)
    x32 = x.astype(np.float32)
    single = sums(x32[:20], space=space).accumulate(x32)
    agree(single, exact, tol=2e-6)
    c, c32 = exact.solve(Tikhonov(0.01)), single.solve(Tikhonov(0.01))
    assert np.linalg.norm(c32 - c) < 1e-3 * np.linalg.norm(c)
    for far in (1e18, 1e25):
        z = np.concatenate([x32[:5], np.full((1, 3), far, dtype=np.float32)])
        found = sums(z, space=space).accumulate(np.concatenate([x32, -z]))
        assert np.isfinite(found.system().squares).all()
        assert np.isfinite(found.solve(Tikhonov(0.01))).all()


def test_the_base_measure_enters_by_its_score():
    x = rows(70, 2) * [1.0, 2.0]
    w = np.random.default_rng(1).uniform(size=70)
    base = GaussianBase.fit(x, w)
    space = SPACES["curl_free"](IMQ().bind(2))
    with_base = NystromStatistics(space, x[:9], base).accumulate(x, w).system().rhs
    without = NystromStatistics(space, x[:9]).accumulate(x, w).system().rhs
    want = space.gram(x[:9], x) @ space.stack((w / w.sum())[:, None] * base.value(x))
    np.testing.assert_allclose(with_base - without, want, rtol=1e-11, atol=1e-13)


def test_empty_chunks_and_weights_of_zero_add_nothing():
    x = rows(30, 2)
    statistics = sums(x[:4]).accumulate(x)
    before = pickle.dumps(statistics)
    statistics.accumulate(x[:0]).accumulate(x[:3], np.zeros(3))
    assert pickle.dumps(statistics) == before


@pytest.mark.parametrize(
    ("chunk", "weights", "message"),
    [
        (np.zeros((3, 4)), None, "chunk has shape .*; expected an array of 2 columns"),
        (np.zeros(3), None, "chunk has shape"),
        ([[0.0, 1.0]], None, "dtype list"),
        (np.zeros((3, 2), dtype=int), None, "float64 or float32"),
        (np.array([[0.0, np.nan]]), None, "chunk has 1 values that are not finite"),
        (np.zeros((3, 2)), np.ones(2), "weights: expected 3 finite numbers >= 0"),
        (np.zeros((3, 2)), [1.0, -1.0, 0.0], "weights: expected 3 finite numbers >= 0"),
        (np.zeros((3, 2)), [1.0, np.nan, 0.0], "weights: expected 3 finite numbers >= 0"),
    ],
)
def test_chunks_that_cannot_be_used(chunk, weights, message):
    with pytest.raises(InputError, match=message):
        sums(rows(4, 2)).accumulate(chunk, weights)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda x: sums(x[:5], "gaussian"), "kernel or space"),
        (lambda x: sums(x[:5], space="diagonal"), "kernel or space"),
        (lambda x: sums(x[1:6]), "landmarks"),
        (lambda x: sums(x[:5], base=GaussianBase.fit(x, np.ones(len(x)))), "base measure"),
    ],
)
def test_sums_of_something_else_do_not_merge(other, message):
    x = rows(20, 2)
    with pytest.raises(InputError, match=f"another {message}"):
        sums(x[:5]).merge(other(x))


def test_nothing_to_solve():
    with pytest.raises(InputError, match="no samples"):
        sums(rows(4, 2)).solve(Tikhonov())


def test_too_many_landmarks_for_memory():
    with pytest.raises(InputError, match=r"use at most (\d+)") as error:
        sums(rows(300, 8), budget=Budget(1e7))
    most = int(str(error.value).split("at most ")[1].split(",")[0])
    assert most < 300
    sums(rows(most, 8), budget=Budget(1e7))
