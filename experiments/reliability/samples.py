"""Valid files to begin with: small tables in every format, and models of several kinds."""

from __future__ import annotations

import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import isopleth

ROWS, COLUMNS = 24, 3


def rows(seed: int = 0, n: int = ROWS) -> np.ndarray:
    """Normal rows, the same every time."""
    return np.random.default_rng(seed).normal(size=(n, COLUMNS))


def tables() -> dict[str, list[bytes]]:
    """Contents of valid files by suffix."""
    return {".csv": _text(","), ".tsv": _text("\t"), ".npy": _npy(), ".npz": _npz(), ".parquet": _parquet()}


def models() -> dict[str, BaseEstimator]:
    """Fitted models by name."""
    X, labels = rows(), np.array(["a", "b"] * (ROWS // 2))
    return {
        "SOSREP": isopleth.SOSREP(length_scale=1.0, frame="scale").fit(X),
        "KDE": isopleth.KDE(length_scale=1.0, frame="scale").fit(X),
        "RandomFeatureSOSREP": isopleth.RandomFeatureSOSREP(length_scale=2.0, n_frequencies=20, random_state=0).fit(X),
        "KernelScore": isopleth.KernelScore(length_scale=1.0).fit(X),
        "LSDD": isopleth.LSDD(random_state=0).fit(X, rows(1)),
        "AnomalyDetector": isopleth.AnomalyDetector(random_state=0).fit(X),
        "ClassPriorEstimator": isopleth.ClassPriorEstimator(random_state=0).fit(X, labels),
        "DriftMonitor": isopleth.DriftMonitor(5, 100.0, random_state=0).fit(rows(2, 60)),
        "pipeline": make_pipeline(
            StandardScaler(), FunctionTransformer(np.tanh), isopleth.SOSREP(length_scale=1.0, frame="scale")
        ).fit(X),
    }


def answer(model: BaseEstimator) -> object:
    """Return the result of a model for new rows, by the method that it has."""
    X = rows(3)
    for name in ("score_samples", "difference", "score_function", "estimate", "update", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    return repr(model)


def _text(delimiter: str) -> list[bytes]:
    X = rows()
    lines = [delimiter.join(f"{value:.6g}" for value in row) for row in X]
    header = delimiter.join(["height", '"a width"', "age"])
    plain = "\n".join([header, *lines]) + "\n"
    bare = "\r\n".join(lines)
    indexed = "\n".join([delimiter + header, *(f"{i}{delimiter}{line}" for i, line in enumerate(lines))])
    words = "\n".join(
        [header + delimiter + "kind", *(f"{line}{delimiter}{'ab'[i % 2]}" for i, line in enumerate(lines))]
    )
    gaps = plain.replace("1", "", 3).replace("2", "NA", 2)
    return [text.encode("utf-8") for text in (plain, bare, indexed, words, gaps, "\ufeff" + plain)]


def _npy() -> list[bytes]:
    X = rows()
    arrays = (X, np.asfortranarray(X), X.astype(np.float32), (X > 0), (100 * X).astype(np.int16), X[0], X.astype(">f8"))
    return [_saved(np.save, array) for array in arrays]


def _npz() -> list[bytes]:
    X = rows()
    return [
        _saved(np.savez, X=X),
        _saved(np.savez, X=X, y=X[:, 0]),
        _saved(np.savez, table=X, other=X[0]),
        _saved(np.savez_compressed, X=X),
    ]


def _saved(save: object, *arrays: object, **named: object) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **named)  # type: ignore[operator]
    return buffer.getvalue()


def _parquet() -> list[bytes]:
    """None where the package is not installed: the format is then refused by one sentence for all files."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return [b"PAR1" + bytes(40) + b"PAR1"]
    X = rows()
    numbers = {name: X[:, j] for j, name in enumerate("abc")}
    mixed = numbers | {"flag": X[:, 0] > 0, "word": ["x", "y"] * (ROWS // 2), "count": np.arange(ROWS)}
    nested = numbers | {"list": [[1, 2]] * ROWS, "none": pyarrow.nulls(ROWS)}
    out = []
    for columns, options in (
        (numbers, {}),
        (numbers, {"compression": "none"}),
        (mixed, {}),
        (nested, {}),
        (mixed, {"version": "1.0"}),
    ):
        buffer = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), buffer, **options)
        out.append(buffer.getvalue())
    return out


@cache
def model_files() -> dict[str, bytes]:
    """Return the contents of the model files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isopleth"
        found = {}
        for name, model in models().items():
            isopleth.save(model, path)
            found[name] = path.read_bytes()
        return found
