"""The layers of the package from top to bottom, checked against the imports of the code, and a picture of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

LAYERS = [
    {"cli": ("command line", 1 / 3), "adapters": ("conventions of other libraries", 2 / 3)},
    {
        "tasks": ("questions of users", 1 / 6),
        "distributed": ("files and clusters", 3 / 6),
        "torch": ("functions with gradients", 5 / 6),
    },
    {"difference": ("differences of densities", 1 / 3), "context": ("cells given others", 2 / 3)},
    {"density": ("densities", 1 / 3)},
    {"score": ("gradients of log densities", 2 / 3)},
    {
        "expansion": ("a fitted function", 1 / 4),
        "solvers": ("coefficients", 2 / 4),
        "sampling": ("Markov chains", 3 / 4),
    },
    {"operators": ("sums over points, in tiles", 0.5)},
    {"kernels": ("similarity of points", 1 / 3), "frames": ("invertible maps of rows", 2 / 3)},
]
# Packages, what they hold, and where they are drawn. A package imports packages of lower layers, and the shared modules.

SHARED = {
    "core": "errors, arrays, threads, rows, scales",
    "tables": "kinds of columns, cells, checks",
    "files": "reading and writing tables",
    "io": "models and runs in files",
    "results": "text, JSON, pages, pictures",
    "datasets": "example data",
}

LATE_IMPORTS = {
    ("density", "torch"),
}
# Imports that point upwards, inside functions: a density that is given a tensor which requires a gradient imports functions
# that have one.


_SHARED_WIDTH = 3


def packages() -> dict[str, int]:
    """Return the layer of each package, counted upwards from the shared modules, which are layer 0."""
    layers = {name: len(LAYERS) - i for i, layer in enumerate(LAYERS) for name in layer}
    return layers | dict.fromkeys(SHARED, 0)


def imports(package: Path) -> dict[tuple[str, str], list[tuple[str, bool]]]:
    """Return, for each importing and imported package, the files that import and whether they do so inside a function."""
    found = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        name = place.parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(node) for function in ast.walk(tree) if _defers(function) for node in ast.walk(function)}
        for node in ast.walk(tree):
            for other in _taken(node, package.name):
                if other != name:
                    found[name, other].append((place.as_posix(), id(node) in inside))
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
    """Return the imports that do not follow from others."""
    reach = {pair for pair in taken}
    while True:
        more = {(a, d) for a, b in reach for c, d in reach if b == c} - reach
        if not more:
            break
        reach |= more
    return {(a, b) for a, b in taken if not any((a, c) in reach and (c, b) in reach for c in packages())}


def draw(package: Path) -> Figure:
    """Draw the packages, with arrows from each to those directly below it that it imports."""
    figure = Figure(figsize=(9, 8.2), layout="constrained")
    axes = figure.subplots()
    middle, layers = {}, packages()
    for i, layer in enumerate(LAYERS):
        for name, (words, x) in layer.items():
            middle[name] = _box(axes, x, len(LAYERS) - i, 0.23, name, words)
    for j, (name, words) in enumerate(SHARED.items()):
        x, y = (j % _SHARED_WIDTH + 0.5) / _SHARED_WIDTH, -0.05 - 0.6 * (j // _SHARED_WIDTH)
        _box(axes, x, y, 0.19, name, words, shared=True)
    above = {(a, b) for a, b in imports(package) if layers.get(b, 0) and layers.get(a, 0) > layers[b]}
    for a, b in sorted(_nearest(above)):
        (x, y), (to_x, to_y) = middle[a], middle[b]
        axes.annotate(
            "", (to_x, to_y + 0.29), (x, y - 0.29), arrowprops={"arrowstyle": "-|>", "color": "0.35", "lw": 1.0}
        )
    axes.text(0.0, 0.36, "used by every layer:", fontsize=8, color="0.35", ha="left")
    axes.set(xlim=(-0.01, 1.01), ylim=(-1.6, len(LAYERS) + 0.4))
    axes.set_axis_off()
    return figure


def _box(
    axes: Any, x: float, y: float, width: float, name: str, words: str, shared: bool = False
) -> tuple[float, float]:
    height = 0.5 if shared else 0.58
    style = {"boxstyle": "round,pad=0,rounding_size=0.015", "mutation_aspect": 8.0, "lw": 0.8}
    colour = "#f3f3f3" if shared else "#e6f0f6"
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, fc=colour, ec="0.5", **style))
    axes.text(x, y + 0.09, name, ha="center", va="center", fontsize=9.5, fontweight="bold")
    axes.text(x, y - 0.14, words, ha="center", va="center", fontsize=7.5, color="0.25")
    return x, y


def setup(app: Any) -> dict[str, bool]:
    """Draw the picture before Sphinx reads the pages."""

    def save(app: Any) -> None:
        package = Path(__import__("isopleth").__file__).parent
        draw(package).savefig(Path(app.srcdir) / "images" / "architecture.png", dpi=150)

    app.connect("builder-inited", save)
    return {"parallel_read_safe": True}
