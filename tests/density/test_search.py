"""The choice of a length scale against slow computations of the same losses, and what it must not depend on."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from few_cases import pairs
from isopleth import KDE, SOSREP, DataWarning, InputError, Search
from isopleth.core.budget import Budget
from isopleth.core.rows import distinct_rows, held_out_parts
from isopleth.density import Choices
from isopleth.density.search import run_search
from isopleth.kernels import SDO, Gaussian, Kernel, Laplacian, Matern

pytestmark = pytest.mark.filterwarnings("ignore:the best scale:isopleth.DataWarning")  # most grids here are short

FACTORS = (0.5, 0.8, 1.25, 2.0)


def rows(n: int = 40, d: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * [1.0, 30.0, 0.1, 2.0][:d] + rng.integers(0, 2, size=(n, 1)) * 4.0


def by_differences(density: Any, X: np.ndarray, unit: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """tr Hess log p + |grad log p|^2/2 of each row in coordinates x/unit, from values of log p."""
    at = density.score_samples
    out = np.zeros(len(X))
    for j in range(X.shape[1]):
        h = step * unit[j] * np.eye(X.shape[1])[j]
        f = [at(X + k * h) for k in (-2, -1, 0, 1, 2)]
        out += (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)
        out += 0.5 * ((f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * step)) ** 2
    return out


def refitted(estimator: Any, X: np.ndarray, loss: Any) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each distinct row held out of fits of their own, for every length scale of the path of `estimator`."""
    path = estimator.search_path_
    distinct, weights, _ = distinct_rows(X, np.ones(len(X)))
    terms = np.full((len(path.factors), len(distinct)), np.nan)
    for i, scale in enumerate(path.length_scales):
        for part in held_out_parts(len(distinct), estimator.length_scale.cv):
            fitted = clone(estimator).set_params(length_scale=scale)
            fitted.fit(distinct[~part], sample_weight=weights[~part])
            terms[i, part] = loss(fitted, distinct[part])
    return terms, weights


@pytest.mark.parametrize(
    ("kernel", "estimator", "cv"), pairs(["gaussian", Matern(nu=2.5), "laplacian"], [SOSREP, KDE], [3, 0.3])
)
def test_hyvarinen_losses_are_those_of_refits_by_finite_differences(estimator: Any, kernel: Any, cv: Any) -> None:
    X = np.concatenate([rows(), rows()[:7]])
    model = estimator(kernel=kernel, length_scale=Search("hyvarinen", grid=FACTORS, cv=cv), frame="scale").fit(X)
    terms, weights = refitted(model, X, lambda fitted, part: by_differences(fitted, part, model.unit_))
    share = np.where(np.isnan(terms[0]), 0.0, weights)
    share /= share.sum()
    expected = np.nansum(share * terms, axis=1)
    path = model.search_path_
    np.testing.assert_allclose(path.losses, expected, rtol=1e-5)
    n = np.sum(share > 0)
    errors = np.sqrt(n / (n - 1) * np.nansum(share**2 * (terms - expected[:, None]) ** 2, axis=1))
    np.testing.assert_allclose(path.standard_errors, errors, rtol=1e-4)
    assert path.best_index == np.argmin(expected)
    np.testing.assert_allclose(model.length_scale_, path.best_length_scale)


@pytest.mark.parametrize(
    "estimator", [SOSREP(kernel="sdo", frame="scale"), SOSREP(kernel="laplacian", frame="scale"), KDE(frame="scale")]
)
def test_likelihood_losses_are_those_of_refits_in_units_of_the_data(estimator: Any) -> None:
    X = rows()
    model = estimator.set_params(length_scale=Search("likelihood", grid=FACTORS, cv=4)).fit(X)
    terms, _ = refitted(model, X, lambda fitted, part: -fitted.score_samples(part))
    np.testing.assert_allclose(model.search_path_.losses, terms.mean(axis=1), rtol=1e-9)
    errors = terms.std(axis=1, ddof=1) / np.sqrt(len(X))
    np.testing.assert_allclose(model.search_path_.standard_errors, errors, rtol=1e-9)


