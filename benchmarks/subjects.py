"""List of all comparisons, in the order in which they run."""

from __future__ import annotations

from benchmarks import (
    anomalies,
    differences,
    fisher,
    gradients,
    grids,
    nystrom,
    products,
    sampled_kernel,
    scores,
    scoring,
    searching,
    sosrep,
    two_samples,
)
from benchmarks.comparison import Comparison

SUBJECTS: dict[str, list[Comparison]] = {
    module.__name__: module.COMPARISONS
    for module in (
        products,
        gradients,
        sampled_kernel,
        sosrep,
        fisher,
        scoring,
        grids,
        searching,
        scores,
        nystrom,
        anomalies,
        differences,
        two_samples,
    )
}
