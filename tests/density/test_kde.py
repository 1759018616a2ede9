"""KDE against scikit-learn's, quadrature and its own symmetries."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import kstest
from sklearn.neighbors import KernelDensity

from isopleth import KDE, SOSREP, InputError
from isopleth.kernels import KERNELS, SDO

REFUSED = [name for name, kernel in KERNELS.items() if not kernel.bind(2).integrable]
# The rules of quadrature here are for densities without tails of power type; tests/kernels has the integrals of all kernels.
NAMES = [name for name in KERNELS if name not in REFUSED]


def mixture(n, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) * 0.5 + 2.0 * rng.integers(0, 2, size=(n, 1))


@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_is_that_of_scikit_learn(dim, weighted):
    X, Q = mixture(200, dim), mixture(100, dim, seed=1) * 1.5
    w = np.random.default_rng(2).uniform(size=200) if weighted else None
    want = KernelDensity(bandwidth=0.6).fit(X, sample_weight=w).score_samples(Q)
    got = KDE(length_scale=0.6, frame="scale").fit(X, sample_weight=w).score_samples(Q)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_density_is_the_plain_mean_of_kernels(name):
    X, Q, scale = mixture(40, 3), mixture(20, 3, seed=1), np.array([0.5, 1.0, 2.0])
    model = KDE(kernel=name, length_scale=scale, frame="scale").fit(X)
    kernel = KERNELS[name].bind(3)
    mean = kernel(cdist(Q / scale, X / scale) ** 2).mean(axis=1)
    want = np.log(mean) - kernel.log_integral() - np.log(scale).sum()
    np.testing.assert_allclose(model.score_samples(Q), want, rtol=1e-10)
    np.testing.assert_allclose(model.dual_coef_, 1 / 40)
    assert model.log_normalizer_ == pytest.approx(kernel.log_integral() + np.log(scale).sum())


@pytest.mark.parametrize("kernel", [*REFUSED, SDO(order=3)], ids=str)
def test_kernels_that_are_no_densities_are_refused_by_name(kernel):
    with pytest.raises(InputError, match="'gaussian'"):
        KDE(kernel=kernel, frame="scale").fit(mixture(20, 2))


@pytest.mark.parametrize("name", NAMES)
def test_samples_have_the_distribution_of_the_model(name):
    model = KDE(kernel=name, length_scale=0.5, frame="scale").fit(mixture(10, 1), sample_weight=np.arange(1.0, 11.0))
    axis = np.linspace(-40.0, 45.0, 200_001)
    cdf = np.cumsum(np.exp(model.score_samples(axis[:, None]))) * (axis[1] - axis[0])
    S = model.sample(20_000, random_state=0)
    assert S.shape == (20_000, 1)
    assert kstest(S[:, 0], lambda x: np.interp(x, axis, cdf)).pvalue > 1e-3
    np.testing.assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))
    assert (model.sample(5, random_state=1) != model.sample(5, random_state=2)).any()


@pytest.mark.parametrize(
    ("kind", "name"), [*((KDE, name) for name in NAMES), (SOSREP, "gaussian"), (SOSREP, "laplacian")]
)
def test_far_rows_are_ordered_in_the_log_domain(kind, name):
    model = kind(kernel=name, frame="scale").fit(mixture(50, 2))
    far = np.array([[10.0**e, 0.0] for e in range(1, 9)])
    log_p = model.score_samples(far)
    assert np.isfinite(log_p).all()
    assert (np.diff(log_p) < 0).all()
    gradient = model.grad_log_density(far)
    assert np.isfinite(gradient).all()
    assert (gradient[:, 0] < 0).all()
    assert np.isfinite(model.hyvarinen_loss(far))


def test_the_square_of_one_gaussian_is_a_narrower_gaussian():
    """SOSREP of two rows a hair apart and KDE at the scale over sqrt(2) are the same density."""
    X = np.array([[0.0], [1e-6]])
    Q = np.linspace(-4, 4, 9)[:, None]
    root, kde = SOSREP(length_scale=1.0, frame="scale").fit(X), KDE(length_scale=np.sqrt(0.5), frame="scale").fit(X)
    np.testing.assert_allclose(root.score_samples(Q), kde.score_samples(Q), atol=1e-9)
