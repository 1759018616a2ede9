"""Steps of block means against what is gradual, remembered or wandering, by slow forms; units change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz

from isopleth.tasks.changes.embedding import Blocks
from isopleth.tasks.changes.scan import (
    ContrastScan,
    _components,
    _costs_of_memory,
    _stretch_means,
    _whitened,
    clipped,
)
from isopleth.tasks.changes.segments import standardised


def scan_of(means, seed=0, **how):
    return ContrastScan(means, Blocks(1.0, len(means), 1), np.random.default_rng(seed), **how)


def explained(rows, *terms):
    """Sum of squares of rows about their means that least squares of some terms explain."""
    design = np.column_stack([np.ones(len(rows)), *terms])
    left = rows - design @ np.linalg.lstsq(design, rows, rcond=None)[0]
    return float(np.sum((rows - rows.mean(axis=0)) ** 2) - np.sum(left**2))


@pytest.mark.parametrize(("start", "place", "end"), [(0, 30, 60), (0, 7, 60), (10, 41, 55)])
def test_a_step_and_what_is_gradual_explain_what_least_squares_do(start, place, end):
    """A parabola only along the step: in all components it would explain more by chance."""
    means = np.random.default_rng(0).normal(size=(60, 3)) + 0.05 * np.arange(60)[:, None]
    rows = _whitened(_components(means[start:end])[0][None])[0]
    time, after = np.arange(end - start, dtype=float), (np.arange(end - start) >= place - start).astype(float)
    scan = scan_of(means)
    rest, step = scan._step(start, place, end)
    assert step == pytest.approx(explained(rows, after))
    np.testing.assert_allclose(rest, rows - rows.mean(axis=0), atol=1e-12)
    jump = rows[after > 0.0].mean(axis=0) - rows[after == 0.0].mean(axis=0)
    along = (rows @ jump / np.linalg.norm(jump))[:, None]
    gradual = max(explained(rows, time), explained(along, time, time**2))
    assert scan._drift_ahead(start, place, end) == pytest.approx(gradual - step)


def test_costs_of_memory_are_likelihoods_of_cosine_coefficients():
    """The memory that a series has is the cheapest, and a step is worth its cost where there is one and only there."""
    rng, n = np.random.default_rng(1), 400
    noise = rng.normal(size=n)
    walk = np.linalg.cholesky(toeplitz(0.95 ** np.arange(n))) @ rng.normal(size=n)
    stepped = 3.0 * (np.arange(n) >= 170)
    for line, there in ((noise, False), (noise + stepped, True), (walk, False), (0.1 * walk + stepped, True)):
        alone, with_step = _costs_of_memory(line, np.array([170]))
        assert (with_step < alone) == there
        units = _costs_of_memory(7.0 * line + 3.0, np.array([170]))
        np.testing.assert_allclose(np.diff(units), with_step - alone, atol=1e-6)
        assert units[0] - alone == pytest.approx(2.0 * (n - 1) * np.log(7.0))
        backwards = _costs_of_memory(-line[::-1], np.array([n - 170]))
        np.testing.assert_allclose(backwards, (alone, with_step), atol=1e-6)
    # Without memory and noise the coefficients of independent rows are independent: a plain likelihood, or a cheaper memory.
    alone, with_step = _costs_of_memory(noise, np.array([170]))
    rest = noise - noise.mean()
    assert alone <= (n - 1) * np.log(rest @ rest) + 1e-9
    gain = explained(noise[:, None], stepped)
    assert with_step <= (n - 1) * np.log(rest @ rest - gain) + 3.0 * np.log(n) + 1e-9
    # Of several steps all count, and of levels that take turns one size.
    places = np.array([100, 200, 300])
    turns = 3.0 * ((np.arange(n)[:, None] >= places).sum(axis=1) % 2)
    alone, one = _costs_of_memory(noise + turns, places[:1])
    assert _costs_of_memory(noise + turns, places)[1] < one
    assert _costs_of_memory(noise + turns, places)[1] < alone


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_share_of_a_step_is_near_one_for_a_step_and_small_for_a_wander(share):
    place, blocks = int(200 * share), np.arange(200)
    noise = np.random.default_rng(2).normal(size=(200, 2))
    steps = noise + 6.0 * (blocks >= place)[:, None]
    wander = noise + 6.0 * np.sin(blocks / 12.0)[:, None]
    assert scan_of(steps)._share_of_step(0, place, 200) > 0.97
    assert scan_of(wander)._share_of_step(0, place, 200) < 0.5
    assert scan_of(steps * 5.0 - 2.0)._share_of_step(0, place, 200) == pytest.approx(
        scan_of(steps)._share_of_step(0, place, 200), abs=1e-6
    )


def test_stretches_are_of_as_many_values_or_a_few_more():
    line = np.random.default_rng(3).normal(size=23)
    for size in (1, 4, 5, 23):
        found = _stretch_means(line, size)
        assert len(found) == 23 // size
        assert found.mean() == pytest.approx(line.mean(), abs=0.2)
    np.testing.assert_array_equal(_stretch_means(line, 1), line)


@pytest.mark.parametrize("chunk", [1, 4, 7])
def test_a_shuffle_is_an_order_that_keeps_neighbours_in_chunks(chunk):
    scan = scan_of(np.random.default_rng(4).normal(size=(60, 2)), chunk=chunk)
    orders = np.array([scan._shuffled(60) for _ in range(200)])
    assert (np.sort(orders, axis=1) == np.arange(60)).all()
    kept = (np.diff(orders, axis=1) % 60 == 1).sum(axis=1)
    assert (kept >= 60 - -(-60 // chunk)).all()
    assert kept.mean() < 60 - -(-60 // chunk) + 3  # and no more than by chance
    assert abs(orders[:, 0].mean() - 29.5) < 5.0  # any block may come first


def test_units_and_turns_of_the_components_move_no_change():
    rng = np.random.default_rng(5)
    means = rng.normal(size=(80, 4))
    means[30:] += 1.5
    means[55:, 0] -= 4.0
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    found = scan_of(means).changes(0.02)
    assert [abs(one.step - place) <= 1 for one, place in zip(found, (30, 55), strict=True)] == [True, True]
    for moved in (8.0 * means + 5.0, means @ turn):
        again = scan_of(moved).changes(0.02)
        assert [one.step for one in again] == [one.step for one in found]
        np.testing.assert_allclose([one.pvalue for one in again], [one.pvalue for one in found], atol=1e-9)


def test_blocks_are_joined_until_neighbours_differ_as_much_as_others():
    white = np.random.default_rng(6).normal(size=(128, 2))
    assert scan_of(white).block == 1.0
    slow = np.repeat(white[:32], 4, axis=0) + 0.01 * np.random.default_rng(7).normal(size=(128, 2))
    assert scan_of(slow, chunk=1).block == 4.0
    followed = scan_of(white).followed_by(128, "level", "slope")
    assert followed == {"level": 6, "slope": 6}  # a share of the series: four blocks, or one in 25
    assert scan_of(white[:12]).followed_by(12, "level") == {}


def test_innovations_have_unit_size_and_are_clipped_at_four():
    rows = np.random.default_rng(8).normal(size=(500, 2)) * [1.0, 1e-3]
    rows[7, 0] = 30.0
    sizes = np.sqrt(np.mean(rows**2, axis=0))
    np.testing.assert_allclose(clipped(rows), np.clip(rows / sizes, -4.0, 4.0))
    np.testing.assert_allclose(clipped(rows * -9.0), -clipped(rows))
    np.testing.assert_allclose(standardised(rows).mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(standardised(rows).std(axis=0), 1.0)
