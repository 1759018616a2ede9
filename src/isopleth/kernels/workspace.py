"""Scratch memory of the hot path."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isopleth._namespace import Array, namespace


class Workspace:
    """Scratch arrays of one thread, allocated once and used again: fresh pages cost more than the arithmetic."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def empty(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Uninitialised NumPy array of `shape`, sharing memory with every earlier array of the same `slot`."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[slot] = np.empty(size, dtype=np.uint8)
        return buffer[:size].view(dtype).reshape(shape)

    def copy(self, slot: str, a: Array) -> Array:
        """Copy of `a`: in this workspace for NumPy, wherever the library puts it for others."""
        if not isinstance(a, np.ndarray):
            return namespace(a).asarray(a, device=a.device, copy=True)
        out = self.empty(slot, a.shape, a.dtype)
        out[...] = a
        return out
