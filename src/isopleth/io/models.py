"""Keeping fitted models in files that cannot run code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from isopleth.errors import InputError, MissingExtraError
from isopleth.io.archive import check_archive, finished
from isopleth.io.atomic import atomic_write
from isopleth.io.hosting import hosted
from isopleth.io.trust import listed_types, trusted_types


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
    source = Path(path)
    content = _content(source)
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
        content = dumps(hosted(model))
    except (TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"this {type(model).__name__} cannot be saved without running code: {error}") from error
    _, refused = trusted_types(get_untrusted_types(data=content))
    if refused:
        raise InputError(
            f"this {type(model).__name__} holds {listed_types(refused)}, which cannot be loaded again without running "
            "code; replace it by a name, a number or a kernel of this library."
        )
    return finished(content)


def _content(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a model file in it.")
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a plain file; copy what it gives into one.")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the name and the folder.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read; ask for the permission to read it.") from None


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
