"""All comparisons, in the order in which they run."""

from __future__ import annotations

from benchmarks import anomalies, fisher, grids, nystrom, products, sampled_kernel, scoring, searching, sosrep
from benchmarks.comparison import Comparison

SUBJECTS: dict[str, list[Comparison]] = {
    module.__name__: module.COMPARISONS
    for module in (products, sampled_kernel, sosrep, fisher, scoring, grids, searching, nystrom, anomalies)
}
