"""Fits of product kernels to rows with gaps: filled cells, and held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import KDE, SOSREP, InputError
from isopleth.density.hot_deck import filled_rows
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel
from isopleth.operators import Operator

FACTORS = pytest.mark.parametrize("factor", [GAUSSIAN_FACTOR, LAPLACIAN_FACTOR], ids=["gaussian", "laplacian"])


def table(rng, n, missing=0.3, length_scale=0.6):
    """Two clusters in two numbers and two categories that go with them."""
    cluster = rng.integers(2, size=n)
    numbers = (rng.normal(size=(n, 2)) + 3.0 * cluster[:, None]) / length_scale
    words = np.column_stack([(cluster + (rng.uniform(size=n) < 0.2)) % 2, rng.integers(3, size=n)])
    Z = np.column_stack([numbers, words]).astype(float)
    Z[rng.uniform(size=Z.shape) < missing] = np.nan
    return Z[~np.isnan(Z).all(axis=1)]


def fit_root(kernel, Z, weights):
    return SOSREP()._solver().fit_cells(kernel, Z, weights)[0]


def fit_mixture(kernel, Z, weights):
    return KDE()._solver().fit_cells(kernel, Z, weights)[0]


def kernel(factor):
    return ColumnKernel(4, factor, (0.1, 0.3), (3, 4))


@FACTORS
def test_without_gaps_it_is_the_scaling_problem(factor):
    rng = np.random.default_rng(2)
    Z = table(rng, 150, missing=0.0)
    k = kernel(factor)
    fit = fit_root(k, Z, np.full(150, 1 / 150))
    alpha, c = fit.coefficients, fit.centers
    np.testing.assert_allclose(alpha * Operator(k, c).matvec(alpha), 1 / 150, rtol=1e-7)


@FACTORS
def test_repeated_rows_are_weights(factor):
    rng = np.random.default_rng(3)
    Z = table(rng, 90, missing=0.2)
    w = rng.integers(1, 4, size=len(Z))
    fits = [fit_root(kernel(factor), rows, v) for rows, v in ((Z, w), (np.repeat(Z, w, axis=0), np.ones(w.sum())))]
    rows = table(rng, 30)
    np.testing.assert_allclose(*(fit.log_density(rows) for fit in fits), rtol=1e-10)
    mixtures = [
        fit_mixture(kernel(factor), rows, v) for rows, v in ((Z, w), (np.repeat(Z, w, axis=0), np.ones(w.sum())))
    ]
    np.testing.assert_allclose(*(fit.log_density(rows) for fit in mixtures), rtol=1e-10)


def test_more_rows_than_centres(monkeypatch):
    monkeypatch.setattr("isopleth.density.solver.MOST_CENTERS", 200)
    monkeypatch.setattr("isopleth.density.hot_deck._FILLED", 0)
    monkeypatch.setattr("isopleth.density.hot_deck.MOST_DONORS", 150)
    rng = np.random.default_rng(4)
    Z, new = table(rng, 700, missing=0.1), table(rng, 500, missing=0.0)
    few, all_rows = (fit(kernel(LAPLACIAN_FACTOR), Z, np.ones(700)) for fit in (fit_root, fit_mixture))
    assert len(few.centers) <= 200 < 600 < len(all_rows.centers)
    assert few.log_density(new).mean() == pytest.approx(all_rows.log_density(new).mean(), abs=0.3)


def mixture_of_two(rng, n):
    return rng.normal(size=(n, 2)) + 2.0 * np.sign(rng.uniform(-1, 1, size=(n, 1)))


def test_rows_with_gaps_help_and_empty_rows_do_nothing():
    """Held-out log density of a two-dimensional mixture, with half observed rows and without them, mean of four draws."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        k = ColumnKernel(2, GAUSSIAN_FACTOR)
        complete, half, new = (mixture_of_two(rng, n) / 0.6 for n in (60, 120, 2000))
        half[np.arange(120), rng.integers(2, size=120)] = np.nan
        rows = np.concatenate([complete, half, np.full((50, 2), np.nan)])
        with_gaps, report = SOSREP()._solver().fit_cells(k, rows, np.ones(len(rows)))
        dropped = fit_root(k, complete, np.ones(60))
        assert report["residual"] < 1e-6
        empty = fit_root(k, np.concatenate([complete, np.full((50, 2), np.nan)]), np.ones(110))
        np.testing.assert_allclose(empty.log_density(new), dropped.log_density(new), rtol=1e-9)
        gains.append(np.mean(with_gaps.log_density(new) - dropped.log_density(new)))
    assert np.mean(gains) > 0.03


