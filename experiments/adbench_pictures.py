"""Pictures of the boards' results: AUC by method, ranks with their critical difference, AUC by table, and kernels."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import studentized_range

from experiments.adbench_methods import FAST, OURS
from experiments.adbench_page import Comparison, Lines, comparisons, detectors, ranks
from isopleth.results.figures import BLACK, BLUE, GREY, VERMILLION, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETTING = "as they are"
TITLES = {"adbench": "ADBench", "oddbench": "OddBench"}
LEVEL = 0.05
VARIANTS = ("isopleth, rule of anomalies", FAST)
PALE_BLUE, PALE_GREY = "#8FBEDD", "#E3E3E3"


def widest(lines: Lines, board: str, among: Collection[str]) -> Comparison | None:
    """Return the comparison of most methods; of these the one with most seeds."""
    found = comparisons(lines, board, SETTING, [name for name in among if name not in VARIANTS])
    return max(found, key=lambda c: (len(c.names), len(c.seeds)), default=None)


def critical_difference(methods: int, tables: int) -> float:
    """Smallest difference of two mean ranks that Nemenyi's test at LEVEL calls significant (Demsar 2006, section 3.2.2)."""
    q = studentized_range.ppf(1 - LEVEL, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * tables)))


def title(compared: Comparison, board: str) -> str:
    """Board, number of tables and seeds."""
    return f"{TITLES[board]}: {len(compared.tables)} tables, {compared.seeds_in_words()}"


def draw_boxes(ax: Axes, compared: Comparison, board: str) -> None:
    """Draw a box for each method, the best mean at the top, with the mean as a diamond; blue is this library's detector."""
    names = compared.names[::-1]
    values = [compared.values[name][:, 0] for name in names]
    boxes = ax.boxplot(
        values,
        orientation="horizontal",
        widths=0.6,
        showmeans=True,
        patch_artist=True,
        medianprops={"color": BLACK},
        meanprops={"marker": "D", "markerfacecolor": VERMILLION, "markeredgecolor": "white", "markersize": 5},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": GREY},
    )
    for name, box in zip(names, boxes["boxes"], strict=True):
        box.set(facecolor=PALE_BLUE if name == OURS else PALE_GREY, edgecolor=BLACK, linewidth=0.7)
    ax.axvline(50, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(1, len(names) + 1), names)
    ax.set(xlim=(0, 101), xlabel="AUC, %", title=title(compared, board))


def draw_ranks(ax: Axes, compared: Comparison, board: str) -> None:
    """Draw mean ranks with bars of the length of the critical difference: bars that do not overlap differ significantly."""
    mean_ranks = ranks(compared.auc()).mean(axis=1)
    order = np.argsort(-mean_ranks, kind="stable")
    half = critical_difference(len(compared.names), len(compared.tables)) / 2
    for place, k in enumerate(order):
        own = compared.names[k] == OURS
        if own:
            ax.axvspan(mean_ranks[k] - half, mean_ranks[k] + half, color=PALE_BLUE, alpha=0.35, linewidth=0)
        style = {"fmt": "D", "color": BLUE, "markersize": 7} if own else {"fmt": "o", "color": BLACK, "markersize": 4.5}
        ax.errorbar(mean_ranks[k], place, xerr=half, elinewidth=1.2, **style)
    ax.set_yticks(range(len(order)), [f"{compared.names[k]}  {mean_ranks[k]:.1f}" for k in order])
    ax.set(
        xlabel=f"mean rank by AUC; length of a bar: critical difference {2 * half:.1f}", title=title(compared, board)
    )


def draw_heat(ax: Axes, compared: Comparison, board: str) -> None:
    """Draw AUC by method and table in shades that rise in lightness, tables in the order of their mean."""
    auc = compared.auc()
    order = np.argsort(-auc.mean(axis=0), kind="stable")
    image = ax.imshow(auc[:, order], cmap="cividis", vmin=0, vmax=100, aspect="auto")
    ax.set_yticks(range(len(compared.names)), compared.names)
    names = [compared.tables[k].partition("_")[2] if board == "adbench" else "" for k in order]
    ax.set_xticks(range(len(order)), names, rotation=90, fontsize=7)
    if board != "adbench":
        ax.set_xticks([])
    ax.set_title(title(compared, board))
    ax.figure.colorbar(image, ax=ax, label="AUC, %")


def draw_pictures(lines: Lines, folder: Path) -> list[Path]:
    """Draw all pictures in a folder, and return their files.

    Files: ``anomalies_board_boxes.png``, ``_ranks.png`` and ``_heat.png``.
    """
    among = detectors(lines)
    kinds = {
        "boxes": (draw_boxes, among, "row"),
        "ranks": (draw_ranks, among, "row"),
        "heat": (draw_heat, among, "column"),
    }
    written = []
    for kind, (draw, chosen, layout) in kinds.items():
        found = {board: widest(lines, board, chosen) for board in TITLES}
        there = {board: compared for board, compared in found.items() if compared}
        if not there:
            continue
        across = layout == "row"
        figure = new_figure(5.2 * len(there), 5.2) if across else new_figure(9, 4.2 * len(there))
        axes = figure.subplots(*(1, len(there)) if across else (len(there), 1), squeeze=False).ravel()
        for ax, (board, compared) in zip(axes, there.items(), strict=True):
            draw(ax, compared, board)
        written.append(folder / f"anomalies_board_{kind}.png")
        save_figure(figure, written[-1])
    return written
