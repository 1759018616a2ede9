"""Pseudolikelihood: sums over columns of log densities of cells given the others, by forests of groups of columns."""

import numpy as np
import pytest
from scipy.stats import norm

from isopleth.conditional import pseudo_likelihood
from isopleth.conditional.pseudo_likelihood import MOST_COLUMNS, PseudoLikelihood
from isopleth.core.budget import ONE_THREAD


def by_hand(law, z):
    """Minus the log pseudolikelihood, from the leaves of each tree."""

    def leaf(forest, row, node):
        while forest.feature[node] >= 0:
            node = forest.child[int(np.float32(row[forest.feature[node]]) > forest.threshold[node]), node]
        return node

    def kernel(y, v, word):
        if word:
            return float(y == v)
        return 0.5 * np.exp(-abs(y - v) / 0.05) / 0.1 + 0.5 * np.exp(-abs(y - v) / 0.5)

    m = len(law.overall)
    found = np.zeros(len(z))
    for i, row in enumerate(z):
        trees = [[] for _ in range(m)]
        for group, forest in zip(law.groups, law.forests, strict=True):
            others = np.setdiff1d(np.arange(z.shape[1]), group)
            for root in forest.roots:
                own = leaf(forest, row[others], root)
                beside = [k for k, other in enumerate(law.z) if leaf(forest, other[others], root) == own]
                beside = beside[:: -(-len(beside) // 32)]  # of many rows some stand for all
                for j in group:
                    trees[j].append(np.mean([kernel(row[j], law.z[k, j], law.words[j]) for k in beside]))
        for j, near in enumerate(trees):
            overall = sum(
                share * kernel(row[j], v, law.words[j])
                for v, share in zip(law.overall[j].values, law.overall[j].shares, strict=True)
            )
            found[i] -= np.log(0.95 * np.mean(near) + 0.05 * overall + 1e-3 / len(law.z) * law.words[j])
    return found


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 4))
    z[:, 1] = z[:, 0] + 0.1 * z[:, 1]
    return np.column_stack([z, rng.integers(3, size=120)])


def test_by_hand(rows):
    words = np.arange(5) == 4
    law = PseudoLikelihood.fit(rows, words, np.ones(120), 0, ONE_THREAD)
    asked = rows[:6].copy()
    asked[0, 1] += 3.0
    asked[1, 4] = 7.0  # a word that no row has
    np.testing.assert_allclose(law.evidence(asked), by_hand(law, asked))
    for division in np.split(np.arange(15), 3):
        assert sorted(np.concatenate([law.groups[i] for i in division])) == list(range(5))


def test_copies_are_rows(rows):
    z = rows[:40]
    twice = PseudoLikelihood.fit(z, np.zeros(5, dtype=bool), 2.0 * np.ones(40), 0, ONE_THREAD)
    once = PseudoLikelihood.fit(z, np.zeros(5, dtype=bool), np.ones(40), 0, ONE_THREAD)
    np.testing.assert_allclose(twice.evidence(rows), once.evidence(rows))


def test_a_number_that_does_not_fit_the_others(rows):
    law = PseudoLikelihood.fit(rows, np.arange(5) == 4, np.ones(120), 0, ONE_THREAD)
    odd = rows.copy()
    odd[:, 1] = -rows[:, 1]
    far = np.abs(rows[:, 1]) > 0.7
    assert (law.evidence(odd)[far] > law.evidence(rows)[far] + 1.0).mean() > 0.9


def test_one_column_has_no_others_and_many_are_drawn(rows):
    none = PseudoLikelihood.fit(rows[:, :1], np.zeros(1, dtype=bool), np.ones(120), 0, ONE_THREAD)
    np.testing.assert_array_equal(none.evidence(rows[:, :1]), 0.0)
    wide = np.random.default_rng(1).normal(size=(30, 33))
    law = PseudoLikelihood.fit(wide, np.zeros(33, dtype=bool), np.ones(30), 0, ONE_THREAD)
    assert set(np.concatenate(law.groups)) == set(range(MOST_COLUMNS))


def test_the_last_digits_of_a_column_choose_no_branch_of_a_tree():
    """Columns of truth values, and what they are not, divide the rows alike, and other rows are in other branches."""
    rng = np.random.default_rng(0)
    y, u = norm.ppf((rng.permutation(91) + 0.5) / 91), rng.integers(2, size=(91, 3)) - 0.5
    asked = np.column_stack([y, rng.integers(2, size=(91, 6)) - 0.5])
    here, there = (
        PseudoLikelihood.fit(
            np.column_stack([target, u, -u]), np.zeros(7, dtype=bool), np.ones(91), 0, ONE_THREAD
        ).evidence(asked)
        for target in (y, y / 1.1 * 1.1)
    )
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_laws_integrate_to_one():
    """The density of one column, over a fine grid, beside rows of the others."""
    z = np.random.default_rng(2).normal(size=(80, 2))
    law = PseudoLikelihood.fit(z, np.zeros(2, dtype=bool), np.ones(80), 0, ONE_THREAD)
    grid = np.linspace(-12.0, 12.0, 4801)
    rows = np.column_stack([grid, np.full(len(grid), 0.3)])
    marginal = -np.log(0.95 * given_first(law, rows) + 0.05 * law.overall[1].density(rows[:, 1], False))
    assert np.trapezoid(np.exp(marginal - law.evidence(rows)), grid) == pytest.approx(1.0, abs=1e-3)


def given_first(law, rows):
    """The mean over the leaves of the density of the second column given the first."""
    found = np.zeros(len(rows))
    for group, forest in zip(law.groups, law.forests, strict=True):
        if 1 in group:
            W = forest.weights_at(np.delete(rows, group, axis=1).astype(np.float32)).toarray()
            away = np.abs(rows[:, 1, None] - law.z[:, 1])
            found += (W * (0.5 * np.exp(-away / 0.05) / 0.1 + 0.5 * np.exp(-away / 0.5))).sum(axis=1)
    return found / pseudo_likelihood._DIVISIONS
