"""The studies of the two-sample test: samples have the stated distributions, and the report is read correctly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("experiments", reason="the studies are not beside an installed package")

from experiments import shift_given, tolerance, two_sample_power, two_sample_rivals


def test_the_published_power_is_read_at_its_place(tmp_path):
    (tmp_path / "power").mkdir()
    np.save(tmp_path / "power/mixture_vary_dif.npy", np.arange(20).reshape(10, 2) / 20.0)
    np.save(tmp_path / "power/mixture_vary_dif_x_axis.npy", np.array([0.5, 1.6]))
    assert two_sample_power.published(tmp_path, "mixture, 1.6") == (0.05, 0.35)
    assert np.isnan(two_sample_power.published(tmp_path, "mean, d = 1")).all()
    with pytest.raises(SystemExit, match=r"perturbations_vary_dif_d1.npy is missing"):
        two_sample_power.published(tmp_path, "bumps, d = 1, .3")
    assert two_sample_power.bar(0.5) == pytest.approx(0.48 - (0.25 / 200) ** 0.5)


def test_the_study_of_the_power_adds_the_runs_that_are_missing(monkeypatch, tmp_path):
    name, seen = "mean, d = 1", []

    def p_values(task, data):
        seen.append(task[1])
        return [0.04 if task[1] else 0.06, 0.5, np.nan, np.nan]

    monkeypatch.setattr(two_sample_power, "SETTINGS", {name: two_sample_power.SETTINGS[name], "blobs": None})
    monkeypatch.setattr(two_sample_power, "p_values", p_values)
    monkeypatch.setattr(two_sample_power, "ProcessPoolExecutor", ThreadPoolExecutor)
    files = ["--p-values", str(tmp_path / "p.csv"), "--out", str(tmp_path / "table.txt")]
    two_sample_power.main(["--runs", "2", "--only", name, *files])
    two_sample_power.main(["--runs", "4", "--only", name, *files])
    assert seen == [0, 1, 2, 3]
    lines = (tmp_path / "table.txt").read_text().splitlines()
    assert lines[0] == "power at level 0.05"
    assert lines[2].split(maxsplit=4)[-1].split()[:2] == ["4", "0.750"]
    assert len(lines) == 3  # settings without runs have no line


def test_rivals_are_what_their_names_say(capsys):
    """Permutations count means over pairs, classifiers see a shift and nothing else, and columns are tested by their kind."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + [2.0, 0.0]
    z, second = np.vstack([x, y]), np.arange(50) >= 30
    far = np.linalg.norm(z[:, None] - z, axis=2)
    statistics = []
    labels_rng = np.random.default_rng([0, 1])
    for label in [second, *(labels_rng.permutation(second) for _ in range(199))]:
        one, two = (far[np.ix_(side, side)].sum() / (side.sum() * (side.sum() - 1)) for side in (label, ~label))
        statistics.append(2.0 * far[np.ix_(label, ~label)].mean() - one - two)
    slow = np.mean(np.array(statistics) >= statistics[0] - 1e-12)
    assert two_sample_rivals.by_permutations(-far, second, 0) == pytest.approx(slow)
    logistic = two_sample_rivals.LogisticRegression()
    assert two_sample_rivals.by_classifier(z, second, logistic, 5, 0) < 1e-4
    assert two_sample_rivals.by_classifier(z, rng.permutation(second), logistic, 5, 0) > 1e-4
    p_values = two_sample_rivals.of_columns(
        np.column_stack([x, x[:, 0] > 0, x[:, 0] * 0]), np.column_stack([y, y[:, 0] > 0, y[:, 0] * 0])
    )
    assert len(p_values) == 3
    assert p_values[0] < 1e-4 < p_values[1]
    two_sample_rivals.main(["--only", "mean of 1 of 10", "--runs", "1"])
    assert "mean of 1 of 10" in capsys.readouterr().out


def test_shares_of_the_tolerance_study_are_those_of_its_samples():
    rng = np.random.default_rng(0)
    for kind in ("numbers", "words"):
        low, high = tolerance.one_run(kind, 200_000, 200_000, 0.2, rng)
        assert 0.19 < low < 0.2 < high < 0.21


def test_confounded_samples_of_the_study_of_shifts_differ_in_the_others_alone():
    first, second = shift_given.samples("prices, confounded", 150, 150, np.random.default_rng(0))
    assert (len(first), len(second)) == (150, 150)
    assert second["a"].mean() > first["a"].mean() + 0.3
