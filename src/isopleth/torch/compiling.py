"""Keep the differentiable functions out of graphs of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import torch

P = ParamSpec("P")
T = TypeVar("T")


def outside_graphs(function: Callable[P, T]) -> Callable[P, T]:
    """Keep a function out of the graphs of ``torch.compile``.

    The sums choose tiles by the memory limit, check values and run in threads, none of which a graph can hold. A compiled
    function that calls one of them is compiled before and after the call, and gradients pass through it as they do otherwise.
    With ``fullgraph=True``, which allows no such break, torch refuses the function.
    """
    reason = "sums of isopleth.torch go tile by tile, in threads; they are not part of a graph"
    return cast(Callable[P, T], torch.compiler.disable(function, reason=reason))
