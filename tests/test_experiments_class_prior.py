"""The experiment on shares of classes: its splits, its report and what it says of missing tables."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from experiments import class_prior
from experiments.class_prior import main, report, split, table

from isopleth import InputError

Y = np.repeat([0, 1], [120, 80])


@pytest.mark.parametrize("prior", class_prior.PRIORS)
def test_a_split_has_the_share_and_no_row_twice(prior):
    labelled, unlabelled = split(Y, prior, 3)
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


def test_the_report_compares_with_the_better_alternative(capsys):
    rng = np.random.default_rng(0)
    found = np.column_stack([rng.random((40, 3)) * [1.0, 0.5, 2.0], np.ones(40), np.full(40, 0.3), rng.random((40, 5))])
    report("made up", found)
    text = capsys.readouterr().out
    difference = found[:, 0] - found[:, 1]
    assert f"isopleth less EMQ: {difference.mean():+.4f}+-{difference.std() / np.sqrt(40):.4f}" in text
    assert "interval holds 100.0%, width 0.30" in text


def test_made_up_classes(capsys, monkeypatch):
    monkeypatch.setattr(class_prior, "MADE_UP", class_prior.MADE_UP[:1])
    main(["--made-up", "--runs", "3"])
    assert capsys.readouterr().out.startswith("distance 1.0, 20 labelled, 50 not   0.1: ")
