"""Mutation test: change one operator or number at a time and see whether a test fails.

Run ``python tools/mutate.py`` in the test environment; the table is ``tools/mutants.csv``. Each mutant is a copy of ``src`` with
one change. The tests of its package run against it, those that name the changed module first, until one fails; the table keeps
the name of that test. The script stops if the file of that test fails without the change, too.

A run continues the table: killed mutants and those marked by hand as ``equivalent`` (with the reason) are kept as long as the
line is still in the file, survivors are tried again, and new ones are drawn up to ``--each`` of each package. The script
is not part of continuous integration. Do not edit source or tests while it runs.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "isopleth"
# Contracts of all estimators of arrays, and of all estimators of tables with words and gaps.
ARRAYS = ["tests/contracts/test_invariance_contract.py", "tests/contracts/test_tensor_contract.py"]
TABLES = ["tests/contracts/test_table_contract.py"]
# Folders of the source, and the tests that have to notice a change there, besides the recorded answers, which run last.
# "." stands for the modules beside the packages.
TESTS = {
    ".": ["tests/expansion", "tests/test_namespace.py", "tests/cli/test_demo.py"],
    "core": [
        "tests/core",
        "tests/contracts/test_column_order.py",
        "tests/contracts/test_scaled_columns.py",
        "tests/contracts/test_streaming.py",
        "tests/contracts/test_validation.py",
    ],
    "adapters": ["tests/adapters"],
    "frames": ["tests/frames", "tests/tasks/goodness_of_fit"],
    "kernels": ["tests/kernels"],
    "operators": ["tests/operators"],
    "solvers": ["tests/solvers"],
    "density": ["tests/density", *ARRAYS, *TABLES],
    "sampling": ["tests/sampling"],
    "score": ["tests/score", *ARRAYS],
    "difference": ["tests/difference", *ARRAYS, *TABLES],
    "io": ["tests/io"],
    "results": ["tests/results"],
    "distributed": ["tests/distributed"],
    "cli": ["tests/cli"],
    "tables": [
        "tests/tables",
        "tests/files",
        "tests/io",
        "tests/contracts/test_clock_times.py",
        "tests/contracts/test_columns.py",
    ],
    "files": ["tests/files", "tests/tables", "tests/io", "tests/contracts/test_columns.py"],
    "tasks": [
        "tests/cli/test_describe.py",
        "tests/cli/test_expect.py",
        "tests/cli/test_sample.py",
        "tests/tasks/goodness_of_fit",
        "tests/tasks/made_rows",
    ],
    "torch": ["tests/torch_functions"],
    "context": ["tests/context"],
    "conditional": ["tests/conditional", *TABLES],
    "tasks/cellwise": ["tests/tasks/cellwise", *TABLES],
    "tasks/anomaly": ["tests/tasks/anomaly", *TABLES],
    "tasks/two_sample": ["tests/tasks/two_sample", *TABLES],
    "tasks/class_prior": ["tests/tasks/class_prior", *TABLES],
    "tasks/drift": ["tests/tasks/drift", *TABLES],
    "tasks/changes": ["tests/tasks/changes", "tests/templates/test_leg_template.py"],
}
# Packages whose own modules are meant, without those of the packages in them.
WITHOUT_INNER = (".", "tasks")
RECORDED = ROOT / "tests" / "answers" / "test_answers.py"
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*"}
TIMEOUT = 600  # seconds
PYTEST = ["-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-m", "not slow", "-p", "no:cacheprovider"]


@dataclass(frozen=True)
class Mutant:
    """One change of one file and its verdict: killed (by which test), survived, or equivalent (by hand, with the reason)."""

    package: str
    file: str
    line: int
    before: str
    after: str
    verdict: str = ""
    reason: str = ""


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
    """Tell whether changes inside `node` change words or types only: messages, f-strings, annotations without a value."""
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


def drawn(package: str, rng: random.Random) -> Iterator[Mutant]:
    """Yield the mutants of a package in random order."""
    folder = SOURCE / package
    paths = sorted(folder.glob("*.py") if package in WITHOUT_INNER else folder.rglob("*.py"))
    if package == "adapters":  # the tests of an adapter need the library of its name
        paths = [path for path in paths if find_spec(path.stem) is not None]
    found = [(path, *site) for path in paths for site in sites(path)]
    rng.shuffle(found)
    for path, line, start, end, after in found:
        before = path.read_text(encoding="utf-8").splitlines()[line - 1]
        changed = before.encode()[:start].decode() + after + before.encode()[end:].decode()
        yield Mutant(package, path.relative_to(SOURCE).as_posix(), line, before.strip(), changed.strip())


def table_of(path: Path) -> list[Mutant]:
    """Read the rows whose line is still in the source, with the number that it has now."""
    out: list[Mutant] = []
    if not path.exists():
        return out
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            mutant = Mutant(line=int(row.pop("line")), **row)
            source = SOURCE / mutant.file
            lines = source.read_text(encoding="utf-8").splitlines() if source.exists() else []
            at = [i for i, text in enumerate(lines, 1) if text.strip() == mutant.before]
            if at:
                out.append(replace(mutant, line=min(at, key=lambda i: abs(i - mutant.line))))
    return out


def write(path: Path, mutants: list[Mutant]) -> None:
    """Write the table anew, beside itself first, so that an interrupted run leaves a whole one."""
    beside = path.with_suffix(".partial")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Mutant)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(m) for m in sorted(mutants, key=lambda m: (m.package, m.file, m.line, m.after)))
    beside.replace(path)


def test_files(package: str, file: str) -> list[Path]:
    """List the tests of a package: first those named after the module, then those that mention it, small before large ones."""
    stem = Path(file).stem
    found = [path for pattern in TESTS[package] for path in _tests_in(ROOT / pattern)]

    def late(path: Path) -> tuple[bool, bool, int]:
        text = path.read_text(encoding="utf-8")
        return stem not in path.stem, re.search(rf"\b{stem}\b", text) is None, len(text)

    return [*sorted(found, key=late), RECORDED]


def _tests_in(path: Path) -> list[Path]:
    return [path] if path.suffix else sorted(path.rglob("test_*.py"))


def first_failure(tests: list[str], mutant: Mutant | None) -> str:
    """Run tests against a copy of the source, with the change if there is one, and return the first that fails, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            target = copy / "isopleth" / mutant.file
            lines = target.read_text(encoding="utf-8").splitlines()
            lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after)
            target.write_text("\n".join(lines) + "\n", encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *PYTEST, *tests]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return f"no end within {TIMEOUT} s"
    if done.returncode == 0:
        return ""
    failure = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if not failure and done.returncode > 0:  # pytest itself failed: that says nothing about the tests
        raise SystemExit(f"pytest ended with status {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return failure[1] if failure else f"the process ended with signal {-done.returncode}"


def judged(mutant: Mutant) -> Mutant:
    """Run the tests of the package against the mutated source, and the file that fails against the unchanged one."""
    tests = [str(path.relative_to(ROOT)) for path in test_files(mutant.package, mutant.file)]
    failure = first_failure(tests, mutant)
    if not failure:
        return replace(mutant, verdict="survived", reason="")
    file = failure.partition("::")[0]
    if again := first_failure([file] if file in tests else tests, None):
        raise SystemExit(f"{again} fails without any change, so that {failure} does not count for {mutant}.")
    return replace(mutant, verdict="killed", reason=failure)


def main() -> None:
    """Continue the table and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=13, help="mutants of each package")
    parser.add_argument("--packages", nargs="+", choices=TESTS, default=list(TESTS), metavar="PACKAGE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "mutants.csv")
    asked = parser.parse_args()
    rows = table_of(asked.out)
    with ThreadPoolExecutor(asked.jobs) as pool:
        for package in asked.packages:
            todo = [m for m in rows if m.package == package and m.verdict == "survived"]
            known = {(m.file, m.before, m.after) for m in rows}
            new = drawn(package, random.Random(f"{asked.seed} {package}"))
            fresh = [m for m in new if (m.file, m.before, m.after) not in known]
            todo += fresh[: max(0, asked.each - sum(m.package == package for m in rows))]
            for future in as_completed([pool.submit(judged, m) for m in todo]):
                mutant = future.result()
                rows = [m for m in rows if (m.file, m.before, m.after) != (mutant.file, mutant.before, mutant.after)]
                rows.append(mutant)
                write(asked.out, rows)
                print(
                    f"{mutant.verdict:<9} {mutant.file}:{mutant.line}  {mutant.before}  ->  {mutant.after}", flush=True
                )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in sorted(rows, key=lambda m: list(TESTS).index(m.package)):
        counts[row.package][row.verdict] += 1
    print(f"\n{'package':<22}{'killed':>8}{'survived':>10}{'equivalent':>12}")
    for package, words in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"{package:<22}{words['killed']:>8}{words['survived']:>10}{words['equivalent']:>12}")


if __name__ == "__main__":
    main()
