"""Permutations of labels, scores of quadratic forms, and p-values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import chi2, norm, rankdata

from isopleth.core.budget import Budget
from isopleth.core.p_values import adjusted_p_values, permutation_pvalue
from isopleth.operators.features import GaussianFeatures, LaplaceFeatures
from isopleth.tasks.two_sample.groups import strata_of_groups
from isopleth.tasks.two_sample.permutation import (
    ALPHA,
    Basis,
    Labels,
    RobustScaling,
    Units,
    column_contrasts,
    moment_scores,
    quadratic_forms,
    rank_scores,
    shares_of_rows,
    unit_features,
)
from isopleth.tasks.two_sample.problem import Products

RNG = np.random.default_rng(0)


def equal(rows, group):
    """Units of so many rows each."""
    return Units(np.arange(len(rows)), (1, len(rows) // group - 1), group)


def labels_of(place, sizes, permutations=50):
    return Labels.draw(np.asarray(place), sizes, permutations, np.random.default_rng(1))


@pytest.mark.parametrize("sizes", [(5, 9), (9, 5), (7, 7), (1, 40)])
def test_each_label_vector_has_the_size_of_the_smaller_sample(sizes):
    place = np.random.default_rng(2).integers(0, 6, sum(sizes))
    place[:6] = np.arange(6)
    labels = labels_of(place, sizes)
    members = labels.members if isinstance(labels.members, np.ndarray) else labels.members.toarray()
    assert (members.sum(axis=1) == min(sizes)).all()
    assert (members <= labels.counts).all()
    own = place[: sizes[0]] if sizes[0] <= sizes[1] else place[sizes[0] :]
    np.testing.assert_array_equal(members[0], np.bincount(own, minlength=6))


@pytest.mark.parametrize("sizes", [(40, 60), (5, 200)])
def test_label_vectors_take_no_more_than_is_announced(sizes):
    members = labels_of(np.arange(sum(sizes)), sizes, 9).members
    parts = [members] if isinstance(members, np.ndarray) else [members.data, members.indices, members.indptr]
    assert isinstance(members, np.ndarray) == (sizes == (40, 60))
    assert sum(part.nbytes for part in parts) <= 8 * 10 * Labels.floats(sizes)


def test_far_values_are_brought_nearer_in_their_order():
    column = np.concatenate([np.linspace(-1.0, 1.0, 101), [1e3, 1e6, -1e9, 1e150]])[:, None]
    units = RobustScaling.of(column, np.zeros(1, dtype=bool))
    z = units(column)[:, 0]
    assert (np.argsort(z) == np.argsort(column[:, 0])).all()
    np.testing.assert_allclose(z[:101], (column[:101, 0] - units.middle) / units.scale)
    assert z.std() == pytest.approx(1.0)
    assert units.far[0] * units.spread[0] == pytest.approx(20.0 * 0.53, rel=0.02)
    assert z[-1] * units.deviation[0] < units.far[0] + 800.0


def test_all_labels_are_as_likely():
    members = labels_of(np.arange(5), (2, 3), 4000).members
    kinds = {pair: 0 for pair in itertools.combinations(range(5), 2)}
    for line in members[1:]:
        kinds[tuple(np.flatnonzero(line))] += 1
    counts = np.array(list(kinds.values()))
    assert chi2.sf(((counts - 400.0) ** 2 / 400.0).sum(), 9) > 1e-3


def laplace_products(centers, scale):
    """Integrals of products of exp(-|x - c| / s) over s, by quadrature in each column."""
    t = np.linspace(-60.0, 60.0, 400_001)
    out = np.ones((len(centers), len(centers)))
    for column in centers.T:
        functions = np.exp(-np.abs(t - column[:, None] / scale))
        out *= np.trapezoid(functions[:, None] * functions[None], t, axis=-1)
    return out


def dense(members):
    return members if isinstance(members, np.ndarray) else members.toarray()


def slow_contrasts(labels, place):
    """One vector of 1/n and -1/n' a label vector, over units one by one."""
    smaller, larger = labels.sizes
    for line in dense(labels.members):
        left, e = line.copy(), np.full(len(place), -1.0 / larger)
        for unit in range(len(place)):
            if left[place[unit]] > 0:
                left[place[unit]] -= 1
                e[unit] = 1.0 / smaller
        yield e


