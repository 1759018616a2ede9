"""Choices of KernelScore without parameters."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import skew, ttest_1samp

from few_cases import pairs
from isopleth import DataWarning, InputError, KernelScore
from isopleth.core.rows import distinct_rows, held_out_parts
from isopleth.core.scales import median
from isopleth.kernels import IMQ
from isopleth.score import NuIteration, SpectralCutoff, Tikhonov, selection, system
from isopleth.score.field import GaussianBase
from isopleth.score.selection import BASE_ALONE, FACTORS, FLOOR, Candidates, Rows, _simplest, held_out_terms
from isopleth.score.spaces import SPACES

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")


def normal(n=120, dim=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


def modes(n=150, dim=2, seed=0):
    """Two normal densities 6 apart in each column."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) + 6.0 * rng.integers(0, 2, size=(n, 1))


def true_score(x):
    """Score of the density of `modes`."""
    second = 1.0 / (1.0 + np.exp(-np.sum(6.0 * x - 18.0, axis=1)))
    return 6.0 * second[:, None] - x


@pytest.mark.parametrize(
    ("regularizer", "space", "dense"),
    pairs([Tikhonov(0.05, truncated=False), Tikhonov(0.05), NuIteration(steps=8)], SPACES, [0, 10_000]),
    ids=str,
)
def test_losses_are_those_of_estimators_fitted_without_the_rows(monkeypatch, dense, space, regularizer):
    monkeypatch.setattr(selection, "DENSE", dense)
    monkeypatch.setattr(system, "DENSE", dense)
    X, weights = modes(40), np.arange(40.0) % 3 + 1.0
    for part in held_out_parts(40, 4):
        gaussian = GaussianBase.fit(X[~part] / 2.0, weights[~part])
        got = held_out_terms(SPACES[space](IMQ(dim=2)), X / 2.0, weights, part, (None, gaussian), [regularizer])
        for losses, base in zip(got, (None, "gaussian"), strict=True):
            model = scale_score("imq", space, regularizer, 2.0, base).fit(X[~part], sample_weight=weights[~part])
            want = model.hyvarinen_loss(X[part]) * (2.0 / model.unit_[0]) ** 2
            assert np.mean(losses[0]) == pytest.approx(want, rel=1e-7 if dense else 1e-2)


def test_a_cut_off_by_count_sees_all_eigenvalues():
    X = modes(8, 12)  # fewer rows than columns: the count is of all columns
    space, way, part = SPACES["curl_free"](IMQ(dim=12)), SpectralCutoff(count=0.3), np.arange(8) < 2
    got = held_out_terms(space, X / 9.0, np.ones(8), part, (None,), [way])[0, 0]
    model = scale_score("imq", regularizer=way, length_scale=9.0, base=None).fit(X[~part])
    assert np.mean(got) == pytest.approx(model.hyvarinen_loss(X[part]) * (9.0 / model.unit_[0]) ** 2)


def test_the_fit_is_that_of_what_was_chosen():
    for X in (normal(), modes()):
        chosen = scale_score().fit(X)
        path = chosen.search_path_
        given = scale_score(regularizer=path.regularizer, length_scale=path.length_scale, base=path.base).fit(X)
        assert given.regularizer_ == chosen.regularizer_
        # The rows are in another order, in which sums round differently.
        np.testing.assert_allclose(given.grad_log_density(X + 0.1), chosen.grad_log_density(X + 0.1), rtol=1e-10)
        np.testing.assert_array_equal(chosen.length_scale_, path.length_scale)
        assert (chosen.base_ is None) == (path.base is None)
        assert not hasattr(given, "search_path_")


def test_normal_rows_are_left_to_the_gaussian():
    X = normal()
    model = scale_score().fit(X)
    assert model.search_path_.best_index == 0
    assert model.regularizer_ == Tikhonov(BASE_ALONE, truncated=False)
    at = (X - np.median(X, axis=0)) / model.length_scale_
    np.testing.assert_allclose(model.grad_log_density_, model.base_.value(at) / model.length_scale_, atol=1e-4)


@pytest.mark.parametrize("space", SPACES)
def test_modes_are_found(space):
    X, x = modes(), modes(500, seed=1)
    model = scale_score(space=space).fit(X)
    alone = scale_score(space=space, regularizer=Tikhonov(BASE_ALONE, truncated=False), base="gaussian").fit(X)
    error, of_gaussian = (np.mean((m.grad_log_density(x) - true_score(x)) ** 2) for m in (model, alone))
    assert model.search_path_.best_index > 0
    assert error < 0.4 * of_gaussian


