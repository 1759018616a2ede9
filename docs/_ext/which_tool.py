"""Picture of the page "Which tool for which question": what a reader has, the question, and the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

TOOLS = {
    "One table": [
        ("Which cells are wrong?", "CellwiseDetector"),
        ("Which rows are unusual?", "AnomalyDetector"),
        ("What is usual for a cell,\ngiven the others?", "ConditionalDensity"),
        ("How likely is a row?", "SOSREP, KDE"),
        ("Where does the density\nincrease?", "KernelScore"),
    ],
    "Two tables": [
        ("Do they differ?", "two_sample_test"),
        ("By how much, and where?", "LSDD"),
        ("What share has each class\nwithout labels?", "ClassPriorEstimator"),
    ],
    "A series": [("When does it change?", "ChangePointDetector")],
    "A stream": [("Has it changed?", "DriftMonitor")],
}


def draw() -> Figure:
    """Draw a column for each kind of data, with a box for each question and its tool."""
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    axes = figure.subplots()
    for i, (data, questions) in enumerate(TOOLS.items()):
        _box(axes, i, 3.0, 0.45, "#d3e3ee")
        axes.text(i, 3.0, data, ha="center", va="center", fontsize=12, fontweight="bold")
        for j, (question, tool) in enumerate(questions):
            y = 2.1 - 0.95 * j
            _box(axes, i, y, 0.78, "#f3f7fa")
            axes.text(i, y + 0.13, question, ha="center", va="center", fontsize=9.5)
            axes.text(i, y - 0.24, tool, ha="center", va="center", fontsize=9.5, family="monospace", color="#005b8f")
    axes.set(xlim=(-0.52, len(TOOLS) - 0.48), ylim=(-2.2, 3.3))
    axes.set_axis_off()
    return figure


def _box(axes: Any, x: float, y: float, height: float, colour: str) -> None:
    style = {"boxstyle": "round,pad=0,rounding_size=0.03", "lw": 0.8, "fc": colour, "ec": "0.5"}
    axes.add_patch(FancyBboxPatch((x - 0.47, y - height / 2), 0.94, height, **style))


def setup(app: Any) -> dict[str, bool]:
    """Draw the picture before Sphinx reads the pages."""

    def save(app: Any) -> None:
        draw().savefig(Path(app.srcdir) / "images" / "which_tool.png", dpi=150)

    app.connect("builder-inited", save)
    return {"parallel_read_safe": True}
