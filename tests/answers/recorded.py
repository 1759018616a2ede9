"""Turn what the library returns into numbers that a file can hold, and compare them with those in the file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from isopleth.core.fitted_attributes import FromFit
from isopleth.results import Result
from isopleth.results.page import render

FILE = Path(__file__).with_name("answers.json")
TOLERANCE = 1e-6
# Arrays up to this size are recorded whole; of larger ones some values, the root mean square, and a mean with weights that no
# two elements share, so that a change of any element is seen.
_WHOLE, _SOME = 8, 5
# Rounding alone decides these.
_NOISE = re.compile(r"residual|n_iter|second|verbose|n_jobs|memory_limit|budget|versions?$|^key$")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and leaves (numbers, words, and arrays in short) of estimators, results, mappings and sequences."""
    if _NOISE.search(name.rpartition(".")[2]):
        return
    if (parts := _parts(value)) is not None:
        for key, held in parts.items():
            yield from flat(held, f"{name}.{key}" if name else str(key))
    elif (leaf := leaf_of(value)) is not NotImplemented:
        yield name, leaf


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a value by name; None for a number, a word or an array."""
    if isinstance(value, Result):
        content = value.content()
        cells = re.findall(r"<td.*?>(.*?)</td>", render(content), re.DOTALL)
        page = [len(cells), *numbers_in(" ".join(cells[:40]))]
        # All rows are recorded, and warnings are in the summary.
        answer = {key: part for key, part in value.to_dict().items() if key not in ("table_rows", "warnings")}
        return {"answer": answer, "charts": content.charts, "page": page}
    if isinstance(value, BaseEstimator):
        held = {key: part for key, part in vars(value).items() if key.endswith("_") and key[0] != "_"}
        known = [key for key in dir(type(value)) if isinstance(getattr(type(value), key, None), FromFit)]
        return held | {key: getattr(value, key) for key in known if hasattr(value, key)}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name, None) for f in fields(value) if f.name[0] != "_"}
    if isinstance(value, pd.DataFrame):
        return {str(key): value[key].to_numpy() for key in value}
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, (list, tuple)) or all(map(_is_plain, value)):
        return None
    if all(isinstance(one, Mapping) and one.keys() == value[0].keys() for one in value):  # the rows of a table
        return {key: [record[key] for record in value] for key in value[0]}
    return dict(enumerate(value[:12]))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, np.generic, date, time))


def leaf_of(value: Any) -> Any:
    """Return a number, a word, the numbers of a sentence, or an array in short; NotImplemented for anything else."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return value if value.isidentifier() else numbers_in(value)
    if isinstance(value, float):
        return _rounded(value)
    if isinstance(value, (date, time, np.datetime64)):
        return str(value)
    if isinstance(value, np.generic):
        return leaf_of(value.item())
    if not isinstance(value, (np.ndarray, list, tuple)):
        return NotImplemented
    array = np.asarray(value)
    if array.dtype.kind in "bui":
        array = array.astype(float)
    if array.dtype.kind in "mM":  # as text: a relative tolerance would be hours
        return array.astype(f"{array.dtype.kind}8[s]").ravel()[: 3 * _WHOLE].astype(str).tolist()
    if array.dtype.kind != "f":
        return [leaf_of(one) for one in array.ravel()[: 3 * _WHOLE].tolist()]
    return _short(array)


def _short(array: np.ndarray) -> Any:
    values = array.ravel()
    if values.size <= _WHOLE:
        return [_rounded(one) for one in values.tolist()]
    known = values[np.isfinite(values)]
    chosen = values[np.linspace(0, values.size - 1, _SOME).astype(int)]
    wave = float(known @ np.cos(np.arange(1, known.size + 1) ** 1.5)) / max(1.0, math.sqrt(known.size))
    size = math.sqrt(float(np.mean(known**2))) if known.size else 0.0
    some = [_rounded(one) for one in chosen.tolist()]
    return {
        "shape": list(array.shape),
        "finite": known.size,
        "size": _rounded(size),
        "wave": _rounded(wave),
        "some": some,
    }


def _rounded(value: float) -> Any:
    return float(f"{value:.10g}") if math.isfinite(value) else str(value)


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text, whose words may be improved."""
    return [float(found.replace(",", "")) for found in _NUMBER.findall(text)]


def differences(found: Mapping[str, Any], recorded: Mapping[str, Any], tolerance: float) -> list[str]:
    """Return what differs, in words; numbers by the tolerance, relative to the size of the array that they belong to."""
    out = [f"{name} is new" for name in found if name not in recorded]
    out += [f"{name} is gone" for name in recorded if name not in found]
    for name in found.keys() & recorded.keys():
        if not _close(found[name], recorded[name], tolerance):
            out.append(f"{name}: {found[name]}, recorded {recorded[name]}")
    return sorted(out)


def _close(a: Any, b: Any, tolerance: float, size: float = 0.0) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        size = max(abs(a.get("size", 0.0)), abs(b.get("size", 0.0)))
        return a.keys() == b.keys() and all(_close(a[key], b[key], tolerance, size) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        inside = [abs(one) for one in [*a, *b] if isinstance(one, float)]
        size = max([size, *inside])
        return len(a) == len(b) and all(_close(one, two, tolerance, size) for one, two in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= tolerance * max(abs(a), abs(b), size) + 1e-9
    return bool(a == b)


def read() -> dict[str, dict[str, Any]]:
    """Return the recorded answers of every case."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def write(answers: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the answers, one a line, so that a comparison of versions shows what moved."""
    cases = []
    for case in sorted(answers):
        lines = [f"  {json.dumps(name)}: {json.dumps(leaf)}" for name, leaf in sorted(answers[case].items())]
        cases.append(f" {json.dumps(case)}: {{\n" + ",\n".join(lines) + "\n }")
    FILE.write_text("{\n" + ",\n".join(cases) + "\n}\n", encoding="utf-8")