def test_the_grid_is_searched_by_the_stated_rule():
    """All fits one by one, and the choice made by hand."""
    X = modes(60)
    path = scale_score(cv=3).fit(X).search_path_
    rows, parts = distinct_rows(X, np.ones(60))[0], held_out_parts(60, 3)
    unit = np.exp(np.mean(np.log(X.std(axis=0))))

    def losses(base, factor, way):
        scale = factor * path.length_scale / best_factor
        out = np.empty(60)
        for part in parts:
            model = scale_score(regularizer=way, length_scale=scale, base=base).fit(rows[~part])
            _, z = model._enter(rows[part])
            out[part] = (unit / scale[0]) ** 2 * model._field().hyvarinen_terms(z)
        return out

    best_factor = (path.length_scale / median(X - np.median(X, axis=0), np.ones(60)))[0]
    ways = [w for w in path.regularizers if w.alpha < BASE_ALONE]
    alone = losses("gaussian", 1.0, path.regularizers[0])
    terms = np.array([[[losses(b, f, w) for w in ways] for f in path.factors] for b in path.bases])

    def standard_errors(apart):
        return apart.std(axis=-1, ddof=1) / np.sqrt(60)

    np.testing.assert_allclose(path.losses, terms.mean(axis=-1).min(axis=-1), rtol=1e-6)
    gains = alone - terms
    t, skewness = ttest_1samp(gains, 0.0, axis=-1).statistic / np.sqrt(60), skew(gains, axis=-1)
    better = np.sqrt(60) * (t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 360) > 3.0
    assert 0 < better.sum() < better.size
    b, f, _ = np.unravel_index(np.argmin(np.where(better, terms.mean(axis=-1), np.inf)), better.shape)
    assert path.bases[b] == path.base
    assert path.factors[f] == pytest.approx(best_factor)
    allowed = np.where(better[b, f], terms[b, f].mean(axis=-1), np.inf)
    apart = np.concatenate([alone[None], terms[b, f]]) - terms[b, f, np.argmin(allowed)]
    np.testing.assert_allclose(path.path_losses, [alone.mean(), *terms[b, f].mean(axis=-1)], rtol=1e-4)
    np.testing.assert_allclose(path.path_errors, standard_errors(apart), rtol=1e-3, atol=1e-6)
    near = better[b, f] & (apart[1:].mean(axis=-1) <= 0.5 * standard_errors(apart[1:]))
    assert path.best_index == 1 + np.flatnonzero(near)[0]


def test_the_first_within_its_error_is_taken():
    rows = Rows(np.zeros((4, 1)), np.ones(4), "scale", np.ones(1), 1.0, 2)
    terms = np.array([[3.0, 1.0, 3.0, 1.0], [1.0, 1.1, 0.9, 1.0], [1.0, 1.0, 0.9, 0.9]])
    every = np.ones(3, dtype=bool)
    losses, errors, best = _simplest(rows, terms, every, 0.5)
    np.testing.assert_allclose(losses, [2.0, 1.0, 0.95])
    np.testing.assert_allclose(errors[1:], [0.05 / np.sqrt(3.0) * np.sqrt(1.0), 0.0], rtol=1e-9)
    assert best == 2  # 0.05 is above half of an error
    assert _simplest(rows, terms, every, 1.8)[2] == 1
    assert _simplest(rows, terms, every, 9.0)[2] == 0
    assert _simplest(rows, terms, np.array([False, True, True]), 9.0)[2] == 1
    terms[1] = np.inf
    assert _simplest(rows, terms, np.array([False, True, True]), 9.0)[2] == 2
    assert _simplest(rows, np.full((3, 4), np.inf), every, 1.0)[2] == 0


def test_means_of_skewed_gains_are_compared_at_the_level_stated():
    """Of fits that gain nothing, few pass, also if most rows gain a little and few lose much; t statistics would let many."""
    rng = np.random.default_rng(0)
    rows = Rows(np.zeros((40, 1)), np.ones(40), "scale", np.ones(1), 1.0, 2)
    losses = rng.exponential(size=(20_000, 40)) - 1.0
    passed = {sign: rows.better(sign * losses, np.zeros(40)).mean() for sign in (1.0, -1.0)}
    t = ttest_1samp(-losses, 0.0, axis=1).statistic
    assert passed[1.0] < 0.006 < (t > 3.0).mean()
    assert passed[-1.0] < 0.006
    assert rows.better(losses - 1.0, np.zeros(40)).mean() > 0.6
    assert not rows.better(np.full((2, 40), np.inf), np.zeros(40)).any()
    assert not rows.better(np.zeros((2, 40)), np.zeros(40)).any()


