"""Fits over Dask collections, record batches and files that do not fit in memory, and a model's answers part by part."""

from __future__ import annotations

from isopleth.distributed.answers import (
    decision_function,
    difference,
    fit,
    grad_log_density,
    p_values,
    predict,
    score_samples,
    transform,
)
from isopleth.distributed.batches import BatchParts
from isopleth.distributed.row_sample import sample
from isopleth.distributed.sampled_tasks import two_sample_test
from isopleth.files.parts import FileParts

__all__ = [
    "BatchParts",
    "FileParts",
    "decision_function",
    "difference",
    "fit",
    "grad_log_density",
    "p_values",
    "predict",
    "sample",
    "score_samples",
    "transform",
    "two_sample_test",
]
