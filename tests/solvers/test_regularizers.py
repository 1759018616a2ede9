"""Regularisers: their filters against formulas, matrices and rates."""

import math

import array_api_strict
import numpy as np
import pytest

from isopleth import InputError
from isopleth.score import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
from isopleth.solvers import Spectrum

SIGMA = np.array([0.0, 1e-14, 1e-6, 0.01, 0.2, 0.5, 0.99, 1.0])
ALL = [
    Tikhonov(0.01),
    Tikhonov(0.01, truncated=False),
    SpectralCutoff(threshold=0.1),
    LandweberIteration(0.05),
    NuIteration(0.01),
    NuIteration(0.01, nu=2.0),
]


def test_landweber_is_the_geometric_sum():
    r = LandweberIteration(steps=7, step_size=0.3)
    want = [0.3 * sum((1 - 0.3 * s) ** i for i in range(7)) for s in SIGMA]
    np.testing.assert_allclose(r.filter(SIGMA, 1.0), want, rtol=1e-14)
    assert r.at_zero(1.0) == pytest.approx(2.1)
    assert LandweberIteration(0.01).steps_for(1.0) == math.ceil(100 / 0.9)
    assert LandweberIteration(0.01).filter(SIGMA, 1.0)[0] == pytest.approx(0.9 * 112)


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0, 3.5])
def test_the_nu_method_has_the_residual_polynomials_of_its_theory(nu):
    """At 1 all residual polynomials are those of Jacobi, bounded by the qualification."""
    for steps in (1, 2, 5, 40):
        r = NuIteration(steps=steps, nu=nu)
        left = 1 - SIGMA * r.filter(SIGMA, 1.0)
        assert left[0] == 1.0
        assert (np.abs(left) <= 1 + 1e-12).all()
        assert np.max(np.abs(left) * SIGMA**nu) * steps ** (2 * nu) < 20 * math.gamma(2 * nu + 1)


def test_the_nu_method_takes_the_root_of_the_steps_of_landweber():
    sigma = np.linspace(1e-3, 1.0, 1000)

    def error(r):
        return np.max(np.abs(1 - sigma * r.filter(sigma, 1.0)) * sigma)

    assert error(NuIteration(steps=20)) < error(LandweberIteration(steps=150))
    assert NuIteration(1e-4).steps_for(1.0) == 100
    assert NuIteration(1e-4).steps_for(4.0) == 200
    assert NuIteration(1e-4, largest=9.0).steps_for(4.0) == 300


@pytest.mark.parametrize("r", ALL, ids=repr)
def test_filters_bounds_and_multipliers_fit_together(r):
    g = r.filter(SIGMA, 1.0)
    assert (SIGMA * g <= 2 + 1e-9).all()
    assert (g >= 0).all()
    factor = r.at_zero(1.0)
    above = SIGMA > 1e-12
    np.testing.assert_allclose(
        (SIGMA * r.multiplier(SIGMA, 1.0) + factor)[above], g[above], rtol=1e-9, atol=1e-12 * max(factor, 1.0)
    )
    assert np.isfinite(r.multiplier(SIGMA, 1.0)).all()
    assert r.qualification >= 1.0


