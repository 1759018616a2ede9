"""Array libraries and devices: which one a caller uses, and moving arrays to it and back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from isopleth.core.errors import InputError

Array = Any
# An array of any library that follows the array-API standard.


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace of `arrays`; for NumPy arrays NumPy itself, whose functions take ``out=`` for hot paths."""
    for a in arrays:  # asked so often that all(...) over a generator would show
        if not isinstance(a, np.ndarray):
            return array_api_compat.array_namespace(*arrays)
    return np


def overwrite(function: Any, a: Array) -> Array:
    """Apply the elementwise `function` to `a` in place; for libraries without ``out=`` the result is copied into `a`."""
    if isinstance(a, np.ndarray) or array_api_compat.is_torch_array(a):
        return function(a, out=a)
    a[...] = function(a)
    return a


def add_at(out: Array, rows: Array, values: Array) -> None:
    """Compute ``out[rows] += values`` where rows may repeat; the array-API standard has no function for it."""
    if isinstance(out, np.ndarray):
        # Each row occurs once: plain indexing takes a fifth of the time of np.add.at.
        if (rows[1:] > rows[:-1]).all():
            out[rows] += values
        else:
            np.add.at(out, rows, values)
        return
    if array_api_compat.is_torch_array(out):
        out.index_put_((rows,), values, accumulate=True)  # the same on every run, which index_add_ is not on a GPU
        return
    for i in range(rows.shape[0]):
        out[int(rows[i]), ...] += values[i, ...]


def is_foreign(x: Any) -> bool:
    """Tell whether `x` is an array of an array-API library other than NumPy; Dask arrays, which hold no numbers yet, are not."""
    if isinstance(x, (np.ndarray, np.generic)) or array_api_compat.is_dask_array(x):
        return False
    return bool(array_api_compat.is_array_api_obj(x))


def frame_names(X: Any) -> list[Any] | None:
    """Return the column names of a data frame of any library, or None for anything else."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def to_numpy(x: Any) -> Any:
    """Return an array of any library as a detached NumPy array; bfloat16, which NumPy lacks, becomes float32."""
    if not is_foreign(x):
        return x
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu().resolve_conj().resolve_neg()
        known = not x.is_floating_point() or str(x.dtype) in ("torch.float16", "torch.float32", "torch.float64")
        return (x if known else x.float()).numpy()
    if array_api_compat.is_cupy_array(x):
        return x.get()
    return np.asarray(x if array_api_compat.is_jax_array(x) else array_api_compat.to_device(x, _host_of(x)))


def _host_of(x: Array) -> Any:
    """Return the CPU device under the name that the library of `x` gives it."""
    return namespace(x).__array_namespace_info__().default_device()


@dataclass(frozen=True)
class Backend:
    """Array library and device of a caller's arrays.

    Only work that grows with pairs of rows is done there; what grows with rows is done in NumPy on the CPU.
    """

    library: Any = None  # namespace of the array API; None is NumPy
    device: Any = None  # device of that library

    @classmethod
    def of(cls, x: Any, name: str = "X") -> Backend:
        """Return the backend of an array; NumPy for other things, and for arrays in which sums cannot be updated."""
        if not is_foreign(x) or not array_api_compat.is_writeable_array(x):
            return NUMPY
        refuse_gradient(x, name)
        backend = cls(namespace(x), array_api_compat.device(x))
        if not _has_float64(backend):
            raise InputError(f"{name} is on {backend.device}, which has no float64; bring it to the processor first.")
        return backend

    def array(self, a: Any) -> Any:
        """Return the NumPy array `a` as an array of this backend; anything else unchanged."""
        if self.library is None or not isinstance(a, np.ndarray):
            return a
        # A copy: the memory of `a` may be written to by whoever gave it, and some libraries want it in order.
        return self.library.asarray(np.ascontiguousarray(a).reshape(a.shape), device=self.device, copy=True)


NUMPY = Backend()
# NumPy arrays, in the memory of the CPU.


@lru_cache
def _has_float64(backend: Backend) -> bool:
    kinds = backend.library.__array_namespace_info__().dtypes(device=backend.device, kind="real floating")
    return "float64" in kinds


def requires_gradient(x: Any) -> bool:
    """Tell whether `x` is a tensor that requires a gradient."""
    return getattr(x, "requires_grad", False) is True


def refuse_gradient(x: Any, name: str) -> None:
    """Refuse a tensor that requires a gradient: a fit would cut the gradient off silently."""
    if requires_gradient(x):
        raise InputError(
            f"{name} requires a gradient, which estimators do not pass on; give {name}.detach(), or use the functions of "
            "isopleth.torch, which do."
        )


def to_backend(model: Any, backend: Backend) -> None:
    """Move the numeric fitted arrays of `model` (names that end with an underscore) to a backend, at the end of a fit."""
    if backend == NUMPY:
        return
    for name, value in vars(model).items():
        public = name.endswith("_") and not name.startswith("_")
        if public and isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            setattr(model, name, backend.array(value))


def on_processor(x: Array) -> bool:
    """Tell whether `x` is in the memory of the CPU."""
    if isinstance(x, np.ndarray):
        return True
    device = array_api_compat.device(x)
    return "cpu" in str(getattr(device, "type", device)).lower()


def host_view(x: Array) -> Array:
    """Return a torch tensor in CPU memory as a NumPy view, since tiles that NumPy reuses take half the time; others unchanged."""
    if isinstance(x, np.ndarray):
        return x
    return to_numpy(x) if array_api_compat.is_torch_array(x) and on_processor(x) else x


@contextmanager
def full_precision(x: Array) -> Iterator[None]:
    """Switch off TF32 and autocast in torch products of `x`: a squared distance is a small difference of large numbers."""
    if isinstance(x, np.ndarray) or not array_api_compat.is_torch_array(x):
        yield
        return
    with _LONG_FACTORS, sys.modules["torch"].autocast(x.device.type, enabled=False):
        yield


class _LongFactors:
    """Full float32 precision of torch products, a global setting that the first caller sets and the last one restores."""

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
    """Set full precision by both names that torch has for it, which must agree, and return a function that restores it."""
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
    """Start the transfer of a truth value from a device; the returned function waits only for work started before."""
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
