"""The house: its rooms from top to bottom, held against the imports of the code, and a picture of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

FLOORS = [
    {"cli": ("commands, for a shell", 0.5)},
    {
        "tasks": ("the questions people have", 1 / 8),
        "plotting": ("pictures", 3 / 8),
        "distributed": ("files and clusters", 5 / 8),
        "torch": ("functions with gradients", 7 / 8),
    },
    {"difference": ("differences of densities", 1 / 3)},
    {"density": ("densities", 1 / 3), "score": ("gradients of log densities", 2 / 3)},
    {"expansion": ("a fitted function", 1 / 3), "solvers": ("coefficients", 2 / 3)},
    {"operators": ("sums over points, in tiles", 0.5)},
    {"kernels": ("what is near", 0.5)},
]
"""Rooms, what is in them, and where they are drawn. A room stands on rooms of lower floors, and on the cellar."""

CELLAR = {
    "validation": "what a table must be",
    "frame": "shift and scale",
    "length_scales": "rules for a scale",
    "rows": "rows that repeat",
    "folds": "parts held out",
    "parts": "rows in parts",
    "survey": "a look at all rows",
    "streaming": "rows that keep coming",
    "home": "fitted arrays sent home",
    "_namespace": "arrays, where they live",
    "io": "files",
    "datasets": "a table to try",
    "errors": "sentences",
}

STAIRS = {("density", "plotting"), ("difference", "plotting"), ("tasks", "plotting")}
"""Imports that do not run down, inside functions: `plot()` of an estimator or a result finds its picture when it is called."""


_CELLAR_WIDTH = 5


def rooms() -> dict[str, int]:
    """The floor of each room, counted from the cellar."""
    floors = {room: len(FLOORS) - i for i, floor in enumerate(FLOORS) for room in floor}
    return floors | dict.fromkeys(CELLAR, 0)


def imports(package: Path) -> dict[tuple[str, str], list[tuple[str, bool]]]:
    """Which room takes something from which: the files that do, and whether inside a function."""
    found = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        room = place.parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(node) for function in ast.walk(tree) if _defers(function) for node in ast.walk(function)}
        for node in ast.walk(tree):
            for other in _taken(node, package.name):
                if other != room:
                    found[room, other].append((place.as_posix(), id(node) in inside))
    return dict(found)


def _defers(node: ast.AST) -> bool:
    checking = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return checking or isinstance(node, ast.FunctionDef)


def _taken(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        parts = node.module.split(".")
        if parts[0] == package:
            return parts[1:2] or [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        return [parts[1] for parts in names if parts[0] == package and len(parts) > 1]
    return []


def _nearest(taken: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows that no others imply."""
    reach = {pair for pair in taken}
    while True:
        more = {(a, d) for a, b in reach for c, d in reach if b == c} - reach
        if not more:
            break
        reach |= more
    return {(a, b) for a, b in taken if not any((a, c) in reach and (c, b) in reach for c in rooms())}


def draw(package: Path) -> Figure:
    """The rooms, with an arrow from each to those right below it that it stands on."""
    figure = Figure(figsize=(9, 8.2), layout="constrained")
    axes = figure.subplots()
    middle, floors = {}, rooms()
    for i, floor in enumerate(FLOORS):
        for room, (words, x) in floor.items():
            middle[room] = _box(axes, x, len(FLOORS) - i, 0.23, room, words)
    for j, (room, words) in enumerate(CELLAR.items()):
        x, y = (j % _CELLAR_WIDTH + 0.5) / _CELLAR_WIDTH, -0.05 - 0.6 * (j // _CELLAR_WIDTH)
        _box(axes, x, y, 0.19, room, words, cellar=True)
    above = {(a, b) for a, b in imports(package) if floors.get(b, 0) and floors.get(a, 0) > floors[b]}
    for a, b in sorted(_nearest(above)):
        (x, y), (to_x, to_y) = middle[a], middle[b]
        axes.annotate(
            "", (to_x, to_y + 0.29), (x, y - 0.29), arrowprops={"arrowstyle": "-|>", "color": "0.35", "lw": 1.0}
        )
    axes.text(0.0, 0.36, "used on every floor:", fontsize=8, color="0.35", ha="left")
    axes.set(xlim=(-0.01, 1.01), ylim=(-1.6, len(FLOORS) + 0.4))
    axes.set_axis_off()
    return figure


def _box(
    axes: Any, x: float, y: float, width: float, room: str, words: str, cellar: bool = False
) -> tuple[float, float]:
    height = 0.5 if cellar else 0.58
    style = {"boxstyle": "round,pad=0,rounding_size=0.015", "mutation_aspect": 8.0, "lw": 0.8}
    colour = "#f3f3f3" if cellar else "#e6f0f6"
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, fc=colour, ec="0.5", **style))
    axes.text(x, y + 0.09, room, ha="center", va="center", fontsize=9.5, fontweight="bold")
    axes.text(x, y - 0.14, words, ha="center", va="center", fontsize=7.5, color="0.25")
    return x, y


def setup(app: Any) -> dict[str, bool]:
    """Draw the picture before the pages are read."""

    def save(app: Any) -> None:
        package = Path(__import__("isopleth").__file__).parent
        draw(package).savefig(Path(app.srcdir) / "images" / "house.png", dpi=150)

    app.connect("builder-inited", save)
    return {"parallel_read_safe": True}
