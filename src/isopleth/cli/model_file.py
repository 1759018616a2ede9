"""A model that ``--model`` names: loaded, and held against this version of the library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sklearn.base import BaseEstimator

from isopleth.errors import InputError
from isopleth.io import load
from isopleth.tasks.anomaly.detector import AnomalyDetector


def load_detector(path: Path) -> AnomalyDetector:
    """A fitted detector from a file.

    Raises
    ------
    InputError
        If the file holds something else.
    """
    detector = load(path)
    if not isinstance(detector, AnomalyDetector):
        raise InputError(f"{path} holds a {type(detector).__name__}; a model written with --save is needed.")
    if not hasattr(detector, "offset_"):
        raise InputError(f"{path} holds a detector that is not fitted; a model written with --save is needed.")
    return detector


@contextmanager
def of_this_version(path: Path) -> Iterator[None]:
    """Blame the file where a model loaded from it lacks attributes, or has others than its methods count on.

    Raises
    ------
    InputError
        If the block fails in one of the ways in which that shows.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path} does not fit this version of isopleth: fit and save it again.") from error


@contextmanager
def matched_columns() -> Iterator[None]:
    """Let the columns be, that have been matched by name: scikit-learn sees an array without names, and would say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def columns_at_fit(model: BaseEstimator) -> tuple[int, list[str] | None]:
    """How many columns a model was fitted on, and their names where they had any."""
    names = getattr(model, "feature_names_in_", None)
    return int(model.n_features_in_), None if names is None else [str(name) for name in names]
