"""Parameters of tests that check one property for all kernels, in all dimensions, and so on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def pairs(first: Iterable[Any], second: Iterable[Any], third: Iterable[Any]) -> list[tuple[Any, Any, Any]]:
    """Combine three lists, the shortest last, so that each pair of values occurs: mistakes rarely need three values to meet."""
    last = list(third)
    return [(a, b, last[(i + j) % len(last)]) for i, a in enumerate(first) for j, b in enumerate(second)]
