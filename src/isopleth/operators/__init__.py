"""Sums of a kernel and its derivatives over points, in tiles, by threads and within a memory limit."""

from __future__ import annotations

from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.operators.blocks import DISTANCE, LAPLACIAN, LOG_GRADIENT, LOG_LAPLACIAN, LOG_SUM, VALUE, Block
from isopleth.operators.operator import Operator
from isopleth.operators.vector_blocks import (
    BILAPLACIAN,
    CURL_FREE,
    FLUX,
    FLUX_OF_LAPLACIAN,
    GRADIENT,
    GRADIENT_OF_LAPLACIAN,
    SLOPE,
)

__all__ = [
    "BILAPLACIAN",
    "CURL_FREE",
    "DEFAULT_N_JOBS",
    "DISTANCE",
    "FLUX",
    "FLUX_OF_LAPLACIAN",
    "GRADIENT",
    "GRADIENT_OF_LAPLACIAN",
    "LAPLACIAN",
    "LOG_GRADIENT",
    "LOG_LAPLACIAN",
    "LOG_SUM",
    "SLOPE",
    "VALUE",
    "Block",
    "Operator",
]
