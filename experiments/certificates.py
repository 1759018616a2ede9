"""Share of tables in which any certified limit on the number of anomalies is false, and the power of the limits.

python -m experiments.certificates [--runs 200] [--rows 50 200 1000] [--laws ...] [--unsplit]

Each run draws a reference and 100 new rows from a law; a tenth of
the new rows are moved by 0, 2 or 6 standard deviations in each column. "violations" is the share of runs in
which one of the limits, over all cuts of the list, exceeds the true number. ``--unsplit`` computes the same limits from training
rows that are judged without themselves, for which they are not valid.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from isopleth import AnomalyDetector
from isopleth.tasks.anomaly.certificate import Certificate
from isopleth.tasks.anomaly.table import NEW

Law = Callable[[np.random.Generator, int], np.ndarray]


def tight(rng: np.random.Generator, n: int) -> np.ndarray:
    """Twenty clusters, the columns far apart between them."""
    return 10.0 * np.random.default_rng(0).normal(size=(20, 3))[rng.integers(20, size=n)] + 0.01 * rng.normal(
        size=(n, 3)
    )


LAWS: dict[str, Law] = {
    "normal, 3 columns": lambda rng, n: rng.normal(size=(n, 3)),
    "normal, 1 column": lambda rng, n: rng.normal(size=(n, 1)),
    "normal, 20 columns": lambda rng, n: rng.normal(size=(n, 20)),
    "Student t3, 5 columns": lambda rng, n: rng.standard_t(3, size=(n, 5)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=(n, 3)),
    "log-normal": lambda rng, n: np.exp(1.5 * rng.normal(size=(n, 4))),
    "Poisson (1)": lambda rng, n: rng.poisson(1.0, size=(n, 3)).astype(float),
    "truth values": lambda rng, n: (rng.random((n, 6)) < 0.3).astype(float),
    "tight clusters": tight,
    "rounded": lambda rng, n: rng.normal(size=(n, 2)).round(1),
}
NEW_ROWS, ANOMALIES = 100, 10


def limits(detector: AnomalyDetector, new: np.ndarray, unsplit: bool) -> tuple[np.ndarray, np.ndarray]:
    """Order of the new rows and the limits of its lists."""
    found = detector.anomalies(new)
    if not unsplit:
        return found.order, found.at_least
    rows = detector._frame.enter(new)
    surprise = detector._rule.surprises(rows, np.full(len(rows), NEW), detector._limits).sum(axis=1)
    return found.order, Certificate.of(-detector.training_scores_, surprise).at_least(found.order)


def run(law: Law, n: int, seed: int, unsplit: bool) -> tuple[bool, float]:
    """Tell whether a limit is false, and return the limit for all rows."""
    rng = np.random.default_rng(seed)
    X, new = law(rng, n), law(rng, NEW_ROWS)
    spread = X.std(axis=0)
    far = rng.choice([0.0, 2.0, 6.0])
    new[:ANOMALIES] += far * spread * rng.choice([-1.0, 1.0], size=(ANOMALIES, X.shape[1]))
    anomalies = ANOMALIES if far else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        order, found = limits(AnomalyDetector(novelty=True, n_jobs=1, random_state=seed).fit(X), new, unsplit)
    return bool((found > np.cumsum(order < anomalies)).any()), float(found[-1])


def main() -> None:
    """Print violations and mean limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--laws", nargs="+", choices=list(LAWS), default=list(LAWS))
    parser.add_argument("--unsplit", action="store_true")
    options = parser.parse_args()
    print(f"{options.runs} runs; reference rows: " + ", ".join(map(str, options.rows)))
    print(f"{'':<24}" + f"{'violations, mean limit':>26}" * len(options.rows))
    for name in options.laws:
        cells = []
        for n in options.rows:
            false, found = zip(
                *(run(LAWS[name], n, seed, options.unsplit) for seed in range(options.runs)), strict=True
            )
            cells.append(f"{np.mean(false):>17.3f}{np.mean(found):>9.2f}")
        print(f"{name:<24}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
