"""Text from files of unknown origin: what messages show of it, and what CSV results make of it."""

from __future__ import annotations

import csv
import json
import pickle
import warnings
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.preprocessing import StandardScaler

from isopleth import InputError
from isopleth.cli.commands import program
from isopleth.core.errors import printable
from isopleth.files.write import write_table
from isopleth.io import load, save
from isopleth.io.models import sealed

ESCAPE = "\x1b[31mred\x07"
X = np.random.default_rng(0).normal(size=(60, 2))


def message_of(function, *arguments) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments)
    return str(caught.value)


def test_the_version_of_a_model_file_is_shown_escaped(tmp_path):
    path = tmp_path / "model"
    save(StandardScaler().fit(X), path)
    with ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members["isopleth.json"] = json.dumps({"format": 999, "isopleth": ESCAPE}).encode()
    with ZipFile(path, "w", ZIP_STORED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    path.write_bytes(sealed(path.read_bytes()))
    text = message_of(load, path)
    assert "by isopleth \\x1b[31mred\\x07 in format 999" in text
    assert text.isprintable()


def test_an_escaped_message_survives_a_process_border():
    error = pickle.loads(pickle.dumps(InputError(f"{ESCAPE}\nx")))
    assert str(error) == "\\x1b[31mred\\x07\\nx" == printable(str(error))


RUN = ["=1+1", "@a", "\tx", "\rx", "+a", "-a", "-1+1", "+e5", "-12.5x", "--1", "- 1"]
HARMLESS = ["a\r=1", "b\n=1", "+", "-", "-12.5", "+3", "-.5e-3", "+1.", "a=1", "'=1", "", " word", "größe"]


def cells_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_text_that_a_spreadsheet_would_run_is_marked_in_csv(tmp_path):
    path = tmp_path / "t.csv"
    words = RUN + HARMLESS
    columns = {"=name": np.array(words, dtype=object), "-1": np.full(len(words), -2.5)}
    write_table(path, columns)
    header, *rows = cells_of(path)
    assert header == ["'=name", "-1"]
    assert [row[0] for row in rows] == [f"'{cell}" for cell in RUN] + HARMLESS
    assert {row[1] for row in rows} == {"-2.5"}
    write_table(path, columns, raw_text=True)
    header, *rows = cells_of(path)
    assert header == ["=name", "-1"]
    assert [row[0] for row in rows] == words


def test_text_is_not_changed_in_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "t.parquet", {"=name": np.array(RUN, dtype=object)})
    assert parquet.read_table(tmp_path / "t.parquet").to_pydict() == {"=name": RUN}


def run(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(program, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_commands_mark_classes_and_names_by_default(tmp_path):
    table, test, out = tmp_path / "t.csv", tmp_path / "u.csv", tmp_path / "o.csv"
    classes = np.where(X[:, 0] > 0, "=cmd()", "+")
    rows = [f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), classes.tolist(), strict=True)]
    table.write_text("\n".join(["=a,-b,kind", *rows]) + "\n")
    np.savetxt(test, X, delimiter=",", header="=a,-b", comments="")
    run("prior", table, test, "--target", "kind", "--out", out)
    assert sorted(row[0] for row in cells_of(out)[1:]) == ["'=cmd()", "+"]
    run("prior", table, test, "--target", "kind", "--out", out, "--raw-text")
    assert sorted(row[0] for row in cells_of(out)[1:]) == ["+", "=cmd()"]
    X[7] = [40.0, 0.0]
    np.savetxt(test, X, delimiter=",", header="=a,-b", comments="")
    run("anomalies", test, "--out", out, "--explain")
    header, *found = cells_of(out)
    assert {row[header.index("explained_by")] for row in found} <= {"", "'=a", "'-b"}
    assert found[7][header.index("explained_by")] == "'=a"
    run("anomalies", test, "--out", out, "--explain", "--raw-text")
    assert cells_of(out)[8][header.index("explained_by")] == "=a"
