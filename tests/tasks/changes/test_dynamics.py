"""Scores of an autoregression: against the gradient of its likelihood, and a change of dynamics that no level shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from isopleth import ChangePointDetector
from isopleth.tasks.changes.dynamics import mean_scores, scores
from isopleth.tasks.changes.embedding import Blocks, over_blocks


def resonance(rng, n, period, radius):
    """Return noise that oscillates."""
    turn = 2.0 * np.pi / period
    return lfilter([1.0], [1.0, -2.0 * radius * np.cos(turn), radius**2], rng.normal(size=n + 200))[200:]


def test_scores_are_gradients_of_squared_innovations_in_white_lags():
    column = resonance(np.random.default_rng(0), 3000, 12.0, 0.9)
    rows = scores(column)
    assert rows.shape == (3000, 11)
    assert not rows[:10].any()
    lags = np.lib.stride_tricks.sliding_window_view(column - column.mean(), 11)
    coefficients = np.linalg.lstsq(lags[:, :-1], lags[:, -1], rcond=None)[0]
    innovations = lags[:, -1] - lags[:, :-1] @ coefficients
    factor = np.linalg.cholesky(lags[:, :-1].T @ lags[:, :-1] / len(lags))
    expected = (innovations / np.sqrt(np.mean(innovations**2)))[:, None] * np.linalg.solve(factor, lags[:, :-1].T).T
    unclipped = (np.abs(expected) < 4.0).all(axis=1)
    np.testing.assert_allclose(rows[10:, :10][unclipped], expected[unclipped], atol=0.02)
    # In units of an autoregression without a change, sums of scores are those of independent rows.
    np.testing.assert_allclose(rows[10:, :10].std(axis=0), 1.0, atol=0.1)
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=0.05)


def test_scores_do_not_depend_on_scale_and_shift():
    column = resonance(np.random.default_rng(1), 500, 12.0, 0.9)
    np.testing.assert_allclose(scores(1e6 * column + 3e6), scores(column), atol=1e-4)
    assert np.isfinite(scores(np.ones(200))).all()
    assert not mean_scores(column[:90, None], Blocks(10.0, 9, 1)).any()


def test_mean_scores_move_where_coefficients_change():
    rng = np.random.default_rng(2)
    column = np.concatenate([resonance(rng, 1000, 12.0, 0.9), resonance(rng, 1000, 9.0, 0.9)])
    blocks = Blocks(20.0, 100, 8)
    means = over_blocks(mean_scores(column[:, None], blocks), 8)
    distance = np.linalg.norm(means[:50].mean(axis=0) - means[50:].mean(axis=0))
    same = np.linalg.norm(means[::2].mean(axis=0) - means[1::2].mean(axis=0))
    assert distance > 3.0 * same


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_beats_that_wander_have_no_change(seed):
    """Amplitude, length and harmonic of the beats wander over tens of beats and come back."""
    rng = np.random.default_rng([seed, 5])
    slow = [lfilter([1.0], [1.0, -0.95], rng.normal(size=400))[200:] * np.sqrt(1.0 - 0.95**2) for _ in range(3)]
    lengths, sizes, harmonics = 25.0 * np.exp(0.08 * slow[0]), np.exp(0.25 * slow[1]), 0.4 + 0.3 * slow[2]
    edges = np.concatenate([[0.0], np.cumsum(lengths)])
    steps = np.arange(int(edges[-1]))
    beat = np.searchsorted(edges, steps, side="right") - 1
    phase = 2.0 * np.pi * (steps - edges[beat]) / lengths[beat]
    series = sizes[beat] * (np.sin(phase) + harmonics[beat] * np.sin(2.0 * phase + 1.0))
    assert not len(ChangePointDetector(random_state=0).fit_predict(series + 0.1 * rng.normal(size=len(series))))
