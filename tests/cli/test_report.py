"""``--report`` of the commands: a page with the command, the files and how columns were used."""

from __future__ import annotations

import html
import os
import re
import signal
import time

import pandas as pd
import pytest
from click.testing import CliRunner

import forked
from cli.verbs import arguments, write_files
from isopleth.cli.commands import COMMANDS, program

pytestmark = pytest.mark.usefixtures("few_simulations")

REPORTING = ["anomalies", "changes", "compare", "expect", "fill", "monitor", "prior", "sample"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    write_files(path)
    return path


def run(verb, folder, *more):
    stream = (folder / "after.csv").read_text() if verb == "monitor" else None
    return CliRunner().invoke(program, [*arguments(verb, folder), *more], input=stream, prog_name="isopleth")


def words_of(path):
    """Text of a page as a reader sees it."""
    text = path.read_text(encoding="utf-8")
    body = text[text.index("<main") : text.index("</main>")]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def test_the_commands_that_judge_data_have_the_option():
    names = {c.name for c in COMMANDS if "--report" in {o for p in c.params for o in p.opts}}
    assert names >= set(REPORTING)


@pytest.mark.parametrize("verb", REPORTING)
def test_the_page_says_how_it_was_made(verb, folder):
    page = folder / f"{verb} page.html"
    result = run(verb, folder, "--report", str(page))
    assert result.exit_code == (3 if verb == "monitor" else 0), result.stderr
    words = words_of(page)
    command = f"isopleth {verb} "
    assert command in words
    assert f"--report '{page}'" in words
    assert re.search(r"isopleth \d+\.\d+\.\d+\S*, Python 3\.\d+\.\d+, numpy \d", words)
    assert str(folder / ("shuffled.csv" if verb == "monitor" else "rows.csv")) in words
    assert re.search(rf"numeric\s+{'income_before_tax' if verb == 'changes' else 'age_of_the_person'}", words)


def test_the_page_says_which_columns_are_left_out(folder):
    table = pd.read_csv(folder / "rows.csv")
    table.insert(0, "name", [f"person {k}" for k in range(len(table))])
    table.to_csv(folder / "named.csv", index=False)
    CliRunner().invoke(program, ["anomalies", str(folder / "named.csv"), "--report", str(folder / "named.html")])
    assert re.search(r"left out: identifier\s+name", words_of(folder / "named.html"))


@pytest.mark.slow
@pytest.mark.parametrize("verb", REPORTING)
def test_the_text_is_the_same_with_a_page(verb, folder):
    assert run(verb, folder).stdout == run(verb, folder, "--report", str(folder / "x.html")).stdout


def test_rows_are_named_by_their_lines(folder):
    page = folder / "lines.html"
    run("anomalies", folder, "--report", str(page))
    assert "The least likely one is line 9 (" in words_of(page)
    assert "age_of_the_person 3000000 (" in words_of(page)
    run("changes", folder, "--report", str(page))
    assert re.search(r"after a change: line 6[123] \(", words_of(page))
    run("monitor", folder, "--report", str(page))
    assert "(counted from 1)" in words_of(page)
    run("compare", folder, "--report", str(page))
    assert "before is rows.csv, after is after.csv" in words_of(page)


def test_a_page_does_not_add_explanations_to_the_results(folder):
    run("anomalies", folder, "--out", str(folder / "a.csv"))
    run("anomalies", folder, "--out", str(folder / "b.csv"), "--report", str(folder / "x.html"))
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("verb", "name", "message"),
    [
        ("anomalies", "page.csv", "the name ends in none of .html"),
        ("changes", "none/page.html", "does not exist"),
        ("prior", "page.pdf", "the name ends in none of .html"),
        ("monitor", "page.txt", "the name ends in none of .html"),
    ],
)
def test_targets_are_checked_before_the_work(verb, name, message, folder):
    result = run(verb, folder, "--report", str(folder / name))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout


def test_two_options_cannot_name_one_file(folder):
    page = folder / "same.html"
    page.write_text("old")
    result = CliRunner().invoke(
        program,
        ["anomalies", str(folder / "rows.csv"), "--save", str(page), "--report", str(page)],
        prog_name="isopleth",
    )
    assert result.exit_code == 2
    assert "is the same file as --save" in result.stderr
    assert page.read_text() == "old"


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_an_interrupt_of_a_stream_writes_the_page_of_the_rows_so_far(folder):
    page = folder / "interrupted.html"
    shown = folder / "interrupted.txt"
    with (
        shown.open("w") as out,
        forked.Forked([*arguments("monitor", folder), "--report", page], None, out, out) as process,
    ):
        process.stdin.write((folder / "after.csv").read_bytes())
        process.stdin.flush()
        deadline = time.monotonic() + 20.0
        while not shown.stat().st_size and time.monotonic() < deadline:  # until the first alarm
            time.sleep(0.01)
        time.sleep(0.2)  # for the other rows
        os.kill(process.pid, signal.SIGINT)
        assert process.wait() == 130
    assert "alarm" in words_of(page)