@pytest.mark.parametrize("kind", [GaussianFeatures, LaplaceFeatures])
@pytest.mark.parametrize("sizes", [(6, 6), (4, 11), (1, 30)])
def test_quadratic_forms_against_sums_over_pairs_of_rows(sizes, kind):
    """Over all pairs of different units, the kernel centred at the mean of both samples; equal up to a constant."""
    n = sum(sizes)
    place = np.concatenate([np.arange(n - 2), [0, 1]])
    rows, centers = RNG.normal(size=(n - 2, 2)), RNG.normal(size=(5, 2))
    labels = labels_of(place, sizes, 8)
    basis = Basis.of(kind(centers, 1.3), (ALPHA, 30.0))
    found = quadratic_forms(basis, unit_features([basis], rows, equal(rows, 1), Budget(1e9, 1))[0], labels)
    if kind is GaussianFeatures:
        psi = np.exp(-0.5 * cdist(rows, centers, "sqeuclidean") / 1.3**2)[place]
        H = np.exp(-0.25 * cdist(centers, centers, "sqeuclidean") / 1.3**2)
    else:
        psi = np.exp(-cdist(rows, centers, "cityblock") / 1.3)[place]
        H = laplace_products(centers, 1.3)
    psi -= psi.mean(axis=0)
    for line, alpha in zip(found, basis.alphas, strict=True):
        G = np.linalg.inv(H + alpha * np.eye(5))
        gram = psi @ (2.0 * G - G @ H @ G) @ psi.T
        slow = np.array([e @ gram @ e - np.diag(gram) @ e**2 for e in slow_contrasts(labels, place)])
        np.testing.assert_allclose(line - line[0], slow - slow[0], atol=1e-5 * np.abs(gram).max())


def test_blocks_of_unequal_size_are_summed_over_their_rows():
    """Label vectors of weighted units against means over the rows, and own products against pairs of blocks."""
    draws = np.random.default_rng(8)
    size = np.array([1.0, 3.0, 2.0, 5.0, 1.0])
    members = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 1, 0, 0, 1]], dtype=float)
    labels = Labels(members, np.ones(5), (2, 3), size)
    rows = draws.normal(size=(12, 2))
    block = np.repeat(np.arange(5), size.astype(int))
    rows -= rows.mean(axis=0)
    means = np.array([rows[block == k].mean(axis=0) for k in range(5)])
    np.testing.assert_allclose(labels.mean(means), 0.0, atol=1e-15)
    for line, contrast, own in zip(members, labels.contrasts(means), labels.own_products(means**2), strict=True):
        inside = line[block] > 0
        np.testing.assert_allclose(contrast, rows[inside].mean(axis=0) - rows[~inside].mean(axis=0))
        sums = np.array([rows[block == k].sum(axis=0) for k in range(5)])
        share = np.where(line > 0, 1.0 / inside.sum(), -1.0 / (~inside).sum())[:, None]
        np.testing.assert_allclose(own, ((share * sums) ** 2).sum(axis=0))


@pytest.mark.parametrize("sizes", [(20, 20), (5, 30)])
def test_column_contrasts_against_their_formula(sizes):
    draws = np.random.default_rng(9)
    rows = np.c_[draws.normal(size=sum(sizes)), draws.exponential(size=sum(sizes))]
    labels = labels_of(np.arange(sum(sizes)), sizes, 6)
    found = column_contrasts(rows, equal(rows, 1), labels)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    square = (z**2 - 1.0) / (z**2).std(axis=0)
    r = (z * square).mean(axis=0)
    for line, e in zip(found, slow_contrasts(labels, np.arange(sum(sizes))), strict=True):
        one, two = e @ z, e @ square
        np.testing.assert_allclose(line, (one**2 - 2.0 * r * one * two + two**2) / (1.0 - r**2))


