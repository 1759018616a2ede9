"""Settings and samples that several tests fit."""

from __future__ import annotations

import numpy as np

GRID = {"length_scale": [[0.4], [0.8], [1.6]], "alpha": [0.1, 1.0, 10.0], "cv": 3, "random_state": 0, "n_jobs": 1}
POINT = {"length_scale": 0.7, "alpha": 0.3, "centers": None, "random_state": 0, "n_jobs": 1}


def two(n=40, m=30, dim=2, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(m, dim))
    x = rng.normal(size=(n, dim))
    x[:, 0] += shift
    return x, y
