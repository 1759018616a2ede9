"""Methods with which the studies of density differences compare."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import lsdd_classifier, lsdd_l2, lsdd_limit_law, lsdd_rate
from scipy.integrate import quad
from scipy.stats import kstest, multivariate_normal, norm

from isopleth import LSDD


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.8])
def test_true_distance_of_the_bells(mu):
    scale = (4.0 * np.pi) ** -0.5
    square = quad(lambda t: (norm.pdf(t, mu, scale) - norm.pdf(t, 0.0, scale)) ** 2, -3.0, 4.0, epsabs=1e-12)[0]
    assert lsdd_l2.true_distance(mu) == pytest.approx(square, abs=1e-9)


def test_expected_difference_is_what_fits_scatter_around():
    rng = np.random.default_rng(0)
    scale = lsdd_limit_law.DEVIATION
    centers = rng.normal(scale=1.5 * scale, size=(12, 2))
    at = np.array([[0.1, 0.2], [-0.3, 0.0]])
    model = LSDD(**lsdd_limit_law.GIVEN, centers=centers, random_state=0, n_jobs=1)
    fits = np.array([model.fit(*lsdd_limit_law.draw(0.4, 2, 300, rng)).difference(at) for _ in range(60)])
    expected = lsdd_limit_law.expected_difference(model, 0.4, at)
    assert (np.abs(fits.mean(axis=0) - expected) < 4.0 * fits.std(axis=0) / np.sqrt(60)).all()


@pytest.mark.parametrize("name", list(lsdd_rate.LAWS))
def test_draws_of_the_rates_follow_their_densities(name):
    _, density, draw = lsdd_rate.LAWS[name]
    grid = np.linspace(-6.0, 6.0, 20001)
    total = np.cumsum(density(grid)) * (grid[1] - grid[0])
    assert total[-1] == pytest.approx(1.0, abs=1e-3)
    found = kstest(draw(np.random.default_rng(0), 500), lambda t: np.interp(t, grid, total))
    assert found.pvalue > 1e-3


@pytest.mark.parametrize("name", ["shift", "spread", "corners"])
def test_bayes_rule_of_the_classifiers(name):
    both = lsdd_classifier.laws(name, 2)
    rows = lsdd_classifier.draw(both[0], 400, np.random.default_rng(0))
    logs = []
    for means, deviation in both:
        parts = [multivariate_normal.pdf(rows, mean, deviation**2) for mean in means]
        logs.append(np.log(np.mean(parts, axis=0)))
    ours = [lsdd_classifier.log_density(law, rows) for law in both]
    np.testing.assert_allclose(ours[0] - ours[1], logs[0] - logs[1], atol=1e-9)


def test_no_rule_beats_that_of_bayes(monkeypatch):
    monkeypatch.setattr(lsdd_classifier, "CENTERS", 40)
    monkeypatch.setattr(lsdd_classifier, "FRESH", 2000)
    errors, regions = lsdd_classifier.one_run("corners", 2, 60, seed=0)
    assert (errors[:, :-1] >= errors[:, -1:] - 0.02).all()
    assert errors[0, 0] < errors[0, 1]  # no plane parts the corners
    assert (regions > 0.2).all()


def test_errors_of_the_rates_fall_with_the_rows(monkeypatch):
    monkeypatch.setattr(lsdd_rate, "CENTERS", 40)
    few, many = (np.mean([lsdd_rate.errors("bells", n, 0, run)[0] for run in range(3)]) for n in (50, 800))
    assert many < few
