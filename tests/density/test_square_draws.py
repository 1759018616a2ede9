"""Exact draws from squares of sums of kernels, by rejection, against distribution functions by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from isopleth import SOSREP
from isopleth.density import frame_density
from isopleth.density.frame_density import radius_draws, sample_square
from isopleth.expansion import KernelExpansion
from isopleth.kernels import IMQ, SDO, Gaussian, Laplacian, Matern, RationalQuadratic, Sobolev

KERNELS = [
    Gaussian(),
    Laplacian(),
    Matern(nu=1.5),
    Matern(nu=3.5),
    RationalQuadratic(shape=3.0),
    SDO(),
    Sobolev([1.0, 0.5, 1.0]),
]


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_radii_follow_the_square_of_the_kernel(kernel, dim):
    bound = kernel.bind(dim)
    drawn = np.sort(radius_draws(bound).sample(100_000, np.random.default_rng(0)))
    r = np.geomspace(drawn[0] / 10, 1.2 * drawn[-1], 100_001)
    density = r**dim * np.asarray(bound(r**2)) ** 2  # of log r
    whole = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    assert kstest(drawn, lambda x: np.interp(np.log(x), np.log(r), whole / whole[-1])).pvalue > 1e-3


def test_the_bound_of_the_table_holds_between_its_nodes():
    for kernel in KERNELS:
        draws = radius_draws(kernel.bind(2))
        t = 0.5 * (draws.t[1:] + draws.t[:-1])
        middle = np.exp(frame_density._log_radial(draws.kernel, t) - draws.log_peak)
        assert (middle <= frame_density._BOUND * 0.5 * (draws.density[1:] + draws.density[:-1]) + 1e-24).all()


@pytest.mark.parametrize("kernel", [*KERNELS, IMQ()], ids=repr)
def test_draws_in_one_column_have_the_distribution_function_of_the_density(kernel):
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(25, 1)), 4.0 + 0.5 * rng.normal(size=(15, 1))])
    model = SOSREP(kernel=kernel, length_scale=0.7, frame="scale").fit(rows)
    drawn = np.sort(model.sample(20_000, random_state=1)[:, 0])
    grid = np.concatenate(
        [-np.geomspace(1e5, 8.0, 20_000), np.linspace(-7.999, 11.999, 40_001), np.geomspace(12.0, 1e5, 20_000)]
    )
    density = np.exp(model.score_samples(grid[:, None]))
    whole = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert whole[-1] == pytest.approx(1.0, abs=1e-3)
    assert kstest(drawn, lambda x: np.interp(x, grid, whole / whole[-1])).pvalue > 1e-3


@pytest.mark.parametrize("kernel", ["laplacian", "matern52", "sdo"])
def test_draws_in_two_columns_fill_the_cells_as_the_density_does(kernel):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2)) + 2.5 * rng.integers(2, size=(60, 1))
    model = SOSREP(kernel=kernel, length_scale=0.8, frame="scale").fit(rows)
    drawn = model.sample(40_000, random_state=0)
    edges = np.linspace(-4.0, 7.0, 12)
    fine = np.linspace(-4.0, 7.0, 661)
    middle = 0.5 * (fine[1:] + fine[:-1])
    points = np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=2).reshape(-1, 2)
    mass = np.exp(model.score_samples(points)).reshape(660, 660) * (fine[1] - fine[0]) ** 2
    expected = 40_000 * mass.reshape(11, 60, 11, 60).sum(axis=(1, 3))
    counts = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=[edges, edges])[0]
    often = expected > 10
    z = (counts - expected)[often] / np.sqrt(expected[often])
    assert np.sum(z**2) < often.sum() + 4 * np.sqrt(2 * often.sum())


def test_gaussian_pairs_and_rejection_agree():
    rng = np.random.default_rng(0)
    model = SOSREP(length_scale=0.8, frame="scale").fit(rng.normal(size=(50, 3)))
    expansion = model._fitted.density.expansion
    a = sample_square(expansion, 20_000, np.random.default_rng(1))
    b = model._fitted.density.sample(20_000, np.random.default_rng(2))
    for j in range(3):
        assert kstest(a[:, j], b[:, j]).pvalue > 1e-3
    assert np.cov(a.T) == pytest.approx(np.cov(b.T), abs=0.06)


def test_the_share_that_is_accepted_is_the_one_stated():
    rng = np.random.default_rng(0)
    for kernel in ("matern32", "sdo"):
        model = SOSREP(kernel=kernel, frame="scale").fit(rng.normal(size=(80, 2)))
        expansion, bound = model._fitted.density.expansion, model._fitted.recipe.kernel
        share = np.exp(
            model._fitted.density.log_normalizer
            - 2 * np.log(expansion.coefficients.sum())
            - bound.self_convolution().log_constant
        )
        assert share >= 1 / 80
        radii, count = radius_draws(bound).sample(50_000, rng), 50_000
        direction = rng.normal(size=(count, 2))
        alpha = expansion.coefficients / expansion.coefficients.sum()
        i, j = rng.choice(80, count, p=alpha), rng.choice(80, count, p=alpha)
        rows = expansion.centers[i] + radii[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        draw = frame_density._by_pairs if bound.nonnegative else frame_density._by_all
        accepted = draw(expansion, expansion.centers, rows, radii, j)
        assert (accepted <= 1 + 1e-9).all()
        assert accepted.mean() == pytest.approx(share, rel=0.03)


def test_draws_are_reproducible_and_of_any_number():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    model = SOSREP(kernel="laplacian", frame="scale").fit(rows)
    assert model.sample(random_state=0).shape == (1, 2)
    np.testing.assert_array_equal(model.sample(500, random_state=3), model.sample(500, random_state=3))
    far = KernelExpansion(Matern(nu=1.5).bind(2), np.array([[0.0, 0.0], [1e6, 0.0]]), np.ones(2))
    drawn = sample_square(far, 400, np.random.default_rng(0))
    assert abs(np.mean(drawn[:, 0] > 5e5) - 0.5) < 0.1
