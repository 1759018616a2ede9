"""Vector blocks against their literal (n, m, d) forms, in every layout that the tile loop has."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_cases import pairs
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ, KERNELS, Gaussian, Matern
from isopleth.operators import (
    BILAPLACIAN,
    CURL_FREE,
    FLUX,
    FLUX_OF_LAPLACIAN,
    GRADIENT,
    GRADIENT_OF_LAPLACIAN,
    Operator,
)
from isopleth.operators.vector_blocks import PairedGradient, PairedHessian

SMOOTH = ["gaussian", "imq", "matern52", "matern72"]
BLOCKS = [GRADIENT, GRADIENT_OF_LAPLACIAN, FLUX, FLUX_OF_LAPLACIAN, CURL_FREE, BILAPLACIAN]
OF_VECTORS = (FLUX, FLUX_OF_LAPLACIAN, CURL_FREE)


# phi'' at 0.
AT_ZERO = {"Gaussian": 1 / 4, "IMQ": 3 / 4, "Matern2.5": 25 / 12, "Matern3.5": 49 / 60}


def derivatives(kernel, s):
    """phi to phi'''' where s > 0; at 0 the limits of the first three, and 0 for those that come with a power of s."""
    apart = np.where(s > 0, s, 1.0)
    out = [kernel.derivative(apart, k) / apart ** (k // 2) for k in range(5)]
    limits = [1.0, kernel.derivative(0.0, 1), AT_ZERO[f"{type(kernel).__name__}{getattr(kernel, 'nu', '')}"], 0.0, 0.0]
    return [np.where(s > 0, p, limit) for p, limit in zip(out, limits, strict=True)]


def dense(kernel, x, y, v, block):
    """The literal form; coincident pairs have x - y = 0, and phi'' its limit."""
    dim = x.shape[1]
    kernel = kernel.bind(dim)
    u = x[:, None, :] - y[None, :, :]
    s = np.sum(u**2, axis=2)
    _, p1, p2, p3, p4 = derivatives(kernel, s)
    third = 4 * ((dim + 2) * p2 + 2 * s * p3)
    if block is CURL_FREE:
        full = -2 * p1[..., None, None] * np.eye(dim) - 4 * p2[..., None, None] * u[..., :, None] * u[..., None, :]
        return np.einsum("ijab,jb->ia", full, v)
    if block is BILAPLACIAN:
        return (16 * s**2 * p4 + 16 * (dim + 2) * s * p3 + 4 * dim * (dim + 2) * p2) @ v
    weight = third if block in (GRADIENT_OF_LAPLACIAN, FLUX_OF_LAPLACIAN) else 2 * p1
    if block in (GRADIENT, GRADIENT_OF_LAPLACIAN):
        return np.einsum("ij,ija,j->ia", weight, u, v)
    return np.einsum("ij,ija,ja->i", weight, u, v)


def coefficients(rng, m, dim, block):
    return rng.normal(size=(m, dim) if block in OF_VECTORS else m)


def close(got, want, tol=1e-10):
    assert got.shape == want.shape
    assert np.max(np.abs(got - want)) <= tol * np.max(np.abs(want))


@pytest.mark.parametrize(("block", "name", "dim"), pairs(BLOCKS, SMOOTH, [1, 3, 9]), ids=repr)
def test_blocks_agree_with_the_literal_form(name, block, dim):
    rng = np.random.default_rng(dim)
    x, y = rng.normal(size=(300, dim)), rng.normal(size=(600, dim))
    x[:20] = y[5:25]
    v = coefficients(rng, 600, dim, block)
    close(
        Operator(KERNELS[name], x, y, block=block, budget=Budget(n_jobs=2)).matvec(v),
        dense(KERNELS[name], x, y, v, block),
        tol=1e-9,
    )


@pytest.mark.parametrize(("name", "dim", "apart"), pairs(SMOOTH, [1, 3, 9], [0.0, 1e5]))
def test_blocks_with_coefficients_of_rows_agree_with_the_literal_form(name, dim, apart):
    rng = np.random.default_rng(dim)
    x, y = rng.normal(size=(40, dim)), rng.normal(size=(70, dim))
    x[:20] = y[5:25]
    x[30:] += apart
    y[60:] += apart
    u = x[:, None, :] - y[None, :, :]
    _, p1, p2, _, _ = derivatives(KERNELS[name].bind(dim), np.sum(u**2, axis=2))
    a, v = rng.normal(size=(40, 2)), rng.normal(size=(70, 2))
    got = Operator(KERNELS[name], x, y, block=PairedGradient(a)).matvec(v)[:, :dim]
    close(got, np.einsum("ik,jk,ij,ijd->id", a, v, 2 * p1, u))
    a, v = rng.normal(size=(40, dim)), rng.normal(size=70)
    got = Operator(KERNELS[name], x, y, block=PairedHessian(a)).matvec(v)[:, :dim]
    hessian = 2 * p1[..., None, None] * np.eye(dim) + 4 * p2[..., None, None] * u[..., :, None] * u[..., None, :]
    close(got, np.einsum("ijde,ie,j->id", hessian, a, v))


@pytest.mark.parametrize("block", [GRADIENT, FLUX], ids=repr)
def test_matern_three_halves_and_sdo_serve_the_first_order(block):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    v = coefficients(rng, 30, 3, block)
    for name in ("matern32", "sdo"):
        got = Operator(KERNELS[name], x, y, block=block).matvec(v)
        slope = 2 * KERNELS[name].bind(3).derivative(((x[:, None] - y) ** 2).sum(axis=2), 1)
        u = x[:, None, :] - y
        want = np.einsum("ij,ija,ja->i", slope, u, v) if block is FLUX else np.einsum("ij,ija,j->ia", slope, u, v)
        close(got, want)


@pytest.mark.parametrize("dim", [2, 6])
@pytest.mark.parametrize("n", [1, 2, 255, 257, 900])
def test_curl_free_over_the_points_themselves_takes_half_the_tiles_and_the_same_answer(dim, n):
    rng = np.random.default_rng(n)
    x, v = rng.normal(size=(n, dim)), rng.normal(size=(n, dim))
    x[n // 2] = x[0]
    whole = Operator(IMQ(), x, x.copy(), block=CURL_FREE).matvec(v)
    for jobs in (1, 2, 3):
        np.testing.assert_allclose(
            Operator(IMQ(), x, block=CURL_FREE, budget=Budget(n_jobs=jobs)).matvec(v), whole, rtol=0, atol=1e-12 * n
        )
    stored = Operator(IMQ(), x, block=CURL_FREE).store()
    assert stored.stored
    np.testing.assert_allclose(stored.matvec(v), whole, rtol=0, atol=1e-12 * n)
    part = stored.part(slice(0, 1), slice(0, n), Budget(1e6)).matvec(v)
    np.testing.assert_allclose(part, whole[:1], rtol=0, atol=1e-12 * n)


def test_the_stored_form_keeps_two_matrices_within_the_limit_and_none_where_it_would_lose_digits():
    x = np.random.default_rng(0).normal(size=(400, 5))
    assert not Operator(IMQ(), x, block=CURL_FREE, budget=Budget(2e6)).store().stored
    assert Operator(IMQ(), x, block=CURL_FREE, budget=Budget(8e7)).store().stored
    assert not Operator(IMQ(), x + 1e4, block=CURL_FREE).store().stored
    slope, bend = Operator(IMQ(), x, block=CURL_FREE).matrices()
    s = ((x[:, None] - x) ** 2).sum(axis=2)
    np.testing.assert_allclose(slope, (1 + s) ** -1.5, rtol=1e-9)
    np.testing.assert_allclose(bend - np.diag(np.diag(bend)), (-3 * (1 + s) ** -2.5) * (s > 0), rtol=1e-8)


@pytest.mark.parametrize(("block", "dim", "apart"), pairs(BLOCKS, [2, 40], [3.0, 1e5]), ids=repr)
def test_tight_clusters_far_apart_keep_their_digits(block, dim, apart):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(100, dim)) / 6
    x[50:] += apart
    v = coefficients(rng, 100, dim, block)
    close(Operator(Gaussian(), x, block=block).matvec(v), dense(Gaussian(), x, x, v, block))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 6), st.integers(1, 8), st.sampled_from(BLOCKS))
def test_any_shape_and_any_tile(n, m, dim, share, block):
    rng = np.random.default_rng(n * 1000 + m)
    x, y, v = rng.normal(size=(n, dim)), rng.normal(size=(m, dim)), coefficients(rng, m, dim, block)
    got = Operator(Gaussian(), x, y, block=block, budget=Budget(500 * share, 2)).matvec(v)
    np.testing.assert_allclose(got, dense(Gaussian(), x, y, v, block), atol=1e-10 * m)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_blocks_run_on_a_strict_array_api_library(name, block):
    rng = np.random.default_rng(3)
    x, y, v = rng.normal(size=(300, 5)), rng.normal(size=(40, 5)), coefficients(rng, 40, 5, block)
    y[:30] = x[:30]
    y[30:35] = x[30:35] + 1e-9
    strict = [array_api_strict.asarray(a) for a in (x, y, v)]
    got = Operator(KERNELS[name], strict[0], strict[1], block=block).matvec(strict[2])
    assert isinstance(got, array_api_strict._array_object.Array)
    want = Operator(KERNELS[name], x, y, block=block).matvec(v)
    np.testing.assert_allclose(np.asarray(got), want, atol=1e-12 * np.max(np.abs(want)))


@pytest.mark.parametrize("block", [FLUX, FLUX_OF_LAPLACIAN], ids=repr)
@pytest.mark.parametrize("name", ["imq", "matern52"])
def test_a_stored_flux_is_the_streamed_one(block, name):
    rng = np.random.default_rng(7)
    x, y, v = rng.normal(size=(120, 4)), rng.normal(size=(300, 4)), rng.normal(size=(300, 4))
    x[:30] = y[5:35]
    stored = Operator(KERNELS[name], x, y, block=block).store()
    assert stored.stored
    close(stored.matvec(v), dense(KERNELS[name], x, y, v, block), tol=1e-9)
    part = stored.part(slice(3, 9), slice(10, 200), Budget(1e6)).matvec(v[10:200])
    close(part, dense(KERNELS[name], x[3:9], y[10:200], v[10:200], block), tol=1e-9)
    assert not Operator(KERNELS[name], x + 1e4, y, block=block).store().stored


@pytest.mark.parametrize("block", OF_VECTORS, ids=repr)
def test_the_stored_form_runs_on_a_strict_array_api_library(block):
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=(300, 5)), rng.normal(size=(300, 5))
    op = Operator(IMQ(), array_api_strict.asarray(x), block=block)
    want = Operator(IMQ(), x, block=block).matvec(v)
    np.testing.assert_allclose(np.asarray(op.matvec(array_api_strict.asarray(v))), want, atol=1e-11)
    np.testing.assert_allclose(np.asarray(op.store().matvec(array_api_strict.asarray(v))), want, atol=1e-11)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_float32_stays_float32_close_and_finite(name, block):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 6))
    x[:50] = x[50:100]
    v = coefficients(rng, 600, 6, block).astype(np.float32)
    got = Operator(KERNELS[name], x.astype(np.float32), block=block).matvec(v)
    assert got.dtype == np.float32
    assert np.isfinite(got).all()
    want = Operator(KERNELS[name], x.astype(np.float32).astype(float), block=block).matvec(v.astype(float))
    assert np.max(np.abs(got - want)) < 2e-4 * np.max(np.abs(want))
    far = np.array([[0.0] * 5, [1e15] * 5], dtype=np.float32)
    assert np.isfinite(
        Operator(KERNELS[name], far, block=block).matvec(np.ones((2, 5) if block in OF_VECTORS else 2, np.float32))
    ).all()


def test_points_in_a_subspace_keep_the_dimension_of_the_kernel():
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(9, 3)))[0]
    z, v = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    for block in (FLUX_OF_LAPLACIAN, CURL_FREE):
        whole = Operator(Matern(nu=3.5), z @ basis.T, block=block).matvec(v @ basis.T)
        inside = Operator(Matern(nu=3.5), z, block=block, dim=9).matvec(v)
        close(inside if block is FLUX_OF_LAPLACIAN else inside @ basis.T, whole)


@pytest.mark.parametrize("block", OF_VECTORS, ids=repr)
def test_coefficients_that_are_no_vectors_are_refused(block):
    with pytest.raises(ValueError, match="one vector of 2 coefficients for each point"):
        Operator(Gaussian(), np.zeros((3, 2)), block=block).matvec(np.ones(3))
    with pytest.raises(TypeError, match="no matrix"):
        Operator(Gaussian(), np.zeros((3, 2)), block=block).dense()
