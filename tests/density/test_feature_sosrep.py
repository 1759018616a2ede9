"""SOSREP in random features: the exact fit as features grow, the rule for noise, and scikit-learn's manners."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from isopleth import SOSREP, DataWarning, InputError, RandomFeatureSOSREP, Search
from isopleth.core.budget import Budget
from isopleth.core.rows import distinct_rows
from isopleth.density import feature_sosrep
from isopleth.density.feature_sosrep import FeatureDensity
from isopleth.density.feature_statistics import continued_log
from isopleth.density.frame_density import ExpansionDensity
from isopleth.expansion import KernelExpansion
from isopleth.kernels import IMQ, SDO, Gaussian, Kernel, Sobolev, get_kernel
from isopleth.operators.features import RandomFeatures

KERNELS = ["gaussian", "laplacian", "matern32", "matern72", "sdo", Sobolev([0.5, 2.0, 1.0])]


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def model(**options):
    return RandomFeatureSOSREP(**{"n_frequencies": 150, "length_scale": 0.8, "random_state": 0, **options})


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_it_tends_to_the_exact_fit(kernel, d):
    X, Q = rows(60, d), 0.7 * rows(40, d, 1)
    exact = SOSREP(kernel, length_scale=1.2, frame="scale").fit(X)
    errors = []
    for size in (20, 320):
        each = [
            model(kernel=kernel, length_scale=1.2, n_frequencies=size, random_state=seed).fit(X) for seed in range(4)
        ]
        errors.append(np.sqrt(np.mean([np.mean((one.score_samples(Q) - exact.score_samples(Q)) ** 2) for one in each])))
        shares = [one.log_normalizer_ - exact.log_normalizer_ for one in each]
        assert np.abs(shares).max() < 4.5 / np.sqrt(size)
    assert errors[1] < 0.6 * errors[0]  # a quarter, but for chance
    assert errors[1] < 0.2


@pytest.mark.parametrize("kernel", ["gaussian", pytest.param("matern52", marks=pytest.mark.slow), "sdo"])
def test_the_normaliser_by_quadrature(kernel):
    """The normaliser is that of the mean over draws of wave vectors, because a sum of waves has no integral."""
    X = rows(40, 1)
    fits = [model(kernel=kernel, random_state=seed).fit(X) for seed in range(20)]
    exact = SOSREP(kernel, length_scale=0.8, frame="scale").fit(X)
    grid = np.linspace(-12.0, 12.0, 4001)[:, None]
    z = fits[0]._fitted.coordinates.enter(grid)
    f = np.mean([one._fitted.density.features.value(z, one.coef_) for one in fits], axis=0)
    log_z = np.array([one.log_normalizer_ for one in fits])
    noise = 24.0 * fits[0].noise_level_ ** 2 / len(fits)
    assert np.trapezoid(f**2, grid[:, 0]) - noise == pytest.approx(np.exp(log_z).mean(), rel=0.03)
    assert np.exp(log_z - exact.log_normalizer_).mean() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("kernel", "d"), [("gaussian", 100), ("laplacian", 30), ("sdo", 10)])
def test_the_normaliser_in_many_columns(kernel, d):
    """Beside the double sum over rows of the function of the kernel with the same coefficients."""
    X = rows(200, d)
    fitted = model(kernel=kernel, length_scale="auto").fit(X)
    features, z = fitted._fitted.density.features, fitted._fitted.coordinates.enter(X)
    alpha = continued_log(features.value(z, fitted.coef_), features.noise)[1] / 200
    sums = KernelExpansion(fitted._fitted.recipe.kernel, z, alpha, Budget(2**30, 1))
    square = ExpansionDensity(sums, squared=True).log_normalizer
    assert fitted.log_normalizer_ - fitted._fitted.coordinates.frame.log_volume == pytest.approx(square, abs=1.5)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_normaliser_of_one_row_is_exact(kernel):
    """However few the features: then |A| is 1 everywhere."""
    bound = get_kernel(kernel).bind(4)
    features = RandomFeatures.draw(bound, 3, np.random.default_rng(0))
    found = FeatureDensity(bound, features, features(np.zeros((1, 4)))[0]).log_normalizer
    assert found == pytest.approx(bound.self_convolution().log_constant, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_and_loss_by_differences(kernel):
    X, Q = rows(80) * [1.0, 50.0], 0.5 * rows(20, 2, 1) * [1.0, 50.0]
    fitted = model(kernel=kernel, length_scale="median", bounds={0: (-9.0, None)}).fit(X)
    gradient, loss = fitted.grad_log_density(Q), 0.0
    for j in range(2):
        step = np.eye(2)[j] * 1e-4 * fitted.unit_[j]
        up, down = fitted.score_samples(Q + step), fitted.score_samples(Q - step)
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2 * step[j]), rtol=1e-4, atol=1e-6 / fitted.unit_[j])
    free = model(kernel=kernel, length_scale="median").fit(X)
    if get_kernel(kernel).bind(2).smoothness <= 1.0:
        with pytest.raises(InputError, match="no useful Hyvarinen loss"):
            free.hyvarinen_loss(Q)
        return
    here = free.score_samples(Q)
    for j in range(2):
        step = np.eye(2)[j] * 1e-3 * free.unit_[j]
        up, down = free.score_samples(Q + step), free.score_samples(Q - step)
        loss += np.mean((up - 2 * here + down) / 1e-6 + 0.5 * ((up - down) / 2e-3) ** 2)
    assert free.hyvarinen_loss(Q) == pytest.approx(loss, rel=1e-3, abs=1e-3)


def test_rows_below_the_noise_have_no_density():
    X = rows(200)
    fitted = model().fit(X)
    Q = np.vstack([X, 100.0 * rows(400, 2, 1)])
    f = fitted._fitted.density.features.value(fitted._fitted.coordinates.enter(Q), fitted.coef_)
    assert fitted.noise_level_ == pytest.approx(300**-0.5)
    untold = f <= fitted.noise_level_
    np.testing.assert_array_equal(np.isneginf(fitted.score_samples(Q)), untold)
    np.testing.assert_array_equal(np.isnan(fitted.grad_log_density(Q)).any(axis=1), untold)
    assert fitted.share_below_noise_ == pytest.approx(untold[:200].mean())
    assert 0.75 < untold[200:].mean() < 0.92  # all but one in six
    assert fitted.hyvarinen_loss(Q) == np.inf
    assert not np.isnan(fitted.score_samples([[1e308, -1e308], [-1e100, 0.0]])).any()
    assert np.isfinite(fitted.hyvarinen_loss(Q[~untold]))


def test_every_unit_gives_the_same_density():
    X, Q = rows(150), 0.5 * rows(20, 2, 1)
    shift, factor = np.array([5.0, -300.0]), np.array([1e-3, 40.0])
    for scale in ("auto", "scott", np.array([0.8, 1.2])):
        one = model(length_scale=scale).fit(X)
        other = model(length_scale=scale if isinstance(scale, str) else scale * factor).fit(X * factor + shift)
        want = one.score_samples(Q) - np.log(factor).sum()
        np.testing.assert_allclose(other.score_samples(Q * factor + shift), want, rtol=1e-6)
        np.testing.assert_allclose(
            other.grad_log_density(Q * factor + shift) * factor, one.grad_log_density(Q), rtol=1e-4, atol=1e-6
        )
        assert other.approximation_error_ == pytest.approx(one.approximation_error_, rel=1e-4)


def test_the_equations_are_met():
    X = rows(500)
    fitted = model(length_scale=1.5).fit(X)
    features, z = fitted._fitted.density.features, fitted._fitted.coordinates.enter(X)
    f = features.value(z, fitted.coef_)
    assert (f > fitted.noise_level_).all()
    left = fitted.coef_ - features(z).T @ (1 / f) / 500
    assert np.linalg.norm(left) / np.linalg.norm(fitted.coef_) == pytest.approx(fitted.residual_, rel=1e-3, abs=1e-13)
    assert fitted.residual_ <= fitted.tol
    assert np.linalg.norm(fitted.coef_) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", SDO(order=4)], ids=repr)
def test_the_error_is_that_of_log_densities_against_the_exact_fit(kernel):
    X = np.vstack([rows(100), 6.0 + rows(3, 2, 1)])
    fitted = model(kernel=kernel, length_scale=1.0).fit(X)
    mine, exact = fitted.score_samples(X), SOSREP(kernel, length_scale=1.0, frame="scale").fit(X).score_samples(X)
    known = np.isfinite(mine)
    assert fitted.approximation_error_ == pytest.approx(np.sqrt(np.mean((mine - exact)[known] ** 2)), rel=1e-4)


def test_many_rows_are_compared_on_some_of_them(monkeypatch):
    X = rows(400)
    monkeypatch.setattr(feature_sosrep, "CHECKED", 100)
    fitted = model().fit(X)
    some = distinct_rows(X, np.ones(400))[0][np.linspace(0, 399, 100).astype(int)]
    monkeypatch.undo()
    assert fitted.approximation_error_ == pytest.approx(_of_part(some, fitted), rel=1e-4)
    assert fitted.score_samples(X).shape == (400,)


def _of_part(some, fitted):
    """Fitted in the frame of all rows: the same centre of phases is not needed, the same scale is."""
    return model(length_scale=fitted.length_scale_).fit(some).approximation_error_


def test_a_search_finds_a_scale_that_features_can_tell():
    X = rows(400, 4)
    search = Search(criterion="likelihood", grid=[0.5, 1.0, 2.0, 4.0, 8.0], cv=0.3)
    fitted = model(length_scale=search, n_frequencies=100).fit(X)
    assert fitted.search_path_.best_factor > 1.0
    assert np.isinf(fitted.search_path_.losses[0])  # rows held out are lost in the noise there
    assert fitted.share_below_noise_ < 0.05


def test_bounds_and_constant_columns():
    X = np.exp(rows(200, 2))
    X[:, 1] = 3.0
    with pytest.warns(DataWarning, match="constant columns"):
        fitted = model(bounds={0: (0.0, None)}).fit(X)
    assert fitted.frequencies_.shape == (150, 1)
    grid = np.c_[np.linspace(-1.0, 8.0, 5), np.full(5, 3.0)]
    found = fitted.score_samples(grid)
    assert found[0] == -np.inf
    assert np.isfinite(found[1:3]).all()
    assert (fitted.grad_log_density(grid[1:3])[:, 1] == 0.0).all()


def test_warnings(monkeypatch):
    with pytest.warns(DataWarning, match=r"100 features are few .* 9\d% of the rows .*; take a larger length_scale"):
        model(length_scale=0.05, n_frequencies=50).fit(rows(500, 5))
    with pytest.warns(ConvergenceWarning, match="above tol = 1e-300"):
        model(tol=1e-300).fit(rows(30))
    with pytest.warns(DataWarning, match=r"noise of the features and log densities are [1-9]\.\d nats from"):
        model(length_scale="auto", n_frequencies=10).fit(rows(40, 200))
    monkeypatch.setattr(feature_sosrep, "LARGE_ERROR", 0.01)
    with pytest.warns(
        DataWarning, match=r"few for these rows: log densities are 0\.\d nats from those of the exact fit; take"
    ):
        model().fit(rows(30))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": IMQ()}, "does not integrate"),
        ({"n_frequencies": 1000, "memory_limit": 2**20}, r"use \d+ wave vectors at most"),
        ({"n_frequencies": 10**12}, r"use \d+ wave vectors at most"),  # before they are drawn
        ({"memory_limit": 10.0}, "raise memory_limit"),
        ({"length_scale": -1.0}, "length_scale"),
        ({"length_scale": "silverman"}, "'auto', 'scott' or 'median'"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(InputError, match=words) as caught:
        model(**options).fit(rows(20))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", ["auto", "scott"])
def test_columns_of_a_size_without_a_length_scale(scale):
    X = np.c_[rows(50)[:, 0], np.where(np.arange(50) % 3, 1.7e308, -1.7e308)]
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match="column 1 is of a size that leaves no length scale"),
    ):
        model(length_scale=scale).fit(X)


def test_a_kernel_without_a_spectral_density_is_refused_before_any_work():
    class Mine(Gaussian):
        log_spectral_density = Kernel.log_spectral_density

    estimator = model(kernel=Mine())
    with pytest.raises(InputError, match="does not define log_spectral_density"):
        estimator.fit(rows(20))
    assert not hasattr(estimator, "frequencies_")
