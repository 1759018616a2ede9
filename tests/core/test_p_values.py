"""p-values, selection at a false discovery rate, and probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, false_discovery_control

from isopleth import AnomalyDetector, DataWarning, InputError
from isopleth.core.p_values import (
    anomaly_probabilities,
    benjamini_hochberg,
    conformal_p_values,
    falling_density,
    simulated_pvalue,
    storey_number,
)
from isopleth.core.tails import Tail


def tail_p_values(scores):
    """p-values of rows by the fitted tail of their own scores."""
    return np.exp(-Tail.of(scores, np.ones(len(scores)), errors=1.0).surprise(scores, new=0.0))


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=60), st.floats(0.01, 0.5))
def test_benjamini_hochberg_rejects_what_scipy_s_adjusted_p_values_reject(p, rate):
    p = np.array(p)
    adjusted = false_discovery_control(p)
    if np.any(np.abs(adjusted - rate) < 1e-12):
        return  # on the line, where rounding decides
    np.testing.assert_array_equal(p <= benjamini_hochberg(p, rate), adjusted <= rate)


def test_fewer_true_hypotheses_reject_more_at_the_same_rate():
    """Half of 2,000 p-values are of anomalies: with the estimated number of the others the false share is 0.1, not 0.05."""
    p = np.r_[np.full(1000, 1e-3), (np.arange(1000) + 0.5) / 1000]
    assert storey_number(p) == 1002.0
    shares = [(np.flatnonzero(p <= benjamini_hochberg(p, 0.1, m)) >= 1000).mean() for m in (None, storey_number(p))]
    np.testing.assert_allclose(shares, [0.05, 0.1], atol=1e-3)


def test_conformal_p_values_by_counting():
    np.testing.assert_allclose(
        conformal_p_values(np.array([1.0, 2.0, 2.0, 3.0]), np.array([2.0, 9.0, 0.0])), [4 / 5, 1 / 5, 1]
    )


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40))
def test_the_falling_density_is_the_slope_of_the_least_concave_majorant(p):
    p, counts = np.unique(p, return_counts=True)
    share = np.cumsum(counts) / counts.sum()
    ends, heights = falling_density(p, share)
    assert ends[-1] == p[-1]
    assert (np.diff(heights) < 1e-9).all()
    total = np.cumsum(heights * np.diff(np.append(0.0, ends)))
    majorant = np.interp(p, np.append(0.0, ends), np.append(0.0, total))
    assert (majorant >= share - 1e-9).all()
    np.testing.assert_allclose(total, share[np.isin(p, ends)])


@pytest.mark.parametrize(
    ("novelty", "tables"),
    [(False, 10), (True, 10), *(pytest.param(n, 200, marks=pytest.mark.slow) for n in (False, True))],
)
def test_clean_tables_seldom_have_a_row_that_is_probably_an_anomaly(novelty, tables):
    """Asked: one table in ten. Measured: 0 of 200 without and 1 with a clean reference; the short run has no forests."""
    seen, fast = 0, tables < 200
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        detector = AnomalyDetector(novelty=novelty, fast=fast, random_state=seed).fit(rng.normal(size=(300, 3)))
        seen += bool((detector.anomaly_probability(rng.normal(size=(300, 3))) > 0.5).any())
    assert seen <= 0.1 * tables


def test_probabilities_of_a_known_mixture():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(size=9000), rng.uniform(size=1000) * 0.01])
    found = anomaly_probabilities(p, np.array([0.005, 0.5]))
    assert found[0] == pytest.approx(1000 / (1000 + 90), abs=0.03)
    assert found[1] < 0.05
    uniform = rng.uniform(size=5000)
    assert np.mean(anomaly_probabilities(uniform, uniform)) < 0.05


SCORES = {
    "gaussian": lambda rng, n: (rng.normal(size=(n, 5)) ** 2).sum(axis=1) / 2,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "power law": lambda rng, n: np.log1p((rng.standard_t(3, size=(n, 2)) ** 2).sum(axis=1) / 3),
    "bounded": lambda rng, n: rng.uniform(size=n),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n", [50, 1000])
def test_ordinary_tables_are_seldom_flagged(name, n):
    rng = np.random.default_rng(0)
    flagged = sum(benjamini_hochberg(tail_p_values(SCORES[name](rng, n)), 0.1) > 0 for _ in range(300))
    assert flagged / 300 <= 0.1 + 2 * np.sqrt(0.09 / 300)


def test_planted_outliers_are_flagged_and_the_others_not():
    rng = np.random.default_rng(1)
    scores = np.concatenate([SCORES["gaussian"](rng, 500), 60 + rng.uniform(size=20)])
    p = tail_p_values(scores)
    flagged = p <= benjamini_hochberg(p, 0.1)
    assert flagged[500:].all()
    assert flagged[:500].sum() <= 4


def test_tail_p_values_are_ranks_in_the_body_and_monotone_throughout():
    rng = np.random.default_rng(2)
    scores = rng.exponential(size=400)
    p = tail_p_values(scores)
    order = np.argsort(scores)
    assert (np.diff(p[order]) <= 0).all()
    assert ((p > 0) & (p <= 1)).all()
    np.testing.assert_allclose(p[order[:300]], 1 - np.arange(300) / 400)
    # p at the largest score of an exponential tail is of the size of its true value, 1/400, and never far below it.
    assert 0.2 < p.min() / np.exp(-scores.max()) < 20
    extreme = tail_p_values(np.append(scores, 1e9))
    assert 0 < extreme[-1] < 1e-6


LAWS = {
    "smooth": lambda rng, n: rng.standard_t(5, size=(n, 2)),
    "ties": lambda rng, n: rng.poisson(1.0, size=(n, 2)).astype(float),
}


def false_discovery_proportions(law, training, new, planted, runs, fdr, novelty, fast=True):
    """Share of ordinary rows among those selected, run by run, and the share of planted ones that are selected."""
    wrong, power = [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        detector = AnomalyDetector(novelty=novelty, n_estimators=25, fast=fast, random_state=seed)
        detector.fit(LAWS[law](rng, training))
        X = LAWS[law](rng, new)
        X[:planted] += 25.0
        chosen = detector.select(X, fdr=fdr)
        wrong.append(chosen[planted:].sum() / max(1, chosen.sum()))
        power.append(chosen[:planted].mean() if planted else 0.0)
    return np.array(wrong), np.mean(power)


@pytest.mark.parametrize(("law", "novelty"), [(law, True) for law in LAWS] + [("smooth", False)])
def test_selection_of_new_rows_holds_its_level(law, novelty):
    runs = 16
    wrong, power = false_discovery_proportions(law, 100, 60, 10, runs, 0.2, novelty)
    assert wrong.mean() <= 0.2 + 2 * wrong.std() / np.sqrt(len(wrong))
    assert power > 0.9
    none, _ = false_discovery_proportions(law, 60, 20, 0, runs, 0.2, novelty)
    assert (none > 0.0).sum() <= binom.isf(0.01, runs, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("planted", [0, 5, 20])
@pytest.mark.parametrize("fdr", [0.1, 0.2])
def test_selection_of_new_rows_holds_its_level_in_many_runs(law, planted, fdr):
    wrong, _ = false_discovery_proportions(law, 100, 60, planted, 400, fdr, True, fast=False)
    assert wrong.mean() <= fdr + 2 * wrong.std() / np.sqrt(len(wrong))


def test_too_few_training_rows_for_any_selection_are_said_to_be():
    rng = np.random.default_rng(0)
    detector = AnomalyDetector(novelty=True).fit(rng.normal(size=(8, 2)))
    with pytest.warns(DataWarning, match="at least 9 training rows"):
        assert not detector.select([[50.0, 50.0]], fdr=0.1).any()
    enough = AnomalyDetector(novelty=True).fit(rng.normal(size=(9, 2)))
    assert enough.select([[50.0, 50.0]], fdr=0.1).all()


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, "a", None, True])
def test_rates_out_of_range(fdr):
    detector = AnomalyDetector(novelty=True).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(InputError, match="fdr"):
        detector.select(fdr=fdr)


def test_the_default_rate_is_a_tenth():
    X = np.random.default_rng(3).normal(size=(200, 2))
    new = np.concatenate([X[:20], [[1.6 + 0.15 * i, 0.0] for i in range(12)]])
    detector = AnomalyDetector(novelty=True).fit(X)
    adjusted = false_discovery_control(detector.p_values(new))
    np.testing.assert_array_equal(detector.select(new), adjusted <= 0.1)
    assert detector.select(new).sum() < detector.select(new, fdr=0.2).sum()


def test_selected_rows_are_the_least_likely_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:8] += 12.0
    detector = AnomalyDetector(random_state=0).fit(X)
    chosen = detector.select(fdr=0.2)
    assert chosen[:8].all()
    assert detector.training_scores_[chosen].max() < detector.training_scores_[~chosen].min()
    assert (chosen >= detector.select(fdr=0.05)).all()
    probability = detector.anomaly_probability(X)
    np.testing.assert_allclose(probability, detector.anomaly_probability())
    order = np.argsort(detector.training_scores_)
    assert (np.diff(probability[order]) <= 1e-12).all()


def test_probabilities_against_a_clean_reference_count_the_anomalies_among_the_new_rows():
    rng = np.random.default_rng(0)
    detector = AnomalyDetector(novelty=True).fit(rng.normal(size=(500, 2)))
    new = rng.normal(size=(400, 2))
    new[:100] += 10.0
    probability = detector.anomaly_probability(new)
    assert (probability[:100] > 0.9).all()
    assert probability[100:].mean() < 0.1


def test_a_simulated_p_value_counts_the_observed_value_and_takes_the_tail_where_none_is_as_large():
    null = np.arange(99.0)
    assert simulated_pvalue(90.0, null) == simulated_pvalue(90.0, null, 4, 1e-9) == 10 / 100
    assert simulated_pvalue(99.0, null) == 1 / 100
    assert simulated_pvalue(99.0, null, 4, 1e-9) == 1e-9
    assert simulated_pvalue(97.0, null, 4) == 4 / 100
