"""The packages of the library: what each is for, which others it may use, and which imports of the code are against this.

This is the only list of packages. ``tests/test_walls.py`` checks the code against it, ``docs/_ext/architecture.py`` draws it and
writes a page for each package, and ``tools/house.py`` counts what stands against it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "isopleth"


@dataclass(frozen=True)
class Package:
    """Package of the library, a folder or module that one person can take over.

    Every package may use ``core``, and any name of the packages in `uses`. Of those in `declared` it may use the names of their
    ``__init__`` file, and of the modules in their `offers`, which are not public. Layer 0 is drawn at the foot.
    """

    path: str
    purpose: str
    uses: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    layer: int = 0
    place: float = 0.5  # in its layer of the picture, from left to right
    first: tuple[str, ...] = ()  # what to do on the first day
    tests_at: str = ""  # folder of its tests, where it has another name

    @property
    def tests(self) -> str:
        """Folder of its tests."""
        return f"tests/{self.tests_at or self.path}"


_SUMS = ("tables", "kernels", "frames", "operators", "solvers", "expansion")
_FITTED = ("score", "density", "difference", "conditional", "context")
_TASK = (*_SUMS, "results", "sampling", "tasks")

PACKAGES = (
    Package(
        "core",
        "errors, array libraries, threads, rows, scales, p-values",
        first=(
            "read errors.py: every sentence that a user sees is a Message",
            "read threads.py: why only map_threads starts threads",
            "change a digit of a constant in rows.py and see which contract fails",
        ),
    ),
    Package(
        "io",
        "models and runs in files, written whole or not at all",
        first=(
            "save a model, load it, and compare the answers bit for bit",
            "read the checks of models.py in the order in which a file passes them",
            "interrupt `isopleth fit --resume` and continue it",
        ),
    ),
    Package(
        "tables",
        "what X is: cells, kinds of columns, schema, checks",
        first=(
            "fit an AnomalyDetector to a frame with words, and follow X through Given in checks.py",
            "add a line to the frame of tests/test_columns.py whose kind is in doubt",
            "read kinds.py and say why a column of 1, 2 and 3+ is words",
        ),
    ),
    Package(
        "files",
        "a table in a file, and back as it was",
        uses=("io", "tables"),
        offers=("parts",),
        first=(
            "run `isopleth describe` on a file of your own",
            "add a file to the gallery of tests/files",
            "follow one cell from delimited.py through read.py to write.py",
        ),
    ),
    Package(
        "results",
        "one content as text, JSON, page and picture",
        uses=("io", "tables"),
        first=(
            "print one result as text and as JSON, and find both in its facts",
            "open a page that --report writes, without a network",
            "add a column to a result of tests/results/result_cases.py",
        ),
    ),
    Package(
        "datasets",
        "example data",
        tests_at="cli/test_demo.py",
        first=("load one of the data sets", "read its licence", "plot a density of it"),
    ),
    Package(
        "kernels",
        "similarity of points",
        layer=1,
        place=1 / 3,
        first=(
            "copy tests/templates/kernel.py and run check_kernel over it",
            "read Gaussian, which is one formula",
            "plot a profile and its derivatives",
        ),
    ),
    Package(
        "frames",
        "invertible maps of rows",
        layer=1,
        place=0.87,
        first=(
            "copy tests/templates/frame.py and run check_frame over it",
            "map rows and back, and compare",
            "read compose.py: what a name of a frame stands for",
        ),
    ),
    Package(
        "operators",
        "sums over points, in tiles",
        uses=("kernels",),
        layer=2,
        first=(
            "compare one product with a dense matrix, as the tests do",
            "read the tile loop in tiles.py, the only one",
            "halve memory_limit and see that the result has the same bits",
        ),
    ),
    Package(
        "expansion",
        "a fitted function",
        uses=("kernels", "operators"),
        layer=3,
        place=1 / 4,
        first=(
            "evaluate one with its gradient, and compare with finite differences",
            "integrate its square by quadrature",
            "find who makes one",
        ),
    ),
    Package(
        "solvers",
        "coefficients",
        uses=("operators",),
        layer=3,
        place=2 / 4,
        first=(
            "solve one system by each solver of SCALING_SOLVERS",
            "read krylov.py: why the residual is computed anew",
            "add a regulariser with its qualification",
        ),
    ),
    Package(
        "sampling",
        "Markov chains",
        uses=("operators",),
        layer=3,
        place=3 / 4,
        first=(
            "sample a normal target, and look at r_hat",
            "read Target: what a density must answer",
            "stop a run with Ctrl-C",
        ),
    ),
    Package(
        "score",
        "gradients of log densities",
        uses=(*_SUMS, "sampling"),
        offers=("pullback", "selection", "base", "nystrom", "spaces", "ridge_selection"),
        layer=4,
        place=0.6,
        first=(
            "fit a KernelScore to normal rows, whose score is known",
            "read spaces.py: one class for each kind of vector field",
            "compare with a dense solution, as tests/score does",
        ),
    ),
    Package(
        "density",
        "densities",
        uses=(*_SUMS, "results"),
        offers=(
            "table_density",
            "column_answers",
            "frame_density",
            "feature_sosrep",
            "sosrep",
            "fitted",
            "search",
            "row_kernels",
            "base",
        ),
        layer=5,
        place=1 / 3,
        first=(
            "fit a SOSREP, and print the search path",
            "read fitting.py: from rows to candidates, and to the value that a fit returns",
            "draw rows and test them against the training rows",
        ),
    ),
    Package(
        "difference",
        "differences of densities",
        uses=(*_SUMS, "results"),
        declared=("density",),
        offers=("gaussian_system", "samples", "lsdd"),
        layer=6,
        place=1 / 3,
        first=(
            "fit an LSDD to two normal samples, whose difference is known",
            "read gaussian_system.py: one eigendecomposition for all ridges",
            "check its interval by simulation, as tests/difference does",
        ),
    ),
    Package(
        "conditional",
        "the law of a cell given its row",
        uses=(*_SUMS, "results"),
        declared=("density",),
        offers=("inputs", "binned_law", "cell_judgement", "column_laws", "imputer", "pseudo_likelihood"),
        layer=6,
        place=0.87,
        first=(
            "ask for the law of one cell of a table of your own",
            "compare its quantiles with rows that were held out",
            "read which kinds of columns have which law",
        ),
    ),
    Package(
        "context",
        "cells and rows in context",
        uses=(*_SUMS, "results"),
        declared=("density", "conditional"),
        offers=("forest_residuals", "indexed_ranks", "ranks", "residuals"),
        layer=7,
        place=0.87,
        first=(
            "take the residuals of a table and look for what is left in them",
            "simulate a series with days, and compare the ranks with and without the clock",
            "find the tasks that use it",
        ),
    ),
    Package(
        "tasks",
        "questions of users",
        uses=_TASK,
        declared=_FITTED,
        offers=("description", "expected_values"),
        layer=8,
        place=1 / 6,
        first=(
            "copy tests/templates/task.py",
            "run `isopleth expect` on a file of your own",
            "read one result from its fields to its sentences",
        ),
    ),
    *(
        Package(
            f"tasks/{name}", purpose, uses=_TASK, declared=_FITTED, offers=offers, layer=8, place=1 / 6, first=first
        )
        for name, purpose, offers, first in (
            (
                "anomaly",
                "which rows are unlikely, and why",
                ("detector", "fit_in_parts", "result", "explanation", "whole_table", "fit_sample"),
                (
                    "run `isopleth anomalies` on a file of your own",
                    "read pooled_rule.py: what makes a row unlikely",
                    "plant a row and find its reason",
                ),
            ),
            (
                "two_sample",
                "what differs between two tables",
                ("testing", "result"),
                (
                    "run `isopleth compare` on two halves of one file",
                    "read problem.py and permutation.py: the statistic and its law",
                    "simulate the level with ties and words",
                ),
            ),
            (
                "changes",
                "when a series changed",
                ("detector", "result", "steps"),
                (
                    "run `isopleth changes` on a series of your own",
                    "read the list of legs in the docstring of the detector, then one leg",
                    "plant a step in noise, and vary its size",
                ),
            ),
            (
                "drift",
                "whether new rows are still like the reference",
                ("monitor", "alarms", "pages_result", "causes", "page", "stream_times"),
                (
                    "run `isopleth monitor` on a stream of your own",
                    "read calibration.py: what the rate of false alarms means",
                    "simulate a run length",
                ),
            ),
            (
                "class_prior",
                "shares of classes in unlabelled rows",
                ("estimator", "result"),
                (
                    "run `isopleth prior` on labelled rows",
                    "read shares.py: the moments that are matched",
                    "simulate a share of 0",
                ),
            ),
            (
                "cellwise",
                "which cells are wrong",
                ("detector", "result", "flagged_rows"),
                ("ask for the wrong cells of a file", "plant one and find it", "read which laws judge a cell"),
            ),
            (
                "made_rows",
                "rows that are drawn, and how they compare",
                (),
                ("draw rows of a file", "compare them with it", "read how numbers get their digits"),
            ),
        )
    ),
    Package(
        "distributed",
        "fits to files, record batches and clusters",
        uses=("tables",),
        declared=("files", "io", *_FITTED, "tasks/anomaly", "tasks/two_sample", "tasks/drift", "tasks/changes"),
        layer=8,
        place=3 / 6,
        first=(
            "fit a density to the record batches of a table",
            "read Parts in core/parts.py: one method",
            "fit with Dask on one machine, and compare the bits",
        ),
    ),
    Package(
        "torch",
        "functions with gradients",
        tests_at="torch_functions",
        uses=(*_SUMS,),
        declared=_FITTED,
        layer=8,
        place=5 / 6,
        first=(
            "differentiate a log density, and compare with finite differences",
            "read products.py: one Function a product",
            "measure the memory of a backward pass",
        ),
    ),
    Package(
        "cli",
        "command line",
        uses=("io", "tables", "files", "results", "kernels", "datasets"),
        declared=("distributed", "score", "density", "difference", "conditional", "tasks", "tasks/*"),
        layer=9,
        place=1 / 3,
        first=(
            "run `isopleth --help`, then one command on a file",
            "read run.py: what all commands share",
            "change a sentence and see which test says so",
        ),
    ),
    Package(
        "adapters",
        "conventions of other libraries",
        uses=(),
        declared=("tasks/*",),
        layer=9,
        place=2 / 3,
        first=(
            "run the checks of one of the libraries, `make test-adapters`",
            "read one adapter, which is a screen",
            "find what the library asks that ours does not answer",
        ),
    ),
)

_BY_PATH = {package.path: package for package in PACKAGES}


@dataclass(frozen=True, order=True)
class Import:
    """Import of a name of another package."""

    file: str  # path in the library
    module: str  # without the name of the library
    name: str

    @property
    def source(self) -> str:
        """Package that imports."""
        return package_of(self.file.removesuffix(".py").removesuffix("/__init__"))

    @property
    def target(self) -> str:
        """Package that is imported from."""
        return package_of(self.module.replace(".", "/"))

    def __str__(self) -> str:
        return f"{self.file}: from {self.module} import {self.name}"


def package_of(path: str) -> str:
    """Return the package that a file or module of the library is part of."""
    parts = path.split("/")
    return next((known for known in ("/".join(parts[:2]), parts[0]) if known in _BY_PATH), parts[0])


@cache
def imports(source: Path = SOURCE) -> tuple[Import, ...]:
    """Return every import of one package from another, those inside functions and for type checkers among them."""
    return tuple(_imports(source))


def _imports(source: Path) -> Iterator[Import]:
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for module, name in _taken(node, source):
                found = Import(path.relative_to(source).as_posix(), module, name)
                if found.source != found.target and found.file not in ("__init__.py", "__main__.py"):
                    yield found


def _taken(node: ast.AST, source: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of each thing that a statement imports from the library."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith(f"{source.name}."):
                yield alias.name.partition(".")[2], ""
    if not isinstance(node, ast.ImportFrom) or not node.module or node.module.split(".")[0] != source.name:
        return
    module = node.module.partition(".")[2]
    for alias in node.names:
        inner = f"{module}.{alias.name}".strip(".")
        is_module = any((source / (inner.replace(".", "/") + end)).exists() for end in (".py", "/__init__.py"))
        if module or is_module:
            yield (inner, "") if is_module else (module, alias.name)


def against(source: Path = SOURCE) -> list[Import]:
    """Return the imports that the list of packages does not allow."""
    return [one for one in imports(source) if not allowed(one)]


def allowed(one: Import) -> bool:
    """Return whether a package may import a name from another."""
    package, target = _BY_PATH[one.source], _BY_PATH[one.target]
    if target.path == "core" or target.path in package.uses:
        return True
    if not {target.path, re.sub("/.*", "/*", target.path)} & set(package.declared):
        return False
    inner = one.module.replace(".", "/").removeprefix(target.path).strip("/")
    return not inner or inner in target.offers


def used_names(path: str, every: Iterable[Import]) -> dict[str, dict[str, list[str]]]:
    """Return the names that a package takes from the others, by package and module."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in every:
        if one.source == path:
            names = found.setdefault(one.target, {}).setdefault(one.module, [])
            names += [one.name] * (one.name not in names and one.name != "")
    return found


def public_modules(source: Path = SOURCE) -> set[str]:
    """Return the modules whose names are public: the library, and its packages with a file of their names."""
    folders = {path.parent.relative_to(source.parent).as_posix() for path in source.rglob("__init__.py")}
    return {folder.replace("/", ".") for folder in folders}
