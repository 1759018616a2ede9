"""Tables of radial functions: accurate at every scale, fast form and standard form alike."""

from __future__ import annotations

import math
import pickle

import array_api_strict
import numpy as np
import pytest

from isopleth.kernels import Workspace
from isopleth.kernels.radial_table import RadialTable, tabulate


def kink(s):
    return np.exp(-np.sqrt(s))


def slope(s):
    return -0.5 * np.exp(-np.sqrt(s)) / np.sqrt(s)


def wave(s):
    return np.exp(-0.05 * np.sqrt(s)) * np.cos(np.sqrt(s))


def logarithm(s):
    return np.exp(-s) * np.log(s)


CASES = {
    "kink": (kink, 1.0, 11),
    "gaussian": (lambda s: np.exp(-s), 1.0, 6),
    "wave": (wave, 1.0, 20),
    "infinite": (slope, -math.inf, 11),
    "logarithm": (logarithm, -math.inf, 6),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    function, at_zero, highest = CASES[request.param]
    return function, tabulate(function, at_zero, highest, 1.0)


@pytest.fixture(scope="module")
def table() -> RadialTable:
    return tabulate(kink, 1.0, 11, 1.0)


def evaluate(table, s):
    return table(s.copy(), Workspace())


def everywhere(table, rng, n=20_000):
    return np.ldexp(1.0 + rng.random(n), rng.integers(table.lowest, table.highest, n))


def test_accurate_at_every_scale(case):
    function, table = case
    s = everywhere(table, np.random.default_rng(0))
    expected = function(s)
    assert np.max(np.abs(evaluate(table, s) - expected) / (1 + np.abs(expected))) < 3e-12


def test_edges_of_cells_belong_to_cells(case):
    function, table = case
    edges = np.ldexp(1.0, np.arange(table.lowest, table.highest))
    for s in (edges, np.nextafter(edges, np.inf), np.nextafter(edges[1:], 0.0)):
        np.testing.assert_allclose(evaluate(table, s), function(s), rtol=3e-12, atol=3e-12)


def test_zero_and_below_the_first_cell(case):
    function, table = case
    assert evaluate(table, np.array([0.0, -0.0])).tolist() == [table.at_zero] * 2
    tiny = np.array([1e-320, 1e-200, 1e-30])
    inside = evaluate(table, tiny)
    assert np.isfinite(inside).all()
    if math.isfinite(table.at_zero):
        assert (inside == table.at_zero).all()
        assert abs(function(np.array([0.999 * 2.0**table.lowest]))[0] - table.at_zero) < 2e-12


def test_zero_beyond_the_end_even_at_infinity(case):
    _, table = case
    assert (evaluate(table, np.array([2.0**table.highest, 1e30, np.inf])) == 0.0).all()


def test_rounded_negative_distances_are_zero_distances(table):
    assert evaluate(table, np.array([-1e-17]))[0] == 1.0


def test_nan_stays(table):
    for s in (np.array([np.nan, 1.0]), array_api_strict.asarray([math.nan, 1.0])):
        value = np.asarray(table(s, Workspace()))
        assert np.isnan(value).tolist() == [True, False]


def test_overwrites_its_argument_in_any_shape(table):
    s = np.random.default_rng(1).chisquare(3, (150, 130))
    expected = kink(s)
    value = table(s, Workspace())
    assert np.shares_memory(value, s)
    np.testing.assert_allclose(value, expected, atol=3e-12)


def test_strided_views(table):
    s = np.random.default_rng(2).chisquare(3, (60, 50))
    for view in (s[:, ::2], s.T, s[5:9, 7:40]):
        np.testing.assert_allclose(table(view.copy(order="K"), Workspace()), kink(view), atol=3e-12)
        np.testing.assert_allclose(table(np.array(s)[:, ::2], Workspace()), kink(s[:, ::2]), atol=3e-12)


def test_empty(table):
    assert table(np.empty((0, 3)), Workspace()).shape == (0, 3)


def test_float32_in_float32_out(case):
    function, table = case
    s = np.r_[0.0, np.geomspace(1e-38, 1e38, 3000)].astype(np.float32)
    fast, standard = evaluate(table, s), table(array_api_strict.asarray(s), Workspace())
    assert fast.dtype == np.float32
    assert standard.dtype == array_api_strict.float32
    middle = (s > 2.0**table.lowest) & (s < 2.0 ** (table.highest - 1))
    expected = function(s[middle].astype(np.float64))
    for value in (fast, np.asarray(standard)):
        assert not np.isnan(value).any()
        assert value[0] == np.float32(table.at_zero)
        assert np.max(np.abs(value[middle] - expected) / (1 + np.abs(expected))) < 1e-6


def test_standard_form_is_the_fast_form(case):
    _, table = case
    s = np.r_[0.0, 1e-310, everywhere(table, np.random.default_rng(3)), 2.0**table.highest, np.inf]
    s = np.r_[s, np.nextafter(np.ldexp(1.0, np.arange(-20, 5)), 0.0), 1.0].reshape(-1, 2)
    value = np.asarray(table(array_api_strict.asarray(s), Workspace()))
    fast = evaluate(table, s)
    assert value.shape == s.shape
    np.testing.assert_allclose(value, fast, rtol=1e-12, atol=1e-12)


def test_pickles(table):
    s = np.random.default_rng(4).chisquare(3, 100)
    again = pickle.loads(pickle.dumps(table))
    np.testing.assert_array_equal(evaluate(again, s), evaluate(table, s))


def test_finer_cells_where_the_function_oscillates(table):
    assert tabulate(wave, 1.0, 20, 1.0).bits > table.bits
