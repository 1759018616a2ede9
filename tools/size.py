"""Count the lines of the package and of its tests: code, docstrings, files.

Run ``python tools/size.py`` for one line a package, ``--files`` for one line a file. A line is code if a token stands on it that
is neither a comment nor part of a docstring. Strings that stand alone, such as those under constants, count as docstrings.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def counted(source: str) -> Counter[str]:
    """Return the lines of code and of docstrings of one file."""
    alone = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    docs = {line for node in alone for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return Counter(code=len(code - docs), docstrings=len(docs), files=1)


def sizes(folder: Path, depth: int) -> dict[str, Counter[str]]:
    """Return the counts of all Python files under `folder`, added over paths that agree in their first `depth` parts."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        name = "/".join(parts[:depth]) if len(parts) > 1 or depth > 1 else "."
        found.setdefault(name, Counter()).update(counted(path.read_text(encoding="utf-8")))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=["src/isopleth", "tests"], help="folders to count")
    parser.add_argument("--files", action="store_true", help="one line a file")
    asked = parser.parse_args()
    for folder in asked.folders:
        print(f"{folder:<52}{'code':>8}{'docstrings':>12}{'files':>7}")
        found = sizes(ROOT / folder, 99 if asked.files else 1)
        for name, counts in [*found.items(), ("all", sum(found.values(), Counter()))]:
            print(f"    {name:<48}{counts['code']:>8,}{counts['docstrings']:>12,}{counts['files']:>7,}")


if __name__ == "__main__":
    main()
