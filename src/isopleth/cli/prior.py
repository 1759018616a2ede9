"""``isopleth prior``: estimate the share of each class among rows without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.commands import TableOptions
from isopleth.cli.messages import Stages, matched_columns, naming_columns
from isopleth.cli.outputs import Outputs, answer
from isopleth.cli.reading import naming_labels, read, read_for
from isopleth.errors import InputError
from isopleth.tables.table import FileTable
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator


def prior(
    train: Path,
    test: Path,
    target: str,
    options: TableOptions,
    ignore_missing: bool,
    confidence_level: float,
    population: bool,
    out: Path | None,
    plot: Path | None,
    raw_text: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Estimate the shares of classes and report them."""
    outputs = Outputs(rows=out, figure=plot, raw_text=raw_text, page=report)
    outputs.check(TRAIN=train, TEST=test)
    with Stages(["reading", "fitting", "estimating", "writing"]) as stage:
        stage("reading")
        labelled, classes = read_labelled(train, target, options)
        stage("fitting")
        # With a fixed seed, for the same answer each time.
        estimator = ClassPriorEstimator(compare_missing=not ignore_missing, random_state=0)
        with naming_columns(labelled.names):
            estimator.fit(labelled.frame, classes)
        table = read_for(test, replace(options, columns=None, exclude=None), estimator)
        stage("estimating")
        with naming_columns(labelled.names), matched_columns():
            priors = estimator.estimate(table.frame, confidence_level, population=population)
        stage("writing")
        outputs.write(priors, priors._columns(), sources=[train, test])
    answer(priors, as_json, None)


def read_labelled(path: Path, target: str, options: TableOptions) -> tuple[FileTable, np.ndarray]:
    """Read the columns to learn from, and the class of each row."""
    if target in (options.columns or []):
        raise InputError(
            f"--columns names the target {target!r} too; the classes are not to be learned from themselves."
        )
    with naming_labels("target"):
        table = read(path, options, labels=[target])
    return table, table.labels[target]
