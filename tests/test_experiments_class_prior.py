"""The experiment on shares of classes: its splits, its report and what it says of missing tables."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from experiments import class_prior
from experiments.class_prior import collected, emq, report, split, table

from isopleth import InputError

Y = np.repeat([0, 1], [120, 80])


@pytest.mark.parametrize("prior", class_prior.PRIORS)
def test_a_split_has_the_share_and_no_row_twice(prior):
    labelled, unlabelled = split(Y, prior, 20, 3)
    assert np.bincount(Y[labelled]).tolist() == [20, 20]
    assert len(unlabelled) == 50
    assert Y[unlabelled].mean() == pytest.approx(prior)
    assert len(set(labelled) | set(unlabelled)) == 90


def test_tables_are_read_with_their_classes(tmp_path):
    (tmp_path / "uci").mkdir()
    with gzip.open(tmp_path / "uci" / "pima.tsv.gz", "wt") as file:
        file.write("a\tb\ttarget\n1\t2\t0\n3\t4.5\t1\n")
    values, classes = table(tmp_path, "pima")
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert classes.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"german.tsv.gz is not there; it is the table of that name"):
        table(tmp_path, "german")


def test_the_report_has_errors_and_paired_differences(capsys):
    rng = np.random.default_rng(0)
    errors = rng.random((40, 4)) * [1.0, 0.5, 2.0, 1.0]
    report("made up", np.column_stack([errors, np.ones(40), np.full(40, 0.3), rng.random((40, 6))]))
    text = capsys.readouterr().out
    difference = errors[:, 0] - errors[:, 1]
    assert f"isopleth less  EMQ {difference.mean():+.4f}+-{difference.std() / np.sqrt(40):.4f}" in text
    assert "interval holds 100.0%, width 0.30" in text


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
