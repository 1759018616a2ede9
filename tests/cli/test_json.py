"""``--json`` on every command: one object, as its schema says."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from cli.verbs import VERBS, arguments, write_files
from isopleth.cli.commands import COMMANDS, program
from isopleth.cli.json_schema import SCHEMAS, json_schema

pytestmark = pytest.mark.usefixtures("few_simulations")


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


def test_every_command_has_the_option_and_a_schema():
    for command in COMMANDS:
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--json-schema", "--quiet"} <= options
    assert {command.name for command in COMMANDS} == set(SCHEMAS) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_the_objects_are_as_the_published_schema_says(verb, folder):
    shown = CliRunner().invoke(program, [verb, "--json-schema"], prog_name="isopleth")
    assert (shown.exit_code, shown.stderr) == (0, "")
    schema = json.loads(shown.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    objects = [
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        for line in output_of(verb, folder).splitlines()
    ]
    assert len(objects) >= 1 if verb == "monitor" else len(objects) == 1
    for found in objects:
        jsonschema.validate(found, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found | {"unknown": 1}, schema)
    json_schema(verb)


def test_a_table_of_words_times_and_gaps_is_as_the_schema_says(tmp_path):
    for name, seed in (("a.csv", 0), ("b.csv", 1)):
        rng = np.random.default_rng(seed)
        days = np.datetime64("2024-01-01") + rng.integers(0, 90, 80)
        rows = zip(days, rng.choice(["red", "blue"], 80), np.where(rng.random(80) < 0.2, "", "1.5"), strict=True)
        (tmp_path / name).write_text(
            "day,colour,size\n" + "".join(f"{d},{c},{s}{'' if s == '' else seed}\n" for d, c, s in rows)
        )
    arguments = ["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--resamples", "19", "--json"]
    found = json.loads(CliRunner().invoke(program, arguments).stdout)
    jsonschema.validate(found, json_schema("compare"))
    assert {"level_before", "time_after", "missing_before", "description"} <= found["table"][0].keys()


def test_the_numbers_are_those_of_the_text(folder):
    found = json.loads(output_of("anomalies", folder, "--explain", "--row-numbers"))
    assert found["rows"] == 120
    assert len(found["table"]) == 3
    assert found["table"][0]["line"] == 9
    assert found["table"][0]["row"] == 8
    assert "age_of_the_person 3000000 (" in found["table"][0]["explained_by"]
    text = CliRunner().invoke(program, arguments("anomalies", folder), prog_name="isopleth").stdout
    assert text.startswith(f"{found['flagged']} of 120 rows are flagged")
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


@pytest.mark.parametrize("verb", ["anomalies", "changes", "compare", "fill", "prior", "score", "fit", "sample"])
def test_a_file_may_be_standard_output(verb, folder, tmp_path):
    out = tmp_path / ("model" if verb == "fit" else "rows.csv")
    plain = [argument for argument in arguments(verb, folder) if argument != "--json"]
    if "--out" in plain:
        place = plain.index("--out")
        del plain[place : place + 2]
    assert CliRunner().invoke(program, [*plain, "--out", str(out)]).exit_code == 0
    streamed = CliRunner().invoke(program, [*plain, "--out", "-", "-q"])
    assert (streamed.exit_code, streamed.stderr) == (0, "")
    assert streamed.stdout_bytes == out.read_bytes()
    refused = CliRunner().invoke(program, [*plain, "--out", "-", "--json"])
    assert "--json and --out - exclude each other" in refused.stderr


def test_quiet_runs_say_errors_only(folder, tmp_path):
    (tmp_path / "t.csv").write_text("id,a,still\n" + "".join(f"{i},{(i * 7919) % 83},1\n" for i in range(60)))
    loud, quiet = (CliRunner().invoke(program, ["anomalies", str(tmp_path / "t.csv"), *more]) for more in ([], ["-q"]))
    assert "left out: id" in loud.stderr
    assert (quiet.stderr, quiet.stdout) == ("", loud.stdout)
    wrong = CliRunner().invoke(program, ["anomalies", str(tmp_path / "none.csv"), "--quiet"])
    assert "none.csv does not exist" in wrong.stderr
