"""What every frame must do. A user's own frame passes if `check_frame` does."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import InputError
from isopleth.frames import Frame, FrameMap


def table(n: int = 60, d: int = 3, seed: int = 0) -> np.ndarray:
    """Return skewed, correlated rows in several units."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) @ (np.eye(d) + 0.6 * rng.normal(size=(d, d)))
    Z[:, 0] = np.exp(0.7 * Z[:, 0])
    return Z * 10.0 ** np.linspace(-3, 3, d) + np.linspace(5, -5, d)


def queries(X: np.ndarray, n: int = 20, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return X[rng.integers(len(X), size=n)] + 0.3 * X.std(axis=0) * rng.normal(size=(n, X.shape[1]))


def check_frame(frame: Frame, smooth: bool) -> None:
    """Check a frame on rows of several sizes; `smooth` is whether second derivatives are expected."""
    for n, d in ((5, 1), (5, 3), (60, 3)):
        X = table(n, d)
        fitted = frame.fit(X, np.ones(n))
        check_inverse(fitted, X)
        check_derivatives(fitted, queries(X))
        check_one_pass(fitted, queries(X))
        check_second_derivatives(fitted, queries(X), smooth)
    check_weights(frame)
    check_units(frame)
    check_continuity(frame)


def check_inverse(fitted: FrameMap, X: np.ndarray) -> None:
    assert fitted.dim == X.shape[1]
    for rows in (X, queries(X)):
        back = fitted.inverse(fitted.forward(rows))
        np.testing.assert_allclose((back - rows) / X.std(axis=0), 0.0, atol=1e-9)


def jacobian(fitted: FrameMap, Q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the Jacobian matrix at each row by central differences of fourth order."""
    parts = []
    for j in range(Q.shape[1]):
        e = np.zeros(Q.shape[1])
        e[j] = step[j]
        f = [fitted.forward(Q + k * e) for k in (-2, -1, 1, 2)]
        parts.append((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * step[j]))
    return np.stack(parts, axis=2)


def check_derivatives(fitted: FrameMap, Q: np.ndarray, relative: float = 1e-5) -> None:
    unit = Q.std(axis=0)
    step = 1e-4 * unit
    J = jacobian(fitted, Q, step)
    V = np.random.default_rng(2).normal(size=Q.shape)
    size = np.abs(J).max(axis=(0, 1))
    pulled, pushed = np.einsum("nji,nj->ni", J, V), np.einsum("nij,nj->ni", J, V)
    np.testing.assert_allclose(fitted.pullback(Q, V) / size, pulled / size, atol=relative)
    np.testing.assert_allclose(fitted.pushforward(Q, V), pushed, atol=relative * np.abs(pushed).max())
    log_volume = fitted.log_volume(Q)
    assert log_volume.shape == (len(Q),)
    np.testing.assert_allclose(log_volume, np.linalg.slogdet(J)[1], atol=10 * relative)
    gradient = np.stack(
        [
            (fitted.log_volume(Q + e) - fitted.log_volume(Q - e)) / (2 * s)
            for e, s in zip(np.diag(step), step, strict=True)
        ],
        axis=1,
    )
    found = fitted.grad_log_volume(Q) * unit
    np.testing.assert_allclose(found, gradient * unit, atol=1e-4 * max(1.0, np.abs(found).max()))


def check_one_pass(fitted: FrameMap, Q: np.ndarray) -> None:
    found, V = fitted.at(Q), np.random.default_rng(2).normal(size=Q.shape)
    np.testing.assert_allclose(found.rows, fitted.forward(Q), rtol=1e-12)
    np.testing.assert_allclose(found.log_volume, fitted.log_volume(Q), rtol=1e-12)
    np.testing.assert_allclose(found.grad_log_volume, fitted.grad_log_volume(Q), rtol=1e-12)
    np.testing.assert_allclose(found.pullback(V), fitted.pullback(Q, V), rtol=1e-12)


def check_second_derivatives(fitted: FrameMap, Q: np.ndarray, smooth: bool) -> None:
    if not smooth:
        for method in (fitted.laplacian, fitted.laplacian_log_volume):
            with pytest.raises(InputError, match="frame"):
                method(Q)
        return
    step = 1e-4 * Q.std(axis=0)
    volume, coordinates = np.zeros(len(Q)), np.zeros(Q.shape)
    for j, s in enumerate(step):
        e = np.zeros(Q.shape[1])
        e[j] = s
        V = np.zeros(Q.shape)
        V[:, j] = 1.0
        volume += (fitted.grad_log_volume(Q + e)[:, j] - fitted.grad_log_volume(Q - e)[:, j]) / (2 * s)
        coordinates += (fitted.pushforward(Q + e, V) - fitted.pushforward(Q - e, V)) / (2 * s)
    for found, expected in ((fitted.laplacian_log_volume(Q), volume), (fitted.laplacian(Q), coordinates)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max()))


def check_weights(frame: Frame) -> None:
    """Weights count repetitions, and only their proportions matter."""
    X = table(40, 2)
    Q = queries(X)
    counts = np.random.default_rng(3).integers(1, 5, size=40)
    weighted = frame.fit(X, counts.astype(float))
    repeated = frame.fit(np.repeat(X, counts, axis=0), np.ones(counts.sum()))
    tenfold = frame.fit(np.repeat(X, 10, axis=0), np.ones(400))
    once = frame.fit(X, np.full(40, 0.1))
    for one, other in ((weighted, repeated), (tenfold, once)):
        np.testing.assert_allclose(one.forward(Q), other.forward(Q), atol=1e-7)
        np.testing.assert_allclose(one.log_volume(Q), other.log_volume(Q), atol=1e-7)


def check_units(frame: Frame) -> None:
    """Coordinates do not depend on the units of the columns, and distances in them not on the order of the columns."""
    X = table(50, 3)
    Q = queries(X)
    unit, shift, w = np.array([2.0**30, 2.0**-20, 4.0]), np.array([3.0, 1.0, 100.0]), np.ones(50)
    one, other = frame.fit(X, w), frame.fit(X * unit + shift, w)
    np.testing.assert_allclose(other.forward(Q * unit + shift), one.forward(Q), atol=1e-7)
    np.testing.assert_allclose(other.log_volume(Q * unit + shift), one.log_volume(Q) - np.log(unit).sum(), atol=1e-7)
    order = np.array([2, 0, 1])
    permuted = frame.fit(X[:, order], w)
    squares = [np.square(z - z[:1]).sum(axis=1) for z in (one.forward(Q), permuted.forward(Q[:, order]))]
    np.testing.assert_allclose(*squares, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(permuted.log_volume(Q[:, order]), one.log_volume(Q), atol=1e-7)


def check_continuity(frame: Frame) -> None:
    """A change of 1e-12 deviations, also of equal rows, changes nothing visibly."""
    rng = np.random.default_rng(4)
    for X in (table(50, 3), np.repeat(table(25, 3), 2, axis=0), np.round(3 * table(50, 2) / table(50, 2).std(axis=0))):
        Q = queries(X)
        moved = X + 1e-12 * X.std(axis=0) * rng.normal(size=X.shape)
        one, other = frame.fit(X, np.ones(len(X))), frame.fit(moved, np.ones(len(X)))
        np.testing.assert_allclose(other.forward(Q), one.forward(Q), atol=1e-6)
        np.testing.assert_allclose(other.log_volume(Q), one.log_volume(Q), atol=1e-6)


def check_far(fitted: FrameMap, X: np.ndarray, farthest: float = 1e6) -> None:
    """Maps by columns increase without end, and go back."""
    centre, unit = X.mean(axis=0), X.std(axis=0)
    steps = np.concatenate([-np.geomspace(farthest, 1.0, 40), np.geomspace(1.0, farthest, 40)])
    rows = centre + steps[:, None] * unit
    z = fitted.forward(rows)
    assert np.isfinite(z).all()
    assert np.isfinite(fitted.log_volume(rows)).all()
    if fitted.by_columns:
        assert (np.diff(z, axis=0) > 0.0).all()
    np.testing.assert_allclose((fitted.inverse(z) - rows) / unit / np.abs(steps[:, None]), 0.0, atol=1e-8)
