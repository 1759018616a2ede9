"""The density difference: its equations, its answers, and what it refuses."""

from __future__ import annotations

import difference_oracle as oracle
import numpy as np
import pytest
from lsdd_cases import GRID, POINT, two
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from isopleth import LSDD, InputError


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(9).normal(size=(25, 2))


def test_rkhs_penalty_is_the_dense_solution(points):
    x, y = two()
    difference = LSDD(**{**POINT, "penalty": "rkhs"}).fit(x, y)
    centers = difference.centers_
    ridge = 0.3 * oracle.volume(2, 0.7)
    norm_matrix = oracle.psi(centers, centers, 0.7) + 1e-8 * np.eye(len(centers))
    theta = np.linalg.solve(oracle.gram(centers, 0.7) + ridge * norm_matrix, oracle.h_of(x, y, centers, 0.7))
    expected = oracle.psi(points, centers, 0.7) @ theta
    np.testing.assert_allclose(difference.difference(points), expected, atol=1e-8 * np.abs(expected).max())


def test_quadratic_is_the_integral_of_the_square():
    x, y = two(dim=1)
    difference = LSDD(**POINT).fit(x, y)
    square = quad(lambda t: difference.difference([[t]])[0] ** 2, -9, 9, limit=200)[0]
    assert difference.squared_l2("quadratic") == pytest.approx(square, rel=1e-8)


def test_correction_and_deviation_are_their_formulas(points):
    x, y = two()
    centers = points[:12]
    difference = LSDD(**{**POINT, "centers": centers}).fit(x, y)
    matrix, ridge = oracle.gram(centers, 0.7), 0.3 * oracle.volume(2, 0.7)
    inverse = np.linalg.inv(matrix + ridge * np.eye(12))
    noise = oracle.covariance(x, centers, 0.7, 1) / 40 + oracle.covariance(y, centers, 0.7, 1) / 30
    dual = 2.0 * inverse - inverse @ matrix @ inverse
    corrected = difference.squared_l2("combined") - np.trace(dual @ noise)
    assert difference.squared_l2("corrected") == pytest.approx(corrected, rel=1e-10)
    rows = oracle.psi(points, centers, 0.7)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse @ noise @ inverse, rows))
    np.testing.assert_allclose(difference.difference_std(points), expected, rtol=1e-7)


def test_bands_cover_the_projection():
    centers = np.linspace(-3, 3, 9)[:, None]
    model = LSDD(length_scale=0.6, alpha=0.3, centers=centers, n_jobs=1)
    at = np.array([[-1.0], [0.5]])
    wide = np.sqrt(1 + 0.36)  # mean of psi under a normal density, in closed form
    h = (
        0.6
        / wide
        * (np.exp(-((centers[:, 0] - 0.5) ** 2) / (2 * wide**2)) - np.exp(-(centers[:, 0] ** 2) / (2 * wide**2)))
    )
    ridge = 0.3 * oracle.volume(1, 0.6)
    target = oracle.psi(at, centers, 0.6) @ np.linalg.solve(oracle.gram(centers, 0.6) + ridge * np.eye(9), h)
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(80):
        model.fit(rng.normal(0.5, 1, size=(120, 1)), rng.normal(size=(90, 1)))
        covered.append(np.abs(model.difference(at) - target) <= 1.96 * model.difference_std(at))
    assert np.all(np.abs(np.mean(covered, axis=0) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 80))


def test_cross_fitted_estimate_is_unbiased_without_a_difference():
    rng = np.random.default_rng(5)
    model = LSDD(**{**GRID, "length_scale": [[0.5], [1.0]]})
    found = np.array([model.fit(rng.normal(size=(15, 1)), rng.normal(size=(20, 1))).squared_l2_ for _ in range(60)])
    assert abs(found.mean()) < 4 * found.std() / np.sqrt(len(found))


def test_distance_of_known_densities():
    rng = np.random.default_rng(0)
    x, y = rng.normal(scale=(4 * np.pi) ** -0.5, size=(2, 200, 5))
    x[:, 0] += 0.8
    difference = LSDD(random_state=0).fit(x, y)
    assert difference.squared_l2_ == pytest.approx(2 * (1 - np.exp(-np.pi * 0.64)), abs=0.4)


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
def test_swapped_samples_change_the_sign(points, penalty):
    x, y = two()
    one, other = (LSDD(**GRID, penalty=penalty, centers=30).fit(*pair) for pair in ((x, y), (y, x)))
    np.testing.assert_allclose(one.difference(points), -other.difference(points), rtol=1e-7, atol=1e-12)
    assert one.squared_l2_ == pytest.approx(other.squared_l2_, rel=1e-7)
    np.testing.assert_allclose(one.level_set(0.5), -np.array(other.level_set(0.5)[::-1]), rtol=1e-7)


