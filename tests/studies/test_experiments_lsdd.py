"""Methods with which the studies of density differences compare."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import lsdd_classifier, lsdd_rate
from scipy.stats import kstest


@pytest.mark.parametrize("name", list(lsdd_rate.LAWS))
def test_draws_of_the_rates_follow_their_densities(name):
    _, density, draw = lsdd_rate.LAWS[name]
    grid = np.linspace(-6.0, 6.0, 20001)
    total = np.cumsum(density(grid)) * (grid[1] - grid[0])
    assert total[-1] == pytest.approx(1.0, abs=1e-3)
    found = kstest(draw(np.random.default_rng(0), 500), lambda t: np.interp(t, grid, total))
    assert found.pvalue > 1e-3


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
