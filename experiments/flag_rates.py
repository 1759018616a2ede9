"""Shares of ordinary rows and of planted anomalies that the default detector flags and selects.

python -m experiments.flag_rates [--tables 60]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from isopleth import AnomalyDetector

Law = Callable[[np.random.Generator, int], np.ndarray]

ORDINARY: dict[str, Law] = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "uniform": lambda rng, n: rng.uniform(size=(n, 5)),
    "exponential": lambda rng, n: rng.exponential(size=(n, 5)),
    "Student t5": lambda rng, n: rng.standard_t(5, size=(n, 5)),
    "Poisson (3)": lambda rng, n: rng.poisson(3.0, size=(n, 5)).astype(float),
    "Poisson (1)": lambda rng, n: rng.poisson(1.0, size=(n, 5)).astype(float),
    "normal, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 5)),
    "log-normal (1.5)": lambda rng, n: np.exp(1.5 * rng.normal(size=(n, 5))),
}
PLANTED: dict[str, Law] = {name: ORDINARY[name] for name in ("normal", "normal, 20 columns", "Student t5")}
SIZES = (200, 1000, 4000)
ANOMALIES = 5


def verdicts(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of flagged rows, and of rows selected at a false discovery rate of 10 %."""
    detector = AnomalyDetector(random_state=seed).fit(X)
    return detector.training_labels_ == -1, detector.select(fdr=0.1)


def with_planted(law: Law, n: int, seed: int) -> np.ndarray:
    """A table whose first rows are ten standard deviations off."""
    rng = np.random.default_rng(seed)
    X = law(rng, n)
    corners = rng.choice([-1.0, 1.0], size=(ANOMALIES, X.shape[1]))
    X[:ANOMALIES] = 10.0 / np.sqrt(X.shape[1]) * X.std(axis=0) * corners
    return X


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=40)
    tables = parser.parse_args().tables
    print(f"ordinary tables, n = {', '.join(map(str, SIZES))}: rows flagged; tables with a row selected")
    for name, law in ORDINARY.items():
        parts = []
        for n in SIZES:
            found = [verdicts(law(np.random.default_rng(s), n), s) for s in range(max(4, tables * SIZES[0] // n))]
            rows, some = np.mean([f.mean() for f, _ in found]), np.mean([c.any() for _, c in found])
            parts.append(f"{100 * rows:>7.1f} %{100 * some:>4.0f} %")
        print(f"  {name:<30}" + "  ".join(parts))
    print(f"share of {ANOMALIES} anomalies at ten standard deviations that are flagged; selected")
    for name, law in PLANTED.items():
        parts = []
        for n in SIZES:
            found = [verdicts(with_planted(law, n, s), s) for s in range(max(4, tables * SIZES[0] // n))]
            shares = [100 * np.mean([rows[i][:ANOMALIES].mean() for rows in found]) for i in range(2)]
            parts.append(f"{shares[0]:>7.0f} %{shares[1]:>4.0f} %")
        print(f"  {name:<30}" + "  ".join(parts))


if __name__ == "__main__":
    main()
