"""Fits over Dask collections and files that do not fit in memory, and a model's answers partition by partition."""

from __future__ import annotations

from isopleth.distributed.answers import (
    decision_function,
    difference,
    grad_log_density,
    p_values,
    predict,
    score_samples,
)
from isopleth.distributed.files import FileParts
from isopleth.distributed.fitting import fit

__all__ = [
    "FileParts",
    "decision_function",
    "difference",
    "fit",
    "grad_log_density",
    "p_values",
    "predict",
    "score_samples",
]
