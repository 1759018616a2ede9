"""A user's own frame, and maps inside models."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from frames.contract import check_derivatives, check_second_derivatives, queries, table
from isopleth import InputError, load, save
from isopleth.frames import FRAMES, Compose, ComposedMap, FrameMap, Scale, Whiten
from templates.frame import FrameTemplate


def standardised(n, d):
    X = table(n, d)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_the_template_is_a_frame():
    X = np.exp(standardised(60, 3))
    fitted = Compose(FrameTemplate(0.5), Whiten()).fit(X, np.ones(60))
    Q = X * np.random.default_rng(0).uniform(0.9, 1.1, size=X.shape)
    check_derivatives(fitted, Q)
    check_second_derivatives(fitted, Q, smooth=True)
    np.testing.assert_allclose(fitted.inverse(fitted.forward(Q)), Q, rtol=1e-9)
    with pytest.raises(InputError, match="row 2"):
        FrameTemplate().fit(np.array([[1.0], [2.0], [-1.0]]), np.ones(3))


def test_a_map_with_the_least_that_is_asked_for():
    """A rotation of two columns by an angle that grows with the radius, which has no second derivatives here."""

    class Swirl(FrameMap):
        dim = 2

        def _turn(self, X, sign):
            angle = sign * np.linalg.norm(X, axis=1)
            c, s = np.cos(angle), np.sin(angle)
            return np.stack([c * X[:, 0] - s * X[:, 1], s * X[:, 0] + c * X[:, 1]], axis=1)

        def forward(self, X):
            return self._turn(X, 1.0)

        def inverse(self, Z):
            return self._turn(Z, -1.0)

        def _jacobian(self, X):
            angle = np.linalg.norm(X, axis=1)
            c, s = np.cos(angle), np.sin(angle)
            R = np.stack([np.stack([c, -s], axis=1), np.stack([s, c], axis=1)], axis=1)
            z = self.forward(X)
            turned = np.stack([-z[:, 1], z[:, 0]], axis=1)
            return R + turned[:, :, None] * (X / angle[:, None])[:, None, :]

        def log_volume(self, X):
            return np.zeros(len(X))

        def grad_log_volume(self, X):
            return np.zeros(X.shape)

        def pullback(self, X, V):
            return np.einsum("nji,nj->ni", self._jacobian(X), V)

        def pushforward(self, X, V):
            return np.einsum("nij,nj->ni", self._jacobian(X), V)

    X = standardised(40, 2)
    fitted = ComposedMap((Swirl(), Whiten().fit(X, np.ones(40)), Scale().fit(X, np.ones(40))))
    check_derivatives(fitted, queries(X))
    check_second_derivatives(fitted, queries(X), smooth=False)
    assert not fitted.affine
    assert not fitted.by_columns


@pytest.mark.parametrize("name", FRAMES)
def test_maps_are_saved_with_models(name, tmp_path):
    X = table(40, 3)
    model = FunctionTransformer(kw_args={"frame": FRAMES[name]})
    model.fitted_ = FRAMES[name].fit(X, np.ones(40))
    save(model, tmp_path / "model.isopleth")
    loaded = load(tmp_path / "model.isopleth")
    assert loaded.kw_args["frame"] == FRAMES[name]
    np.testing.assert_array_equal(loaded.fitted_.forward(X), model.fitted_.forward(X))
    np.testing.assert_array_equal(loaded.fitted_.grad_log_volume(X), model.fitted_.grad_log_volume(X))
