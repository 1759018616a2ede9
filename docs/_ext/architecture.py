"""A picture of the packages of the library, drawn from their imports, and a page for each package (``tools/walls.py``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from walls import PACKAGES, SOURCE, Package, imports, used_names

_SHARED_WIDTH = 3
# Names of a module that a page lists; the code has the others.
_MOST_NAMES = 8


def drawn() -> dict[str, Package]:
    """Return the packages that have a box in the picture: the tasks in one box."""
    return {package.path: package for package in PACKAGES if "/" not in package.path}


def arrows() -> set[tuple[str, str]]:
    """Return which package of the picture imports which one below it, without what follows from others."""
    packages = drawn()
    pairs = {(one.source.partition("/")[0], one.target.partition("/")[0]) for one in imports()}
    taken = {(a, b) for a, b in pairs if a != b and packages[a].layer > packages[b].layer > 0}
    reach = set(taken)
    while more := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= more
    return {(a, b) for a, b in taken if not any((a, c) in reach and (c, b) in reach for c in packages)}


def draw() -> Figure:
    """Draw the packages, with arrows from each to those directly below it that it imports."""
    figure = Figure(figsize=(9, 8.2), layout="constrained")
    axes = figure.subplots()
    middle = {h.path: _box(axes, h.place, h.layer, 0.23, h) for h in drawn().values() if h.layer}
    for j, package in enumerate(h for h in drawn().values() if not h.layer):
        x, y = (j % _SHARED_WIDTH + 0.5) / _SHARED_WIDTH, -0.05 - 0.6 * (j // _SHARED_WIDTH)
        _box(axes, x, y, 0.31, package, shared=True)
    for a, b in sorted(arrows()):
        (x, y), (to_x, to_y) = middle[a], middle[b]
        axes.annotate(
            "", (to_x, to_y + 0.29), (x, y - 0.29), arrowprops={"arrowstyle": "-|>", "color": "0.35", "lw": 1.0}
        )
    axes.text(0.0, 0.36, "used by every layer:", fontsize=8, color="0.35", ha="left")
    axes.set(xlim=(-0.01, 1.01), ylim=(-1.0, max(h.layer for h in PACKAGES) + 0.4))
    axes.set_axis_off()
    return figure


def _box(axes: Any, x: float, y: float, width: float, package: Package, shared: bool = False) -> tuple[float, float]:
    """Draw the box of a package, and return its middle."""
    height = 0.5 if shared else 0.58
    style = {"boxstyle": "round,pad=0,rounding_size=0.015", "mutation_aspect": 8.0, "lw": 0.8}
    colour = "#f3f3f3" if shared else "#e6f0f6"
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, fc=colour, ec="0.5", **style))
    axes.text(x, y + 0.09, package.path, ha="center", va="center", fontsize=9.5, fontweight="bold")
    axes.text(x, y - 0.14, package.purpose, ha="center", va="center", fontsize=6.5, color="0.25")
    return x, y


def page(package: Package) -> str:
    """Return the page of a package: what it is for, what it takes from others, how its tests run, what to do first."""
    title = f"``isopleth/{package.path}``"
    files = sorted(path.name for path in (SOURCE / package.path).glob("*.py") if path.name != "__init__.py")
    lines = [title, "=" * len(title), "", f"{package.purpose[0].upper()}{package.purpose[1:]}.", ""]
    if files:
        lines += ["Its files: " + ", ".join(f"``{name}``" for name in files) + ".", ""]
    lines += ["What it takes from other packages", "-" * 33, ""]
    taken = used_names(package.path, imports())
    for other, modules in sorted(taken.items()):
        names = sorted({name for found in modules.values() for name in found})
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        words = ", ".join(f"``{name}``" for name in names[:_MOST_NAMES]) + more
        lines += [f"- ``{other}``: {words}"] if names else [f"- ``{other}``: its modules"]
    lines += [] if taken else ["Nothing."]
    users = sorted({one.source for one in imports() if one.target == package.path})
    lines += ["", "It is used by " + (", ".join(f"``{name}``" for name in users) or "no other package") + ".", ""]
    lines += ["Its tests", "-" * 9, "", "::", "", f"    python -m pytest -n0 {package.tests}", ""]
    lines += [
        "Three things to do first",
        "-" * 24,
        "",
        *(f"{i}. {one[0].upper()}{one[1:]}." for i, one in enumerate(package.first, 1)),
    ]
    return "\n".join([*lines, ""])


def write_pages(folder: Path) -> None:
    """Write the page of each package, and their list."""
    folder.mkdir(exist_ok=True)
    names = []
    for package in PACKAGES:
        names.append(package.path.replace("/", "_"))
        (folder / f"{names[-1]}.rst").write_text(page(package), encoding="utf-8")
    text = [
        "Packages",
        "========",
        "",
        "Each package that one person can take over has a page.",
        "",
        ".. toctree::",
        "",
    ]
    (folder / "index.rst").write_text("\n".join([*text, *(f"   {name}" for name in names), ""]), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Draw the picture and write the pages before Sphinx reads its sources."""

    def save(app: Any) -> None:
        draw().savefig(Path(app.srcdir) / "images" / "architecture.png", dpi=150)
        write_pages(Path(app.srcdir) / "packages")

    app.connect("builder-inited", save)
    return {"parallel_read_safe": True}
