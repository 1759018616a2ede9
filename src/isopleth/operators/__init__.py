"""Sums of a kernel and its derivatives over points, tiled, threaded and within a memory budget."""

from __future__ import annotations

from isopleth.operators.blocks import GRADIENT, LAPLACIAN, LOG_GRADIENT, LOG_LAPLACIAN, LOG_SUM, VALUE, Block
from isopleth.operators.operator import DEFAULT_MEMORY_LIMIT, Operator

__all__ = [
    "DEFAULT_MEMORY_LIMIT",
    "GRADIENT",
    "LAPLACIAN",
    "LOG_GRADIENT",
    "LOG_LAPLACIAN",
    "LOG_SUM",
    "VALUE",
    "Block",
    "Operator",
]
