"""Means of a target by word against a slow analysis of variance, and what they tell of rows of the fit."""

import numpy as np
import pytest

from isopleth.conditional.word_means import WordMeans, held_weights


def drawn(rng, words=12, noise=0.5):
    codes = np.repeat(np.arange(words), rng.integers(1, 9, words)).astype(np.float64)
    means = rng.normal(size=words)
    return codes, (means[codes.astype(int)] + noise * rng.normal(size=len(codes)))[:, None]


def of(codes, targets, weights=None):
    w = np.ones(len(codes)) if weights is None else weights
    return WordMeans.fit(0, codes, targets, held_weights(w, np.ones(len(codes))))


def test_means_are_shrunk_by_the_variances_within_and_between_words():
    codes, y = drawn(np.random.default_rng(0))
    means = of(codes, y)[0].means[:, 0]
    z, n = y[:, 0] - y.mean(), len(y)
    of_word = [z[codes == word] for word in np.unique(codes)]
    within = sum(((part - part.mean()) ** 2).sum() for part in of_word) / (n - len(of_word))
    between = sum(len(part) * part.mean() ** 2 for part in of_word) / (len(of_word) - 1)
    evenly = (n - sum(len(part) ** 2 for part in of_word) / n) / (len(of_word) - 1)
    rows = within / ((between - within) / evenly)
    slow = [part.sum() / (len(part) + rows) for part in of_word]
    assert np.allclose(means, slow, atol=2.0**-16)


def test_words_that_decide_are_not_shrunk_and_words_that_say_nothing_are():
    rng = np.random.default_rng(1)
    codes, y = drawn(rng, noise=0.0)
    found, at_rows = of(codes, y)
    assert np.allclose(found.at(codes), y - y.mean(), atol=2.0**-16)
    several = np.bincount(codes.astype(int))[codes.astype(int)] > 5  # some row of the word is in another fold
    assert np.allclose(at_rows[several], (y - y.mean())[several], atol=2.0**-16)
    noise = rng.normal(size=(2000, 1))
    assert np.abs(of(np.repeat(np.arange(500.0), 4), noise)[0].means).max() < 0.5


def test_words_of_one_row_each_are_shrunk_by_one_row():
    y = np.random.default_rng(2).normal(size=(9, 1))
    found, at_rows = of(np.arange(9.0), y)
    assert np.allclose(found.means, 0.5 * (y - y.mean()), atol=2.0**-16)
    assert not at_rows.any()


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_means_follow_the_scale_of_the_target(factor):
    codes, y = drawn(np.random.default_rng(3))
    one, other = of(codes, y)[0].means, of(codes, factor * y)[0].means
    assert np.allclose(factor * one, other, atol=2.0**-16 * max(1.0, factor))
