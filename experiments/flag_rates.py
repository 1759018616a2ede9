"""How often a table without anomalies has a row flagged, and how many planted anomalies are, by the default detector.

python -m experiments.flag_rates [--tables 60]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from isopleth import AnomalyDetector

Law = Callable[[np.random.Generator, int], np.ndarray]

ORDINARY: dict[str, Law] = {
    "Gaussian, 3 columns": lambda rng, n: rng.normal(size=(n, 3)),
    "Gaussian, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "uniform, 5 columns": lambda rng, n: rng.uniform(size=(n, 5)),
    "Student t5, 3 columns": lambda rng, n: rng.standard_t(5, size=(n, 3)),
    "Student t2, 3 columns": lambda rng, n: rng.standard_t(2, size=(n, 3)),
    "Cauchy, 2 columns": lambda rng, n: rng.standard_cauchy(size=(n, 2)),
    "log-normal (1.5), 5 columns": lambda rng, n: np.exp(1.5 * rng.normal(size=(n, 5))),
    "t3 and exponential, 2 each": lambda rng, n: np.c_[rng.standard_t(3, size=(n, 2)), rng.exponential(size=(n, 2))],
    "Poisson (1), 3 columns": lambda rng, n: rng.poisson(1.0, size=(n, 3)).astype(float),
}
PLANTED: dict[str, Law] = {
    name: ORDINARY[name] for name in ("Gaussian, 3 columns", "Gaussian, 20 columns", "Student t5, 3 columns")
}
ANOMALIES = 5


def flagged(X: np.ndarray, seed: int) -> np.ndarray:
    """Which rows the default flags."""
    return AnomalyDetector(random_state=seed).fit(X).training_labels_ == -1


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=60)
    tables = parser.parse_args().tables
    sizes = (100, 200, 1000)
    print("share of ordinary tables with a row flagged, n = " + ", ".join(map(str, sizes)))
    for name, law in ORDINARY.items():
        rates = [np.mean([flagged(law(np.random.default_rng(s), n), s).any() for s in range(tables)]) for n in sizes]
        print(f"  {name:<30}" + "".join(f"{rate:>8.2f}" for rate in rates))
    print(f"share of {ANOMALIES} anomalies at ten standard deviations that are flagged")
    for name, law in PLANTED.items():
        shares = []
        for n in sizes:
            found = []
            for seed in range(tables):
                rng = np.random.default_rng(seed)
                X = law(rng, n)
                corners = rng.choice([-1.0, 1.0], size=(ANOMALIES, X.shape[1]))
                X[:ANOMALIES] = 10.0 / np.sqrt(X.shape[1]) * X.std(axis=0) * corners
                found.append(flagged(X, seed)[:ANOMALIES].mean())
            shares.append(np.mean(found))
        print(f"  {name:<30}" + "".join(f"{share:>8.2f}" for share in shares))


if __name__ == "__main__":
    main()
