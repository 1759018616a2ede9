"""Models from files, and their answers for rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from isopleth.cli.messages import of_this_version
from isopleth.cli.run import schema_of
from isopleth.errors import InputError
from isopleth.io import load
from isopleth.tasks.anomaly.detector import AnomalyDetector


def load_detector(path: Path) -> AnomalyDetector:
    """Load a fitted detector from a file."""
    detector = load(path)
    if not isinstance(detector, AnomalyDetector):
        raise InputError(
            f"{path} holds a {type(detector).__name__}; a detector written by isopleth anomalies --save is needed "
            "(isopleth score takes other models)."
        )
    if not hasattr(detector, "offset_"):
        raise InputError(
            f"{path} holds a detector that is not fitted; one written by isopleth anomalies --save is needed."
        )
    return detector


@dataclass(frozen=True, eq=False)
class Answers:
    """Model, and the numbers it computes for a row."""

    source: Path  # file of the model
    model: Any  # fitted
    names: list[str]  # names of the numbers
    whole: frozenset[str]  # names of those that are whole numbers
    _answer: Callable[[Any], list[np.ndarray]]

    @property
    def bounded(self) -> bool:
        """True for a density with bounds, on and beyond which it is 0."""
        return getattr(_last_step(self.model)[0], "bounds", None) is not None

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the answers for `rows`, an array of shape (n, number of names)."""
        with of_this_version(self.source):
            return np.column_stack(self._answer(rows))


def answers_of(path: Path) -> Answers:
    """Load a model from a file, with the function that computes its answers for rows."""
    model = load(path)
    with of_this_version(path):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise InputError(
                f"{path} holds a {type(model).__name__} that is not fitted; fit it before it is saved."
            ) from None
        return _of_kind(path, model)


def takes_gaps(model: Any) -> bool:
    """Return whether a model answers for rows with missing cells, and for words if it was fitted to a table with words."""
    return not isinstance(model, Pipeline) and bool(get_tags(model).input_tags.allow_nan)


def _of_kind(path: Path, model: Any) -> Answers:
    last, entered = _last_step(model)
    if isinstance(last, AnomalyDetector):
        names = ["score", "pvalue", "label"]
        return Answers(path, model, names, frozenset({"label"}), lambda rows: list(judged(last, entered(rows))))
    if hasattr(last, "score_samples"):
        from isopleth.density.estimator import DensityEstimator  # here, since most commands need no density

        what = "log_density" if isinstance(last, DensityEstimator) else "score"
        return Answers(path, model, [what], frozenset(), lambda rows: [last.score_samples(entered(rows))])
    if hasattr(model, "grad_log_density"):
        names = [f"d_{name}" for name in schema_of(model).names]
        return Answers(path, model, names, frozenset(), lambda rows: [model.grad_log_density(rows)])
    if hasattr(model, "difference"):
        return Answers(path, model, ["difference"], frozenset(), lambda rows: [model.difference(rows)])
    raise InputError(
        f"{path} holds a {type(model).__name__}, which says nothing of single rows; use a density, a score, a difference, a "
        "detector, or a pipeline that ends in a density or a detector."
    )


def _last_step(model: Any) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """Return the last step of a pipeline, and the transformation of rows before it."""
    if not isinstance(model, Pipeline):
        return model, lambda rows: rows
    return model[-1], model[:-1].transform if len(model) > 1 else lambda rows: rows


def judged(detector: AnomalyDetector, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores and p-values of new rows, and the mask of flagged rows."""
    scores = detector.score_samples(rows)
    return scores, detector.p_values(rows), scores - detector.offset_ < 0.0
