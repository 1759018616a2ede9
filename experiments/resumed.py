"""A CSV file of results to which an interrupted run adds what is missing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Add = Callable[[Iterable[list[Any]]], None]


@contextmanager
def resumed(path: Path, fields: list[str], keys: int) -> Iterator[tuple[set[tuple[str, ...]], Add]]:
    """Open a file of results; give the first `keys` fields of its lines, and a function that adds lines at once."""
    new = not path.exists()
    finished = set()
    if not new:
        with path.open(newline="") as file:
            finished = {tuple(line[name] for name in fields[:keys]) for line in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(fields)

        def add(lines: Iterable[list[Any]]) -> None:
            writer.writerows(lines)
            file.flush()

        yield finished, add
