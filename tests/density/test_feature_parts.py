"""SOSREP in random features over rows in parts: the model of all rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from isopleth import DataWarning, InputError, RandomFeatureSOSREP, Search
from isopleth.core.parts import ArrayParts
from isopleth.density.feature_sosrep import fit_parts


def rows(n=700, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [4.0, 50.0, 0.0]
    X[1:9] = X[11:19]
    return X


def model(**options):
    return RandomFeatureSOSREP(**{"n_frequencies": 40, "random_state": 0, **options})


def close(one, other):
    assert (np.isfinite(one) == np.isfinite(other)).all()
    known = np.isfinite(one)
    np.testing.assert_allclose(one[known], other[known], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"length_scale": "scott", "kernel": "matern52"},
        {"length_scale": "median"},
        {"length_scale": [1.0, 2.0, 0.5]},
        {"bounds": {0: (-20.0, None), 2: (-9.0, 9.0)}},
    ],
)
def test_it_is_the_model_of_all_rows(options, weighted):
    X = rows()
    weights = np.arange(700) % 3 + 0.5 * (np.arange(700) % 2) if weighted else None
    there = model(**options).fit(X, sample_weight=weights)
    here = fit_parts(model(**options), ArrayParts(X, weights, part_rows=130))
    close(here.score_samples(X), there.score_samples(X))
    close(here.grad_log_density(X).ravel(), there.grad_log_density(X).ravel())
    assert set(vars(here)) == set(vars(there))
    for name in ("length_scale_", "unit_", "coef_", "log_normalizer_", "share_below_noise_", "approximation_error_"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-9, atol=1e-12, err_msg=name)


def test_beyond_the_sample_only_what_is_said_to_differ_does():
    X = rows(2600)
    there, here = model().fit(X), fit_parts(model(), ArrayParts(X, part_rows=1000))
    close(here.score_samples(X), there.score_samples(X))
    assert here.approximation_error_ == pytest.approx(there.approximation_error_, rel=0.3)


def test_rows_of_weight_0_may_be_anywhere():
    X, weights = rows(), np.ones(700)
    X[5], weights[5] = -1e6, 0.0
    options = {"bounds": {1: (0.0, None)}, "length_scale": 2.0}
    here = fit_parts(model(**options), ArrayParts(X, weights, part_rows=130))
    close(here.score_samples(X), model(**options).fit(X, sample_weight=weights).score_samples(X))


def test_rows_are_few_only_if_all_are_in_the_sample(monkeypatch):
    wide = np.random.default_rng(0).normal(size=(40, 6))
    with pytest.warns(DataWarning, match="fewer distinct rows"):
        fit_parts(model(), ArrayParts(wide[:5]))
    monkeypatch.setattr("isopleth.density.feature_sosrep.SAMPLE", 5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit_parts(model(), ArrayParts(wide))
    assert not any("fewer distinct rows" in str(one.message) for one in said)


@pytest.mark.parametrize(
    ("options", "X", "said"),
    [
        ({"length_scale": Search()}, rows(), "search on a sample"),
        (
            {"bounds": {0: (4.0, None)}},
            rows(),
            r"rows from 0 on: X has .* in column 0, on or beyond its bounds \(4.0, inf\)",
        ),
        ({"bounds": {0: (-1e200, None)}}, rows(), "are equal up to rounding"),
        ({"length_scale": "broad"}, rows(), "length_scale = 'broad'"),
        ({"memory_limit": 1e4}, rows(), "memory_limit"),
        ({}, np.ones((9, 2)), "all rows of X are equal"),
        ({}, np.ones((0, 2)), "no rows of positive weight"),
    ],
)
def test_refusals(options, X, said):
    with pytest.raises(InputError, match=said):
        fit_parts(model(**options), ArrayParts(X))


def test_a_fit_that_fails_leaves_no_model():
    one = fit_parts(model(), ArrayParts(rows()))
    with pytest.raises(InputError):
        fit_parts(one, ArrayParts(np.ones((9, 3))))
    assert not hasattr(one, "log_normalizer_")