def test_the_square_of_a_column_of_two_values_adds_nothing():
    rows = np.repeat([[0.0, 0.0], [1.0, 0.0]], [7, 5], axis=0)
    rows[:3, 1] = 1.0
    labels = labels_of(np.arange(12), (4, 8), 5)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    expected = [(e @ z) ** 2 for e in slow_contrasts(labels, np.arange(12))]
    np.testing.assert_allclose(column_contrasts(rows, equal(rows, 1), labels), expected, atol=1e-12)


@pytest.mark.parametrize("limit", [2.0**20, 1.0])
def test_contrasts_of_products_against_sums_over_rows(limit):
    """Rows that are there twice are one row with two places; words have two coordinates, which are not multiplied."""
    draws = np.random.default_rng(10)
    place = np.r_[np.arange(12), [3, 3, 7]]
    rows = np.c_[draws.normal(size=(12, 2)), draws.integers(0, 2, 12), draws.integers(0, 2, 12)]
    labels, units = labels_of(place, (6, 9), 5), equal(rows, 1)
    columns, numbers = np.array([0, 1, 2, 2]), np.array([True, True, False, False])
    products = Products.of(rows, shares_of_rows(units, labels), rows, columns, numbers)
    assert {tuple(pair) for pair in products.pairs} == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)}
    z = norm.ppf((rankdata(rows[place], axis=0) - 0.5) / len(place))
    features = np.stack([*(z[:, i] * z[:, j] for i, j in products.pairs), *(z[:, :2] ** 3 - 3.0 * z[:, :2]).T], axis=1)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    found = products.squares(units, labels, Budget(limit))
    for line, member in zip(found, labels.members, strict=True):
        inside = (member / labels.counts)[place]  # equal rows have equal features, so they may be shared out
        contrast = inside @ features / 6.0 - (1.0 - inside) @ features / 9.0
        np.testing.assert_allclose(line, contrast**2, atol=1e-12)


def test_the_strongest_of_many_pairs_are_multiplied():
    rows = np.random.default_rng(11).normal(size=(100, 40))
    rows[:, 39] += rows[:, 0]
    found = Products.of(rows, np.full(100, 0.01), rows, np.arange(40), np.ones(40, dtype=bool))
    z = norm.ppf((rankdata(rows, axis=0) - 0.5) / 100)
    sizes = np.abs(np.corrcoef(z.T))
    kept = sizes[tuple(found.pairs.T)]
    assert len(found.pairs) == 500
    assert [0, 39] in found.pairs.tolist()
    np.testing.assert_allclose(kept.min(), np.sort(sizes[np.triu_indices(40, 1)])[-500])


def test_rank_scores_follow_the_ranks_and_break_ties_by_moments():
    forms = np.random.default_rng(10).exponential(size=(3, 41))
    forms[0, 5], forms[1, 6] = 100.0, 10.0
    scores = rank_scores(forms)
    for line, score in zip(forms, scores, strict=True):
        np.testing.assert_array_equal(np.argsort(line), np.argsort(score))
    np.testing.assert_allclose(scores[0, 5], norm.ppf(40.5 / 41), atol=1e-3)
    assert np.argmax(scores.max(axis=0)) == 5
    assert scores[0, 5] > scores[1, 6]
    repeated = rank_scores(np.repeat(forms[:, :5] * (1.0 + 1e-15), 2, axis=1))
    np.testing.assert_allclose(repeated[:, ::2], repeated[:, 1::2], atol=1e-12)


def test_groups_have_the_mean_features_of_their_rows():
    centers = RNG.normal(size=(4, 2))
    basis = Basis.of(GaussianFeatures(centers, 0.9))
    rows = RNG.normal(size=(12, 2))
    single = unit_features([basis], rows, equal(rows, 1), Budget(1e9, 1))[0]
    grouped = unit_features([basis], rows, equal(rows, 3), Budget(1e9, 2))[0]
    np.testing.assert_allclose(grouped, single.reshape(4, 3, 4).mean(axis=1))
    with pytest.raises(ValueError, match="memory_limit"):
        unit_features([basis], rows, equal(rows, 3), Budget(100, 1))


