"""Page for language models: ``llms.txt`` beside the pages, with every public name and command and one line on each."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

DIRECTIVE = re.compile(r"\.\. autosummary::\n((?:   .*\n|\n)+)")


def listed(docs: Path) -> dict[str, list[str]]:
    """Return the title of each page of the reference and the names on it, in the order of the table of contents."""
    table = (docs / "reference.rst").read_text(encoding="utf-8")
    found = {}
    for page in re.findall(r"^   (reference/\w+)$", table, re.MULTILINE):
        text = (docs / f"{page}.rst").read_text(encoding="utf-8") + "\n"
        lines = [line.strip() for block in DIRECTIVE.findall(text) for line in block.splitlines()]
        found[text.splitlines()[0]] = [line for line in lines if line and not line.startswith(":")]
    return found


def summary(name: str) -> str:
    """Return the first sentence of the docstring of a public name."""
    *path, last = name.split(".")
    module = import_module(".".join(["isopleth", *path]))
    text = _of_source(module, last) if path == ["adapters"] else getattr(module, last).__doc__
    first = " ".join((text or "").strip().partition("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`<]*?)(?: <[^`]*>)?`", r"`\1`", first)


def _of_source(package: Any, name: str) -> str | None:
    """Return the docstring of a class from its source: adapters import libraries that the pages are built without."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(package.__file__).parent.glob("*.py")]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return ast.get_docstring(classes[0])


def commands() -> dict[str, str]:
    """Return the commands of the shell and what each does."""
    from isopleth.cli.commands import program

    return {name: command.get_short_help_str(200) for name, command in sorted(program.commands.items())}


def page(docs: Path, tagline: str) -> str:
    """Return the text of the page."""
    lines = [
        "# isopleth",
        "",
        f"> {tagline}",
        "",
        "Python library; estimators follow scikit-learn. Tables are NumPy arrays, tensors, or frames of pandas, polars and "
        "pyarrow with words, times and missing cells. Names below are relative to the package `isopleth`. Start with "
        "which_tool.html (which name answers which question) and limits.html (what it cannot do).",
        "",
    ]
    for title, names in listed(docs).items():
        lines += [f"## {title}", ""]
        lines += [f"- [{name}](api/isopleth.{name}.html): {summary(name)}" for name in names]
        lines += [""]
    lines += ["## Commands", ""]
    lines += [f"- [isopleth {name}](command_line.html): {does}" for name, does in commands().items()]
    return "\n".join(lines) + "\n"


def setup(app: Any) -> dict[str, bool]:
    """Write the page after the others."""

    def write(app: Any, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            tagline = (Path(app.srcdir) / "index.rst").read_text(encoding="utf-8").split("\n\n")[1].strip()
            Path(app.outdir, "llms.txt").write_text(page(Path(app.srcdir), tagline), encoding="utf-8")

    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