def test_the_loss_of_the_path_is_the_loss_of_the_estimator() -> None:
    X = rows()
    path = SOSREP(length_scale=Search(grid=FACTORS, cv=0.3), frame="scale").fit(X).search_path_
    distinct, _, _ = distinct_rows(X, np.ones(len(X)))
    (part,) = held_out_parts(len(X), 0.3)
    for scale, loss in zip(path.length_scales, path.losses, strict=True):
        fitted = SOSREP(length_scale=scale, frame="scale").fit(distinct[~part])
        unit = np.exp(np.mean(np.log(X.std(axis=0)))) / np.exp(np.mean(np.log(scale)))
        own = fitted.unit_[0] / fitted.length_scale_[0]  # of the rows that are left
        np.testing.assert_allclose(loss, fitted.hyvarinen_loss(distinct[part]) * (unit / own) ** 2)


@pytest.mark.parametrize("criterion", ["hyvarinen", "likelihood"])
@pytest.mark.parametrize("cv", [5, 0.25])
def test_copies_stay_in_one_fold_and_are_weights(criterion: str, cv: Any) -> None:
    X = rows(30)
    copies = np.random.default_rng(1).integers(1, 5, size=30)
    search = Search(criterion, grid=FACTORS, cv=cv)
    weighted = SOSREP(length_scale=search, frame="scale").fit(X, sample_weight=copies).search_path_
    repeated = SOSREP(length_scale=search, frame="scale").fit(np.repeat(X, copies, axis=0)).search_path_
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-8)
    np.testing.assert_allclose(weighted.standard_errors, repeated.standard_errors, rtol=1e-8)
    plain = SOSREP(length_scale=search, frame="scale").fit(X).search_path_
    assert (np.abs(plain.losses - weighted.losses) > 1e-3 * np.abs(plain.losses)).all()


class Prescribed:
    """A density whose loss is given by its length scale alone."""

    def __init__(self, losses: list[float], scales: list[float]) -> None:
        self.loss = dict(zip(np.round(scales, 9), losses, strict=True))
        self.seen: list[float] = []

    def fit(self, kernel: Kernel, z: np.ndarray, weights: np.ndarray) -> Any:
        scale = float(np.round(1.0 / np.min(np.diff(np.sort(z[:, 0]))), 9))
        self.seen.append(scale)
        loss = self.loss[scale] * scale**2

        class Fitted:
            log_density = None

            def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
                return np.full(len(z), loss)

            def positive(self, z: np.ndarray) -> np.ndarray:
                return np.full(len(z), np.isfinite(loss))

        return Fitted()


def path_of(losses: list[float], criterion: str = "stable_minimum", cv: Any = 0.2) -> tuple[Choices, list[float]]:
    """Path over made-up `losses`, and the scales fitted, in the order of the fits."""
    scales = [0.5 * (k + 1) for k in range(len(losses))]
    made_up = Prescribed(losses, scales)
    x = np.arange(30.0)[:, None]
    search = Search(criterion, grid=scales, base=1.0, cv=cv)
    path = run_search(search, criterion, np.ones(1), np.ones(30), scaled(x), made_up.fit, Budget(n_jobs=1), np.ones(1))
    return path, made_up.seen


def scaled(x: np.ndarray) -> Any:
    return lambda factor: (Gaussian(dim=1), x / factor, np.log(factor))


def test_the_stable_minimum_is_the_largest_one_and_nothing_below_its_neighbours_is_fitted() -> None:
    losses = [-50.0, -60.0, 9.0, 8.0, 7.5, 3.0, 4.0, 5.0, 6.0, 7.0]  # of the scales 0.5, 1, 1.5 and so on
    path, seen = path_of(losses)
    assert path.best_index == 5
    assert seen == [5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5]
    assert path.n_computed == 8
    np.testing.assert_allclose(path.losses, [np.nan, np.nan, *losses[2:]])
    assert np.isnan(path.standard_errors[:2]).all()
    assert np.isnan(path.share_not_positive[:2]).all()


