"""Save fitted models to files that cannot run code, and load them."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from isopleth.backend import is_foreign, to_numpy
from isopleth.errors import InputError, MissingExtraError
from isopleth.io.files import atomic_write, check_source
from isopleth.io.model_archive import check_archive, finished, listed_types, trusted_types


def with_numpy_arrays(value: Any) -> Any:
    """Return a model whose arrays of other libraries are replaced by NumPy's; the model itself where there are none.

    Parameters
    ----------
    value : object
        An estimator, or what one may hold: dataclasses, dicts, lists and tuples are searched. It is not changed.
    """
    if is_foreign(value):
        return to_numpy(value)
    if isinstance(value, dict):
        found = {key: with_numpy_arrays(part) for key, part in value.items()}
        return value if _same(found.values(), value.values()) else found
    if isinstance(value, (list, tuple)):
        parts = [with_numpy_arrays(part) for part in value]
        if _same(parts, value):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, type) or not (isinstance(value, BaseEstimator) or is_dataclass(value)):
        return value
    state = vars(value)
    found = with_numpy_arrays(state)
    if found is state:
        return value
    out = copy(value)
    vars(out).update(found)  # past what a frozen dataclass guards: this is its copy
    return out


def _same(some: Any, others: Any) -> bool:
    return all(a is b for a, b in zip(some, others, strict=True))


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, whole or not at all.

    The arrays of a model that was fitted to tensors are converted to NumPy's, and :func:`load` gives a model of NumPy: its
    predictions are those of the first but for rounding.

    The file is a zip archive that `skops <https://skops.readthedocs.io>`_ writes: arrays and names of types, no code.

    Parameters
    ----------
    model : estimator
        A model of this library, or a scikit-learn estimator (say, a pipeline) that holds one.
    path : path-like
        The file; an existing one is replaced.

    Raises
    ------
    InputError
        If the model holds something that could not be loaded again without running code, such as a function, or if the
        file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.preprocessing import StandardScaler
    >>> from isopleth.io import load, save
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "model.isopleth"
    >>> save(StandardScaler().fit([[0.0], [2.0]]), path)
    >>> load(path).mean_
    array([1.])
    >>> folder.cleanup()
    """
    if not isinstance(model, BaseEstimator):
        raise InputError(f"a {type(model).__name__} is not a model; save an estimator.")
    content = _archive(model)
    with atomic_write(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote. No code of the file is run, whoever wrote it.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        Equal to what was saved, to the last bit of its predictions where it was fitted to NumPy arrays.

    Raises
    ------
    InputError
        If the file does not exist, is no plain file or no model of this library (a pickle, for example), is damaged,
        was written by a later version, or names types that are neither of this library nor of NumPy and scikit-learn.
    """
    source = check_source(path, "model file")
    content = source.read_bytes()
    try:
        check_archive(source, content)
        model = _constructed(source, content)
    except (InputError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # a damaged or hostile file can make the reader of the archive raise anything
        raise _damaged(source) from error
    if not isinstance(model, BaseEstimator):
        raise InputError(f"{path} holds a {type(model).__name__} and no model; save an estimator.")
    return model


def _archive(model: BaseEstimator) -> bytes:
    from skops.io import dumps, get_untrusted_types  # its import takes longer than everything else together

    try:
        content = dumps(with_numpy_arrays(model))
    except (TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"this {type(model).__name__} cannot be saved without running code: {error}") from error
    _, refused = trusted_types(get_untrusted_types(data=content))
    if refused:
        raise InputError(
            f"this {type(model).__name__} holds {listed_types(refused)}, which cannot be loaded again without running "
            "code; replace it by a name, a number or a kernel of this library."
        )
    return finished(content)


def _constructed(path: Path, content: bytes) -> Any:
    from skops.io import get_untrusted_types, loads  # its import takes longer than everything else together

    accepted, refused = trusted_types(get_untrusted_types(data=content))
    if refused:
        raise InputError(
            f"{path} names {listed_types(refused)}, which is not a part of a model and is not loaded; "
            "use a file from a source you know, written by isopleth.save."
        )
    return loads(content, trusted=accepted)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged or cut short; save the model again, or fetch the file again.")