@FACTORS
def test_tables_with_hardly_any_complete_row(factor):
    """Half of the cells gone: what the columns have to do with each other is still found. Measured: .28 and .33, of single
    tables .17 to .45."""
    gains = []
    for seed in range(5, 11):
        rng = np.random.default_rng(seed)
        Z, new = table(rng, 250, missing=0.5), table(rng, 500, missing=0.0)
        fit, report = SOSREP()._solver().fit_cells(kernel(factor), Z, np.ones(len(Z)))
        assert report["residual"] < 1e-6
        marginals = sum(fit.marginal([j]).log_density(new[:, [j]]) for j in range(4))
        gains.append(np.mean(fit.log_density(new) - marginals))
    assert np.mean(gains) > 0.15


def test_rows_are_filled_from_what_is_near():
    rng = np.random.default_rng(7)
    donors = table(rng, 300, missing=0.0)
    Z = donors[:40].copy()
    Z[:, 0] = np.nan
    filled = filled_rows(kernel(GAUSSIAN_FACTOR), Z, donors, np.ones(300))
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[:, 1:], Z[:, 1:])
    assert np.corrcoef(filled[:, 0], donors[:40, 0])[0, 1] > 0.3


def test_rows_without_any_cell_are_refused():
    with pytest.raises(InputError, match="observed cell"):
        fit_root(ColumnKernel(2), np.full((3, 2), np.nan), np.ones(3))
    with pytest.raises(InputError, match="column 1 has no observed cell"):
        fit_mixture(ColumnKernel(2), np.array([[1.0, np.nan], [2.0, np.nan]]), np.ones(2))


@FACTORS
def test_fills_follow_the_conditional_distribution(factor):
    """Fills of a column have its spread, not that of conditional means, and the share of each word."""
    rng = np.random.default_rng(8)
    whole = table(rng, 1500, missing=0.0)
    gappy = whole.copy()
    gappy[np.arange(1500) % 3 == 0, 0] = np.nan
    gappy[np.arange(1500) % 3 == 1, 3] = np.nan
    filled = filled_rows(kernel(factor), gappy, gappy, np.ones(1500))
    first, third = filled[::3, 0], filled[1::3, 3]
    assert first.std() == pytest.approx(whole[:, 0].std(), rel=0.1)
    assert first.mean() == pytest.approx(whole[:, 0].mean(), abs=0.25 * whole[:, 0].std())
    np.testing.assert_allclose(np.bincount(third.astype(int), minlength=3) / 500, 1 / 3, atol=0.08)
    # the residual from the mean of the cluster, which the other number tells, is spread as in whole rows
    near = np.abs(filled[::3, 1]) < 2.0
    assert first[near].std() == pytest.approx(whole[::3][near, 0].std(), rel=0.35)


@FACTORS
def test_fills_do_not_hang_on_the_last_bit_or_on_orders(factor):
    rng = np.random.default_rng(9)
    Z = table(rng, 120, missing=0.3)
    k, order = kernel(factor), np.array([1, 0, 2, 3])
    moved = Z * np.where(np.arange(4) < 2, 1.0 + 1e-12 * rng.uniform(-1.0, 1.0, Z.shape), 1.0)
    filled = filled_rows(k, Z, Z, np.ones(len(Z)))
    np.testing.assert_allclose(filled_rows(k, moved, moved, np.ones(len(Z))), filled, rtol=1e-10)
    np.testing.assert_array_equal(filled_rows(k, Z[:, order], Z[:, order], np.ones(len(Z))), filled[:, order])
    np.testing.assert_array_equal(filled_rows(k, Z[::-1], Z[::-1], np.ones(len(Z))), filled[::-1])
