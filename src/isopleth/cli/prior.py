"""``isopleth prior``: estimate the share of each class among rows without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.mixed import MixedTable, decided, read_for_detector, read_mixed, rows_of
from isopleth.cli.models import matched_columns
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs, answer
from isopleth.errors import InputError
from isopleth.io import Table, read_names, read_table
from isopleth.io.source import listed
from isopleth.io.tables import read_labels
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
        estimator = decided(ClassPriorEstimator(compare_missing=not ignore_missing, random_state=0), labelled)
        with naming_columns(labelled.names):
            estimator.fit(rows_of(labelled), classes)
        if labelled.named and not isinstance(labelled, MixedTable):
            estimator.feature_names_in_ = np.array(labelled.names, dtype=object)
        table = read_for_detector(test, replace(options, columns=None, exclude=None), estimator)
        stage("estimating")
        with naming_columns(labelled.names), matched_columns():
            priors = estimator.estimate(rows_of(table), confidence_level, population=population)
        stage("writing")
        outputs.write(priors, priors._columns(), sources=[train, test])
    answer(priors, as_json, None)


def read_labelled(path: Path, target: str, options: TableOptions) -> tuple[Table, np.ndarray]:
    """Read the columns to learn from, and the class of each row.

    Raises
    ------
    InputError
        If the file cannot be read as such; the message says what is wrong, and where.
    """
    names = read_names(path)
    if names is None:
        names = read_table(path).names
    if target not in names:
        raise InputError(f"{path} has no column {target!r} (--target); it has {listed(names)}.")
    if target in (options.columns or []):
        raise InputError(
            f"--columns names the target {target!r} too; the classes are not to be learned from themselves."
        )
    if len(names) == 1:
        raise InputError(f"{path} has no column besides the target {target!r}; there is nothing to learn from.")
    if options.columns is None:
        options = replace(options, exclude=[*(options.exclude or []), target])
    return read_mixed(path, options), read_labels(path, target)
