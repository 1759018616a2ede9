"""What the processor and other devices have in common, and what not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def full_precision(x: Array) -> Iterator[None]:
    """No shortened factors in torch's products of `x`: a distance is a difference of numbers far larger than itself."""
    if isinstance(x, np.ndarray) or not array_api_compat.is_torch_array(x):
        yield
        return
    with _LONG_FACTORS, sys.modules["torch"].autocast(x.device.type, enabled=False):
        yield


class _LongFactors:
    """Float32 products by factors of float32.

    The setting belongs to the process: the first of several callers at once makes it, the last one takes it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._undo: Callable[[], None]

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._undo = _lengthen(sys.modules["torch"])
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo()


_LONG_FACTORS = _LongFactors()


def _lengthen(torch: Any) -> Callable[[], None]:
    """Set them, and answer with what takes that back. torch has two names for the setting, and no product where they differ."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # set by the newer name
        matmul = torch.backends.cuda.matmul
        shorter, matmul.fp32_precision = matmul.fp32_precision, "ieee"
        return lambda: setattr(matmul, "fp32_precision", shorter)
    if before == "highest":
        return lambda: None
    torch.set_float32_matmul_precision("highest")
    return lambda: torch.set_float32_matmul_precision(before)


def later(flag: Array) -> Callable[[], bool]:
    """Ask for a truth value now, to be had when it is there: only what was begun before it is waited for."""
    if isinstance(flag, np.generic) or not array_api_compat.is_torch_array(flag) or flag.device.type != "cuda":
        return lambda: bool(flag)
    torch = sys.modules["torch"]
    host = torch.empty_like(flag, device="cpu", pin_memory=True)
    host.copy_(flag, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(flag.device))

    def wait() -> bool:
        arrived.synchronize()
        return bool(host)

    return wait