@pytest.mark.parametrize("r", [LandweberIteration(steps=30), NuIteration(steps=12), NuIteration(steps=12, nu=2.5)])
def test_matrix_and_functional_iterations_agree(r):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    A = root @ root.T / 30
    h = rng.normal(size=(9, 2))
    spectrum = Spectrum.of(A)
    a, c = r.iterate(lambda v: A @ v, h, spectrum.largest)
    np.testing.assert_allclose(
        a * h + A @ c, -spectrum.apply(lambda s: r.filter(s, spectrum.largest), h), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(c, -spectrum.apply(lambda s: r.multiplier(s, spectrum.largest), h), rtol=1e-9, atol=1e-9)
    assert a == pytest.approx(-r.at_zero(spectrum.largest))


def test_saturation():
    """A ridge gains nothing from a truth smoother than its qualification, a cut-off and the nu-method with nu = 3 do."""
    sigma = np.geomspace(1e-5, 1.0, 4000)

    def rate(make, r):
        error = [np.max(np.abs(1 - sigma * make(a).filter(sigma, 1.0)) * sigma**r) for a in (1e-2, 1e-3)]
        return math.log10(error[0] / error[1])

    assert rate(Tikhonov, 3.0) == pytest.approx(1.0, abs=0.1)
    assert rate(lambda a: SpectralCutoff(threshold=a), 3.0) == pytest.approx(3.0, abs=0.1)
    assert rate(lambda a: NuIteration(a, nu=3.0), 3.0) == pytest.approx(3.0, abs=0.5)
    assert rate(lambda a: NuIteration(a, nu=1.0), 3.0) < 1.6


def test_the_three_ways_to_cut():
    sigma = np.array([1e-15, 0.1, 0.2, 0.3, 0.4])
    kept = {
        SpectralCutoff(threshold=0.2): [0, 0, 1, 1, 1],
        SpectralCutoff(count=2): [0, 0, 0, 1, 1],
        SpectralCutoff(count=0.5): [0, 0, 0, 1, 1],
        SpectralCutoff(count=9): [0, 1, 1, 1, 1],
        SpectralCutoff(count=0.01): [0, 0, 0, 0, 1],
        SpectralCutoff(energy=0.7): [0, 0, 0, 1, 1],
        SpectralCutoff(energy=0.71): [0, 0, 1, 1, 1],
    }
    for r, want in kept.items():
        np.testing.assert_array_equal(r.kept(sigma), np.array(want, dtype=bool), err_msg=repr(r))
    assert SpectralCutoff(count=0.29).kept(np.linspace(0.1, 1.0, 100)).sum() == 29
    assert not SpectralCutoff(threshold=0.2).needs_all_eigenvalues
    assert SpectralCutoff(energy=0.2).needs_all_eigenvalues


@pytest.mark.parametrize("r", [*ALL, SpectralCutoff(count=3), SpectralCutoff(energy=0.9)], ids=repr)
def test_filters_on_a_strict_array_api_library(r):
    strict = array_api_strict.asarray(SIGMA)
    for method in (r.filter, r.multiplier):
        np.testing.assert_allclose(np.asarray(method(strict, 1.0)), method(SIGMA, 1.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tikhonov(0.0), "alpha = 0.0: expected a positive, finite number"),
        (lambda: Tikhonov(True), "alpha = True"),
        (lambda: Tikhonov(0.1, truncated="no"), "truncated = 'no'"),
        (lambda: SpectralCutoff(), "exactly one"),
        (lambda: SpectralCutoff(threshold=0.1, count=3), "exactly one"),
        (lambda: SpectralCutoff(count=0), "count = 0"),
        (lambda: SpectralCutoff(count=1.5), "count = 1.5"),
        (lambda: SpectralCutoff(energy=1.0), "energy = 1.0"),
        (lambda: SpectralCutoff(threshold=-1.0), "threshold = -1.0"),
        (lambda: LandweberIteration(), "either alpha or steps"),
        (lambda: NuIteration(0.1, steps=3), "either alpha or steps"),
        (lambda: NuIteration(steps=0), "steps = 0"),
        (lambda: NuIteration(steps=3, nu=0.0), "nu = 0.0"),
        (lambda: NuIteration(steps=3, largest=0.5).filter(SIGMA, 1.0), "largest = 0.5: .* the largest eigenvalue, 1;"),
        (lambda: LandweberIteration(steps=3, step_size=-1.0), "step_size = -1.0"),
        (lambda: LandweberIteration(5e-324).filter(SIGMA, 1.0), "alpha = .* stands for .* steps; use a larger alpha"),
        (lambda: NuIteration(1e-300).filter(SIGMA, 1.0), "alpha = 1e-300 stands for 1.0e\\+150 steps"),
        (lambda: LandweberIteration(steps=3, step_size=2.0).filter(SIGMA, 1.0), "two over the largest eigenvalue, 2"),
    ],
)
def test_parameters_are_checked(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_step_below_two_over_the_largest_eigenvalue_is_kept():
    short, long = (LandweberIteration(0.1, step_size=size) for size in (3.9, 4.1))
    assert short.steps_for(0.5) > 0
    with pytest.raises(InputError, match="converges below two over the largest eigenvalue, 4"):
        long.steps_for(0.5)
