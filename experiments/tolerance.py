"""Coverage of the intervals for the share of a column's values that differ, which `--tolerance` judges by.

    python -m experiments.tolerance [--runs 1000] [--seed 0] [--quick]

Shares are known: of a normal column that moves, the largest difference of the distribution functions; of words, the total
variation distance. "more" and "less" are how often the interval shows more, and less, than a tolerance that is the true share
itself, so that each of these is false.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import ndtri

from isopleth.core.p_values import LEVEL, normal_quantile
from isopleth.tables.kinds import Column
from isopleth.tasks.column_changes import ColumnSummary, share_that_differs

NUMBERS = Column("number", "numeric")
WORDS = Column("word", "categorical", tuple("abcdefghijkl"))


def one_run(kind: str, n: int, m: int, share: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the ends of the interval of one pair of samples."""
    if kind == "numbers":
        x, y, column = rng.normal(size=n), rng.normal(2.0 * ndtri((1.0 + share) / 2.0), 1.0, m), NUMBERS
    else:
        before = np.full(12, 1.0 / 12.0)
        after = before + share / 6.0 * np.where(np.arange(12) < 6, 1.0, -1.0)
        x, y, column = rng.choice(12, n, p=before), rng.choice(12, m, p=after), WORDS
    summaries = [ColumnSummary.of(column, cells.astype(np.float64)) for cells in (x, y)]
    found = share_that_differs(*summaries, compared=True, z=normal_quantile(1.0 - LEVEL))
    return found.low, found.high


def main(arguments: list[str] | None = None) -> None:
    """Print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="pairs of samples a setting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    options = parser.parse_args(arguments)
    runs = 20 if options.quick else options.runs
    print(f"{'column':<10}{'rows':>12}{'share':>8}{'holds':>8}{'more':>8}{'less':>8}{'width':>8}")
    for kind in ("numbers", "words"):
        for n, m in ((200, 300), (3000, 3000)):
            for share in (0.0, 0.05, 0.2):
                rng = np.random.default_rng([options.seed, n, int(100 * share), len(kind)])
                ends = np.array([one_run(kind, n, m, share, rng) for _ in range(runs)])
                more, less = (ends[:, 0] > share + 1e-12).mean(), (ends[:, 1] < share - 1e-12).mean()
                width = (ends[:, 1] - ends[:, 0]).mean()
                print(
                    f"{kind:<10}{f'{n}, {m}':>12}{share:>8.2f}{1.0 - more - less:>8.3f}{more:>8.3f}{less:>8.3f}{width:>8.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
