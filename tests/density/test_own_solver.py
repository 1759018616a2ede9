"""The template of a solver is a density as it is: in all frames, with words and missing cells, by two methods of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, InputError
from templates.solver import DensityTemplate


def rows(n=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) @ [[1.0, 0.6], [0.0, 0.5]]


@pytest.mark.parametrize("frame", ["scale", "auto"])
def test_without_a_step_the_template_is_a_kernel_density_estimate(frame):
    X = rows()
    found, expected = DensityTemplate(steps=0, frame=frame).fit(X), KDE(frame=frame).fit(X)
    np.testing.assert_allclose(found.score_samples(X[:9]), expected.score_samples(X[:9]), rtol=1e-9)


def test_each_step_raises_the_likelihood_of_the_rows_and_a_weight_is_so_many_rows():
    X = rows()
    likelihoods = [DensityTemplate(steps=k, frame="scale", length_scale=0.4).fit(X).score(X) for k in range(4)]
    assert (np.diff(likelihoods) > 0.0).all()
    twice = np.concatenate([X, X[:20]])
    weighted = DensityTemplate(frame="scale", length_scale=0.4).fit(X, sample_weight=np.repeat([2.0, 1.0], [20, 40]))
    repeated = DensityTemplate(frame="scale", length_scale=0.4).fit(twice)
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-9)


def test_words_missing_cells_draws_and_refusals_are_those_of_all_densities():
    X = pd.DataFrame(rows(), columns=["a", "b"]).assign(word=list("xyz") * 20)
    X.loc[3, "a"] = np.nan
    density = DensityTemplate().fit(X)
    assert np.isfinite(density.score_samples(X)).all()
    assert len(density.sample(5, random_state=0)) == 5
    assert np.isfinite(density.conditional({"word": "x"}).score_samples(X[["a", "b"]].iloc[:2])).all()
    with pytest.raises(InputError, match="'gaussian'"):
        DensityTemplate(kernel="imq", frame="scale").fit(rows())
