"""Tables with planted anomalies."""

import numpy as np


def table(n, dim=3, anomalies=0, seed=0):
    """Normal columns of different sizes; the first rows are nine standard deviations off in all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim)) @ np.diag([1.0, 5.0, 0.2, 9.0, 2.0, 1.0][:dim])
    X[:anomalies] += 9 * X.std(axis=0)
    return X
