"""Contours of four real tables of two columns, by SOSREP in each frame.

    python -m experiments.density_pictures --data DIR --out docs/images/densities_frames.png

The tables are the first four of two columns, by name, of the half that is reported (see ``experiments/densities.py``).
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.density_tables import RealTable, find_tables, is_reported, read_table
from isopleth import SOSREP

FRAMES = ["scale", "whiten", "marginal", "gp1", "gp4", "auto"]
TABLES, ROWS, GRID = 4, 500, 160
MASSES = [0.95, 0.8, 0.5]


def tables(data: Path) -> Iterator[RealTable]:
    """Yield the tables of two columns."""
    for name, path in find_tables(data).items():
        table = read_table(name, path) if is_reported(name) else None
        if table is not None and table.X.shape[1] == 2:
            yield table


def draw(found: list[RealTable]) -> Figure:
    """Return the picture: a row for each table, a column for each frame."""
    figure = Figure(figsize=(2.1 * len(FRAMES), 2.0 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), len(FRAMES), squeeze=False)
    for row, table in zip(axes, found, strict=True):
        X, held = table.X[:ROWS], table.X[ROWS : 2 * ROWS]
        low, high = np.quantile(X, [0.01, 0.99], axis=0)
        low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
        sides = [np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        unit = np.log(X.std(axis=0)).sum()
        for axis, frame in zip(row, FRAMES, strict=True):
            density = SOSREP(frame=frame, n_jobs=1).fit(X)
            logs = density.score_samples(held)
            levels = np.unique(np.quantile(logs, 1.0 - np.array(MASSES)))
            axis.plot(*X.T, ".", color="0.6", markersize=1.5)
            values = density.score_samples(grid).reshape(GRID, GRID)
            axis.contour(
                *sides, values, levels=levels, colors=["#9ecae1", "#4292c6", "#08306b"][: len(levels)], linewidths=0.9
            )
            axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
            axis.set_xlabel(f"{np.maximum(logs + unit, -50.0).mean():.2f}", fontsize=8)
        row[0].set_ylabel(table.name.partition("/")[2], fontsize=8)
    for axis, frame in zip(axes[0], FRAMES, strict=True):
        axis.set_title(frame, fontsize=9)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--out", type=Path, default=Path("densities_frames.png"))
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw(list(itertools.islice(tables(options.data), TABLES))).savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
