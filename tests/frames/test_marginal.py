"""The marginal map against slow, independent forms."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from frames.contract import table
from isopleth.frames import Gaussianize, Marginal
from isopleth.frames.marginal import FACTORS, BandwidthMixture, Values


def column(name, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "normal": rng.normal(size=n),
        "lognormal": np.exp(1.5 * rng.normal(size=n)),
        "cauchy": rng.standard_cauchy(n),
        "modes": np.where(rng.random(n) < 0.5, 0.01 * rng.normal(size=n), 5 + rng.normal(size=n)),
        "rounded": np.round(5 * rng.normal(size=n)),
        "few": rng.integers(3, size=n).astype(float),
        "outlier": np.append(rng.normal(size=n - 1), 1e6),
        "zeros": np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
    }[name]


COLUMNS = ["normal", "lognormal", "cauchy", "modes", "rounded", "few", "outlier", "zeros"]


def normal_density(x, mean, deviation):
    return math.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))


def slow_mixture(x, w):
    """Weights of the bandwidths and of the tail by loops over pairs of distinct values, for at most 64 of them."""
    values = sorted(set(x))
    share = np.array([w[x == value].sum() for value in values]) / w.sum()
    u, y = len(values), np.array(values)
    mean = share @ y
    deviation = math.sqrt(share @ (y - mean) ** 2)
    ordered = np.repeat(y, 10)  # quartiles by means of tenths, each value once
    low, high = ordered[2 * u : 3 * u].mean(), ordered[7 * u : 8 * u].mean()
    unit = min(deviation, (high - low) / 2 / 0.6773)
    h = FACTORS * 1.06 * unit * u**-0.2
    densities = np.zeros((u, len(h) + 1))
    for i in range(u):
        for k in range(len(h)):
            densities[i, k] = sum(share[j] * normal_density(y[i], y[j], h[k]) for j in range(u) if j != i) / (
                1 - share[i]
            )
        densities[i, -1] = normal_density(y[i], mean, 8 * deviation)
    pi = np.full(len(h) + 1, 1 / (len(h) + 1))
    for _ in range(100):
        posterior = densities * pi / (densities @ pi)[:, None]
        pi = share @ posterior
        tau = min(max(pi[-1], 1 / (u + 1)), 0.5)
        pi = np.append(pi[:-1] * (1 - tau) / pi[:-1].sum(), tau)
    return lambda q: (
        sum(pi[k] * share[j] * normal_density(q, y[j], h[k]) for k in range(len(h)) for j in range(u))
        + pi[-1] * normal_density(q, mean, 8 * deviation)
    )


@pytest.mark.parametrize("name", ["normal", "lognormal", "cauchy", "modes", "rounded"])
def test_density_of_the_map_by_loops_over_pairs(name):
    x = column(name, 40)
    w = np.random.default_rng(1).integers(1, 4, size=len(x)).astype(float)
    density = slow_mixture(x, w)
    fitted = Marginal().fit(x[:, None], w)
    q = np.concatenate([x, x[:10] + 0.1 * np.std(x)])
    found = norm.logpdf(fitted.forward(q[:, None])[:, 0]) + fitted.log_volume(q[:, None])
    np.testing.assert_allclose(found, np.log([density(value) for value in q]), atol=5e-3)


@pytest.mark.parametrize("n", [100, 1000, 5000])
def test_densities_that_leave_out_a_value_by_loops(n):
    """With more values than centres, all bins that a value is in are computed again without it."""
    rng = np.random.default_rng(0)
    x = np.sort(np.concatenate([rng.normal(size=n - 20), np.full(20, 0.1)]))
    values = Values.of_columns(x[:, None], np.ones(n))[0]
    u, h, q = len(values.x), 0.1, np.array([0, 1, 7, n // 2, n - 21])
    values_of_bins = np.clip(
        np.minimum(np.arange(1, u + 1)[:, None] / u, np.arange(1, 65) / 64)
        - np.maximum(np.arange(u)[:, None] / u, np.arange(64) / 64),
        0,
        None,
    ) * (u * values.share[:, None])  # overlap of the intervals of values with those of bins
    for i in q:
        mass = values_of_bins.copy()
        mass[i] = 0.0
        expected = 0.0
        for b in range(64):
            total = mass[:, b].sum()
            if total > 0.0:
                mean = mass[:, b] @ values.x / total
                variance = mass[:, b] @ (values.x - mean) ** 2 / total
                expected += total * norm.pdf(values.x[i], mean, math.sqrt(h * h + variance))
        found = values.densities_without(np.array([i]), np.array([h]))[0, 0]
        assert found == pytest.approx(expected / (1 - values.share[i]), rel=1e-9)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("n", [5, 400])
def test_mass_is_one(name, n):
    x = column(name, n)[:, None]
    if np.ptp(x) == 0.0:
        pytest.skip("constant")
    fitted = Marginal().fit(x, np.ones(n))
    knots = fitted.knots[0] * fitted.unit + fitted.shift
    far = np.geomspace(1e-6, 40.0, 400) * fitted.tail_deviation[0] * fitted.unit
    edges = np.concatenate([knots[0] - far[::-1], knots, knots[-1] + far])
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(edges)[:, None]
    rows = (edges[:-1, None] + half * (1.0 + nodes)).reshape(-1, 1)
    density = np.exp(norm.logpdf(fitted.forward(rows)[:, 0]) + fitted.log_volume(rows))
    total = (half * weights).ravel() @ density
    assert total == pytest.approx(1.0, abs=1e-6)


def test_table_of_the_density_is_close_to_the_formula():
    rng = np.random.default_rng(0)
    for n in (50, 700, 20_000):
        for name in ("normal", "lognormal", "cauchy", "modes"):
            x = column(name, n)
            values = Values.of_columns(x[:, None], np.ones(n))[0]
            fitted = Marginal().fit(x[:, None], np.ones(n))
            q = rng.choice(x, 2000) + 0.1 * values.unit * rng.normal(size=2000)
            expected = BandwidthMixture.of_columns([values])[0].log_density((q - values.shift) / values.unit)[
                0
            ] - np.log(values.unit)
            found = norm.logpdf(fitted.forward(q[:, None])[:, 0]) + fitted.log_volume(q[:, None])
            assert np.mean(np.abs(found - expected)) < 2e-3
            assert np.quantile(np.abs(found - expected), 0.98) < 2e-2


@pytest.mark.parametrize("name", COLUMNS)
def test_mapped_rows_resemble_a_normal_sample(name):
    x = column(name, 400)[:, None]
    t = Marginal().fit(x, np.ones(400)).forward(x)
    assert np.isfinite(t).all()
    assert abs(np.median(t)) < 1.5
    assert np.abs(t).max() < 6.0


def test_repeated_rows_do_not_collapse():
    """Held-out log densities of rows that are repeated ten times are those of the rows once."""
    X, Q = table(30, 3), table(200, 3, seed=1)
    once = Marginal().fit(X, np.ones(30))
    tenfold = Marginal().fit(np.repeat(X, 10, axis=0), np.ones(300))
    for fitted in (once, tenfold):
        t = fitted.forward(Q)
        mean = np.mean(norm.logpdf(t).sum(axis=1) + fitted.log_volume(Q))
        assert mean == pytest.approx(np.mean(norm.logpdf(once.forward(Q)).sum(axis=1) + once.log_volume(Q)), abs=1e-9)
    rounded = np.round(table(300, 3) / table(300, 3).std(axis=0) * 3)
    t = Marginal().fit(rounded, np.ones(300))
    assert np.abs(t.log_volume(rounded)).max() < 10.0


def test_a_reflected_column_has_the_reflected_map():
    x = column("lognormal", 200)[:, None]
    one, other = Marginal().fit(x, np.ones(200)), Marginal().fit(-x, np.ones(200))
    np.testing.assert_allclose(other.forward(-x), -one.forward(x), atol=1e-9)


def test_inverse_far_out_and_in_gaps():
    x = column("modes", 300)[:, None]
    fitted = Marginal().fit(x, np.ones(300))
    z = np.concatenate([np.linspace(-9, 9, 500), [-1e5, -300.0, -40.0, 40.0, 300.0, 1e5]])[:, None]
    rows = fitted.inverse(z)
    assert (np.diff(rows[:500, 0]) > 0).all()
    np.testing.assert_allclose(fitted.forward(rows) / (1 + np.abs(z)), z / (1 + np.abs(z)), atol=1e-10)


def test_narrow_columns_are_left_alone_if_asked():
    x = 1e-9 * column("normal")[:, None]
    fitted = Marginal(least_deviation=0.1).fit(x, np.ones(60))
    q = np.linspace(-1, 1, 21)[:, None]
    np.testing.assert_allclose(fitted.forward(q), q - np.median(x), atol=0.15)
    assert Marginal().fit(x, np.ones(60)).log_volume(x).max() > 15.0


def test_inner_layers_do_not_stretch_directions_without_rows():
    X = table(200, 3)
    X = np.c_[X, X[:, 0]]
    one, four = (Gaussianize(layers).fit(X, np.ones(200)) for layers in (1, 4))
    assert np.median(four.log_volume(X) - one.log_volume(X)) < 3.0
    moved = X.copy()
    moved[:, 3] += 1e-12 * X[:, 0].std() * np.random.default_rng(0).normal(size=200)
    Q = np.c_[table(50, 3, seed=1), table(50, 3, seed=1)[:, 0]]
    np.testing.assert_allclose(Gaussianize(4).fit(moved, np.ones(200)).log_volume(Q), four.log_volume(Q), atol=1e-5)


def test_columns_do_not_depend_on_the_columns_beside_them():
    """Columns of as many values are fitted at once, with ties and without, in blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 700))
    X[:, ::3] = X[:, ::3].round(1)
    w = rng.integers(1, 4, size=90).astype(float)
    together, some = Marginal().fit(X, w), [0, 1, 363, 699]
    rows = rng.normal(size=(40, 700)) * 3.0
    alone = [Marginal().fit(X[:, [j]], w).at(rows[:, [j]]) for j in some]
    found = together.at(rows)
    np.testing.assert_allclose(found.rows[:, some], np.concatenate([one.rows for one in alone], axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        found.grad_log_volume[:, some], np.concatenate([one.grad_log_volume for one in alone], axis=1), rtol=1e-9
    )
