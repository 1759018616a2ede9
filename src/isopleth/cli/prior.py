"""``isopleth prior``: estimate the share of each class among rows without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from isopleth.cli.run import Run, schema_of
from isopleth.core.errors import InputError
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator


def prior(
    run: Run, train: Path, test: Path, target: str, ignore_missing: bool, confidence_level: float, population: bool
) -> None:
    """Estimate the shares of classes and report them."""
    if target in (run.options.columns or []):
        raise InputError(
            f"--columns names the target {target!r} too; the classes are not to be learned from themselves."
        )
    run.stage("reading")
    labelled = run.read(train, labels={target: "target"})
    run.stage("fitting")
    # With a fixed seed, for the same answer each time.
    estimator = ClassPriorEstimator(compare_missing=not ignore_missing, random_state=0)
    estimator.fit(labelled.frame, labelled.labels[target])
    run.options = replace(run.options, columns=None)  # those of TRAIN are read
    table = run.read_for(test, schema_of(estimator))
    run.stage("estimating")
    priors = estimator.estimate(table.frame, confidence_level, population=population)
    run.stage("writing")
    run.write(priors, priors._columns())
    run.answer(priors)
