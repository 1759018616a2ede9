"""``--json`` on every command: one object, as its schema says."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cli.verbs import VERBS, arguments, write_files
from isopleth.cli.commands import COMMANDS
from isopleth.cli.json_schema import SCHEMAS
from isopleth.cli.program import program

TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "list": list,
}
# Keys that stand for several, or that depend on the options.
OPTIONAL = {"time", "line", "row", "explained_by", "before", "after"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("json")
    write_files(path)
    return path


def output_of(verb, folder, *more):
    stream = (folder / "after.csv").read_text() if verb == "monitor" else None
    result = CliRunner().invoke(
        program, [*arguments(verb, folder), "--json", *more], input=stream, prog_name="isopleth"
    )
    # A monitor that has raised an alarm says so by its exit code.
    assert result.exit_code == (3 if verb == "monitor" else 0), result.stderr
    return result.stdout


def is_of(value, kind):
    if " or " in kind or ", " in kind:
        return any(is_of(value, one) for one in kind.replace(", ", " or ").split(" or "))
    if kind.startswith("list of "):
        return isinstance(value, list) and all(is_of(one, kind.removeprefix("list of ")) for one in value)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def check(found, schema, where):
    known = {key: kind for key, (kind, _) in schema.items()}
    for key, value in found.items():
        plain = key if key in known else key.partition("_")[0]
        assert plain in known, f"{where}: {key} is not in the schema"
        assert is_of(value, known[plain]), f"{where}: {key} = {value!r} is no {known[plain]}"
    assert known.keys() - found.keys() <= OPTIONAL


def test_every_command_has_the_option_and_a_schema():
    for command in COMMANDS:
        assert "--json" in {option for parameter in command.params for option in parameter.opts}
    assert {command.name for command in COMMANDS} == set(SCHEMAS) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_objects_are_as_the_schema_says(verb, folder):
    text = output_of(verb, folder)
    top, row = SCHEMAS[verb]
    objects = [
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")) for line in text.splitlines()
    ]
    assert len(objects) >= 1 if verb == "monitor" else len(objects) == 1
    for found in objects:
        check(found, top, verb)
        for entry in found.get("table", []):
            check(entry, row, f"{verb}, table")


def test_the_numbers_are_those_of_the_text(folder):
    found = json.loads(output_of("anomalies", folder, "--explain", "--row-numbers"))
    assert found["rows"] == 120
    assert len(found["table"]) == 3
    assert found["table"][0]["line"] == 9
    assert found["table"][0]["row"] == 8
    assert "age_of_the_person=3000000 (best " in found["table"][0]["explained_by"]
    text = CliRunner().invoke(program, arguments("anomalies", folder), prog_name="isopleth").stdout
    assert f"{found['flagged']} flagged" in text
    assert f"{found['table'][0]['score']:.4g}" in text
    changes = json.loads(output_of("changes", folder))
    assert any(61 <= entry["line"] <= 63 for entry in changes["table"])
    assert set(changes["table"][0]) >= {"before_income_before_tax", "after_height"}


def test_files_are_written_as_without_json(folder):
    CliRunner().invoke(program, [*arguments("prior", folder), "--out", str(folder / "a.csv")], prog_name="isopleth")
    output_of("prior", folder, "--out", str(folder / "b.csv"))
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    output_of("fit", folder)
    assert (folder / "model").exists()