def test_strengths_fall_to_the_floor_and_no_further():
    for n in (10, 333, 5000):
        alphas = np.array([way.alpha for way in Candidates((None,), (1.0,)).regularizers(n)])
        assert alphas[0] == 10.0
        np.testing.assert_allclose(alphas[1:] / alphas[:-1], 10**-0.25)
        assert FLOOR / n <= alphas[-1] < FLOOR / n * 10**0.25


def test_what_is_given_is_left():
    X = modes()
    path = scale_score(length_scale=2.0).fit(X).search_path_
    assert path.factors.tolist() == [1.0]
    assert path.length_scale.tolist() == [2.0, 2.0]
    path = scale_score(regularizer=NuIteration(steps=5)).fit(X).search_path_
    assert path.regularizers == (NuIteration(steps=5),)
    assert tuple(path.factors) == FACTORS
    model = scale_score(base=None).fit(X)
    assert model.base_ is None
    assert model.search_path_.bases == (None,)
    assert model.regularizer_.alpha < BASE_ALONE
    model.set_params(regularizer=Tikhonov(0.1), length_scale="median").fit(X)
    assert not hasattr(model, "search_path_")


@pytest.mark.parametrize("n", [2, 9])
def test_few_rows_say_nothing(n):
    X = modes(n)
    model = scale_score().fit(X)
    assert model.search_path_.best_index == 0
    assert model.base_ is not None
    assert np.isfinite(model.grad_log_density_).all()
    alone = scale_score(base=None).fit(X)
    assert alone.regularizer_ == alone.search_path_.regularizers[0]


def test_scales_are_compared_on_some_of_many_rows(monkeypatch):
    monkeypatch.setattr(selection, "COMPARED_ROWS", 60)
    X = modes(150)
    path = scale_score().fit(X).search_path_
    assert path.n_compared == 60
    smallest = [way.alpha for way in path.regularizers][-1]
    assert FLOOR / 150 <= smallest < FLOOR / 60
    assert path.best_index > 0
    fixed = scale_score(length_scale=path.length_scale, base=path.base).fit(X).search_path_
    alone = len(path.path_losses) - len(fixed.path_losses)  # of a base that is left open one may be the Gaussian's
    assert alone == (path.base is None)
    np.testing.assert_allclose(fixed.path_losses, path.path_losses[alone:], rtol=1e-3)


def test_the_path_tells():
    model = scale_score().fit(modes())
    lines = repr(model.search_path_).splitlines()
    assert sum("<- chosen" in line for line in lines) == 1
    assert repr(model.regularizer_) in next(line for line in lines if "<- chosen" in line)


def test_rough_kernels_and_extreme_units():
    assert np.isfinite(scale_score("matern32", "diagonal").fit(modes()).grad_log_density_).all()
    X = modes(60)
    want = scale_score().fit(X).grad_log_density_
    for unit in (1e-100, 1e100):
        np.testing.assert_allclose(scale_score().fit(unit * X).grad_log_density_ * unit, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("parameters", "message"), [({"cv": 1}, "cv"), ({"base": "normal"}, "base")])
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        scale_score(**parameters).fit(normal())
    with pytest.raises(InputError, match="length_scale"):
        scale_score(length_scale="wide").fit(normal())


def test_a_kernel_without_effect_is_said():
    """A Gaussian alone has no kernel: who gave one hears that it is not in the score; who gave none does not."""
    X = normal()
    with pytest.warns(DataWarning, match="whatever kernel and length_scale may be") as caught:
        model = scale_score("gaussian", length_scale=2.0).fit(X)
    assert len(caught) == 1
    assert model.search_path_.base_alone
    assert "the Gaussian base alone, without kernels" in repr(model.search_path_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scale_score().fit(X).search_path_.base_alone
        assert not scale_score("gaussian", base=None).fit(X).search_path_.base_alone
        assert not scale_score("matern52", space="diagonal").fit(modes()).search_path_.base_alone
