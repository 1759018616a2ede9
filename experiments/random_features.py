"""SOSREP by random features on many normal rows: time, rows below the noise, and errors.

    python -m experiments.random_features [--rows 100000] [--features 1000] [--exact] [--quick] [--out FILE]

Printed are, for 2, 5 and 10 columns and several length scales: passes over the rows, seconds of the wall clock and of the
processor, the share of rows whose density is not above the noise of the features, `approximation_error_`, and the root mean
squared error of the log density at 2,000 fresh rows against the normal density, where it is known. With `--exact`, all rows are
fitted by SOSREP too, matrix streamed, and the last columns are its seconds of the processor and what the features' log density
differs from it at the fresh rows. Both fits are to a residual of 1e-6.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from isopleth import SOSREP, DataWarning, RandomFeatureSOSREP

FRESH = 2000
# Columns and length scale.
CASES = ((2, "auto"), (2, "scott"), (5, "auto"), (5, "scott"), (10, "auto"), (10, 1.76), (10, "scott"))

HEADS = ("columns", "length scale", "passes", "wall s", "cpu s", "below noise", "approximation", "against truth")
MORE = ("exact cpu s", "against exact")


def log_truth(rows: np.ndarray) -> np.ndarray:
    """Return the standard normal log density."""
    return np.asarray(-0.5 * np.sum(rows**2, axis=1) - 0.5 * rows.shape[1] * np.log(2.0 * np.pi))


def differs(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the root mean squared difference where `found` is finite; NaN if it is finite nowhere."""
    known = np.isfinite(found)
    return float(np.sqrt(np.mean((found - wanted)[known] ** 2))) if known.any() else float("nan")


def study(n: int, features: int, columns: int, scale: float | str, exact: bool) -> list[str]:
    """Return one line of the table."""
    rows = np.random.default_rng(0).normal(size=(n, columns))
    fresh = np.random.default_rng(1).normal(size=(FRESH, columns))
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what it says is in the table
        model = RandomFeatureSOSREP(length_scale=scale, n_frequencies=features // 2, random_state=0).fit(rows)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    found = model.score_samples(fresh)
    named = f"{model.length_scale_.mean():.2f}" + (f" ({scale})" if isinstance(scale, str) else "")
    line = [str(columns), named, str(model.n_iter_), f"{wall:.1f}", f"{processor:.1f}"]
    line += [f"{model.share_below_noise_:.2%}", f"{model.approximation_error_:.3f}"]
    line += [f"{differs(found, log_truth(fresh)):.3f}"]
    if exact:
        start = time.process_time()
        other = SOSREP(length_scale=model.length_scale_, tol=1e-6, frame="scale").fit(rows)
        line += [f"{time.process_time() - start:.0f}", f"{differs(found, other.score_samples(fresh)):.3f}"]
    return line


def main(arguments: list[str] | None = None) -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="rows that are fitted")
    parser.add_argument("--features", type=int, default=1000, help="number of features, even")
    parser.add_argument("--exact", action="store_true", help="fit all rows exactly as well: minutes for each line")
    parser.add_argument("--quick", action="store_true", help="500 rows and 100 features: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    n, features = (500, 100) if options.quick else (options.rows, options.features)
    lines = [f"n = {n:,} normal rows, T = {features:,} features"]
    lines.append("".join(f"{head:>15}" for head in (*HEADS, *(MORE if options.exact else ()))))
    print("\n".join(lines), flush=True)
    for columns, scale in CASES:
        lines.append("".join(f"{cell:>15}" for cell in study(n, features, columns, scale, options.exact)))
        print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
