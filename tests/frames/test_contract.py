"""Every frame keeps the contract of frames."""

import numpy as np
import pytest

from frames.contract import check_derivatives, check_far, check_frame, check_second_derivatives, queries, table
from isopleth import InputError
from isopleth.frames import (
    BoundedMap,
    Compose,
    Gaussianize,
    LocalScale,
    Marginal,
    Scale,
    SinhArcsinh,
    Whiten,
    get_frame,
)

FRAMES = {
    "scale": (Scale(), True),
    "local scale": (LocalScale(), True),
    "whiten": (Whiten(), True),
    "components": (Whiten(components=True), True),
    "composed": (Compose(Whiten(), Scale()), True),
    "sinh-arcsinh": (SinhArcsinh(), True),
    "smooth": (get_frame("smooth"), True),
    "chain": (Compose(Whiten(), SinhArcsinh(), Whiten(), SinhArcsinh()), True),
    "marginal": (Marginal(), False),
    "gp1": (Gaussianize(), False),
    "gp2": (Gaussianize(2), False),
}


@pytest.mark.parametrize("name", FRAMES)
def test_contract(name):
    check_frame(*FRAMES[name])


@pytest.mark.parametrize("name", FRAMES)
def test_far_rows(name):
    X = table(50, 3)
    check_far(FRAMES[name][0].fit(X, np.ones(50)), X)


def test_whitening_without_ridge_is_affinely_equivariant():
    rng = np.random.default_rng(0)
    X = table(80, 5)
    X /= X.std(axis=0)
    A, b = rng.normal(size=(5, 5)), rng.normal(size=5)
    one, other = (Whiten(ridge=0.0).fit(rows, np.ones(80)) for rows in (X, X @ A.T + b))
    Q = queries(X)
    z, moved = one.forward(Q), other.forward(Q @ A.T + b)
    np.testing.assert_allclose(
        np.linalg.norm(moved[:, None] - moved, axis=2), np.linalg.norm(z[:, None] - z, axis=2), atol=1e-9
    )
    np.testing.assert_allclose(other.log_volume(Q @ A.T + b), one.log_volume(Q) - np.linalg.slogdet(A)[1], atol=1e-9)


def test_whitened_rows_are_uncorrelated():
    X, w = table(80, 4), np.random.default_rng(0).uniform(1, 3, size=80)
    for components in (False, True):
        z = Whiten(ridge=0.0, components=components).fit(X, w).forward(X)
        np.testing.assert_allclose(np.cov(z.T, aweights=w, ddof=0), np.eye(4), atol=1e-9)


def test_dependent_columns_need_a_ridge():
    X = table(30, 2)
    X = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
    with pytest.raises(InputError, match="linearly dependent"):
        Whiten(ridge=0.0).fit(X, np.ones(30))
    assert np.isfinite(Whiten().fit(X, np.ones(30)).forward(X)).all()


@pytest.mark.parametrize("wrong", ["white", None, 3, Scale])
def test_names(wrong):
    assert get_frame("scale") == Scale()
    own = Whiten(0.1)
    assert get_frame(own) is own
    with pytest.raises(InputError, match="frame"):
        get_frame(wrong)


def test_parameters():
    with pytest.raises(InputError, match="ridge"):
        Whiten(ridge=-1.0)
    with pytest.raises(InputError, match="frames"):
        Compose()
    with pytest.raises(InputError, match="frames"):
        Compose(Scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["scale", "whiten", "composed", "sinh-arcsinh", "smooth"])
def test_tensors(name, dtype):
    torch = pytest.importorskip("torch")
    X = table(50, 3)
    fitted, Q = FRAMES[name][0].fit(X, np.ones(50)), queries(X)
    V = np.random.default_rng(0).normal(size=Q.shape)
    x, v = (torch.tensor(rows, dtype=getattr(torch, dtype)) for rows in (Q, V))
    x.requires_grad_()
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    z = fitted.forward(x)
    assert z.dtype == x.dtype
    np.testing.assert_allclose(z.detach().numpy(), fitted.forward(Q), atol=tolerance)
    for found, expected in (
        (fitted.inverse(z.detach()), Q),
        (fitted.log_volume(x), fitted.log_volume(Q)),
        (fitted.pushforward(x, v), fitted.pushforward(Q, V)),
        (fitted.laplacian_log_volume(x), fitted.laplacian_log_volume(Q)),
    ):
        size = np.abs(expected).max() + 1.0
        np.testing.assert_allclose(found.detach().numpy() / size, expected / size, atol=tolerance)
    (gradient,) = torch.autograd.grad((z * v).sum() + fitted.log_volume(x).sum(), x)
    explicit = fitted.pullback(Q, V) + fitted.grad_log_volume(Q)
    size = np.abs(explicit).max(axis=0)
    np.testing.assert_allclose(gradient.numpy() / size, explicit / size, atol=tolerance)


def test_bounded_columns_are_maps_like_others():
    rng = np.random.default_rng(0)
    low, high = np.array([0.0, -np.inf, -1.0, -np.inf]), np.array([np.inf, 2.0, 3.0, np.inf])
    fitted = BoundedMap(low, high)
    X = fitted.inverse(rng.normal(size=(60, 4)))
    check_derivatives(fitted, X)
    check_second_derivatives(fitted, X, smooth=True)
    np.testing.assert_allclose(fitted.inverse(fitted.forward(X)), X, atol=1e-12)
    np.testing.assert_array_equal(fitted.take(np.array([2, 0])).forward(X[:, [2, 0]]), fitted.forward(X)[:, [2, 0]])
