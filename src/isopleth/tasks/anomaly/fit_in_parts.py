"""Fits of a detector to rows in parts, such as those of a large file or a Dask collection, and to a sample of many rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.parts import Parts, take_columns
from isopleth.tasks.anomaly.fit_sample import AllRows, AllScores, FirstLook, FitSample, digest_of, distinct_places
from isopleth.tasks.anomaly.framed_rows import with_gap_codes

if TYPE_CHECKING:
    from isopleth.tables.schema import Schema
    from isopleth.tasks.anomaly.detector import AnomalyDetector
    from isopleth.tasks.anomaly.shared_values import SharedValues


def fit_parts(detector: AnomalyDetector, parts: Parts, columns: Schema | None = None) -> AnomalyDetector:
    """Fit a detector to rows in parts, in three passes; the answers are those of a fit in memory.

    Parameters
    ----------
    detector : AnomalyDetector
        The detector; without ``novelty=True``, which takes its reference in memory.
    parts : Parts
        Rows: numbers, then codes of categories, NaN where a cell is missing.
    columns : Schema, optional
        What the columns are used as; numbers by default.

    Returns
    -------
    AnomalyDetector
        The detector itself, with the scores of all rows in memory.

    Raises
    ------
    InputError
        If the rows or parameters cannot be used.
    """
    detector._validate_params()
    detector.__dict__.pop("offset_", None)
    for name in ("schema_", "_stretches"):  # of an earlier fit
        detector.__dict__.pop(name, None)
    if detector.novelty:
        raise InputError(
            "novelty=True is fitted to a reference in memory; pass a part of the rows as an array or frame."
        )
    take_columns(detector, parts)
    if columns is not None:
        detector.schema_ = columns
    detector._groups = None
    most = detector._most_common
    look = parts.sums(lambda: FirstLook(parts.n_features, most), FirstLook.add)
    if look.n_rows < 2:
        raise InputError(f"X has {look.n_rows} rows; at least 2 are needed.")
    seed = detector._begin(look, columns)
    if look.n_rows > detector.max_fit_rows:
        fit_to_sample(detector, parts, look, columns, seed)
        return detector
    rows = parts.sums(AllRows, AllRows.add).all
    surprises, table, in_frame = detector._fit_rule(with_gap_codes(rows, detector._gap_codes), columns, seed)
    detector._digest_of_fit = digest_of(in_frame).hexdigest()
    detector._judge_fitted(surprises, table)
    return detector


def fit_to_sample(detector: AnomalyDetector, parts: Parts, look: FirstLook, columns: Schema | None, seed: int) -> None:
    """Fit the rule to a sample of the rows, and judge all rows by it, in two more passes over their parts."""
    size = int(detector.max_fit_rows)
    add = partial(_add_to_sample, gap_codes=detector._gap_codes)
    found = parts.sums(lambda: FitSample(size, seed, look), add)
    if found.lacks_rows:
        found = parts.sums(lambda: FitSample(size, seed, look, every=True), add)
    drawn, copies, weights = found.drawn
    surprises, table, _ = detector._fit_rule(drawn, columns, seed, copies, weights)
    every = found.complete and len(drawn) <= size
    detector.n_samples_fit_ = look.n_rows if every else min(round(float(weights.sum())), look.n_rows)
    shared = detector._fit_tail(surprises, table)
    scores = parts.sums(AllScores, partial(_add_scores, detector, shared))
    detector._digest_of_fit = scores.digest
    detector._judge(scores.all, scores.all_alone)


def _add_to_sample(found: FitSample, rows: np.ndarray, weights: np.ndarray | None, gap_codes: np.ndarray) -> FitSample:
    found.add(with_gap_codes(rows, gap_codes))
    return found


def _add_scores(
    detector: AnomalyDetector, shared: SharedValues, found: AllScores, rows: np.ndarray, weights: np.ndarray | None
) -> AllScores:
    """Add the scores of rows."""
    in_frame = detector._frame.enter(detector._coded(rows))
    first, place = distinct_places(in_frame)
    once = in_frame if len(first) == len(rows) else in_frame[first]
    scores = -detector._rule.surprises(once, detector._index.find(once), detector._budget).sum(axis=1)
    alone = shared.scores(detector._rule, once, scores, detector._budget)
    if once is not in_frame:
        scores, alone = scores[place], alone[place]
    return found.add(scores, alone, in_frame)
