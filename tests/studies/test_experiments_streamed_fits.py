from __future__ import annotations

from experiments.streamed_fits import difference, measured, score


def test_fits_are_measured():
    answer, processor, wall, memory = measured(
        lambda: difference({"length_scale": 1.5, "alpha": 1.0, "centers": 50}, 4000)
    )
    assert -1.0 < answer < 1.5
    assert processor > 0.0
    assert wall > 0.0
    assert memory > 50.0
    assert score("diagonal", 1000, 20) < 1.0
