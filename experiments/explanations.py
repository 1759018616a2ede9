"""Share of explanations that name the columns of planted anomalies, compared with refits without a column and plain deviations.

    python -m experiments.explanations [--tables 10]

Tables of 300 rows and 10 columns hold five anomalies whose columns are known. Each method orders the columns of an anomaly; the
hit rate is the share of its planted columns among as many first ones. ``refit`` fits a detector without each column in turn and
orders them by the rise of the row's score, ``deviation`` by the distance from the column's median in robust standard deviations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from isopleth import AnomalyDetector
from isopleth.results.charts import robust_z

ROWS, COLUMNS, ANOMALIES = 300, 10, 5
Rng = np.random.Generator
Law = Callable[[Rng], np.ndarray]
Order = Callable[[np.ndarray, AnomalyDetector, int], np.ndarray]


def _tied(X: np.ndarray, rng: Rng) -> np.ndarray:
    """Return `X` with a second column that depends on the first one."""
    X[:, 1] = X[:, 0] + 0.25 * X[:, 0].std() * rng.normal(size=len(X))
    return X


def _factors(rng: Rng) -> np.ndarray:
    hidden = rng.normal(size=(ROWS, 3)) @ rng.normal(size=(3, COLUMNS))
    return hidden + 0.5 * rng.normal(size=hidden.shape)


def _clusters(rng: Rng) -> np.ndarray:
    return rng.normal(size=(ROWS, COLUMNS)) + 3.0 * rng.choice([-1.0, 1.0], size=(ROWS, 1)) * (np.arange(COLUMNS) % 2)


LAWS: dict[str, Law] = {
    "Gaussian": lambda rng: rng.normal(size=(ROWS, COLUMNS)),
    "three factors": _factors,
    "two clusters": _clusters,
    "Student t3": lambda rng: rng.standard_t(3, size=(ROWS, COLUMNS)),
    "counts": lambda rng: rng.poisson(2.0, size=(ROWS, COLUMNS)).astype(float),
}


def _shift(X: np.ndarray, rng: Rng, columns: int, size: float) -> np.ndarray:
    planted, spread = np.zeros((ANOMALIES, COLUMNS), dtype=bool), X.std(axis=0)
    for i in range(ANOMALIES):
        chosen = rng.choice(COLUMNS, size=columns, replace=False)
        X[i, chosen] += size * spread[chosen] * rng.choice([-1.0, 1.0], size=columns)
        planted[i, chosen] = True
    return planted


def _broken(X: np.ndarray, rng: Rng) -> np.ndarray:
    """Two columns that go together apart, each of them well within its own range."""
    sign = rng.choice([-1.0, 1.0], size=ANOMALIES)
    X[:ANOMALIES, :2] = X.mean(axis=0)[:2] + 1.5 * X.std(axis=0)[:2] * np.c_[sign, -sign]
    return np.tile(np.arange(COLUMNS) < 2, (ANOMALIES, 1))


KINDS = {
    "shift of one column": lambda X, rng: _shift(X, rng, 1, 4.0),
    "shift of two columns": lambda X, rng: _shift(X, rng, 2, 3.0),
    "broken relation of two columns": _broken,
}


def by_law(X: np.ndarray, detector: AnomalyDetector, seed: int) -> np.ndarray:
    """Return the explanation of the library."""
    found = detector.explain(X[:ANOMALIES])
    return np.stack([found.surprise(i) for i in range(ANOMALIES)])


def by_refit(X: np.ndarray, detector: AnomalyDetector, seed: int) -> np.ndarray:
    """Return the gain of the scores by a refit without the column; each score is relative to that of the median row."""
    without = [AnomalyDetector(random_state=seed).fit(np.delete(X, j, axis=1)) for j in range(X.shape[1])]
    scores = np.stack([other.training_scores_[:ANOMALIES] for other in without], axis=1)
    return scores - detector.training_scores_[:ANOMALIES, None]


def by_deviation(X: np.ndarray, detector: AnomalyDetector, seed: int) -> np.ndarray:
    """Return how extreme each cell is in its own column."""
    return np.abs(robust_z(X[:ANOMALIES], X))


METHODS: dict[str, Order] = {"explain": by_law, "refit": by_refit, "deviation": by_deviation}


def hit_rate(planted: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the planted columns of each row among the same number of columns of largest weight."""
    hits = [
        found[np.argsort(-w, kind="stable")[: found.sum()]].mean() for found, w in zip(planted, weight, strict=True)
    ]
    return float(np.mean(hits))


def study(law: Law, plant: Callable[[np.ndarray, Rng], np.ndarray], seed: int) -> dict[str, tuple[float, float]]:
    """Return the hit rate and seconds of each method on one table."""
    rng = np.random.default_rng(seed)
    X = _tied(law(rng), rng)
    planted = plant(X, rng)
    detector = AnomalyDetector(random_state=seed).fit(X)
    found = {}
    for name, method in METHODS.items():
        start = time.perf_counter()
        weight = method(X, detector, seed)
        found[name] = (hit_rate(planted, weight), time.perf_counter() - start)
    return found


def main() -> None:
    """Print hit rates and times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10, help="tables of each law and kind")
    tables = parser.parse_args().tables
    print(f"{'hit rate':<34}{'rows of':<16}" + "".join(f"{name:>11}" for name in METHODS))
    everything = []
    for kind, plant in KINDS.items():
        for law_name, law in LAWS.items():
            found = [study(law, plant, seed) for seed in range(tables)]
            rates = np.array([[one[name][0] for name in METHODS] for one in found])
            everything += [(rates, np.array([[one[name][1] for name in METHODS] for one in found]))]
            print(f"{kind:<34}{law_name:<16}" + "".join(f"{rate:>11.3f}" for rate in rates.mean(axis=0)))
    rates, times = (np.concatenate(part) for part in zip(*everything, strict=True))
    print(f"{'mean of all':<50}" + "".join(f"{rate:>11.3f}" for rate in rates.mean(axis=0)))
    margin = rates[:, 0] - rates[:, 1]
    print(f"explain less refit: {margin.mean():+.3f}, standard error {margin.std(ddof=1) / np.sqrt(len(margin)):.3f}")
    print(f"{'seconds for five rows':<50}" + "".join(f"{seconds:>11.4f}" for seconds in np.median(times, axis=0)))


if __name__ == "__main__":
    main()