def test_rotation(points):
    x, y = two()
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    one, other = LSDD(**POINT).fit(x, y), LSDD(**POINT).fit(x @ turn, y @ turn)
    np.testing.assert_allclose(other.difference(points @ turn), one.difference(points), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(other.difference_std(points @ turn), one.difference_std(points), rtol=1e-7)


def test_priors_are_those_of_the_bayes_rule():
    rng = np.random.default_rng(1)
    difference = LSDD(length_scale=0.8, alpha=0.1, random_state=0).fit(
        rng.normal(1, 1, (2000, 1)), rng.normal(-1, 1, (2000, 1))
    )
    grid = np.linspace(-2, 2, 81)[:, None]
    assert np.array_equal(difference.predict(grid), np.sign(difference.difference(grid)))
    for prior in (0.2, 0.7):
        cut = grid[np.argmax(difference.predict(grid, priors=(prior, 1 - prior)) > 0), 0]
        assert cut == pytest.approx(np.log((1 - prior) / prior) / 2, abs=0.2)
    assert difference.predict([[1e6]]).tolist() == [0]
    assert np.array_equal(difference.predict(grid, priors=(1e308, 1e308)), difference.predict(grid))


def test_regions_hold_the_mass_they_name():
    rng = np.random.default_rng(2)
    difference = LSDD(random_state=0, centers=200).fit(rng.normal(1, 1, (1500, 1)), rng.normal(-1, 1, (300, 1)))
    low, high = difference.level_set(0.6)
    assert low < 0 < high
    grid = np.linspace(-6, 6, 4001)
    true = norm.pdf(grid - 1) - norm.pdf(grid + 1)
    inside = difference.difference(grid[:, None]) >= high
    assert true[inside].sum() / true[true > 0].sum() == pytest.approx(0.6, abs=0.08)
    assert difference.level_set([0.3, 0.6])[1][1] == high < difference.level_set([0.3, 0.6])[1][0]


def test_hundreds_of_columns():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 60, 400)) * 100
    x += 60
    difference = LSDD(random_state=0, n_jobs=1, cv=3).fit(x, y)
    assert np.isfinite(difference.difference(x, relative=True)).all()
    assert np.isfinite(difference.squared_l2(relative=True))
    with pytest.raises(InputError, match="in 400 columns cannot be bounded from above"):
        difference.squared_l2_interval(relative=True)
    assert (difference.predict(x + 0.01) == 1).mean() > 0.9
    assert difference.log_volume_ > 710  # V itself overflows
    assert "e-" in repr(difference.search_path_).split("<- best")[0].splitlines()[-1]  # and so would the losses


@pytest.mark.parametrize("sizes", [(3, 300), (300, 3)])
def test_samples_of_very_different_size(sizes):
    x, y = two(*sizes)
    difference = LSDD(**GRID, centers=50).fit(x, y)
    assert np.isfinite([difference.squared_l2_, *difference.difference(x), *difference.difference_std(y)]).all()
    assert np.isfinite(difference.squared_l2_interval()).all()
    assert (difference.centers_[:, None] == (x if len(x) == 3 else y)).all(axis=2).any(axis=0).all()


def test_a_single_row(points):
    x, y = two(n=1)
    with pytest.raises(InputError, match=r"X has 1 row, too few .* give length_scale and alpha"):
        LSDD().fit(x, y)
    difference = LSDD(**POINT).fit(x, y)
    assert difference.difference(x)[0] > 0
    assert np.isnan(difference.squared_l2_)
    assert difference.search_path_ is None
    for ask in (
        lambda: difference.difference_std(points),
        lambda: difference.squared_l2(),
        lambda: difference.level_set(0.5),
    ):
        with pytest.raises(InputError, match="at least two rows in each sample"):
            ask()


