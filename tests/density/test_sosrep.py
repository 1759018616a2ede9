"""SOSREP against quadrature, dense algebra and its own symmetries."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from isopleth import SOSREP, AnomalyDetector, InputError
from isopleth.kernels import KERNELS, SDO, Gaussian, Laplacian


def has_square_integral(kernel, dim):
    try:
        kernel.bind(dim).self_convolution()
    except InputError:
        return False
    return True


# Without kernels whose tails are powers: their squares integrate in few dimensions only, and quadrature on a box fails.
NAMES = [name for name, kernel in KERNELS.items() if has_square_integral(kernel, 7)]


def mixture(n, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) * 0.5 + 2.0 * rng.integers(0, 2, size=(n, 1))


@pytest.mark.parametrize("dim", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kernel",
    [pytest.param(name, marks=[] if name in ("gaussian", "laplacian") else pytest.mark.slow) for name in NAMES],
)
def test_density_integrates_to_one(kernel, dim):
    model = SOSREP(kernel=kernel, length_scale=0.9, frame="scale").fit(mixture(15, dim))
    # Midpoint rule on a fine grid: spectral accuracy for the smooth kernels, h^2 around the kinks of the Laplacian's
    # centres.
    points, half = {1: (60_000, 30.0), 2: (900, 22.0), 3: (190, 13.0)}[dim]
    centre = model.centers_.mean(axis=0)
    axis = (np.arange(points) + 0.5) / points * 2 * half - half
    total = 0.0
    for chunk in np.array_split(axis, 16 if dim > 1 else 1):
        grid = np.stack(np.meshgrid(chunk, *[axis] * (dim - 1), indexing="ij"), axis=-1).reshape(-1, dim)
        total += np.exp(model.score_samples(grid + centre)).sum()
    total *= (2 * half / points) ** dim
    kinked = KERNELS[kernel].bind(dim).smoothness < 1.0
    assert total == pytest.approx(1.0, abs={2: 3e-5, 3: 3e-4}[dim] if kinked and dim > 1 else 1e-6)


@cache  # the rule takes eigenvalues of a 300 x 300 matrix, and is the same for each pair of rows
def gauss_legendre(points):
    return np.polynomial.legendre.leggauss(points)


def convolution_by_quadrature(kernel, r, dim):
    """Integral of k(|z|) k(|z - r e|) over z, in coordinates with both centres as foci, in which the integrand is smooth."""
    t, wt = gauss_legendre(300)
    reach = 45.0
    if r == 0.0:
        a = reach * ((t + 1) / 2) ** 2
        jacobian = reach * (t + 1) / 2 * wt
        surface = {1: 2.0, 2: 2 * np.pi, 3: 4 * np.pi}[dim]
        return surface * np.sum(jacobian * a ** (dim - 1) * kernel(a**2) ** 2)
    top = np.arccosh(2 * reach / r)
    mu, w_mu = top * (t + 1) / 2, top / 2 * wt
    nu, w_nu = np.pi * (t + 1) / 2, np.pi / 2 * wt
    outer, inner = np.cosh(mu)[:, None], np.cos(nu)[None, :]
    a, b = r / 2 * (outer + inner), r / 2 * (outer - inner)
    element = (r / 2) ** 2 * (outer**2 - inner**2)
    turns = 2.0 if dim == 2 else np.pi * r * np.sinh(mu)[:, None] * np.sin(nu)[None, :]
    return np.sum(w_mu[:, None] * turns * element * kernel(a**2) * kernel(b**2) * w_nu)


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_normaliser_agrees_with_quadrature_to_a_millionth(kernel, dim):
    model = SOSREP(kernel=kernel, length_scale=1.3, frame="scale").fit(mixture(6, dim))
    profile = KERNELS[kernel].bind(dim)
    r = cdist(model.centers_, model.centers_) / 1.3
    if dim == 1:
        z = np.linspace(-60, 60, 600_001)[:, None]
        f = profile((z - model.centers_.T / 1.3) ** 2) @ model.dual_coef_
        integral = np.trapezoid(f**2, z[:, 0])
    else:
        k2 = np.zeros_like(r)
        for i, j in zip(*np.triu_indices(len(r)), strict=True):
            k2[i, j] = k2[j, i] = convolution_by_quadrature(profile, r[i, j], dim)
        integral = model.dual_coef_ @ k2 @ model.dual_coef_
    assert model.log_normalizer_ == pytest.approx(np.log(integral) + dim * np.log(1.3), abs=1e-6)


@pytest.mark.parametrize("kernel", NAMES)
def test_optimality_in_the_terms_of_the_attributes(kernel):
    X = mixture(100, 2)
    X = np.concatenate([X, X[:30]])
    model = SOSREP(kernel=kernel, frame="scale").fit(X)
    assert len(model.centers_) == 100
    k = KERNELS[kernel].bind(2)(cdist(model.centers_ / model.length_scale_, model.centers_ / model.length_scale_) ** 2)
    w = model.weights_ / model.weights_.sum()
    assert np.max(np.abs(model.dual_coef_ * (k @ model.dual_coef_) / w - 1)) <= 2e-8
    assert model.residual_ <= 1e-8
    assert model.score(X) == pytest.approx(model.score_samples(X).sum())


def test_sampling_has_the_density_of_the_model():
    X = mixture(50, 2)
    model = SOSREP(length_scale=0.8, frame="scale").fit(X)
    S = model.sample(40_000, random_state=0)
    assert S.shape == (40_000, 2)
    # The mean log density of draws is minus the entropy, which a grid gives; standard error about 1/200.
    axis = np.linspace(-4, 6, 500)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    log_p = model.score_samples(grid)
    minus_entropy = np.sum(np.exp(log_p) * log_p) * (axis[1] - axis[0]) ** 2
    assert model.score_samples(S).mean() == pytest.approx(minus_entropy, abs=0.03)
    # Cell counts against the integrated density: chi-square with 99 degrees of freedom, 5.5 standard deviations.
    edges = np.quantile(S, np.linspace(0, 1, 11)[1:-1], axis=0)
    cells = np.searchsorted(edges[:, 0], S[:, 0]) * 10 + np.searchsorted(edges[:, 1], S[:, 1])
    p = np.bincount(
        np.searchsorted(edges[:, 0], grid[:, 0]) * 10 + np.searchsorted(edges[:, 1], grid[:, 1]),
        weights=np.exp(log_p),
        minlength=100,
    )
    p /= p.sum()
    chi2 = np.sum((np.bincount(cells, minlength=100) - 40_000 * p) ** 2 / (40_000 * p)[p > 0].clip(1))
    assert chi2 < 99 + 78
    np.testing.assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))
    tight = SOSREP(length_scale=0.8, memory_limit=1e4, frame="scale").fit(X)
    assert tight.sample(500, random_state=0).mean() == pytest.approx(S.mean(), abs=0.3)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_level_sets_hold_their_mass_of_fresh_rows(kernel):
    train, fresh = mixture(800, 2), mixture(20_000, 2, seed=9)
    model = SOSREP(kernel=kernel, frame="scale").fit(train)
    mass = np.array([0.5, 0.9])
    levels = model.level_set(mass)
    inside = (model.score_samples(fresh)[:, None] >= levels).mean(axis=0)
    np.testing.assert_allclose(inside, mass, atol=0.035)  # about two standard errors of a quantile of 800 rows
    assert model.level_set(0.5) == levels[0]
    for bad in (0.0, 1.0, [0.5, 2.0], "half"):
        with pytest.raises(ValueError, match="mass"):
            model.level_set(bad)


def test_kernels_as_objects_and_the_paper_s_family():
    X = mixture(60, 2)
    assert SOSREP(kernel=Gaussian(), frame="scale").fit(X).score(X) == SOSREP(frame="scale").fit(X).score(X)
    assert SOSREP(kernel=SDO(order=4), frame="scale").fit(X).residual_ <= 1e-8
    with pytest.raises(ValueError, match="bound to 3"):
        SOSREP(kernel=Laplacian(dim=3), frame="scale").fit(X)
    with pytest.raises(ValueError, match="'gaussian'"):
        SOSREP(kernel="gausian", frame="scale").fit(X)


def test_a_tolerance_out_of_reach_warns():
    with pytest.warns(ConvergenceWarning, match="tol"):
        SOSREP(tol=1e-30, frame="scale").fit(mixture(30, 2))


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, [1.0, 0.0], [1.0, 1.0, 1.0], "silverman", [[1.0]]])
def test_length_scales_that_cannot_be_used(scale):
    with pytest.raises(InputError, match="length_scale"):
        SOSREP(length_scale=scale, frame="scale").fit(mixture(20, 2))


@pytest.mark.parametrize(
    "weight",
    [
        -1.0,
        0,
        np.nan,
        np.inf,
        1j,
        "heavy",
        np.ones(3),
        np.full(20, 1e308),
        np.r_[np.ones(19), 1e-300],
        np.r_[np.ones(19), -1.0],
    ],
)
def test_weights_that_are_no_weights(weight):
    with pytest.raises(InputError, match="sample_weight"):
        SOSREP(frame="scale").fit(mixture(20, 2), sample_weight=weight)


@pytest.mark.parametrize("rule", ["scott", "median"])
def test_weights_of_any_size_have_the_same_length_scale(rule):
    X, w = mixture(30, 2), np.random.default_rng(0).integers(1, 4, size=30) / 60.0
    want = SOSREP(length_scale=rule, frame="scale").fit(X, sample_weight=w).length_scale_
    np.testing.assert_allclose(
        SOSREP(length_scale=rule, frame="scale").fit(X, sample_weight=1e-200 * w).length_scale_, want
    )
    if rule == "median":  # Scott's rule counts large weights as repetitions
        np.testing.assert_allclose(
            SOSREP(length_scale=rule, frame="scale").fit(X, sample_weight=1e200 * w).length_scale_, want
        )


def test_length_scales_of_one_model_serve_another():
    X = np.insert(mixture(30, 2), 1, 5.0, axis=1)
    with pytest.warns(UserWarning, match="constant"):
        first = SOSREP(frame="scale").fit(X)
    with pytest.warns(UserWarning, match="constant"):
        second = SOSREP(length_scale=first.length_scale_, frame="scale").fit(X)
    np.testing.assert_array_equal(second.score_samples(X), first.score_samples(X))
    with pytest.raises(InputError, match="length_scale"):
        SOSREP(length_scale=first.length_scale_, frame="scale").fit(mixture(30, 3))


def test_a_million_rows_of_which_few_are_unique():
    X = np.random.default_rng(0).integers(0, 5, size=(1_000_000, 3)).astype(float)
    model = SOSREP(frame="scale").fit(X)
    assert len(model.centers_) == 125
    assert model.weights_.sum() == 1_000_000


def true_residual(model):
    """The largest relative error of the optimality conditions, from the attributes alone and by differences."""
    z = model.centers_ / model.length_scale_
    kernel = KERNELS[model.kernel].bind(z.shape[1])
    values = kernel(((z[:, None] - z) ** 2).sum(axis=2)) @ model.dual_coef_
    return np.max(np.abs(model.dual_coef_ * values / (model.weights_ / model.weights_.sum()) - 1))


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("outlier", [1e6, 1e12, 1e18])
def test_one_giant_value_takes_no_digits_from_the_other_rows(kernel, outlier):
    X = mixture(100, 3)
    X[0, 0] = outlier
    assert true_residual(SOSREP(kernel=kernel, length_scale=1.0, frame="scale").fit(X)) < 2e-8


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize("rule", ["scott", "median"])
def test_columns_of_any_size(factor, rule):
    X = mixture(60, 2)
    want = SOSREP(length_scale=rule, frame="scale").fit(X).score_samples(X) - 2 * np.log(factor)
    np.testing.assert_allclose(
        SOSREP(length_scale=rule, frame="scale").fit(X * factor).score_samples(X * factor), want, rtol=1e-6
    )


def test_queries_so_far_that_squares_overflow():
    for kernel in NAMES:
        model = SOSREP(kernel=kernel, frame="scale").fit(mixture(40, 2))
        far = np.array([[1e160, 0.0], [-1e308, 1e308], [0.0, 0.0]])
        assert not np.isnan(model.score_samples(far)).any()
        assert not np.isnan(model.grad_log_density(far)).any()


@pytest.mark.parametrize("kernel", [Laplacian(), SDO(order=1)], ids=repr)
def test_gradients_at_rows_that_all_but_coincide_are_finite(kernel):
    X = [[-1.0], [0.0], [1e-200], [1e-150], [1.0]]
    assert np.isfinite(SOSREP(kernel=kernel, length_scale=1.0, frame="scale").fit(X).grad_log_density(X)).all()


def test_the_fitted_density_does_not_follow_parameters_set_later():
    X = mixture(60, 2)
    model = SOSREP(kernel="laplacian", frame="scale").fit(X)
    want = model.score_samples(X)
    model.set_params(kernel="gaussian", length_scale=9.0)
    np.testing.assert_array_equal(model.score_samples(X), want)


def test_a_fit_that_fails_leaves_no_half_fitted_model():
    X = mixture(60, 3)
    model = SOSREP(kernel=SDO(order=1), frame="scale")
    with pytest.raises(InputError, match="order"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.score_samples(X)


def test_a_refit_that_fails_forgets_the_first_fit():
    for model in (SOSREP(frame="scale"), AnomalyDetector(n_estimators=5, random_state=0)):
        model.fit(mixture(60, 3))
        for bad in (np.full((9, 5), np.nan), np.ones((9, 5))):
            with pytest.raises(InputError):
                model.fit(bad)
            with pytest.raises(NotFittedError):
                model.score_samples(mixture(60, 3))


def test_folds_that_do_not_converge_say_so():
    with pytest.warns(ConvergenceWarning):
        model = SOSREP(tol=1e-30, frame="scale").fit(mixture(60, 2))
    with pytest.warns(ConvergenceWarning):
        model.level_set(0.5)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "many", True])
def test_numbers_of_samples_that_are_none(n_samples):
    with pytest.raises(InputError, match="n_samples"):
        SOSREP(frame="scale").fit(mixture(20, 2)).sample(n_samples)
