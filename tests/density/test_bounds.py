"""Bounded columns: the map itself, and densities in the units of the data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import clone

from isopleth import KDE, SOSREP, InputError, load, save
from isopleth.frames import BoundedMap

PAIRS = [(0.0, None), (None, 5.0), (-1.0, 3.0), (None, None), (-np.inf, np.inf)]
ESTIMATORS = [
    KDE(frame="scale"),
    SOSREP(frame="scale"),
    KDE(kernel="matern52", frame="scale"),
    SOSREP(kernel="matern32", frame="scale"),
    SOSREP(kernel="sdo", frame="scale"),
]


def rows_between(low, high, n=60, seed=0):
    rng = np.random.default_rng(seed)
    if low is not None and high is not None and np.isfinite([low, high]).all():
        return low + (high - low) * rng.beta(1.2, 3.0, size=(n, 1))
    if low is not None and np.isfinite(low):
        return low + rng.gamma(1.5, size=(n, 1))
    if high is not None and np.isfinite(high):
        return high - rng.gamma(1.5, size=(n, 1))
    return rng.normal(size=(n, 1))


@pytest.mark.parametrize("pair", [(0.0, np.inf), (-np.inf, 7.0), (-1.0, 3.0), (2.0, 1e6)])
def test_samples_never_end_on_a_bound(pair):
    bounds = BoundedMap(np.array([pair[0]]), np.array([pair[1]]))
    assert bounds.inside(bounds.inverse(np.array([[-1e4], [-40.0], [40.0], [1e4]]))).all()
    assert np.isfinite(bounds.inverse(np.array([[-1e4], [1e4]]))).all()


def quadrature(model, low, high):
    """Integral of the density over one column, in a variable in which it is smooth up to the bounds."""
    t, step = np.linspace(-40.0, 40.0, 20_001, retstep=True)
    if np.isfinite(low) and np.isfinite(high):
        x, slope = low + (high - low) / (1 + np.exp(-t)), (high - low) / (2 * np.cosh(t / 2)) ** 2
    elif np.isfinite(low):
        x, slope = low + np.exp(t), np.exp(t)
    elif np.isfinite(high):
        x, slope = high - np.exp(t), np.exp(t)
    else:
        x, slope = t, np.ones_like(t)
    return np.exp(model.score_samples(x[:, None])) @ slope * step


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("pair", PAIRS)
def test_density_integrates_to_one_in_the_units_of_the_data(estimator, pair):
    model = clone(estimator).set_params(bounds=[pair]).fit(rows_between(*pair))
    low = -np.inf if pair[0] is None else pair[0]
    high = np.inf if pair[1] is None else pair[1]
    assert quadrature(model, low, high) == pytest.approx(1.0, abs=1e-6)


def test_density_of_two_columns_integrates_to_one():
    rng = np.random.default_rng(0)
    X = np.c_[rng.gamma(2.0, size=80), rng.normal(size=80)]
    model = SOSREP(bounds={0: (0, None)}, frame="scale").fit(X)
    t, w = np.polynomial.legendre.leggauss(400)
    y, v = 12 * t - 1, 12 * w  # log x: an integral over x = e^y has dx = e^y dy
    z, u = 10 * t, 10 * w
    grid = np.stack(np.meshgrid(np.exp(y), z, indexing="ij"), axis=-1).reshape(-1, 2)
    p = np.exp(model.score_samples(grid)).reshape(400, 400)
    assert (v * np.exp(y)) @ p @ u == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_bounds_are_a_fit_to_logarithms_with_the_jacobian(estimator):
    rng = np.random.default_rng(0)
    X, Q = rng.gamma(2.0, size=(50, 2)), rng.gamma(2.0, size=(20, 2))
    bounded = clone(estimator).set_params(bounds=[(0, None)] * 2).fit(X)
    plain = clone(estimator).fit(np.log(X))
    want = plain.score_samples(np.log(Q)) - np.log(Q).sum(axis=1)
    np.testing.assert_allclose(bounded.score_samples(Q), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bounded.length_scale_, plain.length_scale_)
    np.testing.assert_allclose(bounded.unit_, plain.unit_)
    np.testing.assert_allclose(np.sort(bounded.centers_[:, 0]), np.sort(X[:, 0]))
    assert bounded.hyvarinen_loss(Q) == pytest.approx(plain.hyvarinen_loss(np.log(Q)), rel=1e-9)


def test_open_bounds_change_nothing():
    X = rows_between(None, None)
    want = SOSREP(frame="scale").fit(X).score_samples(X)
    for bounds in ([(None, None)], [(-np.inf, None)], {}, {0: (None, np.inf)}):
        np.testing.assert_array_equal(SOSREP(bounds=bounds, frame="scale").fit(X).score_samples(X), want)


def test_rows_outside_have_no_density_and_no_gradient():
    model = KDE(bounds=[(0, 1), (None, None)], frame="scale").fit(
        np.random.default_rng(0).uniform(0.1, 0.9, size=(50, 2))
    )
    Q = np.array([[-0.1, 0.5], [0.0, 0.5], [0.5, 9.0], [1.0, 0.5], [2.0, 0.5]])
    log_p, gradient = model.score_samples(Q), model.grad_log_density(Q)
    np.testing.assert_array_equal(np.isneginf(log_p), [True, True, False, True, True])
    np.testing.assert_array_equal(np.isnan(gradient).all(axis=1), np.isneginf(log_p))
    assert np.isfinite(gradient[2]).all()
    assert model.hyvarinen_loss(Q) == np.inf
    assert np.isneginf(model.score(Q))
    assert model.score_samples(Q[:2]).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_samples_are_inside_and_of_the_density(kind):
    model = kind(bounds=[(-1, 3)], frame="scale").fit(rows_between(-1.0, 3.0))
    S = model.sample(20_000, random_state=0)
    assert ((S > -1) & (S < 3)).all()
    axis = np.linspace(-1, 3, 400_002)[1:-1]
    cdf = np.cumsum(np.exp(model.score_samples(axis[:, None]))) * (axis[1] - axis[0])
    assert kstest(S[:, 0], lambda x: np.interp(x, axis, cdf)).pvalue > 1e-3


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_level_sets_hold_their_mass_in_the_units_of_the_data(kind):
    train, fresh = rows_between(0.0, None, n=800), rows_between(0.0, None, n=10_000, seed=3)
    model = kind(bounds=[(0, None)], frame="scale").fit(train)
    mass = np.array([0.5, 0.9])
    inside = (model.score_samples(fresh)[:, None] >= model.level_set(mass)).mean(axis=0)
    np.testing.assert_allclose(inside, mass, atol=0.04)


def test_bounds_help_where_mass_sits_at_the_bound():
    train, fresh = rows_between(0.0, None, n=500), rows_between(0.0, None, n=5000, seed=3)
    assert KDE(bounds=[(0, None)], frame="scale").fit(train).score(fresh) > KDE(frame="scale").fit(train).score(fresh)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"weight": (0, None)}, "'weight'.*'age'"),
        ({2: (0, None)}, "column 2.*0 to 1"),
        ({-1: (0, None)}, "column -1"),
        ({True: (0, None)}, "True"),
        ({"age": (1, 1)}, "'age'.*less"),
        ({"age": (2, 1)}, "'age'.*less"),
        ({"age": 3}, "'age' = 3.*pair"),
        ({"age": (0, 1, 2)}, "'age'.*pair"),
        ({"age": ("0", None)}, "'age'.*pair"),
        ({"age": (np.nan, None)}, "'age'.*pair"),
        ({"age": (-1e305, None)}, "'age'.*1e\\+300"),
        ({"age": (0, None), 0: (0, None)}, "'age' twice"),
        ([(0, None)], "1 pairs.*2 columns"),
        ([(0, None)] * 3, "3 pairs.*2 columns"),
        ({"age": (np.inf, None)}, "'age'.*less"),
        ({"age": (30, None)}, r"row 1 .* 20\.0 in 'age', below the lower bound 30\.0 .* bounds: 1\)"),
        ({"age": (20, None)}, r"row 1 .* 20\.0 in 'age', on the lower bound"),
        ({1: (None, 1.5)}, r"row 1 .* 2\.0 in 'size', above the upper bound 1\.5 .* bounds: 2\)"),
    ],
)
@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_bounds_that_cannot_be_used(kind, bounds, words):
    frame = pd.DataFrame({"age": [40.0, 20.0, 35.0], "size": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match=words):
        kind(bounds=bounds, frame="scale").fit(frame)


def test_names_of_columns_that_have_none():
    with pytest.raises(InputError, match="no column names"):
        KDE(bounds={"age": (0, None)}, frame="scale").fit(np.ones((3, 1)))
    with pytest.raises(ValueError, match="bounds"):
        KDE(bounds=3, frame="scale").fit(np.ones((3, 1)))


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_numbers_that_are_names_of_other_columns_are_refused(kind):
    X = np.random.default_rng(0).gamma(2.0, size=(30, 2))
    with pytest.raises(InputError, match=r"column 1, .* number of '2'"):
        kind(bounds={1: (0, None)}, frame="scale").fit(pd.DataFrame(X, columns=[1, 2]))
    want = kind(bounds={1: (0, None)}, frame="scale").fit(X).score_samples(X)
    for names in ([0, 1], ["a", "b"], [7, 8]):
        model = kind(bounds={1: (0, None)}, frame="scale").fit(pd.DataFrame(X, columns=names))
        np.testing.assert_array_equal(model.score_samples(pd.DataFrame(X, columns=names)), want)


@pytest.mark.parametrize("pair", [(-1e14, None), (None, 1e17), (-1e14, 1e15)])
def test_bounds_that_leave_no_digits_are_refused(pair):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match="column 1 are so far"):
        KDE(bounds={1: pair}, frame="scale").fit(X)
    # Far off, but on one side only beside values of any size: nothing is lost.
    values = KDE(bounds={0: (0, 1e17)}, frame="scale").fit(np.exp(X[:, :1]))
    np.testing.assert_allclose(
        values.score_samples(np.exp(X[:, :1])),
        KDE(bounds={0: (0, None)}, frame="scale").fit(np.exp(X[:, :1])).score_samples(np.exp(X[:, :1])),
    )


def test_rows_of_no_weight_may_be_anywhere():
    X = np.r_[rows_between(0.0, None), [[-3.0], [0.0]]]
    w = np.r_[np.ones(60), 0, 0]
    model = KDE(bounds=[(0, None)], frame="scale").fit(X, sample_weight=w)
    np.testing.assert_allclose(
        model.score_samples(X[:60]), KDE(bounds=[(0, None)], frame="scale").fit(X[:60]).score_samples(X[:60])
    )
    np.testing.assert_array_equal(np.sort(model.centers_[:, 0]), np.sort(X[:60, 0]))


def test_a_constant_column_may_be_bounded():
    X = np.c_[rows_between(0.0, None), np.full(60, 0.3)]
    with pytest.warns(UserWarning, match="constant"):
        model = KDE(bounds=[(0, None), (0, 1)], frame="scale").fit(X)
    np.testing.assert_allclose(
        model.score_samples(X), KDE(bounds=[(0, None)], frame="scale").fit(X[:, :1]).score_samples(X[:, :1]), rtol=1e-12
    )
    assert (model.grad_log_density(X)[:, 1] == 0.0).all()
    assert (model.sample(9, random_state=0)[:, 1] == 0.3).all()


@pytest.mark.parametrize("kind", [KDE, SOSREP])
def test_bounded_models_are_kept_whole(kind, tmp_path):
    frame = pd.DataFrame({"age": rows_between(0.0, None)[:, 0], "share": rows_between(0.0, 1.0, seed=1)[:, 0]})
    for bounds in ({"age": (0, None), 1: (0, 1)}, [(0, None), (0, 1)], {"age": (np.float64(0), None)}):
        model = kind(bounds=bounds, frame="scale").fit(frame)
        assert clone(model).bounds == bounds
        want = model.score_samples(frame)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).score_samples(frame), want)
        save(model, tmp_path / "model")
        loaded = load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.score_samples(frame), want)
        np.testing.assert_array_equal(loaded.fit(frame).score_samples(frame), want)