@pytest.mark.parametrize("freedom", [1, 3, 30, 300])
def test_normal_scores_of_chi_squared_variables(freedom):
    """Tails agree whatever the degrees of freedom, which is what makes the scores comparable."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    scores = moment_scores(chi2.ppf(levels, freedom)[None])[0]
    high = (levels > 0.8) & (levels < 0.999)
    np.testing.assert_allclose(scores[high], norm.ppf(levels[high]), atol=0.1)
    assert (np.diff(scores) >= 0).all()


def test_forms_that_never_move_have_score_0():
    assert (moment_scores(np.full((2, 9), 3.0)) == 0.0).all()
    assert (moment_scores(np.zeros((1, 9))) == 0.0).all()


def test_p_values_count_ties_and_the_observed_one():
    assert permutation_pvalue(np.array([1.0, 0.0, 1.0, 2.0])) == 0.75
    assert permutation_pvalue(np.array([3.0, 0.0, 1.0, 2.0])) == 0.25
    assert permutation_pvalue(np.array([1.0, 1.0 - 1e-12, 0.0, 0.0])) == 0.5


def test_adjusted_p_values_against_their_definition():
    statistics = np.random.default_rng(3).normal(size=(40, 4)) + np.array([0.0, 2.0, 1.0, 0.0]) * (
        np.arange(40) == 0
    ).reshape(-1, 1)
    found = adjusted_p_values(statistics)
    order = np.argsort(-statistics[0])
    worst = 0.0
    for k, j in enumerate(order):
        maxima = statistics[:, order[k:]].max(axis=1)
        worst = max(worst, float((maxima >= statistics[0, j]).mean()))
        assert found[j] == worst
    assert (found >= [permutation_pvalue(statistics[:, j]) for j in range(4)]).all()


def test_the_family_of_null_columns_keeps_the_level():
    draws = np.random.default_rng(4)
    named = 0
    for _ in range(400):
        statistics = draws.normal(size=(40, 5))
        statistics[0, 0] += 6.0  # one column does differ
        named += bool((adjusted_p_values(statistics)[1:] <= 0.1 + 1e-12).any())
    assert named / 400 < 0.1 + 3.1 * (0.1 * 0.9 / 400) ** 0.5


def test_units_are_permuted_within_strata():
    strata = np.array([0, 0, 1, 1, 1, 2, 0, 1, 1, 2, 2])
    labels = Labels.draw(np.arange(11), (6, 5), 200, np.random.default_rng(1), strata=strata)
    counts = labels.members @ (strata[:, None] == np.arange(3))
    np.testing.assert_array_equal(counts, np.tile([1, 2, 2], (201, 1)))
    # Each unit of a stratum is drawn as often as the others.
    shares = labels.members[1:].mean(axis=0)
    np.testing.assert_allclose(shares, np.array([1 / 3, 2 / 5, 2 / 3])[strata], atol=0.12)


def test_statistics_within_strata_are_about_the_means_of_the_strata():
    draws = np.random.default_rng(3)
    strata = np.repeat([0, 1, 0, 1], [6, 4, 3, 7])
    rows = draws.normal(size=(20, 2)) + 50.0 * strata[:, None]
    labels = Labels.draw(np.arange(20), (10, 10), 7, np.random.default_rng(1), strata=strata)
    rest = rows.copy()
    for stratum in (0, 1):
        rest[strata == stratum] -= rows[strata == stratum].mean(axis=0)
    np.testing.assert_allclose(rows - labels.mean(rows), rest)
    found = column_contrasts(rows, equal(rows, 1), labels)
    square = rows**2
    for stratum in (0, 1):
        square[strata == stratum] -= square[strata == stratum].mean(axis=0)
    one, two = rest / rest.std(axis=0), square / square.std(axis=0)
    r = (one * two).mean(axis=0)
    for line, e in zip(found, slow_contrasts(labels, np.arange(20)), strict=True):
        a, b = e @ one, e @ two
        np.testing.assert_allclose(line, (a**2 - 2.0 * r * a * b + b**2) / (1.0 - r**2), rtol=1e-8)


def test_groups_are_units_that_use_as_many_rows_as_those_whose_place_they_take():
    first, second = np.array([3, 1, 3, 5]), np.array([7, 5, 7, 9, 9, 5])
    keys, rng = np.arange(10), np.random.default_rng(0)
    units = Units.of_groups(first, second, keys, rng)
    assert units.sizes == (3, 3)
    # Group 5 has one row in X, so one of its two in Y is used; so has group 1, whose place the groups of two rows may take.
    np.testing.assert_array_equal(units.lengths, [1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(units.strata, [1, 1, 0, 0, 1, 1])
    assert units.assignments == 6 * 2
    assert units.least_pvalue == pytest.approx(2 / 12)
    labels = np.concatenate([first, second])[units.rows]
    np.testing.assert_array_equal(labels, [1, 3, 5, 5, 7, 9])
    equal = Units.of_groups(np.array([0, 0, 1, 1]), np.array([2, 3, 3, 2]), np.arange(8), rng)
    assert equal.strata is None
    np.testing.assert_array_equal(equal.rows, [0, 1, 2, 3, 4, 7, 5, 6])
    values = np.arange(8.0)[:, None]
    np.testing.assert_allclose(equal.means(values[equal.rows])[:, 0], [0.5, 2.5, 5.5, 5.5])


def test_long_and_short_groups_change_places_among_their_like_and_lonely_ones_are_left_out():
    sizes = np.array([1, 1, 1, 9, 10, 9]), np.array([1, 1, 1, 10, 10, 9, 400, 401])
    first, second = np.repeat(np.arange(6), sizes[0]), np.repeat(100 + np.arange(8), sizes[1])
    lengths, strata = strata_of_groups(first, second)
    np.testing.assert_array_equal(lengths[0], [1, 1, 1, 9, 9, 9])
    np.testing.assert_array_equal(lengths[1], [1, 1, 1, 9, 9, 9, 9, 9])
    np.testing.assert_array_equal(strata[1], [0, 0, 0, 1, 1, 1, 1, 1])
    far = strata_of_groups(np.repeat(np.arange(4), 100), np.repeat(9 + np.arange(5), [100, 90, 120, 100, 1]))
    np.testing.assert_array_equal(far[0][1], [90, 90, 90, 90, 0])  # one row does not make all others one row


def test_features_of_blocks_are_means_over_their_rows():
    units = Units(np.arange(9), (2, 2), 0, np.array([1, 4, 2, 2]))
    centers, rows = RNG.normal(size=(4, 2)), RNG.normal(size=(9, 2))
    basis = Basis.of(GaussianFeatures(centers, 0.9))
    single = unit_features([basis], rows, equal(rows, 1), Budget(1e9, 1))[0]
    expected = [single[a:b].mean(axis=0) for a, b in ((0, 1), (1, 5), (5, 7), (7, 9))]
    np.testing.assert_allclose(unit_features([basis], rows, units, Budget(1e9, 2))[0], expected)
    # In tiles of one unit.
    np.testing.assert_allclose(unit_features([basis], rows, units, Budget(8.0 * 5 * 16, 1))[0], expected)


def test_groups_within_strata_have_rows_of_one_stratum():
    strata = np.random.default_rng(4).integers(0, 3, 9001)
    units = Units.within(strata, 5000, np.random.default_rng(5))
    assert units.group == 2
    assert len(np.unique(units.rows)) == len(units.rows) == 2 * sum(units.sizes) >= 9001 - 6
    assert (units.rows[: 2 * units.sizes[0]] < 5000).all()
    np.testing.assert_array_equal(strata[units.rows], np.repeat(units.strata, 2))
