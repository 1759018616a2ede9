"""Kernel density estimates of rows that are moved against the bias."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from isopleth import KDE, InputError, KernelScore, Search
from isopleth.core.budget import Budget
from isopleth.core.rows import held_out_parts
from isopleth.core.scales import deviations
from isopleth.density.debias import SharpenedSolver, moved
from isopleth.kernels import ProductLaplacian


def rows_of(n=60, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (1.0 + np.arange(d)) + 3.0 * rng.integers(2, size=(n, 1))


def test_rows_move_by_half_the_squared_length_scale_times_the_score():
    rows = rows_of()
    unit = rows.std(axis=0)
    model = KDE(debias=KernelScore(), length_scale=[0.5, 0.8], frame="scale").fit(rows)
    score = KernelScore().fit(rows / unit).grad_log_density(model.rows_ / unit) / unit
    np.testing.assert_allclose(model.centers_, model.rows_ + 0.5 * np.array([0.5, 0.8]) ** 2 * score, rtol=1e-6)
    np.testing.assert_array_equal(np.sort(model.rows_, axis=0), np.sort(rows, axis=0))
    steps = (np.array([[0.3, -1.0]]) - model.centers_) / [0.5, 0.8]
    slow = np.mean(np.exp(-0.5 * np.sum(steps**2, axis=1))) / (2 * np.pi * 0.5 * 0.8)
    assert model.score_samples([[0.3, -1.0]])[0] == pytest.approx(np.log(slow), rel=1e-9)


@pytest.mark.parametrize("scale", [0.2, 0.4, 0.8])
def test_with_the_true_score_the_bias_has_fourth_order(scale):
    """Normal rows have the score -x; moved and smoothed they have the variance 1 + l^4/4, plain ones 1 + l^2."""
    x = norm.ppf((np.arange(100_000) + 0.5) / 100_000)[:, None]
    z = moved(x / scale, -x, np.array([scale]))
    assert scale**2 * (z.var() + 1.0) == pytest.approx(1.0 + scale**4 / 4, abs=1e-3)


@pytest.mark.slow
def test_the_mean_integrated_squared_error_is_less_than_half():
    errors = {}
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(500, 3))
        for debias in (None, KernelScore()):
            for scale in (0.3, 0.4, 0.5, 0.6, 0.7):
                z, h = KDE(length_scale=scale, debias=debias, frame="scale").fit(rows).centers_, scale
                s = ((z[:, None] - z) ** 2).sum(axis=2)
                square = np.exp(-s / (4 * h**2)).mean() / (4 * np.pi * h**2) ** 1.5
                with_normal = (np.exp(-0.5 * (z**2).sum(axis=1) / (1 + h**2)) / (2 * np.pi * (1 + h**2)) ** 1.5).mean()
                error = square - 2 * with_normal + (4 * np.pi) ** -1.5
                errors.setdefault((debias is not None, scale), []).append(error)
    best = {debias: min(np.mean(e) for (d, _), e in errors.items() if d is debias) for debias in (False, True)}
    assert best[True] < 0.5 * best[False]


def test_the_rule_for_the_length_scale_is_that_of_fourth_order():
    rows = rows_of(90, 3)
    model = KDE(debias=KernelScore(), frame="scale").fit(rows)
    np.testing.assert_allclose(model.length_scale_, rows.std(axis=0) * 90 ** (-1 / 11), rtol=1e-12)


def test_bounded_columns_are_moved_as_logarithms():
    hours = np.random.default_rng(0).exponential(size=(80, 1))
    model = KDE(debias=KernelScore(), bounds={0: (0, None)}, frame="scale").fit(hours)
    same = KDE(debias=KernelScore(), frame="scale").fit(np.log(hours))
    np.testing.assert_allclose(np.sort(np.log(model.centers_), axis=0), np.sort(same.centers_, axis=0), rtol=1e-6)
    grid = np.linspace(1e-6, 40, 400_001)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1.0, abs=1e-3)
    assert model.score_samples([[-1.0]]) == -np.inf
    assert (model.sample(100, random_state=0) > 0).all()


def test_a_search_moves_the_rows_of_each_fit_by_a_score_without_the_rows_held_out():
    rows = rows_of(60)
    model = KDE(
        debias=KernelScore(), length_scale=Search("likelihood", grid=[0.5, 1.0, 1.5], base=1.0, cv=3), frame="scale"
    ).fit(rows)
    unit, order = rows.std(axis=0), model.rows_  # the distinct rows in the order of the folds
    for k, scale in enumerate([0.5, 1.0, 1.5]):
        losses = []
        for fold in held_out_parts(60, 3):
            train = order[~fold]
            score = KernelScore(**model.score_.chosen()).fit(train / unit).grad_log_density_ / unit
            plain = KDE(length_scale=scale, frame="scale").fit(train + 0.5 * scale**2 * score)
            losses.append(-plain.score_samples(order[fold]))
        assert model.search_path_.losses[k] == pytest.approx(np.concatenate(losses).mean(), rel=1e-5)


def test_what_it_is_not_defined_for_is_refused():
    rows = rows_of(30)
    with pytest.raises(InputError, match="Gaussian kernel"):
        KDE(kernel="laplacian", debias=KernelScore(), frame="scale").fit(rows)
    with pytest.raises(InputError, match="Gaussian kernel"):
        KDE(kernel=ProductLaplacian(), debias=KernelScore(), frame="scale").fit(rows)
    with pytest.raises(InputError, match="complete rows of numbers"):
        KDE(debias=KernelScore(), frame="scale").fit(pd.DataFrame({"a": rows[:, 0], "b": ["x", "y"] * 15}))
    with pytest.raises(InputError, match="debias=None"):
        KDE(debias=KernelScore(), frame="scale").fit(np.where(np.arange(60).reshape(30, 2) == 7, np.nan, rows))
    with pytest.raises(ValueError, match="debias"):
        KDE(debias="yes", frame="scale").fit(rows)


def test_a_score_refitted_to_all_rows_is_itself():
    rows, weights = rows_of(), np.ones(60)
    solver = SharpenedSolver(Budget(n_jobs=1), KernelScore()).informed(rows, weights)
    at_rows = solver.score.grad_log_density_ / deviations(rows, weights)
    np.testing.assert_allclose(solver.score_of(rows, weights), at_rows, rtol=1e-6)
