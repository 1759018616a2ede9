"""Series with known changes from a folder of data, and the measures by which the benchmarks judge change points.

The Turing Change Point Dataset (van den Burg and Williams, 2020) has a JSON file a series, and the points that five people
marked; its benchmark's two measures are here as that paper defines them. The KL-CPD collection has MATLAB files with the
columns of a series in Y and marks in L; a recording of speech is a WAV file beside a list of segments. The Time Series
Segmentation Benchmark (Schäfer, Ermshaus and Leser, 2021) has a text file a series, and its changes in one table; the
recordings of UTSA by the same authors are arrays in one file. The Numenta Anomaly Benchmark (Lavin and Ahmad, 2015) has a table
of times and values a series, and windows of anomalies in one file.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import loadmat, wavfile

MARGIN = 5


@dataclass(frozen=True)
class Annotated:
    """A series of shape (T, d), and the changes that each annotator marked: the first step of what is new."""

    name: str
    values: np.ndarray
    marks: Mapping[str, Sequence[int]]


def turing(folder: Path, *, columns: int | None = 1) -> list[Annotated]:
    """The series of the Turing Change Point Dataset with so many columns, by name; all where `columns` is None."""
    place = folder / "cpd" / "tcpd"
    if not (place / "annotations.json").is_file():
        sys.exit(f"{place} has no annotations.json; it comes with the Turing Change Point Dataset.")
    marks = json.loads((place / "annotations.json").read_text(encoding="utf-8"))
    found = []
    for path in sorted(place.glob("*.json")):
        if path.stem not in marks:
            continue
        series = json.loads(path.read_text(encoding="utf-8"))["series"]
        values = np.column_stack([np.array(column["raw"], dtype=np.float64) for column in series])
        if columns in (None, values.shape[1]):
            found.append(Annotated(path.stem, filled(values), marks[path.stem]))
    return found


def tssb(folder: Path) -> list[Annotated]:
    """The series of the Time Series Segmentation Benchmark that are there, by name, with their marks under "label"."""
    place = folder / "cpd" / "tssb"
    if not (place / "desc.csv").is_file():
        sys.exit(f"{place} has no desc.csv; it comes with the Time Series Segmentation Benchmark.")
    found = []
    for line in (place / "desc.csv").read_text(encoding="utf-8").splitlines():
        name, _, *marks = line.split(",")
        values = np.loadtxt(place / f"{name}.txt")
        found.append(Annotated(name, values[:, None], {"label": [int(mark) for mark in marks]}))
    return found


def utsa(folder: Path) -> list[Annotated]:
    """The recordings of the UTSA collection that are there, by name, with their marks under "label"."""
    place = folder / "cpd" / "utsa" / "utsa.npz"
    if not place.is_file():
        sys.exit(f"{place} is missing; it holds recordings of UTSA: NAME the series, NAME|cps its changes.")
    with np.load(place) as file:
        return [
            Annotated(name, file[name].astype(np.float64).reshape(-1, 1), {"label": file[f"{name}|cps"].tolist()})
            for name in sorted(file.files)
            if not name.endswith("|cps")
        ]


@dataclass(frozen=True)
class Timed:
    """Values of shape (T,) at ascending times, and a mask of steps that are called anomalous."""

    name: str
    values: np.ndarray
    times: np.ndarray
    anomalous: np.ndarray


def nab(folder: Path) -> list[Timed]:
    """The series of the Numenta Anomaly Benchmark that are there, by name, with rows of one time once."""
    place = folder / "cpd" / "nab"
    if not (place / "windows.json").is_file():
        sys.exit(f"{place} has no windows.json; it comes with the series of the Numenta Anomaly Benchmark.")
    windows = json.loads((place / "windows.json").read_text(encoding="utf-8"))
    found = []
    for path in sorted(place.glob("*.csv.gz")):
        rows = pd.read_csv(path, parse_dates=["timestamp"])
        rows = rows[~rows["timestamp"].cummax().duplicated()]
        times, name = rows["timestamp"].to_numpy(), path.name.removesuffix(".csv.gz")
        anomalous = np.zeros(len(rows), dtype=bool)
        for start, end in windows[name]:
            anomalous |= (times >= np.datetime64(start)) & (times <= np.datetime64(end))
        found.append(Timed(name, rows["value"].to_numpy(dtype=float), times, anomalous))
    return found


def filled(values: np.ndarray) -> np.ndarray:
    """The series with gaps filled on straight lines."""
    out = values.copy()
    for column in out.T:
        gap = np.isnan(column)
        column[gap] = np.interp(np.flatnonzero(gap), np.flatnonzero(~gap), column[~gap])
    return out


def _matched(marks: Iterable[int], found: Iterable[int], margin: int) -> int:
    """Count marks with a found point within the margin; each found point counts for one mark, the nearest."""
    free = set(found)
    count = 0
    for mark in sorted(marks):
        near = min(free, key=lambda point: (abs(point - mark), point), default=None)
        if near is not None and abs(near - mark) <= margin:
            count += 1
            free.remove(near)
    return count


def f1(marks: Mapping[str, Sequence[int]], found: Iterable[int], margin: int = MARGIN) -> float:
    """Harmonic mean of precision and recall, the start of the series counted as a change that everybody knows.

    Precision holds the points against the marks of all annotators together, recall against each annotator's, averaged.
    """
    points = {0, *map(int, found)}
    each = [{0, *map(int, own)} for own in marks.values()]
    precision = _matched(set().union(*each), points, margin) / len(points)
    recall = float(np.mean([_matched(own, points, margin) / len(own) for own in each]))
    return 2.0 * precision * recall / (precision + recall)


def _segments(points: Iterable[int], length: int) -> list[tuple[int, int]]:
    inner = sorted({int(point) for point in points if 0 < point < length})
    return list(zip([0, *inner], [*inner, length], strict=True))


def cover(marks: Mapping[str, Sequence[int]], found: Iterable[int], length: int) -> float:
    """Return the covering: the largest overlap over union of each marked segment with a found one, weighted by length."""
    theirs = _segments(found, length)

    def of(own: Sequence[int]) -> float:
        total = 0.0
        for start, end in _segments(own, length):
            overlaps = [max(0, min(end, b) - max(start, a)) for a, b in theirs]
            unions = [max(end, b) - min(start, a) for a, b in theirs]
            # A union is the hull only where the two meet; elsewhere the overlap is 0 whatever stands below.
            total += (end - start) * max(o / u for o, u in zip(overlaps, unions, strict=True))
        return total / length

    return float(np.mean([of(own) for own in marks.values()]))


def klcpd(folder: Path, name: str) -> list[Annotated]:
    """The series of one of the KL-CPD collections, with their marks under "label"."""
    paths = sorted((folder / "cpd" / "klcpd" / name).glob("*.mat"))
    if not paths:
        sys.exit(f"{folder / 'cpd' / 'klcpd' / name} has no .mat files; they come with the code of the KL-CPD paper.")
    found = []
    for path in paths:
        content = loadmat(path)
        marks = {"label": np.flatnonzero(np.asarray(content["L"]).ravel()).tolist()}
        found.append(Annotated(path.stem, np.asarray(content["Y"], dtype=np.float64), marks))
    return found


FRAME = 0.01


def speech(folder: Path, *, raw: bool = False) -> list[Annotated]:
    """Recordings as the log energy of frames of 10 ms, or their samples; marks are frames where speech and silence take turns."""
    paths = sorted((folder / "speech").glob("*.wav"))
    if not paths:
        sys.exit(f"{folder / 'speech'} has no .wav files; any recording beside a list of segments will do.")
    found = []
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks of other programs in the file
            rate, samples = wavfile.read(path)
        step = round(rate * FRAME)
        frames = samples[: len(samples) // step * step].astype(np.float64).reshape(-1, step)
        energy = np.log(np.mean((frames - frames.mean()) ** 2, axis=1) + 1.0)
        starts = [float(line.split("\t")[0]) for line in path.with_suffix(".segments").read_text().splitlines() if line]
        marks = {"label": [round(start / FRAME) for start in starts if start > 0.0]}
        values = frames.ravel() if raw else energy
        found.append(Annotated(path.stem, values[:, None], marks))
    return found
