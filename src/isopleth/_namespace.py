"""The one place that knows which array library is in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import numpy as np

from isopleth.errors import InputError

Array = Any
"""An array of any library that follows the array-API standard."""


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
class Home:
    """Where the arrays of a caller live: an array library and a device of it.

    Work of the size of the data is done on the host; what is more goes to the home (:meth:`send`), and the array API does
    the rest there. In an estimator:

    - ``home = Home.of(X)`` before `X` is checked, in every public method;
    - ``home.send(z)`` for what an operator is made of, in ``fit``, and ``settle(self, home)`` of :mod:`isopleth.home` at its end;
    - ``return home.send(answer)``: the answer is at the home of the question;
    - ``Home.of(self.dual_coef_)`` is where the model itself lives, to which rows of a question are sent.

    Parameters
    ----------
    library : module, optional
        Namespace of the array API; None is NumPy.
    device : object, optional
        Device of that library.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth._namespace import HOST, Home
    >>> Home.of(np.zeros(3)) is HOST and Home.of([[1.0]]) is HOST
    True
    """

    library: Any = None
    device: Any = None

    @classmethod
    def of(cls, x: Any, name: str = "X") -> Home:
        """The home of an array; the host for whatever is no array of another library, frames and lists among them.

        Arrays that cannot be written to, as those of JAX, are no home to sums in place: the host serves them too. `name` is
        what messages call `x`.
        """
        if not is_foreign(x) or not array_api_compat.is_writeable_array(x):
            return HOST
        refuse_gradient(x, name)
        home = cls(namespace(x), array_api_compat.device(x))
        if not _has_float64(home):
            raise InputError(f"{name} is on {home.device}, which has no float64; bring it to the processor first.")
        return home

    def send(self, a: Any) -> Any:
        """NumPy array `a` as an array of this home; anything else, and everything on the host, as it is."""
        if self.library is None or not isinstance(a, np.ndarray):
            return a
        # A copy: the memory of `a` may be written to by whoever gave it, and some libraries want it in order.
        return self.library.asarray(np.ascontiguousarray(a).reshape(a.shape), device=self.device, copy=True)


HOST = Home()
"""NumPy, in the memory of the processor."""


@lru_cache
def _has_float64(home: Home) -> bool:
    kinds = home.library.__array_namespace_info__().dtypes(device=home.device, kind="real floating")
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
