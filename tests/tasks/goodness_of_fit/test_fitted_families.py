"""Stein test of families that are fitted to the sample: their fits, scores and draws, level, power and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chi, kstest, multivariate_normal, multivariate_t, t

from isopleth import KDE, DataWarning, InputError, RandomFeatureSOSREP, stein_test
from isopleth.tasks.density_families import Normal, StudentT

RNG = np.random.default_rng(0)
SKEW = RNG.gamma(2.0, size=(80, 2))


def test_student_is_the_fit_of_largest_likelihood():
    x = np.random.default_rng(1).standard_t(4, size=(300, 1)) * 2.0 + 5.0
    found, best = StudentT.fit(x), t.fit(x[:, 0])
    ours = (1.0 / found.inverse, found.location[0], found.root[0, 0])
    np.testing.assert_allclose(t.logpdf(x, *ours).mean(), t.logpdf(x, *best).mean(), atol=1e-5)
    assert found._log_likelihood(x) == pytest.approx(t.logpdf(x, *ours).mean(), rel=1e-9)


def test_light_tails_have_no_degrees_of_freedom():
    x = np.random.default_rng(0).uniform(size=(200, 2))
    found, normal = StudentT.fit(x), Normal.fit(x)
    assert found.inverse < 1e-3
    z = found.coordinates(x)
    np.testing.assert_allclose(z @ found.root.T, x - normal.mean, atol=0.02)
    np.testing.assert_array_equal(found.score(z), -z)


MIXED = np.array([[1.0, 0.8, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 2.0]])


def test_scores_of_the_normal_family_are_gradients_and_draws_are_of_the_density():
    x = np.random.default_rng(2).standard_t(5, size=(200, 3)) @ MIXED
    found = Normal.fit(x)
    law = multivariate_normal(found.mean, found.root @ found.root.T)
    np.testing.assert_array_equal(found.coordinates(x), x)
    np.testing.assert_allclose(
        found.score(x[:4]), [approx_fprime(row, law.logpdf, 1e-6) for row in x[:4]], rtol=1e-3, atol=1e-4
    )
    again = Normal.fit(found.draw(20_000, np.random.default_rng(0)))
    np.testing.assert_allclose(again.root, found.root, atol=0.1)


def test_students_rows_are_standard_normal_in_the_coordinates_of_the_test():
    """The map moves rows along their rays, keeps their order, and takes the density of the family to the normal one."""
    x = multivariate_t.rvs(np.zeros(3), MIXED.T @ MIXED, df=4, size=300, random_state=2)
    found = StudentT.fit(x)
    drawn = found.coordinates(found.draw(20_000, np.random.default_rng(0)))
    np.testing.assert_allclose(np.cov(drawn.T), np.eye(3), atol=0.05)
    assert kstest(np.linalg.norm(drawn, axis=1), chi(3).cdf).pvalue > 0.001
    u, z = found.coordinates(x), np.linalg.solve(found.root, (x - found.location).T).T
    np.testing.assert_allclose(
        u / np.linalg.norm(u, axis=1)[:, None], z / np.linalg.norm(z, axis=1)[:, None], atol=1e-9
    )
    order = np.argsort(np.linalg.norm(z, axis=1))
    assert (np.diff(np.linalg.norm(u, axis=1)[order]) > 0.0).all()
    far = found.coordinates(found.location + 1e150 * found.root.sum(axis=1)[None])
    assert np.isfinite(far).all()
    assert np.linalg.norm(far) > np.linalg.norm(u, axis=1).max()


def test_the_normal_family_does_not_depend_on_mean_and_covariance():
    A = np.array([[3.0, 0.0], [100.0, 0.1]])
    one, two = (stein_test(x, "normal", n_resamples=49, random_state=0) for x in (SKEW, SKEW @ A.T - 7.0))
    np.testing.assert_allclose(one.discrepancies, two.discrepancies, rtol=1e-6)
    assert one.pvalue == two.pvalue == 0.02
    assert "is not from a normal density, as fitted to it: p = 0.02" in one.content().summary[0]
    assert one.to_dict()["family"] == "a normal density"
    assert len(one.content().charts) == 2


def test_order_of_rows_and_threads_do_not_matter():
    order = np.random.default_rng(1).permutation(len(SKEW))
    one = stein_test(SKEW, "t", n_resamples=19, n_jobs=1, random_state=0)
    two = stein_test(SKEW[order], "t", n_resamples=19, n_jobs=2, random_state=0)
    np.testing.assert_allclose(one.kernel_scores, two.kernel_scores, atol=1e-6)


@pytest.mark.parametrize(("family", "draw", "runs"), [("normal", "normal", 40), ("t", "standard_t", 14)])
def test_level(family, draw, runs):
    rng = np.random.default_rng(0)
    arguments = () if draw == "normal" else (4,)
    p = [
        stein_test(
            getattr(rng, draw)(*arguments, size=(30, 1)), family, n_resamples=19, random_state=run, n_jobs=1
        ).pvalue
        for run in range(runs)
    ]
    assert np.mean(np.array(p) <= 0.05 + 1e-9) < 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / runs)
    assert 0.25 < np.mean(p) < 0.75


def test_a_density_estimator_is_a_family():
    x = np.random.default_rng(0).uniform(size=(60, 1))
    wide = stein_test(x, KDE(length_scale=2.0, frame="scale"), n_resamples=19, random_state=0)
    assert wide.pvalue == 0.05
    assert wide.family == "the density of KDE"
    drawn = KDE(length_scale=0.2, frame="scale").fit(x).sample(60, random_state=1)
    assert stein_test(drawn, KDE(length_scale=0.2, frame="scale"), n_resamples=19, random_state=0).pvalue > 0.05


@pytest.mark.parametrize(
    ("estimator", "remedy"),
    [
        (KDE(frame="scale"), r"give the density itself, as in stein_test\(X, density\)"),
        (RandomFeatureSOSREP(random_state=0), "fit it to one half of the rows and test the other half"),
    ],
    ids=["KDE", "without draws"],
)
def test_the_gradient_of_a_fitted_density_is_not_a_known_score(estimator, remedy):
    fitted, name = estimator.fit(SKEW), type(estimator).__name__
    told = f"gradient of a fitted {name}: if it was fitted to these rows, .*too large; {remedy}"
    with pytest.warns(DataWarning, match=told):
        stein_test(SKEW, fitted.grad_log_density, n_resamples=19, random_state=0)


def test_scores_in_an_array_and_in_functions_are_known():
    half = KDE(frame="scale").fit(SKEW[:40])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = stein_test(SKEW[40:], half.grad_log_density(SKEW[40:]), n_resamples=19, random_state=0)
        assert (
            array.pvalue
            == stein_test(SKEW[40:], lambda X: half.grad_log_density(X), n_resamples=19, random_state=0).pvalue
        )


def test_what_cannot_be_tested():
    with pytest.raises(InputError, match="score = 'gamma': expected an array, a function, a density estimator"):
        stein_test(SKEW, "gamma")
    with pytest.raises(InputError, match="flip is for a score that is known"):
        stein_test(SKEW, "normal", flip=0.5)
    with pytest.raises(InputError, match="the rows lie in a plane"):
        stein_test(np.column_stack([SKEW, SKEW.sum(axis=1)]), "normal")
    with pytest.raises(InputError, match="the rows lie in a plane"):
        stein_test(SKEW[:2], "t")
    chain = np.cumsum(RNG.normal(size=(300, 1)), axis=0)
    with pytest.warns(DataWarning, match="in order of time, 300 of them .* p-values are too small"):
        stein_test(chain, "normal", n_resamples=19, random_state=0)


def test_the_score_of_a_density_of_named_columns_is_that_of_the_table():
    table = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    density = KDE(frame="scale").fit(table)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="X does not have valid feature names")
        found = stein_test(table, density.grad_log_density, n_resamples=19, random_state=0)
    assert found.pvalue == stein_test(table, density.grad_log_density(table), n_resamples=19, random_state=0).pvalue
    with pytest.raises(InputError, match="another order"):
        stein_test(table[["b", "a"]], density.grad_log_density)
