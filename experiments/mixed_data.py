"""Real tables with numbers and words for studies of densities, and their encoding for methods that take numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

TABLES = ("autos", "abalone", "credit_a", "hypothyroid", "diabetes")

# Tables on which rules are chosen.
OTHER_TABLES = ("anneal", "colic", "heart_c", "heart_statlog", "credit_g")

# Rows that are drawn from a longer table: fits with gaps take seconds for some hundred rows, and minutes for some thousand.
MOST_ROWS = 450


def read_table(data: Path, name: str) -> pd.DataFrame:
    """Return a table without columns that hold one value only.

    Parameters
    ----------
    data : Path
        Folder with ``mixed/*.csv`` and ``uci/*.tsv.gz``.
    name : str
        One of :data:`TABLES` or :data:`OTHER_TABLES`.
    """
    files = [data / "mixed" / f"{name}.csv", data / "uci" / f"{name}.tsv.gz"]
    found = [path for path in files if path.exists()]
    if not found:
        raise SystemExit(f"{files[0]} or {files[1]} is needed: tables of the UCI Machine Learning Repository.")
    frame = pd.read_csv(found[0], sep="\t" if found[0].suffix == ".gz" else ",")
    if "target" in frame:
        frame["target"] = frame["target"].map(lambda value: f"class {value}")
    return frame[[column for column in frame if frame[column].nunique() > 1]]


def some_rows(frame: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return at most `n` rows in random order, numbered from 0."""
    return frame.iloc[rng.permutation(len(frame))[:n]].reset_index(drop=True)


def is_words(frame: pd.DataFrame) -> np.ndarray:
    """Return a mask of the columns that hold words."""
    return np.array([not pd.api.types.is_numeric_dtype(frame[column]) for column in frame])


@dataclass(frozen=True)
class OneHot:
    """Numbers in standard deviations, and a column of 0 and 1 for each word, NaN where a cell is missing.

    Parameters
    ----------
    columns : list of str
        The columns.
    levels : dict of str to list of str
        Words of each column of words.
    center, scale : dict of str to float
        Mean and standard deviation of the other columns.
    """

    columns: list[str]
    levels: dict[str, list[str]]
    center: dict[str, float]
    scale: dict[str, float]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> OneHot:
        """Return the encoding that the known cells of a table suggest."""
        words = is_words(frame)
        numbers = [column for column, word in zip(frame, words, strict=True) if not word]
        levels = {c: sorted(frame[c].dropna().unique()) for c, word in zip(frame, words, strict=True) if word}
        scale = {c: float(frame[c].std()) for c in numbers}
        return cls(
            list(frame),
            levels,
            {c: float(frame[c].mean()) if frame[c].notna().any() else 0.0 for c in numbers},
            {c: value if np.isfinite(value) and value > 0.0 else 1.0 for c, value in scale.items()},
        )

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return a table as numbers."""
        parts = []
        for column in self.columns:
            if column not in self.levels:
                parts.append(
                    ((frame[column] - self.center[column]) / self.scale[column]).to_numpy(dtype=float)[:, None]
                )
                continue
            cells = frame[column]
            part = np.stack([(cells == level).to_numpy(dtype=float) for level in self.levels[column]], axis=1)
            part[cells.isna().to_numpy()] = np.nan
            parts.append(part)
        return np.concatenate(parts, axis=1)

    def decode(self, values: np.ndarray) -> pd.DataFrame:
        """Return numbers as a table; of the columns of a word the largest one counts."""
        cells, place = {}, 0
        for column in self.columns:
            if column in self.levels:
                width = len(self.levels[column])
                chosen = values[:, place : place + width].argmax(axis=1)
                cells[column] = np.array(self.levels[column], dtype=object)[chosen]
                place += width
            else:
                cells[column] = values[:, place] * self.scale[column] + self.center[column]
                place += 1
        return pd.DataFrame(cells)
