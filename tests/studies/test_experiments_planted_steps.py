"""Planted steps: what is counted as found and as false, and which penalty has an equal level."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import planted_steps
from experiments.planted_steps import Background, Method, at_level, measured, plants, study


def test_finds_by_chance_are_subtracted_and_excused_changes_are_not_false(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    excused = np.arange(400) >= 300
    series = [Background(name, rng.normal(size=400), None, excused) for name in ("one", "two")]
    places = {(one.name, size): place for one in series for size, place, _ in plants(one, 0)}

    def told(one, values, factor):
        # Of the first series the largest step is told, of the second always the place of its smallest one.
        step = int(np.abs(np.cumsum(values - values.mean())).argmax()) + 1
        found = [step] if one.name == "one" and np.ptp(values - one.values) > 3.0 * one.deviation else []
        return [*found, places["two", 1.0], 350] if one.name == "two" else found

    monkeypatch.setattr(planted_steps, "METHODS", {"made up": Method(told, "numpy", (1, 4))})
    path = tmp_path / "results.csv"
    study(series, ["made up"], 1, path)
    study(series, ["made up"], 1, path)
    assert len(path.read_text().splitlines()) == 1 + 2 * 2 * 4
    found = measured(path, series)["made up", 1]
    assert (found["series"], found["steps"]) == (2, 800)
    assert found["false"] == (places["two", 1.0] < 300)
    assert (found[1.0], found[2.0], found[4.0]) == ([0.0, 0.0], [0.0, 0.0], [1.0, 0.0])


def test_the_least_penalty_at_a_level_is_taken():
    found = {("a", factor): {"false": false, "steps": 1000} for factor, false in ((1, 30), (4, 5), (16, 2), (64, 0))}
    assert [at_level(found, "a", level) for level in (0.01, 0.005, 0.001)] == [4, 4, 64]
    assert at_level(found, "b", 1.0) is None


def test_a_step_has_its_size_in_robust_deviations():
    one = Background("x", np.random.default_rng(1).normal(3.0, 2.0, 5000), None, np.zeros(5000, dtype=bool))
    sizes = [(size, np.ptp(values - one.values)) for size, _, values in plants(one, 1)]
    assert [size for size, _ in sizes] == [1.0, 2.0, 4.0]
    assert [rise for _, rise in sizes] == pytest.approx([2.0, 4.0, 8.0], rel=0.05)
