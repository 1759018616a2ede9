"""The experiment on shares of classes: its splits, its report and what it says of missing tables."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import class_prior
from experiments.class_prior import collected, emq, split

Y = np.repeat([0, 1], [120, 80])


@pytest.mark.parametrize("prior", class_prior.PRIORS)
def test_a_split_has_the_share_and_no_row_twice(prior):
    labelled, unlabelled = split(Y, prior, 20, 3)
    assert np.bincount(Y[labelled]).tolist() == [20, 20]
    assert len(unlabelled) == 50
    assert Y[unlabelled].mean() == pytest.approx(prior)
    assert len(set(labelled) | set(unlabelled)) == 90


def test_runs_that_are_in_the_file_are_not_repeated(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("task,run,values\na,0,7 8\n")
    found = collected(_length_and_run, ["a", "b"], 2, path, 1)
    assert found["a"].tolist() == [[7.0, 8.0], [1.0, 1.0]]
    assert found["b"].tolist() == [[1.0, 0.0], [1.0, 1.0]]


def _length_and_run(task, run):
    return np.array([len(task), run], float)


def test_expectation_maximisation_has_the_largest_likelihood():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet([0.5, 0.5], size=200)
    share = emq(probabilities)[1]
    grid = np.linspace(0.001, 0.999, 999)
    likelihood = np.log(probabilities @ np.stack([1.0 - grid, grid])).sum(axis=0)
    assert share == pytest.approx(grid[np.argmax(likelihood)], abs=2e-3)
