"""Laws of cells on bins, beside known truths and properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from isopleth.conditional import binned_law
from isopleth.conditional.binned_law import (
    OF_BINS,
    BinnedLaw,
    NumberBins,
    ResidualDensity,
    ScoreMap,
    WordBins,
    in_scores,
    score_maps,
)


def test_scores_are_normal_scores_inside_and_logarithmic_beyond():
    values = norm.ppf((np.arange(4000) + 0.5) / 4000)
    scores = ScoreMap.of(values, np.ones(4000))
    inside = np.linspace(-1.5, 1.5, 7)
    np.testing.assert_allclose(scores(inside), inside, atol=1e-3)
    edge = norm.ppf(31.0 / 32.0)
    np.testing.assert_allclose(scores(np.array([edge + 10.0])), edge + 1.0 + np.log(10.0), atol=0.01)
    np.testing.assert_allclose(scores(np.array([-edge - 10.0])), -edge - 1.0 - np.log(10.0), atol=0.01)


def test_amounts_are_far_out_by_factors_and_other_numbers_by_differences():
    z = norm.ppf((np.arange(4000) + 0.5) / 4000)
    amounts, lengths = ScoreMap.of(np.exp(5.0 + 0.3 * z), np.ones(4000)), ScoreMap.of(50.0 + 5.0 * z, np.ones(4000))
    tenth, tenfold = amounts(np.exp(5.0) * np.array([0.1, 10.0]))
    assert abs(tenth + tenfold) < 0.01
    assert tenfold > 4.0
    below, above = lengths(np.array([25.0, 75.0]))
    assert abs(below + above) < 0.01
    around_zero = amounts(np.array([-10.0, -1e-12, 0.0, 1e-12, 1.0]))
    assert (np.diff(around_zero) >= 0.0).all()
    np.testing.assert_allclose(around_zero[1:4], around_zero[2], atol=1e-6)
    assert np.isnan(amounts(np.array([np.nan]))).all()


def test_few_residuals_beyond_a_gap_are_far_and_heavy_tails_are_not():
    rng = np.random.default_rng(5)
    usual = rng.normal(size=1000)
    few, many, tails = np.r_[usual, np.full(8, 30.0)], np.r_[usual, np.full(60, 30.0)], rng.standard_t(2.0, 1000)
    np.testing.assert_array_equal(np.flatnonzero(ResidualDensity.of(few).far), np.arange(1000, 1008))
    np.testing.assert_array_equal(np.flatnonzero(ResidualDensity.of(-few).far), np.arange(1000, 1008))
    assert not ResidualDensity.of(many).far.any()
    assert not ResidualDensity.of(tails).far.any()


def test_few_like_errors_do_not_vouch_for_each_other():
    rng = np.random.default_rng(6)
    x = rng.normal(size=800)
    rows = np.column_stack([x, x + 0.2 * rng.normal(size=800)])
    rows[:8, 1] += 12.0
    maps = score_maps(rows, 2)
    scored = in_scores(rows, maps)
    law = BinnedLaw.fit(NumberBins.of(rows[:, 1], maps[1]), scored, 1, 2, np.arange(2))
    density = law.densities(law.of_fit(np.arange(800)), scored[:, 1])
    assert density[:8].max() < 0.004
    assert np.median(density[8:]) > 1.0


def test_masses_are_those_of_a_normal_law_and_do_not_know_their_row():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1000)
    rows = np.column_stack([x, x + 0.5 * rng.normal(size=1000)])
    maps = score_maps(rows, 2)
    scored = in_scores(rows, maps)
    bins = NumberBins.of(rows[:, 1], maps[1])
    law = BinnedLaw.fit(bins, scored, 1, 2, np.arange(2))
    masses = law.of_fit(np.arange(1000))
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-12)
    means = masses @ bins.values
    assert np.sqrt(np.mean((means - x) ** 2)) < 0.25
    inside = [(masses[i] * (np.abs(bins.values - means[i]) < norm.ppf(0.9) * 0.5)).sum() for i in range(1000)]
    assert 0.68 < np.mean(inside) < 0.9  # .8 under the true law
    moved = scored.copy()
    moved[0, 1] = 5.0
    np.testing.assert_allclose(
        BinnedLaw.fit(bins, moved, 1, 2, np.arange(2)).of_fit(np.arange(1)), masses[:1], atol=0.05
    )


def test_cells_between_bins_are_shared_and_densities_are_continuous():
    values = np.random.default_rng(2).normal(size=500)
    maps = score_maps(values[:, None], 1)
    bins, z = NumberBins.of(values, maps[0]), maps[0](values)
    assert len(bins) <= 96
    shares = bins.shares(z)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    inner = (z > bins.centers[0]) & (z < bins.centers[-1])
    np.testing.assert_allclose((shares @ bins.centers)[inner], z[inner], atol=1e-6)
    np.testing.assert_allclose(bins.shares(z + 1e-12).toarray(), shares.toarray(), atol=1e-6)


def test_trees_tell_apart_more_words_than_they_have_targets():
    key = np.random.default_rng(3).integers(0, 80, 1600)
    rows = np.column_stack([key, (key * 7) % 80]).astype(float)
    law = BinnedLaw.fit(WordBins(80), rows, 1, 0, np.arange(2))
    assert (law.of_fit(np.arange(1600)).argmax(axis=1) == rows[:, 1]).mean() > 0.95


def test_the_table_for_many_rows_gives_the_masses_of_single_rows(monkeypatch):
    rng = np.random.default_rng(3)
    word = rng.integers(0, 3, 120).astype(float)
    rows = np.column_stack([word + 0.3 * rng.normal(size=120), rng.normal(size=120), word])
    maps = score_maps(rows, 2)
    scored = in_scores(rows, maps)
    new = scored.copy()
    new[:3] = [[9.0, 0.0, 0.0], [0.0, -40.0, 2.0], [np.nan, 0.3, 1.0]]
    for j, bins in ((0, NumberBins.of(rows[:, 0], maps[0])), (2, WordBins(3))):
        law = BinnedLaw.fit(bins, scored, j, 2, np.arange(3), replace(OF_BINS, trees=10))
        one_by_one = np.concatenate([law.at(row[None]) for row in new])
        monkeypatch.setattr(binned_law, "_MANY", 1)
        np.testing.assert_allclose(law.at(new), one_by_one, rtol=1e-4, atol=1e-9)
        monkeypatch.undo()


def test_masses_about_a_line_between_knots_are_nearly_those_of_the_trend():
    rng = np.random.default_rng(4)
    x = rng.normal(size=300)
    rows = np.column_stack([x, x + 0.3 * rng.normal(size=300)])
    maps = score_maps(rows, 2)
    bins = NumberBins.of(rows[:, 1], maps[1])
    density = ResidualDensity.of(0.3 * rng.normal(size=300))
    trend = np.linspace(-3.0, 3.0, 37)
    below, part = density.between(trend, bins)
    found = (1.0 - part)[:, None] * density.masses_at(below, bins) + part[:, None] * density.masses_at(below + 1, bins)
    np.testing.assert_allclose(found, density.masses(trend, bins, None), rtol=0.02, atol=1e-5)
