"""What a model says of each row, as columns of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from isopleth.cli.model_file import columns_at_fit, matched_columns, of_this_version
from isopleth.density.estimator import DensityEstimator
from isopleth.errors import InputError
from isopleth.io import load
from isopleth.tasks.anomaly.detector import AnomalyDetector


@dataclass(frozen=True, eq=False)
class Answers:
    """A model, and the numbers it has for a row.

    Parameters
    ----------
    source : Path
        The file of the model.
    model : estimator
        Fitted.
    names : list of str
        What the numbers are.
    whole : frozenset of str
        Those that are whole numbers.
    """

    source: Path
    model: Any
    names: list[str]
    whole: frozenset[str]
    _answer: Callable[[np.ndarray], list[np.ndarray]]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The answers for `rows`, an array of shape (n, number of names)."""
        with of_this_version(self.source), matched_columns():
            return np.column_stack(self._answer(rows))


def answers_of(path: Path) -> Answers:
    """What the model in a file says of rows.

    Raises
    ------
    InputError
        If it is no model, is not fitted or says nothing of single rows.
    """
    model = load(path)
    with of_this_version(path):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise InputError(
                f"{path} holds a {type(model).__name__} that is not fitted; fit it before it is saved."
            ) from None
        return _of_kind(path, model)


def _of_kind(path: Path, model: Any) -> Answers:
    last, entered = _last_step(model)
    if isinstance(last, AnomalyDetector):
        names = ["score", "p_value", "label"]
        return Answers(path, model, names, frozenset({"label"}), lambda rows: list(judged(last, entered(rows))))
    if hasattr(last, "score_samples"):
        what = "log_density" if isinstance(last, DensityEstimator) else "score"
        return Answers(path, model, [what], frozenset(), lambda rows: [last.score_samples(entered(rows))])
    if hasattr(model, "grad_log_density"):
        width, columns = columns_at_fit(model)
        names = [f"d_{name}" for name in columns or [f"x{j + 1}" for j in range(width)]]
        return Answers(path, model, names, frozenset(), lambda rows: [model.grad_log_density(rows)])
    if hasattr(model, "difference"):
        return Answers(path, model, ["difference"], frozenset(), lambda rows: [model.difference(rows)])
    raise InputError(
        f"{path} holds a {type(model).__name__}, which says nothing of single rows; use a density, a score, a difference, a "
        "detector, or a pipeline that ends in a density or a detector."
    )


def _last_step(model: Any) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """What answers, and what becomes of rows before it does; vectors and differences in other columns would mislead."""
    if not isinstance(model, Pipeline):
        return model, lambda rows: rows
    return model[-1], model[:-1].transform if len(model) > 1 else lambda rows: rows


def judged(detector: AnomalyDetector, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and p-values of new rows, and which of them are flagged."""
    scores = detector.score_samples(rows)
    return scores, detector.p_values(rows), scores - detector.offset_ < 0.0
