"""What the processor and other devices have in common, and what not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import array_api_compat
import numpy as np

from isopleth._namespace import Array, to_numpy


def on_processor(x: Array) -> bool:
    """Whether the numbers of `x` lie in the processor's own memory."""
    if isinstance(x, np.ndarray):
        return True
    device = array_api_compat.device(x)
    return "cpu" in str(getattr(device, "type", device)).lower()


def host_view(x: Array) -> Array:
    """A tensor of torch in the processor's memory as NumPy's view of the same numbers; anything else as it is.

    NumPy's tiles stay in the cache, where torch makes new arrays: they take half of the time.
    """
    if isinstance(x, np.ndarray):
        return x
    return to_numpy(x) if array_api_compat.is_torch_array(x) and on_processor(x) else x


def full_precision(x: Array) -> AbstractContextManager[None]:
    """No shortened factors in torch's float32 products: a distance is a difference of numbers far larger than itself."""
    if isinstance(x, np.ndarray) or not array_api_compat.is_torch_array(x):
        return nullcontext()
    return _highest_precision(sys.modules["torch"])


@contextmanager
def _highest_precision(torch: Any) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
