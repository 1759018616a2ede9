"""Densities of product kernels, against quadrature, enumeration and formulas written out pair by pair."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from isopleth.core.budget import Budget
from isopleth.density.column_density import ColumnDensity, patterns_of
from isopleth.kernels.product import GAUSSIAN_FACTOR, LAPLACIAN_FACTOR, ColumnKernel

SIZES = (3, 2)
KINDS = pytest.mark.parametrize("squared", [True, False], ids=["root", "mixture"])
FACTORS = pytest.mark.parametrize("factor", [GAUSSIAN_FACTOR, LAPLACIAN_FACTOR], ids=["gaussian", "laplacian"])
NAN = np.nan


def density(factor, squared, m=7, seed=0, **options):
    rng = np.random.default_rng(seed)
    centers = np.column_stack([rng.normal(scale=1.5, size=(m, 2)), *[rng.integers(s, size=m) for s in SIZES]]).astype(
        float
    )
    kernel = ColumnKernel(4, factor, (0.15, 0.4), SIZES)
    return ColumnDensity(kernel, centers, rng.uniform(0.2, 1.0, size=m), squared, **options)


def slow(p, z):
    """p at one complete row, up to the normaliser."""
    total = 0.0
    for alpha, c in zip(p.coefficients, p.centers, strict=True):
        u = z[:2] - c[:2]
        log_k = -0.5 * u @ u if p.kernel.factor is GAUSSIAN_FACTOR else -np.abs(u).sum()
        words = [1.0 if a == b else r for a, b, r in zip(z[2:], c[2:], p.kernel.rho, strict=True)]
        total += alpha * math.exp(log_k) * math.prod(words)
    return total**2 if p.squared else total


def nodes(p, column):
    """Gauss-Legendre nodes and weights of a numeric column, in pieces between centres, where it may have kinks."""
    ends = np.sort(np.concatenate([p.centers[:, column], [-12.0, -6.0, 6.0, 12.0, -30.0, 30.0]]))
    x, w = np.polynomial.legendre.leggauss(12)
    half, middle = 0.5 * np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def completions(p, row):
    """All ways to fill the gaps of a row, with their quadrature weights."""
    choices = []
    for column, cell in enumerate(row):
        if not np.isnan(cell):
            choices.append([(cell, 1.0)])
        elif column < 2:
            choices.append(list(zip(*nodes(p, column), strict=True)))
        else:
            choices.append([(float(c), 1.0) for c in range(SIZES[column - 2])])
    every = list(itertools.product(*choices))
    return np.array([[v for v, _ in cells] for cells in every]), np.array(
        [math.prod(w for _, w in cells) for cells in every]
    )


@FACTORS
@KINDS
def test_complete_rows_have_the_density_of_the_sum(factor, squared):
    p = density(factor, squared)
    z = p.centers + np.array([0.3, -0.7, 0.0, 0.0])
    expected = np.array([slow(p, row) for row in z])
    found = np.exp(p.log_density(z))
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-12)


GAPS = [
    [NAN, 0.4, 1.0, 0.0],
    [-0.2, 0.4, NAN, 1.0],
    [NAN, 0.4, NAN, 0.0],
    [0.1, NAN, NAN, NAN],
    [NAN, NAN, 2.0, NAN],
    [NAN, 1.0, 2.0, 0.0],
]


@FACTORS
@KINDS
def test_marginals_are_integrals(factor, squared):
    p = density(factor, squared, m=5)
    expected = []
    for row in GAPS:
        rows, weights = completions(p, np.array(row))
        expected.append(weights @ np.exp(p.log_density(rows)))
    np.testing.assert_allclose(np.exp(p.log_density(np.array(GAPS))), expected, rtol=1e-7)


@FACTORS
@KINDS
def test_means_and_probabilities_are_those_of_the_conditional(factor, squared):
    p = density(factor, squared, m=5)
    filled = p.impute(np.array(GAPS))
    for row, full in zip(np.array(GAPS), filled, strict=True):
        rows, weights = completions(p, row)
        weights = weights * np.exp(p.log_density(rows))
        weights /= weights.sum()
        for column in np.flatnonzero(np.isnan(row)):
            if column < 2:
                assert full[column] == pytest.approx(weights @ rows[:, column], abs=1e-6)
            else:
                expected = np.bincount(rows[:, column].astype(int), weights, SIZES[column - 2])
                found = p.category_probabilities(row[None, :], int(column))[0]
                np.testing.assert_allclose(found, expected, atol=1e-7)
                assert full[column] == expected.argmax()
    np.testing.assert_array_equal(filled[~np.isnan(GAPS)], np.array(GAPS)[~np.isnan(GAPS)])


@FACTORS
@KINDS
def test_gradients_are_differences(factor, squared):
    p = density(factor, squared)
    z = np.array(GAPS)
    found, step = p.grad_log_density(z), 1e-6
    for j in range(2):
        up, down = z.copy(), z.copy()
        up[:, j] += step
        down[:, j] -= step
        seen = ~np.isnan(z[:, j])
        expected = (p.log_density(up) - p.log_density(down)) / (2 * step)
        np.testing.assert_allclose(found[seen, j], expected[seen], rtol=1e-5, atol=1e-8)
        assert np.isnan(found[~seen, j]).all()
    assert np.isnan(found[:, 2:]).all()


@FACTORS
@KINDS
def test_a_marginal_is_a_density_of_its_own(factor, squared):
    p = density(factor, squared)
    some = p.marginal([1, 3])
    z = np.array([[0.3, 1.0], [-2.0, 0.0], [NAN, 1.0]])
    whole = np.full((3, 4), NAN)
    whole[:, [1, 3]] = z
    np.testing.assert_allclose(some.log_density(z), p.log_density(whole), rtol=1e-12)
    np.testing.assert_allclose(some.impute(z), p.impute(whole)[:, [1, 3]], rtol=1e-12)
    again = p.marginal([1, 2, 3]).marginal([0, 2])
    np.testing.assert_allclose(again.log_density(z), some.log_density(z), rtol=1e-12)


@FACTORS
@KINDS
def test_a_conditional_is_a_ratio_of_densities(factor, squared):
    p = density(factor, squared)
    z = np.array([[0.3, 1.0], [-2.0, 2.0]])
    given = p.conditional({1: 0.4, 3: 1.0})
    joint = np.column_stack([z[:, 0], [0.4, 0.4], z[:, 1], [1.0, 1.0]])
    condition = np.array([[NAN, 0.4, NAN, 1.0]])
    np.testing.assert_allclose(given.log_density(z), p.log_density(joint) - p.log_density(condition), rtol=1e-10)
    of_marginal = p.marginal([0, 1, 3]).conditional({1: 0.4, 2: 1.0})
    np.testing.assert_allclose(
        of_marginal.log_density(z[:, :1]), given.log_density(np.column_stack([z[:, 0], [NAN, NAN]])), rtol=1e-10
    )


@FACTORS
@KINDS
def test_the_conditional_far_from_every_centre_does_not_underflow(factor, squared):
    p = density(factor, squared)
    far = p.conditional({0: 900.0})
    assert np.isfinite(far.log_density(np.array([[0.0, 1.0, 1.0]]))).all()
    assert np.isfinite(p.log_density(np.array([[900.0, NAN, 1.0, NAN]]))).all()


def mass_below(p, row, column, t):
    """Distribution function of one missing cell at sorted points `t`, by quadrature of the density between them."""
    ends = np.unique(np.concatenate([p.centers[:, column], [-40.0, -20.0, -10.0, 10.0], t]))
    x, w = np.polynomial.legendre.leggauss(16)
    half, middle = 0.5 * np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    z = np.tile(row, (len(middle) * 16, 1))
    z[:, column] = (middle[:, None] + half[:, None] * x).ravel()
    values = np.exp(p.log_density(z) - p.log_density(row[None, :]))
    pieces = half * (values.reshape(-1, 16) @ w)
    return np.interp(t, ends, np.concatenate([[0.0], np.cumsum(pieces)]))


@FACTORS
@KINDS
def test_intervals_hold_their_level(factor, squared):
    p = density(factor, squared, m=5)
    z = np.array(GAPS)
    lower, upper = p.intervals(z, confidence_level=0.8)
    seen = ~np.isnan(z)
    np.testing.assert_array_equal(lower[seen], z[seen])
    assert np.isnan(lower[:, 2:][~seen[:, 2:]]).all()
    for i, j in [(0, 0), (3, 1), (4, 0)]:
        ends = np.array([lower[i, j], upper[i, j]])
        np.testing.assert_allclose(mass_below(p, z[i], j, ends), [0.1, 0.9], atol=1e-6)


@FACTORS
@KINDS
def test_draws_have_the_conditional_law(factor, squared):
    p = density(factor, squared, m=5)
    row = np.array([NAN, 0.4, NAN, 0.0])
    n = 6000
    drawn = p.impute(np.tile(row, (n, 1)), "draw", np.random.default_rng(3))
    np.testing.assert_array_equal(drawn[:, [1, 3]], np.tile([0.4, 0.0], (n, 1)))
    expected = p.category_probabilities(row[None, :], 2)[0]
    assert chisquare(np.bincount(drawn[:, 2].astype(int), minlength=3), n * expected).pvalue > 1e-3
    assert kstest(drawn[:, 0], lambda t: mass_below(p, row, 0, t)).pvalue > 1e-3
    # jointly: the mean of the number given the drawn word
    for word in range(3):
        here = drawn[drawn[:, 2] == word, 0]
        z = np.array([[NAN, 0.4, float(word), 0.0]])
        assert abs(here.mean() - p.impute(z)[0, 0]) < 4 * here.std() / math.sqrt(len(here))


@FACTORS
@KINDS
def test_samples_have_the_density(factor, squared):
    p = density(factor, squared, m=5)
    drawn = p.draw(6000, np.random.default_rng(4))[0]
    empty = np.full((1, 4), NAN)
    pairs = np.array(list(itertools.product(range(3), range(2))), dtype=float)
    expected = np.exp(p.marginal([2, 3]).log_density(pairs))
    seen = np.bincount((drawn[:, 2] * 2 + drawn[:, 3]).astype(int), minlength=6)
    assert chisquare(seen, 6000 * expected / expected.sum()).pvalue > 1e-3
    np.testing.assert_allclose(expected.sum(), 1.0, rtol=1e-10)
    mean = p.impute(empty)[0, :2]
    assert (np.abs(drawn[:, :2].mean(axis=0) - mean) < 4 * drawn[:, :2].std(axis=0) / math.sqrt(6000)).all()
    # and what the entropy says of them: the mean log density agrees with that of other draws
    logs = p.log_density(drawn)
    rows, weights = completions(replace(p, budget=Budget(2**28)), np.full(4, NAN))
    at = p.log_density(rows)
    assert abs(logs.mean() - weights @ (np.exp(at) * at)) < 4 * logs.std() / math.sqrt(6000)


@KINDS
def test_answers_do_not_depend_on_memory_or_threads(squared, monkeypatch):
    rng = np.random.default_rng(0)
    p = density(GAUSSIAN_FACTOR, squared, m=150)
    z = p.draw(200, rng)[0]
    z[rng.uniform(size=z.shape) < 0.4] = NAN
    tight = replace(p, budget=Budget(2e5, 1))
    threads = replace(p, budget=Budget(n_jobs=3))
    log_p, filled = p.log_density(z), p.impute(z)
    monkeypatch.setattr("isopleth.density.column_density.ROWS_OF_ONE_THREAD", 0)
    for other in (tight, threads):
        np.testing.assert_allclose(other.log_density(z), log_p, rtol=1e-10)
        np.testing.assert_allclose(other.impute(z), filled, rtol=1e-10, atol=1e-12)
    first, second = (p.impute(z, "draw", np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@FACTORS
def test_patterns_that_share_columns_have_the_answers_of_each_by_itself(factor):
    rng = np.random.default_rng(4)
    p = replace(density(factor, squared=True, m=40), visible=np.array([0, 2, 3]))  # column 1 is always integrated out
    rows = p.draw(60, rng)[0]
    rows[rng.random(rows.shape) < 0.4] = NAN
    together = p.log_density(rows), p.impute(rows), p.category_probabilities(rows, 1)
    alone = [(p.log_density(row), p.impute(row), p.category_probabilities(row, 1)) for row in rows[:, None]]
    for found, expected in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12, atol=1e-12)


@FACTORS
def test_answers_stay_within_the_memory_limit(factor):
    p = density(factor, True, m=800, budget=Budget(2.0**23, 2))
    z = p.draw(300, np.random.default_rng(0))[0]
    z[:, 1] = NAN
    z[150:, 2] = NAN
    _ = p.log_normalizer
    for ask in (p.log_density, p.impute, lambda rows: p.impute(rows, "draw"), lambda rows: p.intervals(rows[:3])):
        tracemalloc.start()
        ask(z)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1.2 * p.budget.memory


def test_a_row_of_gaps_alone_has_density_one():
    p = density(GAUSSIAN_FACTOR, True)
    assert p.log_density(np.full((2, 4), NAN)).tolist() == [0.0, 0.0]


def test_rows_are_grouped_by_what_they_lack():
    z = np.array([[1.0, NAN], [1.0, 2.0], [3.0, NAN], [NAN, NAN]])
    groups = {tuple(g.missing.tolist()): g.rows.tolist() for g in patterns_of(z)}
    assert groups == {(): [1], (1,): [0, 2], (0, 1): [3]}
