"""Streams of the experiment of pages: the changes are those that it names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas")

from experiments.drift_context import AT, CHANGES, PER_DAY, made, noise


def test_changes_are_those_that_are_named():
    plain = noise(np.random.default_rng(0), 9 * PER_DAY, 0.7, "none")
    np.testing.assert_allclose(plain.std(axis=0), 1.0, atol=0.15)
    assert np.corrcoef(plain[:-1, 2], plain[1:, 2])[0, 1] == pytest.approx(0.7, abs=0.05)
    for name in CHANGES:
        changed = noise(np.random.default_rng(0), 9 * PER_DAY, 0.7, name)
        moved = (changed[AT:] != plain[AT:]).any(axis=0)
        np.testing.assert_array_equal(changed[:AT], plain[:AT])
        assert set(np.flatnonzero(moved)) <= {*CHANGES[name], 1}
        assert moved.any() == (name != "none")
    related = noise(np.random.default_rng(0), 9 * PER_DAY, 0.0, "correlation .6 to -.2")
    assert np.corrcoef(related[AT:, 0], related[AT:, 1])[0, 1] == pytest.approx(-0.2, abs=0.07)
    frame = made("2025-01-06", 2, [0, 0], 0.3)
    assert list(frame.columns) == ["a", "b", "c", "d", "time"]
    assert len(frame) == 2 * PER_DAY
