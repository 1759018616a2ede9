"""Common parts of SOSREP and KDE: the Hyvarinen loss, searches, scikit-learn's grids, plots, refusals."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from isopleth import KDE, SOSREP, InputError, load, save
from isopleth.density import Choices, Search
from isopleth.kernels import IMQ, KERNELS, SDO, Laplacian


def accepts(kind, kernel, dim):
    try:
        kind(frame="scale")._solver().begun(kernel.bind(dim))
    except InputError:
        return False
    return True


CASES = [(kind, name) for kind in (KDE, SOSREP) for name in KERNELS if accepts(kind, KERNELS[name], 3)]
SMOOTH = [case for case in CASES if KERNELS[case[1]].nonnegative and KERNELS[case[1]].bind(1).smoothness > 1.0]


def mixture(n, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) * 0.5 + 2.0 * rng.integers(0, 2, size=(n, 1))


def loss_by_differences(model, Q, h=1e-4):
    """Trace of the Hessian plus half the squared gradient of score_samples, in the coordinates x / unit_."""
    total = np.zeros(len(Q))
    here = model.score_samples(Q)
    for j, unit in enumerate(model.unit_):
        step = np.zeros(len(model.unit_))
        step[j] = h * unit
        up, down = model.score_samples(Q + step), model.score_samples(Q - step)
        total += (up - 2 * here + down) / h**2 + 0.5 * ((up - down) / (2 * h)) ** 2
    return total.mean()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_hyvarinen_loss_by_differences(kind, name):
    X, Q = mixture(80, 3) * [1.0, 50.0, 1e-3], mixture(30, 3, seed=1) * [1.0, 50.0, 1e-3]
    model = kind(kernel=name, frame="scale").fit(X)
    assert model.hyvarinen_loss(Q) == pytest.approx(loss_by_differences(model, Q), rel=1e-3)
    log_ratio = np.log(model.unit_ / model.length_scale_)
    np.testing.assert_allclose(log_ratio, log_ratio[0])
    np.testing.assert_allclose(np.log(model.unit_).mean(), np.log(X.std(axis=0)).mean())


@pytest.mark.parametrize(("kind", "name"), SMOOTH)
def test_hyvarinen_loss_of_one_column(kind, name):
    X, Q = mixture(60, 1), mixture(30, 1, seed=1)
    model = kind(kernel=name, length_scale=0.4, frame="scale").fit(X)
    assert model.hyvarinen_loss(Q) == pytest.approx(loss_by_differences(model, Q), rel=2e-3)


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_hyvarinen_loss_follows_the_units_of_the_columns(kind):
    X, Q, factor = mixture(80, 2), mixture(30, 2, seed=1), np.array([1e3, 1e-2])
    for scale in ("scott", np.array([0.5, 0.8])):
        a = kind(length_scale=scale, frame="scale").fit(X)
        b = kind(length_scale=scale if isinstance(scale, str) else scale * factor, frame="scale").fit(X * factor)
        assert b.hyvarinen_loss(Q * factor) == pytest.approx(a.hyvarinen_loss(Q), rel=1e-8)
    coarse, fine = (
        kind(length_scale=[1.0, 1.6], frame="scale").fit(X),
        kind(length_scale=[0.5, 0.8], frame="scale").fit(X),
    )
    np.testing.assert_allclose(coarse.unit_, fine.unit_)


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_hyvarinen_loss_is_half_the_fisher_divergence_but_for_a_constant(kind):
    X, Y = np.random.default_rng(0).normal(size=(300, 1)), np.random.default_rng(1).normal(size=(40_000, 1))
    losses, divergences = [], []
    for scale in (0.3, 0.6, 1.2):
        model = kind(length_scale=scale, frame="scale").fit(X)
        losses.append(model.hyvarinen_loss(Y))
        divergences.append(0.5 * model.unit_[0] ** 2 * np.mean((model.grad_log_density(Y) + Y) ** 2))
    # The rest is sampling error of integration by parts.
    np.testing.assert_allclose(np.diff(losses), np.diff(divergences), atol=0.02)
    assert np.ptp(losses) > 0.1


@pytest.mark.parametrize(
    ("kind", "kernel"), [(KDE, Laplacian()), (SOSREP, Laplacian()), (SOSREP, SDO(order=2))], ids=repr
)
def test_rows_at_centres_are_left_out_for_rough_kernels(kind, kernel):
    X, Q = mixture(60, 2), mixture(9, 2, seed=1)
    model = kind(kernel=kernel, length_scale=0.8, frame="scale").fit(X)
    want = model.hyvarinen_loss(Q)
    assert np.isfinite(want)
    assert model.hyvarinen_loss(np.r_[X[:7], Q]) == pytest.approx(want, rel=1e-12)
    with pytest.raises(InputError, match="every row"):
        model.hyvarinen_loss(X[:7])


def test_rows_at_centres_count_for_smooth_kernels():
    X, Q = mixture(60, 2), mixture(9, 2, seed=1)
    model = KDE(kernel="matern52", frame="scale").fit(X)
    both = model.hyvarinen_loss(np.r_[X[:9], Q])
    assert both == pytest.approx(0.5 * (model.hyvarinen_loss(X[:9]) + model.hyvarinen_loss(Q)))


@pytest.mark.parametrize(
    ("kind", "kernel"), [(KDE, "laplacian"), (SOSREP, "laplacian"), (SOSREP, SDO(order=1))], ids=repr
)
def test_kinks_of_one_column_have_no_hyvarinen_loss(kind, kernel):
    model = kind(kernel=kernel, frame="scale").fit(mixture(30, 1))
    with pytest.raises(InputError, match="'matern32', 'matern52' or 'gaussian'"):
        model.hyvarinen_loss(mixture(5, 1, seed=1))


def test_a_sum_that_is_not_positive_has_an_infinite_loss():
    X = mixture(60, 1)
    model = SOSREP(kernel=SDO(order=4), length_scale=0.1, frame="scale").fit(X)
    axis = np.linspace(-3, 6, 3000)[:, None]
    values = model._fitted.density.expansion.value(model._fitted.coordinates.enter(axis))
    assert (values < 0).any()
    assert np.isfinite(model.hyvarinen_loss(axis[values > 0]))
    assert model.hyvarinen_loss(axis) == np.inf


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_a_grid_over_kernels_and_scales(kind):
    names = ["gaussian", "laplacian", "matern32"]
    found = GridSearchCV(
        kind(frame="scale"),
        {"kernel": names, "length_scale": [0.3, 0.6, "scott", Search(cv=2)]},
        cv=3,
        error_score="raise",
    )
    found.fit(mixture(60, 2))
    assert found.best_params_["kernel"] in names
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert np.isfinite(found.best_estimator_.score_samples(mixture(5, 2))).all()


@pytest.mark.parametrize("kind", [KDE, SOSREP])
@pytest.mark.parametrize("criterion", ["likelihood", "hyvarinen"])
def test_a_search_for_the_length_scale(kind, criterion, tmp_path):
    X = mixture(150, 2) * [1.0, 100.0]
    search = Search(criterion=criterion, grid=[0.05, 0.3, 0.6, 1.0, 2.0, 6.0], cv=3)
    model = kind(length_scale=search, frame="scale").fit(X)
    assert isinstance(model.search_path_, Choices)
    scott = kind(frame="scale").fit(X)
    np.testing.assert_allclose(model.length_scale_, model.search_path_.best_factor * scott.length_scale_)
    np.testing.assert_allclose(model.search_path_.best_length_scale, model.length_scale_)
    np.testing.assert_allclose(model.unit_, scott.unit_)
    assert 0.05 < model.search_path_.best_factor < 6.0
    plain = kind(length_scale=model.length_scale_, frame="scale").fit(X)
    np.testing.assert_allclose(plain.score_samples(X), model.score_samples(X), rtol=1e-9)
    assert clone(model).length_scale == search
    save(model, tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.score_samples(X), model.score_samples(X))
        np.testing.assert_array_equal(copy.search_path_.losses, model.search_path_.losses)
        assert copy.length_scale == search
    model.set_params(length_scale="scott").fit(X)
    assert not hasattr(model, "search_path_")


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_a_kernel_without_a_normaliser_is_refused_before_any_work(kind, monkeypatch):
    solver = type(kind()._solver())
    monkeypatch.setattr(solver, "fit", lambda *args: pytest.fail("work was done"))
    with pytest.raises(InputError, match="'gaussian'"):
        kind(kernel=IMQ(), frame="scale").fit(mixture(20, 2))


def test_the_inverse_multiquadric_is_a_density_of_one_column():
    model = SOSREP(kernel="imq", length_scale=0.5, frame="scale").fit(mixture(20, 1))
    t = (np.arange(400_000) + 0.5) / 400_000 * np.pi - np.pi / 2  # x = tan t: the tails are those of 1/x^2
    p = np.exp(model.score_samples(np.tan(t)[:, None]))
    assert np.sum(p / np.cos(t) ** 2) * np.pi / 400_000 == pytest.approx(1.0, abs=1e-6)
