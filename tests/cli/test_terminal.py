"""Commands in a terminal of 80 columns: no line is longer, no word is cut, and columns without room are named."""

from __future__ import annotations

import os
import re

import pytest

import forked
from cli.verbs import VERBS, arguments, write_files
from isopleth.results.text import width_of

pty = pytest.importorskip("pty")
pytestmark = pytest.mark.usefixtures("few_simulations")  # forked processes have what the fixture sets
COLUMNS = 80


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal")
    write_files(path)
    return path


def run_in_terminal(command: list[str], columns: int, stream: str | None, folder=None) -> tuple[int, str]:
    """Run a command in a terminal of this width; return its exit code and what the terminal received."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def prepare():
        os.environ["TERM"] = "xterm"
        if folder is not None:
            os.chdir(folder)

    process = forked.Forked(command, theirs if stream is None else None, theirs, theirs, prepare)
    os.close(theirs)
    if stream is not None:
        process.stdin.write(stream.encode())
        process.stdin.close()
    received = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        received += chunk
    os.close(ours)
    return process.wait(), received.decode()


def test_a_bar_is_there_before_the_imports_of_a_command(folder, monkeypatch):
    def missing(name):
        raise SystemExit(f"importing {name}")

    monkeypatch.setattr("isopleth.cli.command.import_module", missing)
    received = run_in_terminal(["describe", str(folder / "rows.csv")], COLUMNS, None)[1]
    assert received.startswith("\r\x1b[K[--] starting")


def lines_of(received: str) -> list[str]:
    """Lines as they stand on the terminal in the end: a carriage return and the code that erases begin a line anew."""
    return [re.split(r"\r\x1b\[K|\r", line)[-1] for line in received.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=pytest.mark.slow) if verb in ("demo", "sample") else verb for verb in VERBS]
)
def test_no_line_is_longer_and_no_word_is_cut(verb, folder):
    stream = (folder / "after.csv").read_text() if verb == "monitor" else None
    code, received = run_in_terminal(arguments(verb, folder), COLUMNS, stream)
    assert code == (3 if verb == "monitor" else 0), received
    lines = lines_of(received)
    # A path is one word, and paths of temporary folders may be longer than a line.
    assert not [line for line in lines if len(line) > COLUMNS and max(map(len, line.split())) < COLUMNS]
    assert any(len(line) > 10 for line in lines)
    if verb in ("doctor", "demo"):
        return
    plain = forked.run(arguments(verb, folder), given=stream or "")
    known = set((plain.stdout + plain.stderr).split())
    words = {word for line in lines for word in line.split()}
    note = set(["No", "room", "for:", "A", "wider", "terminal", "or", "--json", "shows", "them."])
    assert not {word for word in words - known - note if word.rstrip(",.") not in " ".join(known)}


def test_messages_are_broken_between_words(folder):
    code, received = run_in_terminal(["anomalies", str(folder / "rows.csv"), "--columns", "none"], COLUMNS, None)
    assert code == 2
    lines = [line for line in lines_of(received) if line]
    assert lines[0].startswith("isopleth: ")
    assert all(len(line) <= COLUMNS or " " not in line for line in lines)


def test_a_table_of_wide_letters_fits_the_terminal(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{(i * 7919) % 83},{'東京都港区芝公園' if i % 7 else '大阪'}\n" for i in range(60))
    path.write_text(f"温度の平均値,都市の名前と番地\n{rows}", encoding="utf-8")
    code, received = run_in_terminal(["anomalies", "t.csv", "--explain"], COLUMNS, None, tmp_path)
    assert code == 0
    assert max(map(width_of, lines_of(received))) <= COLUMNS
