"""Operators against dense algebra, in every layout that the tile loop has."""

from concurrent.futures import ThreadPoolExecutor

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from threadpoolctl import threadpool_info

from few_cases import pairs
from isopleth import InputError
from isopleth.core.budget import Budget
from isopleth.kernels import KERNELS, Gaussian, Laplacian
from isopleth.operators import GRADIENT, LAPLACIAN, LOG_GRADIENT, LOG_LAPLACIAN, LOG_SUM, VALUE, Operator

KERNEL_LIST = list(KERNELS.values())


def dense(kernel, x, y, v, block):
    """The literal (n, m, d) form."""
    kernel = kernel.bind(x.shape[1])
    difference = x[:, None, :] - y[None, :, :]
    s = np.sum(difference**2, axis=2)
    if block is VALUE:
        return kernel(s) @ v
    if block is LAPLACIAN:
        return kernel.laplacian(s) @ v
    slope = np.where(s > 0, kernel.derivative(np.where(s > 0, s, 1.0), 1), 0.0)
    return 2 * np.einsum("ij,ijk,j->ik", slope, difference, v)


@pytest.mark.parametrize(
    ("kernel", "block", "dim"), pairs(KERNEL_LIST, [VALUE, GRADIENT, LAPLACIAN], [1, 3, 9]), ids=repr
)
def test_blocks_agree_with_the_dense_form(kernel, block, dim):
    rng = np.random.default_rng(dim)
    x, y = rng.normal(size=(300, dim)), rng.normal(size=(600, dim))
    v = rng.normal(size=600)
    got = Operator(kernel, x, y, block=block, budget=Budget(n_jobs=2)).matvec(v)
    want = dense(kernel, x, y, v, block)
    assert np.max(np.abs(got - want)) <= 1e-10 * np.max(np.abs(want))


@pytest.mark.parametrize("kernel", KERNEL_LIST, ids=repr)
@pytest.mark.parametrize("n", [2, 255, 1500])
def test_points_against_themselves_take_half_the_tiles_and_the_same_answer(kernel, n):
    rng = np.random.default_rng(n)
    x, v = rng.normal(size=(n, 5)), rng.normal(size=(n, 3))
    whole = Operator(kernel, x, x.copy()).matvec(v)
    for jobs in (1, 2, 3):
        np.testing.assert_allclose(
            Operator(kernel, x, budget=Budget(n_jobs=jobs)).matvec(v), whole, rtol=0, atol=1e-11 * n
        )


def test_stored_and_streamed_agree_and_the_matrix_is_kept_only_within_the_limit():
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(900, 4)), rng.normal(size=900)
    roomy, tight = Operator(Laplacian(), x).store(), Operator(Laplacian(), x, budget=Budget(2e6)).store()
    assert roomy.stored
    assert not tight.stored
    np.testing.assert_allclose(roomy.matvec(v), tight.matvec(v), atol=1e-12)
    np.testing.assert_array_equal(roomy.dense().diagonal(), np.ones(900))


@pytest.mark.parametrize("block", [VALUE, GRADIENT])
def test_pairs_that_nearly_coincide_far_from_the_centre_keep_their_digits(block):
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=(60, 6)) * 1e4, 5, axis=0)
    y = x + rng.normal(size=x.shape) * 1e-3
    v = rng.normal(size=len(y))
    for kernel in (Gaussian(), Laplacian()):
        want = dense(kernel, x, y, v, block)
        got = Operator(kernel, x, y, block=block).matvec(v)
        # 1e-9 and not less: x - y itself holds 1e-12/1e-3 of its digits at an offset of 1e4
        assert np.max(np.abs(got - want)) <= 1e-9 * np.max(np.abs(want))


def test_near_pairs_keep_the_digits_of_float32():
    rng = np.random.default_rng(8)
    x = (20.0 * rng.normal(size=(60, 9))).astype(np.float32)
    y = (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32)
    got = Operator(Laplacian(), x, y).matvec(np.ones(60, dtype=np.float32))
    want = Operator(Laplacian(), x.astype(float), y.astype(float)).matvec(np.ones(60))
    np.testing.assert_allclose(got, want, rtol=1e-5)  # squared distances by scalar products would have four digits less


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian()], ids=repr)
def test_log_sums_where_the_sum_underflows(kernel):
    rng = np.random.default_rng(2)
    x, y = 200 + 50 * rng.normal(size=(300, 4)), rng.normal(size=(1100, 4))
    a = rng.uniform(0.1, 1, size=1100)
    s = ((x[:, None] - y) ** 2).sum(axis=2)
    logs = kernel.bind(4).log(s) + np.log(a)
    state = Operator(kernel, x, y, block=LOG_SUM).matvec(np.log(a))
    np.testing.assert_allclose(state[:, 0] + np.log(state[:, 1]), logsumexp(logs, axis=1), rtol=1e-13)
    state = Operator(kernel, x, y, block=LOG_GRADIENT).matvec(np.log(a))
    share = np.exp(logs - logsumexp(logs, axis=1)[:, None])
    slope = -np.ones_like(s) if isinstance(kernel, Gaussian) else -1 / np.sqrt(s)
    want = np.einsum("ij,ijk->ik", share * slope, x[:, None] - y)
    np.testing.assert_allclose(state[:, 2:] / state[:, 1:2], want, rtol=1e-10)
    state = Operator(kernel, x, y, block=LOG_LAPLACIAN).matvec(np.log(a))
    ratio = s - 4 if isinstance(kernel, Gaussian) else 1 - 3 / np.sqrt(s)  # of the Laplacian of k to k
    np.testing.assert_allclose(state[:, 2] / state[:, 1], np.sum(share * ratio, axis=1), rtol=1e-9)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 6), st.integers(1, 8))
