"""Malformed files and arguments, in this process: loaders, the reader of standard input, and the command line."""

from __future__ import annotations

import io
import os
import random
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

import isopleth
from experiments.reliability import samples
from experiments.reliability.mutations import spoiled
from experiments.reliability.outcomes import Tally, progress, tried, wrong_end
from isopleth.cli.commands import program
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reading, read_table
from isopleth.files.stream import FileRows, RowStream

_COLUMNS = (None, None, ["a"], ["x1", "x2"], ["height", "age"], ["none"])


def campaign(count: int, seed: int = 0) -> Tally:
    """Try `count` cases: of 20, ten are tables, five models, two streams and three runs of the command line."""
    rng, tally = random.Random(seed), Tally()
    # Strange arguments name files in the current folder, or beside it.
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        place = Path(folder) / "place"
        place.mkdir()
        os.chdir(place)
        tables = samples.tables()
        models = samples.model_files()
        kinds: list[Callable[[], None]] = [
            *[lambda: _table(tally, rng, place, tables)] * 10,
            *[lambda: _model(tally, rng, place, models)] * 5,
            *[lambda: _stream(tally, rng, tables)] * 2,
            *[lambda: _command(tally, rng, place, tables, models)] * 3,
        ]
        for case in progress(range(count), count, tally):
            kinds[case % len(kinds)]()
    return tally


def _table(tally: Tally, rng: random.Random, place: Path, tables: dict[str, list[bytes]]) -> None:
    suffix = rng.choice(list(tables))
    content, how = spoiled(rng.choice(tables[suffix]), suffix, rng, tables[suffix])
    path = place / f"table{suffix if rng.random() < 0.95 else rng.choice(list(tables))}"
    path.write_bytes(content)
    columns = rng.choice(_COLUMNS)
    readers: dict[str, Callable[[], object]] = {
        "read_table": lambda: read_table(path, columns=columns, min_rows=rng.choice((1, 2)), warn=False),
        "FileRows": lambda: list(FileRows(path, Reading(columns=columns)).tables(7)),
        "labels": lambda: read_table(
            path, labels=[rng.choice(("kind", "word", "a", "x1", "list", "none"))], warn=False
        ),
    }
    name = rng.choice(("read_table", "read_table", "FileRows", "labels"))
    tried(tally, f"{name} {suffix}", how, readers[name])


def _model(tally: Tally, rng: random.Random, place: Path, models: dict[str, bytes]) -> None:
    """A changed byte is always found; what is loaded nevertheless must be what was saved."""
    name = rng.choice(list(models))
    before = models[name]
    content, how = spoiled(before, ".isopleth", rng, list(models.values()))
    path = place / "spoiled.isopleth"
    path.write_bytes(content)
    found = tried(tally, "load", f"{name}: {how}", lambda: isopleth.load(path))
    if found is not None and content not in models.values():
        tally.add("load", "", f"{name}: {how}: a file with other bytes was loaded")


def _stream(tally: Tally, rng: random.Random, tables: dict[str, list[bytes]]) -> None:
    """Rows from standard input, as the monitor reads them."""
    content, how = spoiled(rng.choice(tables[".csv"]), ".csv", rng, tables[".csv"])
    like = FileTable.of_array(np.zeros((2, 3)), ["height", "a width", "age"], Path("reference"))
    stream = RowStream(replace(like, named=rng.random() < 0.5))

    def read() -> None:
        for _, error in stream.batches(io.BytesIO(content)):
            if error is not None:
                raise error

    tried(tally, "standard input", how, read)


def _command(
    tally: Tally, rng: random.Random, place: Path, tables: dict[str, list[bytes]], models: dict[str, bytes]
) -> None:
    arguments, stdin, how = malformed_arguments(rng, place, tables, models)
    aside = Tally()
    result = tried(
        aside, "command line", f"{arguments} ({how})", lambda: CliRunner().invoke(program, arguments, input=stdin)
    )
    if not isinstance(result, Result):
        tally.merge(aside)
        return
    code, crash = result.exit_code, result.exception
    defect = wrong_end(code, result.stderr.splitlines())
    if crash is not None and not isinstance(crash, SystemExit):
        defect = f"exit {code}, {crash!r}"
    tally.add("command line", f"exit {code}", defect and f"{arguments} ({how}): {defect}")


def malformed_arguments(
    rng: random.Random, place: Path, tables: dict[str, list[bytes]], models: dict[str, bytes]
) -> tuple[list[str], bytes, str]:
    """A command line of which something is wrong as a rule, what comes on its standard input, and a word on that."""
    files, words = [], []
    for i in range(2):
        suffix = rng.choice(list(tables))
        content, how = spoiled(rng.choice(tables[suffix]), suffix, rng, tables[suffix])
        if rng.random() < 0.4:
            content, how = rng.choice(tables[suffix]), "valid"
        files.append(place / f"file{i}{suffix}")
        files[-1].write_bytes(content)
        words.append(f"{suffix} {how}")
    model = place / "argument.isopleth"
    name = rng.choice(list(models))
    model.write_bytes(
        spoiled(models[name], ".isopleth", rng, [models[name]])[0] if rng.random() < 0.5 else models[name]
    )
    resume = rng.choice(([], ["--resume"]))
    arguments = rng.choice(
        (
            ["anomalies", str(files[0])],
            ["anomalies", str(files[0]), "--model", str(model)],
            ["anomalies", str(files[0]), "--out", str(place / "out.csv"), "--explain"],
            ["compare", str(files[0]), str(files[1]), "--resamples", "19"],
            ["prior", str(files[0]), str(files[1]), "--target", rng.choice(("kind", "word", "x1"))],
            ["changes", str(files[0])],
            ["fit", str(files[0]), "--out", str(place / "out.isopleth"), "--size", "5", *resume],
            ["score", str(model), str(files[0]), "--out", str(place / "out.csv"), *resume],
            ["monitor", "--reference", str(files[0]), "--window", "5", "--run-length", "20"],
            ["monitor", "--reference", str(files[0]), "--state", str(model), "--window", "5", "--run-length", "100"],
        )
    )
    if rng.random() < 0.3:
        arguments = [*arguments, *_strange_arguments(rng)]
    content, how = spoiled(rng.choice(tables[".csv"]), ".csv", rng, tables[".csv"])
    return arguments, content, "; ".join([*words, f"model {name}", f"stdin {how}"])


def _strange_arguments(rng: random.Random) -> list[str]:
    options = (
        "--columns",
        "--top",
        "--out",
        "--save",
        "--plot",
        "--model",
        "--confidence-level",
        "--resamples",
        "--window",
        "--none",
        "",
    )
    values = (
        "",
        "-1",
        "nan",
        "1e999",
        "9" * 30,
        "a,b,a",
        '"',
        "é\u202e",
        "/",
        "/dev/null/x",
        "..",
        "x.csv\n",
        "--top",
        "\udcff",
        "a" * 300,
    )
    return [rng.choice(options), *rng.choices(values, k=rng.choice((0, 1, 1, 2)))]
