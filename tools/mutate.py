"""Mutation test of the core: change one operator or number at a time and see whether a test fails.

Run ``python tools/mutate.py --count 100 --seed 0 --out mutants.csv`` in the test environment. Each mutant is a copy of ``src``
with one change; the tests of its package run against it until one fails. A run that was interrupted continues where it stopped.
It is not part of continuous integration: it takes about an hour on two cores.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "isopleth"
# Packages that compute something, and the tests that are to notice.
TESTS = {
    "kernels": ["tests/kernels"],
    "operators": ["tests/operators"],
    "solvers": ["tests/solvers"],
    "density": ["tests/density"],
    "score": ["tests/score"],
    "difference": ["tests/difference"],
    "io": ["tests/io", "tests/cli"],
    "tasks/anomaly": ["tests/tasks/anomaly"],
    "tasks/two_sample": ["tests/tasks/two_sample"],
    "tasks/class_prior": ["tests/tasks/class_prior"],
    "tasks/drift": ["tests/tasks/drift"],
    "tasks/change_points": ["tests/tasks/change_points"],
}
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*"}
TIMEOUT = 600


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    package: str
    file: str
    line: int
    before: str
    after: str


def sites(path: Path) -> Iterator[tuple[int, int, int, str]]:
    """Yield line, first and last column, and new text of every change that can be made to a file."""
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    skipped = {id(node) for root in ast.walk(tree) if _says_nothing(root) for node in ast.walk(root)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.end_lineno == node.lineno:
            changed = node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0
            yield node.lineno, node.col_offset, node.end_col_offset or 0, repr(changed)
        for left, right, operator in _operators(node):
            if left.end_lineno == right.lineno and left.end_col_offset is not None:
                between = lines[left.end_lineno - 1][left.end_col_offset : right.col_offset]
                if between.strip(" ()") and between.isascii():
                    old = between.strip(" ()")
                    start = left.end_col_offset + between.index(old)
                    yield left.end_lineno, start, start + len(old), operator


def _says_nothing(node: ast.AST) -> bool:
    """Tell whether changes inside `node` are changes of words only: docstrings, messages, annotations, defaults of memory."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.AnnAssign)):
        return not (isinstance(node, ast.AnnAssign) and node.value is not None)
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return called.endswith(("warn", "InputError")) or called.startswith("warnings")


def _operators(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield node.left, node.comparators[0], COMPARISONS[type(node.ops[0])]
    # Not the formatting of strings, which is a % b for a string a.
    if (
        isinstance(node, ast.BinOp)
        and type(node.op) in ARITHMETIC
        and not _is_text(node.left)
        and not _is_text(node.right)
    ):
        yield node.left, node.right, ARITHMETIC[type(node.op)]
    if isinstance(node, ast.BoolOp):
        yield node.values[0], node.values[1], "or" if isinstance(node.op, ast.And) else "and"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def choose(count: int, seed: int) -> list[tuple[Mutant, int, int]]:
    """Draw mutants, as many from each package as can be, and their columns."""
    rng, out = random.Random(seed), []
    for i, package in enumerate(TESTS):
        found = [
            (path, *site)
            for path in sorted((SOURCE / package).rglob("*.py"))
            for site in sites(path)
            if site[2] > site[1]
        ]
        rng.shuffle(found)
        share = count // len(TESTS) + (i < count % len(TESTS))
        for path, line, start, end, after in found[:share]:
            before = path.read_text(encoding="utf-8").splitlines()[line - 1]
            changed = before.encode()[:start].decode() + after + before.encode()[end:].decode()
            mutant = Mutant(package, path.relative_to(SOURCE).as_posix(), line, before.strip(), changed.strip())
            out.append((mutant, start, end))
    return out


def verdict(mutant: Mutant) -> str:
    """Run the tests of the package against a mutated copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / "isopleth" / mutant.file
        lines = target.read_text(encoding="utf-8").splitlines()
        indent = lines[mutant.line - 1][: len(lines[mutant.line - 1]) - len(lines[mutant.line - 1].lstrip())]
        lines[mutant.line - 1] = indent + mutant.after
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [*command, *TESTS[mutant.package]], cwd=ROOT, env=environment, capture_output=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return "killed"
    return "survived" if done.returncode == 0 else "killed"


def main() -> None:
    """Run the mutants that the file has no verdict for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mutants.csv"))
    asked = parser.parse_args()
    columns = [*(field.name for field in fields(Mutant)), "verdict"]
    done: list[dict[str, str]] = []
    if asked.out.exists():
        with asked.out.open(newline="", encoding="utf-8") as file:
            done = list(csv.DictReader(file))
    known = {(row["file"], row["line"], row["after"]) for row in done}
    left = [m for m, _, _ in choose(asked.count, asked.seed) if (m.file, str(m.line), m.after) not in known]
    if not done:
        with asked.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(columns)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for mutant, word in zip(left, pool.map(verdict, left), strict=True):
            row = {**asdict(mutant), "verdict": word}
            done.append({name: str(value) for name, value in row.items()})
            with asked.out.open("a", newline="", encoding="utf-8") as file:
                csv.DictWriter(file, columns).writerow(row)
            print(f"{word:<9} {mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in done:
        counts[row["package"]][row["verdict"]] += 1
    print(f"\n{'package':<22}{'killed':>8}{'survived':>10}{'equivalent':>12}")
    for package, words in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"{package:<22}{words['killed']:>8}{words['survived']:>10}{words['equivalent']:>12}")


if __name__ == "__main__":
    main()
