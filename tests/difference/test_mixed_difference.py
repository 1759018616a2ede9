"""LSDD on tables with words, truth values, times and missing cells."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD, DataWarning, InputError

pandas = pytest.importorskip("pandas")

WORDS = ["a", "b", "c"]


def table(n, shares, seed=0, shift=0.0, gaps=0.0):
    rng = np.random.default_rng(seed)
    values = rng.normal(shift, 1.0, n)
    return pandas.DataFrame({"x": np.where(rng.random(n) < gaps, np.nan, values), "w": rng.choice(WORDS, n, p=shares)})


@pytest.fixture(scope="module")
def model():
    return LSDD(centers=150, random_state=0).fit(table(400, [0.5, 0.3, 0.2]), table(300, [0.2, 0.3, 0.5], 1, 0.5))


def test_integrals_over_numbers_and_sums_over_words(model):
    """The L2 norm of the fitted function in closed form, against quadrature and enumeration of the words."""
    grid = np.linspace(-10.0, 10.0, 4001)
    words = np.repeat(np.array([*WORDS, "other", None], dtype=object), len(grid))
    with pytest.warns(DataWarning, match="'w'"):
        values = model.difference(pandas.DataFrame({"x": np.tile(grid, 5), "w": words}))
    total = np.trapezoid(values.reshape(5, -1) ** 2, grid, axis=1).sum()
    assert total == pytest.approx(model.squared_l2("quadratic"), rel=1e-9)


def test_the_distance_of_known_distributions():
    true = (0.3**2 + 0.3**2) / (2.0 * np.sqrt(np.pi))
    found, held = [], 0
    for seed in range(8):
        fitted = LSDD(centers=100, random_state=0).fit(
            table(400, [0.5, 0.3, 0.2], 2 * seed), table(400, [0.2, 0.3, 0.5], 2 * seed + 1)
        )
        found.append(fitted.squared_l2_)
        low, high = fitted.squared_l2_interval()
        held += low <= true <= high
    assert np.mean(found) == pytest.approx(true, rel=0.15)
    assert held >= 6


def test_words_alone_have_the_difference_of_their_shares():
    X, Y = table(4000, [0.6, 0.3, 0.1])[["w"]], table(4000, [0.2, 0.3, 0.5], 1)[["w"]]
    fitted = LSDD(alpha=1e-3, random_state=0).fit(X, Y)
    found = fitted.difference(pandas.DataFrame({"w": WORDS}))
    expected = [(X["w"] == word).mean() - (Y["w"] == word).mean() for word in WORDS]
    np.testing.assert_allclose(found, expected, atol=0.01)
    np.testing.assert_array_equal(fitted.predict(pandas.DataFrame({"w": ["a", "c"]})), [1, -1])


def test_gaps_are_a_category_and_leave_a_density():
    X, Y = table(600, [0.4, 0.3, 0.3], gaps=0.1), table(600, [0.4, 0.3, 0.3], 1, gaps=0.5)
    fitted = LSDD(centers=150, random_state=0).fit(X, Y)
    gap, known = fitted.difference(pandas.DataFrame({"x": [np.nan, 0.0], "w": ["a", "a"]}))
    assert gap < 0.0 < known
    assert fitted.length_scale_[0] > 0.1  # points of positive mass would make it as small as it can be
    again = LSDD(centers=150, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(again.difference(X), fitted.difference(X))


def test_swapped_samples_change_the_sign(model):
    X, Y = table(400, [0.5, 0.3, 0.2]), table(300, [0.2, 0.3, 0.5], 1, 0.5)
    expected = model.difference(Y)
    np.testing.assert_allclose(LSDD(centers=150, random_state=0).fit(Y, X).difference(Y), -expected, atol=1e-9)
    low, high = model.level_set(0.5)
    assert low < 0.0 < high
    assert (model.difference_std(Y) > 0.0).all()


def test_what_needs_numbers_is_refused(model):
    X, Y = table(30, [0.4, 0.3, 0.3]), table(30, [0.4, 0.3, 0.3], 1)
    with pytest.raises(InputError, match="length_scale='auto'"):
        LSDD(length_scale=1.0).fit(X, Y)
    with pytest.raises(InputError, match="sums over parts need numbers without NaN"):
        LSDD().partial_fit(X, Y)
    with pytest.raises(InputError, match="lacks column 'w'"):
        model.difference(Y[["x"]])
    with pytest.raises(InputError, match=r"NaN in 'x' \(1 row\), but had none there at fit"):
        model.difference(pandas.DataFrame({"x": [np.nan], "w": ["a"]}))
    with pytest.raises(InputError, match="words"):
        model.plot()


def test_a_flag_that_is_one_or_missing():
    """Its number says nothing and its gaps do: integrals are over the other column, and sums over there and missing."""
    rng = np.random.default_rng(0)
    one, two = (
        pandas.DataFrame({"flag": np.where(rng.random(400) < share, 1.0, np.nan), "b": rng.normal(size=400)})
        for share in (0.2, 0.7)
    )
    fitted = LSDD(centers=100, random_state=0).fit(one, two)
    grid = np.linspace(-10.0, 10.0, 2001)
    asked = pandas.DataFrame({"flag": np.repeat([1.0, np.nan], len(grid)), "b": np.tile(grid, 2)})
    there, missing = fitted.difference(asked).reshape(2, -1)
    assert np.trapezoid(there**2 + missing**2, grid) == pytest.approx(fitted.squared_l2("quadratic"), rel=1e-9)
    true = 2.0 * 0.5**2 / (2.0 * np.sqrt(np.pi))
    assert fitted.squared_l2_ == pytest.approx(true, rel=0.2)
    assert there[1000] < 0.0 < missing[1000]
    assert np.isnan(fitted.length_scale_[0])
    assert LSDD(random_state=0).fit(one[["flag"]], two[["flag"]]).squared_l2("combined") == pytest.approx(0.5, rel=0.2)