def test_identical_samples_and_discrete_ones(points):
    x, _ = two()
    same = LSDD(**POINT).fit(x, x)
    assert not same.difference(points).any()
    assert same.squared_l2("combined") == 0.0
    rng = np.random.default_rng(0)
    dice = LSDD(random_state=0, n_jobs=1).fit(rng.integers(1, 7, (200, 1)), rng.integers(1, 5, (150, 1)))
    assert dice.predict([[6], [2]]).tolist() == [1, -1]
    assert dice.squared_l2_interval()[0] > 0.0


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_a_column_constant_in_one_sample_has_the_spread_of_the_other():
    x, y = np.random.default_rng(0).normal(size=(60, 1)), np.zeros((40, 1))
    smallest = LSDD(random_state=0, alpha=1.0, cv=3).fit(x - np.median(x), y).search_path_.length_scales.min()
    assert smallest == pytest.approx(2.0**-3.5 * np.sqrt(0.6) * x.std())
    apart = LSDD(random_state=0, alpha=1.0, cv=3)
    apart.fit(np.column_stack([x, x * 0 + 0.3]), np.column_stack([x[:40], y + 0.1]))
    smallest = apart.search_path_.length_scales[:, 1].min()
    assert smallest == pytest.approx(np.sqrt(2.0) * 2.0**-3.5 * 0.2 * np.sqrt(0.24))  # the only spread there is


def test_columns_of_data_frames_go_by_name():
    pandas = pytest.importorskip("pandas")
    x, y = two()
    before, after = pandas.DataFrame(x, columns=["age", "dose"]), pandas.DataFrame(y, columns=["age", "dose"])
    difference = LSDD(**GRID).fit(before, after)
    assert difference.feature_names_in_.tolist() == ["age", "dose"]
    assert np.array_equal(difference.difference(before), LSDD(**GRID).fit(x, y).difference(x))
    with pytest.raises(ValueError, match=r"^Y lacks 'dose'"):
        LSDD(**GRID).fit(before, after.rename(columns={"dose": "mass"}))
    with pytest.raises(InputError, match=r"X contains NaN in 'age' \(\d+ rows\), .* but had none there at fit"):
        difference.difference(after.where(after["dose"] < 1.0))


@pytest.mark.parametrize(
    ("params", "change", "message"),
    [
        ({}, {"Y": np.zeros((5, 3))}, "Y has 3 features"),
        ({}, {"Y": [[0.0, np.inf]]}, "Y contains inf in column 1"),
        ({}, {"Y": [[0.0, np.nan]]}, "missing cells need centers as a number and length_scale='auto'"),
        ({}, {"X": [["a", 1.0]]}, "X has something other than numbers"),
        ({}, {"sample_weight_y": [-1.0] * 30}, "sample_weight_y is negative"),
        ({}, {"X": np.ones((4, 2)), "Y": np.ones((3, 2))}, "all rows of X are equal"),
        ({"length_scale": [1.0, 2.0, 3.0]}, {}, r"length_scale has shape \(3,\)"),
        ({"length_scale": [[1.0], [-2.0]]}, {}, "expected positive, finite numbers"),
        ({"length_scale": 1e-200}, {}, "length_scale = 1e-200: too small for the columns"),
        ({}, {"Y": [0.0, 1.0]}, "Y has one dimension"),
        ({"alpha": [0.1, -1.0]}, {}, "alpha = .* finite and >= 0"),
        ({"alpha": 0.0, "length_scale": 5.0}, {}, "alpha = 0 leaves a system that is singular"),
        ({"centers": np.zeros((3, 1))}, {}, r"centers has shape \(3, 1\)"),
        ({"centers": [["a", "b"]]}, {}, r"centers = .*: expected a number of centers"),
        ({"centers": None, "memory_limit": 1000}, {}, "70 centers need .* use centers = 3 or fewer"),
        ({"cv": (np.zeros(40), np.zeros(29))}, {}, "cv: expected a number of folds, or two arrays"),
        ({"cv": (np.arange(40) % 4, np.arange(30) % 3)}, {}, "cv: fold 3 has no rows of one of the samples"),
    ],
)
def test_what_cannot_be_used_is_said(params, change, message):
    x, y = two()
    with pytest.raises(InputError, match=message):
        LSDD(**{**POINT, **params}).fit(**{"X": x, "Y": y, **change})


def test_calls_that_raise_an_error():
    difference = LSDD(**POINT).fit(*two())
    with pytest.raises(InputError, match="expected one of cross_fitted"):
        difference.squared_l2("best")
    with pytest.raises(InputError, match="priors"):
        difference.predict([[0.0, 0.0]], priors=(0.0, 0.0))
    for priors in ("ab", (1, [2, 3])):
        with pytest.raises(InputError, match=r"priors = .*: expected two numbers"):
            difference.predict([[0.0, 0.0]], priors=priors)
    with pytest.raises(InputError, match="mass"):
        difference.level_set(1.0)


def test_a_fit_that_fails_leaves_no_difference():
    model = LSDD(random_state=0).fit(np.arange(30.0)[:, None], np.arange(30.0)[:, None] + 0.5)
    check_is_fitted(model)
    with pytest.raises(InputError):
        model.fit(np.ones((9, 1)), np.ones((9, 1)))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.difference([[1.0]])
