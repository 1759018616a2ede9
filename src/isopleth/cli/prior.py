"""``isopleth prior``: estimate the share of each class among rows without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from isopleth.cli.run import Run, schema_of
from isopleth.core.errors import InputError
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator


def prior(
    run: Run,
    train: Path,
    test: Path,
    target: str,
    by: str | None,
    ignore_missing: bool,
    confidence_level: float,
    population: bool,
) -> None:
    """Estimate the shares of classes and report them."""
    if by is not None and by in [target, *(run.options.columns or [])]:
        what = "the target" if by == target else "--columns"
        raise InputError(f"--by {by} is {what}, too; groups need a column that classes are not told apart by.")
    if target in (run.options.columns or []):
        raise InputError(
            f"--columns names the target {target!r} too; the classes are not to be learned from themselves."
        )
    run.stage("reading")
    labelled = run.read(train, labels={target: "target"})
    if by is not None and by in labelled.data.column_names:  # rows of a class are compared over all groups
        without = labelled.schema.without([by], "groups")
        labelled = labelled.select([name for name in labelled.data.column_names if name != by]).using(without)
        run.used[by] = "groups"
    run.stage("fitting")
    # With a fixed seed, for the same answer each time.
    estimator = ClassPriorEstimator(compare_missing=not ignore_missing, random_state=0)
    estimator.fit(labelled.frame, labelled.labels[target])
    run.options = replace(run.options, columns=None)  # those of TRAIN are read
    table = run.read_for(test, schema_of(estimator), labels={} if by is None else {by: "by"})
    run.stage("estimating")
    groups = None if by is None else table.labels[by]
    priors = estimator.estimate(table.frame, confidence_level, population=population, by=groups)
    if by is not None:
        priors = replace(priors, by=by)
    run.stage("writing")
    run.write(priors, priors._columns())
    run.answer(priors)
