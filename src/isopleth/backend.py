"""The one place that knows which array library is in use."""

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

from isopleth.errors import InputError

# An array of any library that follows the array-API standard.
Array = Any


def namespace(*arrays: Array) -> Any:
    """Array-API namespace that all of `arrays` belong to.

    NumPy itself answers for NumPy arrays: it follows the standard since 2.0, and its functions take ``out=``, which
    the hot path needs.
    """
    for a in arrays:  # asked so often that all(...) over a generator would show
        if not isinstance(a, np.ndarray):
            return array_api_compat.array_namespace(*arrays)
    return np


def overwrite(function: Any, a: Array) -> Array:
    """Apply the elementwise `function` to `a` in its own memory; libraries without ``out=`` get a copy back into it."""
    if isinstance(a, np.ndarray) or array_api_compat.is_torch_array(a):
        return function(a, out=a)
    a[...] = function(a)
    return a


def add_at(out: Array, rows: Array, values: Array) -> None:
    """``out[rows] += values`` where a row may occur several times, which the standard has no function for."""
    if isinstance(out, np.ndarray):
        # Points that meet themselves: each occurs once, and this takes a fifth of the time.
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
    """Whether `x` is an array of an array-API library other than NumPy, on whatever device.

    A Dask array is none: it holds no numbers yet.
    """
    if isinstance(x, (np.ndarray, np.generic)) or array_api_compat.is_dask_array(x):
        return False
    return bool(array_api_compat.is_array_api_obj(x))


def to_numpy(x: Any) -> Any:
    """Array of any library as a NumPy array of its own dtype; what is no such array (NumPy's, frames, lists) as it is.

    A tensor comes without its gradient, and one of floats that NumPy lacks, as bfloat16, as float32.
    """
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
    """The device of the processor, under the name that the library of `x` has for it."""
    return namespace(x).__array_namespace_info__().default_device()


@dataclass(frozen=True)
class Backend:
    """Where the arrays of a caller live: an array library and a device of it.

    Work of the size of the data is done on the host; what is more goes to the backend (:meth:`array`), and the array API does
    the rest there. In an estimator:

    - ``backend = Backend.of(X)`` before `X` is checked, in every public method;
    - ``backend.array(z)`` for what an operator is made of, in ``fit``, and ``to_backend(self, backend)`` of :mod:`isopleth.backend` at its end;
    - ``return backend.array(answer)``: the answer is at the backend of the question;
    - ``Backend.of(self.dual_coef_)`` is where the model itself lives, to which rows of a question are sent.

    Parameters
    ----------
    library : module, optional
        Namespace of the array API; None is NumPy.
    device : object, optional
        Device of that library.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.backend import NUMPY, Backend
    >>> Backend.of(np.zeros(3)) is NUMPY and Backend.of([[1.0]]) is NUMPY
    True
    """

    library: Any = None
    device: Any = None

    @classmethod
    def of(cls, x: Any, name: str = "X") -> Backend:
        """The backend of an array; the host for whatever is no array of another library, frames and lists among them.

        Arrays that cannot be written to, as those of JAX, are no backend to sums in place: the host serves them too. `name` is
        what messages call `x`.
        """
        if not is_foreign(x) or not array_api_compat.is_writeable_array(x):
            return NUMPY
        refuse_gradient(x, name)
        backend = cls(namespace(x), array_api_compat.device(x))
        if not _has_float64(backend):
            raise InputError(f"{name} is on {backend.device}, which has no float64; bring it to the processor first.")
        return backend

    def array(self, a: Any) -> Any:
        """NumPy array `a` as an array of this backend; anything else, and everything on the host, as it is."""
        if self.library is None or not isinstance(a, np.ndarray):
            return a
        # A copy: the memory of `a` may be written to by whoever gave it, and some libraries want it in order.
        return self.library.asarray(np.ascontiguousarray(a).reshape(a.shape), device=self.device, copy=True)


# NumPy, in the memory of the processor.
NUMPY = Backend()


@lru_cache
def _has_float64(backend: Backend) -> bool:
    kinds = backend.library.__array_namespace_info__().dtypes(device=backend.device, kind="real floating")
    return "float64" in kinds


def refuse_gradient(x: Any, name: str) -> None:
    """Refuse a tensor through which a gradient is wanted.

    Raises
    ------
    InputError
        If it asks for one: a fit would cut it off in silence.
    """
    if getattr(x, "requires_grad", False) is True:
        raise InputError(
            f"{name} requires a gradient, which estimators do not pass on; give {name}.detach(), or use the functions of "
            "isopleth.torch, which do."
        )


def to_backend(model: Any, backend: Backend) -> None:
    """Send the public fitted arrays of `model` to a backend, at the end of a fit.

    These are the attributes of numbers whose names end, and do not begin, with an underscore. Names of columns stay what they
    are, and what is held by another object, a search path say, stays there.

    Parameters
    ----------
    model : estimator
        Just fitted.
    backend : Backend
        That of the rows: ``Backend.of(X)``.
    """
    if backend == NUMPY:
        return
    for name, value in vars(model).items():
        public = name.endswith("_") and not name.startswith("_")
        if public and isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            setattr(model, name, backend.array(value))


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