def test_any_shape_and_any_tile(n, m, dim, megabyte_share):
    rng = np.random.default_rng(n * 1000 + m)
    x, y, v = rng.normal(size=(n, dim)), rng.normal(size=(m, dim)), rng.normal(size=m)
    got = Operator(Gaussian(), x, y, budget=Budget(500 * megabyte_share, 2)).matvec(v)
    np.testing.assert_allclose(got, dense(Gaussian(), x, y, v, VALUE), atol=1e-12 * m)


@pytest.mark.parametrize("kernel", KERNEL_LIST, ids=repr)
@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
def test_core_runs_on_a_strict_array_api_library(kernel, block):
    rng = np.random.default_rng(3)
    x, y, v = rng.normal(size=(300, 5)), rng.normal(size=(40, 5)), rng.normal(size=40)
    y[:30] = x[:30]
    y[30:35] += 1e-9 - y[30:35] + x[30:35]
    strict = [array_api_strict.asarray(a) for a in (x, y, v)]
    got = Operator(kernel, strict[0], strict[1], block=block).matvec(strict[2])
    assert isinstance(got, array_api_strict._array_object.Array)
    np.testing.assert_allclose(np.asarray(got), Operator(kernel, x, y, block=block).matvec(v), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNEL_LIST, ids=repr)
@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
def test_float32_stays_float32_close_and_finite(kernel, block):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 6))
    x[:50] = x[50:100]
    v = rng.normal(size=600)
    got = Operator(kernel, x.astype(np.float32), block=block).matvec(v.astype(np.float32))
    assert got.dtype == np.float32
    assert np.isfinite(got).all()
    want = Operator(kernel, x.astype(np.float32).astype(float), block=block).matvec(v.astype(np.float32).astype(float))
    assert np.max(np.abs(got - want)) < 1e-4 * np.max(np.abs(want))


def test_float32_far_away_is_zero_and_not_nan():
    x = np.array([[0.0, 0, 0, 0, 0], [1e15, 0, 0, 0, 0]], dtype=np.float32)
    for kernel in KERNEL_LIST:
        assert np.isfinite(Operator(kernel, x).matvec(np.ones(2, dtype=np.float32))).all()


def test_the_answer_does_not_depend_on_timing():
    rng = np.random.default_rng(5)
    x, v = rng.normal(size=(3000, 8)), rng.normal(size=3000)
    op = Operator(Gaussian(), x, budget=Budget(n_jobs=2))
    first = op.matvec(v)
    for _ in range(5):
        np.testing.assert_array_equal(op.matvec(v), first)


@pytest.mark.parametrize("bad", [0, 1.5, True, "two"])
def test_n_jobs_is_checked(bad):
    with pytest.raises(InputError, match="n_jobs"):
        Operator(Gaussian(), np.zeros((2, 1)), budget=Budget(n_jobs=bad))


def test_scalar_blocks_alone_have_a_matrix_and_the_gradient_one_column():
    x = np.zeros((3, 2))
    with pytest.raises(TypeError, match="no matrix"):
        Operator(Gaussian(), x, block=GRADIENT).dense()
    with pytest.raises(ValueError, match="one column"):
        Operator(Gaussian(), x, block=GRADIENT).matvec(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("x", "y", "v", "words"),
    [
        (np.zeros((3, 2)), np.zeros((4, 3)), np.ones(4), "expected 2 columns"),
        (np.zeros((3, 2)), None, np.ones(5), "5 rows; expected one for each of the 3"),
        (np.zeros(3), None, np.ones(3), "expected two axes"),
        (np.zeros((3, 2), dtype=int), None, np.ones(3), "float32 or float64"),
        (np.zeros((3, 2)), np.zeros((3, 2), dtype=np.float32), np.ones(3), "columns of float64"),
    ],
)
def test_shapes_and_types_that_do_not_fit_are_refused(x, y, v, words):
    with pytest.raises(ValueError, match=words):
        Operator(Gaussian(), x, y).matvec(v)


@pytest.mark.parametrize("block", [VALUE, GRADIENT], ids=repr)
@pytest.mark.parametrize("apart", [3.0, 1e5])
def test_tight_clusters_far_apart_in_many_columns(block, apart):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 40)) / 6
    x[200:] += apart
    v = rng.normal(size=400)
    want = dense(Laplacian(), x, x, v, block)
    got = Operator(Laplacian(), x, block=block).matvec(v)
    assert np.max(np.abs(got - want)) <= 1e-10 * np.max(np.abs(want))


def test_the_limit_on_blas_threads_is_lifted_after_concurrent_sums(many_blas_threads):
    before = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    x = np.random.default_rng(7).normal(size=(1500, 5))
    op = Operator(Gaussian(), x, budget=Budget(n_jobs=2))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: op.matvec(np.ones(1500)), range(40)))
    assert [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"] == before
