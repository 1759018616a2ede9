"""Lines of other libraries and of ours: absent libraries are named, and the nearer answer is the one that is nearer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("experiments", reason="the studies are not beside an installed package")

from experiments import coming_from


def test_the_nearer_answer_is_told_by_the_direction_of_the_measure_and_absent_libraries_are_named(monkeypatch, capsys):
    def compare(seed):
        yield coming_from.Found("made", "F1", 0.2, 0.5 + 0.1 * seed)
        yield coming_from.Found("made", "distance", 0.2, 0.5)
        yield coming_from.Found("same", "distance", 0.5, 0.5)

    monkeypatch.setattr(
        coming_from, "COMPARISONS", {"there": ("numpy", compare), "absent": ("no_such_module", compare)}
    )
    coming_from.main(["--seeds", "2"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        ["there", "made", "F1", ".200", ".550", "isopleth"],
        ["there", "made", "distance", ".200", ".500", "there"],
        ["there", "same", "distance", ".500", ".500", "equal"],
        ["absent", "not", "installed:", "not", "run"],
    ]


@pytest.mark.parametrize("kind", ["smooth", "steps"])
def test_true_quantiles_hold_their_shares(kind):
    _, y, truth = coming_from.law(kind, 0, 20_000)
    np.testing.assert_allclose((y[:, None] <= truth).mean(axis=0), coming_from.LEVELS, atol=0.012)


def test_pages_are_right_after_the_change_and_not_before():
    at = coming_from.CHANGE
    assert coming_from.right([], "nothing")
    assert not coming_from.right([5], "nothing")
    assert coming_from.right([at + 3, at + 90], "step")
    assert not coming_from.right([at - 3, at + 3], "step")
    assert not coming_from.right([at + 200], "incident")


def test_an_alert_fires_after_four_steps_beyond_three_deviations():
    before, after = np.tile([-1.0, 1.0], 50), np.zeros(40)
    after[10:13], after[20:25] = 4.0, 4.0
    assert coming_from.alert(before, after) == [23, 24]
