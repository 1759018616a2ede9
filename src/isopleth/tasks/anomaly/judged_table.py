"""The answer of a detector about the rows of a table, and what its flags mean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.arrays import to_numpy
from isopleth.results.result import chosen_rows, index_of, keeps_warnings, shown_cells
from isopleth.results.text import resolution_of
from isopleth.tables.checks import CheckedRows, plain_names
from isopleth.tasks.anomaly.certificate import CONFIDENCE
from isopleth.tasks.anomaly.framed_rows import with_gap_codes
from isopleth.tasks.anomaly.result import Anomalies
from isopleth.tasks.anomaly.whole_table import deciding_column, rows_to_explain

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.detector import AnomalyDetector

_TIE = 1e-9  # scores that differ by less than this share are one


@keeps_warnings
def anomalies(detector: AnomalyDetector, X: Any, fdr: float, explain: int) -> Anomalies:
    """Return what :meth:`AnomalyDetector.anomalies` answers."""
    table, rows = detector._enter(X, warn=False)  # `select` warns
    own, scores = detector._is_of_fit(rows), detector._score(rows)
    cells, names = shown_cells(X, table.rows, plain_names(detector))
    if own:
        found = anomalies_of_fit(detector, names, cells, fdr)
    else:
        labels = np.where(scores < detector.offset_, -1, 1)
        judged = (
            names,
            cells,
            scores,
            detector._p_values(rows),
            labels,
            to_numpy(detector.select(X, fdr=fdr)),
            float(fdr),
        )
        found = Anomalies(*judged, _rule_of_flags(detector, own=False), new=True, sampled=_sampled(detector))
        found = replace(found, resolution=1.0 / (detector._references() + 1))
    found = replace(found, where=index_of(X) or found.where)
    if table.columns is not None or table.missing.any():
        found = replace(found, drawn=_drawn(detector, table) if table.n_numeric else None)
    if not own and len(some := rows_to_explain(found.certain)):
        found = replace(found, decided_by=deciding_column(detector.explain(chosen_rows(X, some)), names))
    if detector.novelty and not own and detector._split is not None:
        certificate = detector._split.certificate(rows, detector._budget)
        found = replace(found, at_least=certificate.at_least(found.order), confidence=CONFIDENCE)
    if explain:
        chosen = found.order[:explain]
        found = replace(found, explanation=detector.explain(chosen_rows(X, chosen)), explained_rows=chosen)
    return found.like(X)


def anomalies_of_fit(detector: AnomalyDetector, names: list[str], cells: Any, fdr: float) -> Anomalies:
    """Return what :meth:`AnomalyDetector.anomalies_of_fit` answers."""
    certain, labels = to_numpy(detector.select(fdr=fdr)), to_numpy(detector.training_labels_)
    judged = (
        names,
        cells,
        to_numpy(detector.training_scores_),
        to_numpy(detector.p_values_),
        labels,
        certain,
        float(fdr),
    )
    resolution = resolution_of(detector.n_samples_fit_)
    return Anomalies(*judged, _rule_of_flags(detector, own=True), resolution=resolution, sampled=_sampled(detector))


def _sampled(detector: AnomalyDetector) -> int | None:
    """Number of rows that the rule is fitted to, if these are a sample."""
    return detector.n_samples_fit_ if detector.n_samples_fit_ < len(detector.training_scores_) else None


def _rule_of_flags(detector: AnomalyDetector, *, own: bool) -> str:
    """Return what a flag means, in a few words; `own` for the rows of the fit."""
    if detector.contamination == "auto":
        usual = "; in a table without anomalies about 3 % of the rows are flagged, too" * (own and not detector.novelty)
        return f"worth a look, as unlikely as the least likely thirtieth of ordinary rows{usual}"
    return f"the least likely {float(detector.contamination):.3g} of the fitted rows{_ties(detector)}"


def _ties(detector: AnomalyDetector) -> str:
    """Say that rows with one score decide how many are flagged, where it is fewer than the share asked for."""
    scores = to_numpy(detector.training_scores_)
    wanted, flagged = (
        int(float(detector.contamination) * len(scores)),
        int((to_numpy(detector.training_labels_) < 0).sum()),
    )
    if flagged >= wanted:
        return ""
    limit = np.percentile(scores, 100.0 * float(detector.contamination))
    tied = int((np.abs(scores - limit) <= _TIE * max(1.0, abs(limit))).sum())
    return f", which would be {wanted:,}; {tied:,} rows have one score there, so {flagged:,} of the fitted rows are flagged"


def _drawn(detector: AnomalyDetector, table: CheckedRows) -> tuple[np.ndarray, list[str], list[str]]:
    """Return numbers and times for pictures, missing ones at their conditional means; their names; names of times."""
    numeric = table.n_numeric
    coded = with_gap_codes(table.rows, detector._gap_codes)
    values, some = coded[:, :numeric], np.flatnonzero(np.isnan(coded).any(axis=1))
    if len(some):
        filled = detector._rule.complete(detector._frame.enter(coded[some]), detector._budget)
        filled = detector._frame.leave(filled, np.nan_to_num(detector._reasons.drawn[0]))
        values = values.copy()
        values[some] = np.where(np.isnan(coded[some]), filled, coded[some])[:, :numeric]
    if table.columns is None:
        return values, plain_names(detector)[:numeric], []
    names, origins = table.columns.numeric_names[:numeric], table.columns.origins
    return values + [origins.get(name, 0.0) for name in names], names, list(origins)