def test_neighbours_of_a_stable_minimum_are_larger_all_three() -> None:
    #         a minimum of two neighbours     a stable one
    losses = [9.0, 8.0, 7.0, 1.0, 2.0, 3.0, 2.5, 2.4, 2.6, 3.0, 4.0]
    path, _ = path_of(losses)
    assert path.best_index == 3
    path, _ = path_of([np.inf, np.inf, np.inf, 1.0, np.inf, 3.0, 4.0])
    assert path.best_index == 3


def test_every_scale_is_fitted_once_a_fold() -> None:
    _, seen = path_of([3.0, 2.0, 1.0, 2.0, 3.0], "hyvarinen", cv=5)
    assert sorted(seen) == sorted([0.5, 1.0, 1.5, 2.0, 2.5] * 5)


def test_without_a_stable_minimum_the_smallest_loss_is_taken_with_a_warning() -> None:
    with pytest.warns(DataWarning, match="below those of three neighbours"):
        path, seen = path_of([3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])  # two neighbours below
    assert path.best_index == 2
    assert len(seen) == 8
    with pytest.warns(DataWarning, match="below those of three neighbours"):
        path, _ = path_of([9.0, 8.0, 7.0, 0.0, 0.0, 3.0, 4.0, 5.0])  # a tie is no minimum
    assert path.best_index in (3, 4)


def test_the_default_grid_has_the_stated_factors():
    np.testing.assert_allclose(Search().factors, np.geomspace(1 / 32, 8, 17), rtol=1e-12)


@pytest.mark.parametrize(("losses", "way"), [([1.0, 2.0, 3.0], "smaller factors"), ([3.0, 2.0, 1.0], "larger factors")])
def test_a_best_scale_at_an_end_says_which_way_to_go(losses: list[float], way: str) -> None:
    with pytest.warns(DataWarning, match=way):
        path_of(losses, "hyvarinen")


def test_weights_count_in_the_means() -> None:
    class Fitted:
        def log_density(self, z: np.ndarray) -> np.ndarray:
            return -z[:, 0]

        def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
            raise AssertionError("a likelihood wants no Laplacian")

        def positive(self, z: np.ndarray) -> np.ndarray:
            return z[:, 0] < 8.5

    x, w = np.arange(1.0, 11.0)[:, None], np.arange(1.0, 11.0)
    search = Search("likelihood", grid=(1.0, 2.0), base=1.0, cv=3)
    with pytest.warns(DataWarning):
        path = run_search(search, "likelihood", np.ones(1), w, scaled(x), lambda *held_in: Fitted(), Budget(n_jobs=1))
    np.testing.assert_allclose(path.losses, [7.0, 3.5 + np.log(2.0)])
    np.testing.assert_allclose(path.share_not_positive, [19 / 55, 0.0])


def test_scales_of_infinite_loss_are_passed_over() -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(60, 2)), 12 + rng.normal(size=(60, 2))])
    search = Search("hyvarinen", grid=np.geomspace(0.05, 4.0, 8))
    path = SOSREP(kernel=SDO(order=3), length_scale=search, frame="scale").fit(X).search_path_
    lost = path.share_not_positive > 0
    assert lost.any()
    assert not lost.all()
    np.testing.assert_array_equal(np.isinf(path.losses), lost)
    assert np.isfinite(path.losses[path.best_index])
    assert np.isnan(path.standard_errors[lost]).all()


def test_a_loss_infinite_everywhere_names_the_likelihood() -> None:
    with pytest.raises(InputError, match="criterion='likelihood'"):
        path_of([np.inf] * 3, "hyvarinen")


def test_a_loss_that_overflows_everywhere_asks_for_larger_scales() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(InputError, match=r"overflows .* larger factors"):
        KDE(length_scale=Search(grid=[1.0, 2.0], base=1e-200), frame="scale").fit(X)


