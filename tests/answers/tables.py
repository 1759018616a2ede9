"""Small tables made by a fixed formula: no version of a library changes their numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.datasets import load_iris, load_wine


def uniform(rows: int, columns: int, seed: int) -> np.ndarray:
    """Return pseudorandom numbers between 0 and 1, by the generator splitmix64."""
    out, state = np.empty(rows * columns), seed
    for i in range(out.size):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        out[i] = ((mixed ^ (mixed >> 31)) + 0.5) / 2**64
    return out.reshape(rows, columns)


def normal(rows: int, columns: int, seed: int) -> np.ndarray:
    """Return pseudorandom normal numbers with six decimals, which are the same whatever their last bits were."""
    return np.round(ndtri(uniform(rows, columns, seed)), 6)


@cache
def iris() -> np.ndarray:
    """Return measurements of flowers: three groups, and many ties."""
    return load_iris().data[::2]


@cache
def wine() -> tuple[np.ndarray, np.ndarray]:
    """Return measurements of wines in 13 columns of different units, and the class of each."""
    table = load_wine()
    return table.data[::2], np.array(["barolo", "grignolino", "barbera"])[table.target[::2]]


@cache
def bent(rows: int = 90) -> np.ndarray:
    """Return two columns on a parabola, with three rows far away."""
    out = normal(rows, 2, 1)
    out[:, 1] = np.round(0.5 * out[:, 1] + out[:, 0] ** 2, 6)
    out[:3] = [[5.0, -4.0], [-1.0, 9.0], [0.0, -3.0]]
    return out


def people(rows: int = 90, seed: int = 2, shift: float = 0.0) -> pd.DataFrame:
    """Return a table of words, counts, a skewed column, gaps, times, and a product of columns that one row breaks."""
    z, u = normal(rows, 4, seed), uniform(rows, 4, seed + 100)
    income = np.round(np.exp(7.0 + 0.5 * z[:, 0] + shift), 2)
    height = np.where(u[:, 0] < 0.12, np.nan, np.round(170.0 + 8.0 * z[:, 1] + 3.0 * z[:, 0], 1))
    visits = np.floor(6.0 * u[:, 1] ** 2)
    total = np.round(visits * income, 2)
    total[min(3, rows - 1)] += 500.0
    city = np.where(u[:, 2] < 0.5 - 0.3 * shift, "Bergen", np.where(z[:, 0] > 0.0, "Oslo", "Moss"))
    columns: dict[str, Any] = {"income": income, "height": height, "visits": visits, "total": total}
    columns["city"] = pd.Series(city, dtype=object).where(u[:, 3] > 0.05)
    columns["member"] = np.where(z[:, 2] + z[:, 0] > 0.5, "yes", "no")
    columns["born"] = np.datetime64("1970-01-01", "D") + np.floor(9000 * uniform(rows, 1, seed + 200)[:, 0]).astype(int)
    return pd.DataFrame(columns)


def steps(rows: int = 150) -> np.ndarray:
    """Return a series whose mean rises, and whose variance falls later."""
    out = normal(rows, 1, 5)[:, 0]
    out[rows // 3 :] += 2.0
    out[2 * rows // 3 :] = np.round(2.0 + 0.3 * (out[2 * rows // 3 :] - 2.0), 6)
    return out


def with_gaps(series: np.ndarray) -> np.ndarray:
    """Return a series without its first and last values, some in the middle, and a value here and there."""
    out, at = series.copy(), np.arange(len(series))
    out[(at < 4) | (at >= len(out) - 3) | (abs(at - len(out) // 2) < 5) | (at % 17 == 0)] = np.nan
    return out


def season(rows: int = 24 * 8) -> np.ndarray:
    """Return a series with a season of 24 steps and correlated noise, whose level rises."""
    noise = normal(rows, 1, 6)[:, 0]
    for t in range(1, rows):
        noise[t] = round(0.4 * noise[t - 1] + noise[t], 6)
    hours = np.array([0, 0, 0, 1, 2, 4, 6, 7, 7, 6, 5, 5, 6, 6, 5, 4, 4, 5, 6, 5, 3, 2, 1, 0], dtype=float)
    return np.round(np.tile(hours, rows // 24) + noise + 2.5 * (np.arange(rows) >= 0.6 * rows), 6)


def days(rows: int) -> np.ndarray:
    """Return times of one step an hour."""
    return np.datetime64("2024-01-01T00:00", "s") + np.arange(rows) * np.timedelta64(1, "h")


def visits(rows: int = 60) -> pd.DataFrame:
    """Return times to the day, the hour, the minute, the second and a part of it, beside a number."""
    u = uniform(rows, 5, 21)
    parts = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
    begin = np.datetime64("2020-03-01", "us")
    out = {
        name: begin + np.floor(3e7 / s * u[:, j]).astype(int) * np.timedelta64(s, "s")
        for j, (name, s) in enumerate(parts.items())
    }
    out["part"] = begin + np.floor(3e7 * u[:, 3]).astype(int) * np.timedelta64(1, "s") + np.timedelta64(250_000, "us")
    return pd.DataFrame({**out, "length": np.round(10.0 * u[:, 4], 1)})
