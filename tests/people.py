"""A table of words, times, truth values and gaps for the tests of tasks that compare tables."""

from __future__ import annotations

import numpy as np
import pandas as pd


def people(n, seed=0, red=0.2, gap=0.05, days=100):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < gap, np.nan, rng.normal(40.0, 10.0, n)),
            "colour": rng.choice(["red", "blue", "green"], n, p=[red, 0.7 - red, 0.3]),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, days, n), unit="D"),
            "member": rng.random(n) < 0.4,
        }
    )