def test_the_default_criterion_depends_on_the_sign_of_the_kernel() -> None:
    assert Search().criterion_for(Gaussian(dim=1)) == "hyvarinen"
    assert Search().criterion_for(Laplacian(dim=2)) == "hyvarinen"
    assert Search().criterion_for(SDO(dim=2)) == "likelihood"
    X = rows()
    assert (
        SOSREP(kernel="sdo", length_scale=Search(grid=FACTORS), frame="scale").fit(X).search_path_.criterion
        == "likelihood"
    )


@pytest.mark.parametrize("criterion", ["hyvarinen", "stable_minimum"])
@pytest.mark.parametrize("kernel", [Laplacian(), SDO(order=1)])
def test_kernels_too_rough_for_one_column_are_refused_there(criterion: str, kernel: Kernel) -> None:
    with pytest.raises(InputError, match=r"'likelihood'.*'gaussian' or 'matern52'"):
        SOSREP(kernel=kernel, length_scale=Search(criterion), frame="scale").fit(rows(20, 1))
    SOSREP(kernel=kernel, length_scale=Search("likelihood"), frame="scale").fit(rows(60, 1))
    for name in ("gaussian", "matern52"):  # as the sentence says
        SOSREP(kernel=name, length_scale=Search("hyvarinen", cv=0.3), frame="scale").fit(rows(60, 1))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"criterion": "bic"}, "criterion = 'bic'"),
        ({"grid": []}, "grid"),
        ({"grid": [1.0]}, "two different"),
        ({"grid": [1.0, 1.0]}, "two different"),
        ({"grid": [0.0, 1.0]}, "positive"),
        ({"grid": [1.0, np.nan]}, "positive"),
        ({"grid": [1.0, np.inf]}, "positive"),
        ({"grid": "wide"}, "grid = 'wide'"),
        ({"grid": [[1.0, 2.0]]}, "grid"),
        ({"grid": [[1.0], [1.0, 2.0]]}, "grid"),
        ({"grid": [1, 2, 3], "criterion": "stable_minimum"}, "at least 7"),
        ({"base": "silverman"}, "base = 'silverman'"),
        ({"base": -1.0}, "base = -1.0"),
        ({"base": []}, "base"),
        ({"base": None}, "base = None"),
        ({"cv": 1}, "cv = 1"),
        ({"cv": True}, "cv = True"),
        ({"cv": 1.5}, "cv = 1.5"),
        ({"cv": 0.0}, "cv = 0.0"),
        ({"cv": "5"}, "cv = '5'"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Search(**arguments)


def test_a_base_with_the_wrong_number_of_columns_is_refused_at_fit() -> None:
    with pytest.raises(InputError, match="base"):
        SOSREP(length_scale=Search(base=[1.0, 2.0, 3.0]), frame="scale").fit(rows())


def test_an_absolute_grid_is_in_the_units_of_the_data() -> None:
    grid = [0.5, 1.0, 2.0]
    path = (
        SOSREP(length_scale=Search(grid=grid, base=1.0, criterion="likelihood"), frame="scale")
        .fit(rows(60, 1))
        .search_path_
    )
    np.testing.assert_array_equal(path.length_scales[:, 0], grid)
    path = SOSREP(length_scale=Search(grid=grid, base=[1.0, 30.0]), frame="scale").fit(rows()).search_path_
    np.testing.assert_allclose(path.length_scales, np.outer(grid, [1.0, 30.0]))


def test_searches_are_values() -> None:
    search = Search("likelihood", grid=np.array([2.0, 1.0]), base=np.array([1.0, 3.0]), cv=0.2)
    same = Search("likelihood", grid=[2, 1], base=(1, 3), cv=0.2)
    assert search == same
    assert hash(search) == hash(same)
    assert search != Search()
    assert pickle.loads(pickle.dumps(search)) == search
    np.testing.assert_array_equal(search.factors, [1.0, 2.0])
    estimator = SOSREP(length_scale=search, frame="scale")
    copy = clone(estimator)
    assert copy.get_params()["length_scale"] == search
    assert copy.set_params(length_scale=Search()).length_scale == Search()


def test_a_path_reads_as_a_table() -> None:
    path, _ = path_of([-50.0, -60.0, 9.0, 8.0, 7.5, 3.0, 4.0, 5.0, 6.0, 7.0])
    lines = str(path).splitlines()
    assert len(lines) == 2 + 10
    assert "stable_minimum" in lines[0]
    assert "8 of 10 scales" in lines[0]
    assert [line.endswith("<- best") for line in lines[2:]] == [i == path.best_index for i in range(10)]
    assert lines[2].split() == ["0.5", "-", "-", "-"]


def test_a_path_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    path = SOSREP(length_scale=Search(grid=FACTORS), frame="scale").fit(rows()).search_path_
    ax = path.plot()
    assert path.plot(ax=ax) is ax


def two_modes(n: int, d: int, seed: int) -> tuple[np.ndarray, Any]:
    """Rows of a mixture of two normal distributions, and its log density."""
    rng = np.random.default_rng(seed)

    def log_density(X: np.ndarray) -> np.ndarray:
        squares = [((X - mean) ** 2).sum(axis=1) for mean in (0.0, 5.0)]
        return np.logaddexp(*(-0.5 * s for s in squares)) - np.log(2.0) - 0.5 * d * np.log(2 * np.pi)

    return rng.normal(size=(n, d)) + 5.0 * rng.integers(0, 2, size=(n, 1)), log_density


@pytest.mark.parametrize(
    ("estimator", "d"),
    [
        pytest.param(SOSREP(frame="scale"), 1, marks=pytest.mark.slow),
        pytest.param(SOSREP(frame="scale"), 2, marks=pytest.mark.slow),
        pytest.param(SOSREP(frame="scale"), 6, marks=pytest.mark.slow),
        pytest.param(SOSREP(kernel="laplacian", frame="scale"), 3, marks=pytest.mark.slow),
        pytest.param(SOSREP(kernel="matern52", frame="scale"), 2, marks=pytest.mark.slow),
        pytest.param(KDE(frame="scale"), 1, marks=pytest.mark.slow),
        (KDE(frame="scale"), 3),
    ],
    ids=repr,
)
def test_the_choice_is_near_the_oracle(estimator: Any, d: int) -> None:
    fresh, log_density = two_modes(1000, d, seed=99)
    criteria = ("hyvarinen", "likelihood", "stable_minimum")
    chosen, best, typical = np.zeros(len(criteria)), 0.0, 0.0
    for seed in range(3):
        X, _ = two_modes(250, d, seed)
        paths = [clone(estimator).set_params(length_scale=Search(c)).fit(X).search_path_ for c in criteria]
        divergences = [
            np.mean(log_density(fresh) - clone(estimator).set_params(length_scale=scale).fit(X).score_samples(fresh))
            for scale in paths[0].length_scales
        ]
        chosen += [divergences[path.best_index] for path in paths]
        best += min(divergences)
        typical += np.median(divergences)
    # The divergence from the density that the rows come from, against the least of the grid and the middle of it.
    assert (chosen < 2.0 * best).all()
    assert typical > 4.0 * best


@pytest.mark.parametrize("criterion", ["hyvarinen", "likelihood", "stable_minimum"])
@pytest.mark.parametrize(
    "estimator", [SOSREP(frame="scale"), KDE(frame="scale"), SOSREP(kernel="sdo", frame="scale")], ids=repr
)
def test_the_number_of_threads_changes_no_bit_of_a_search(criterion: str, estimator: Any) -> None:
    X = np.random.default_rng(0).normal(size=(150, 2))
    search = Search(criterion, grid=np.geomspace(0.25, 4.0, 9))
    paths = []
    for n_jobs in (1, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            paths.append(clone(estimator).set_params(length_scale=search, n_jobs=n_jobs).fit(X).search_path_)
    np.testing.assert_array_equal(paths[0].losses, paths[1].losses)
    np.testing.assert_array_equal(paths[0].standard_errors, paths[1].standard_errors)
    assert paths[0].best_index == paths[1].best_index
