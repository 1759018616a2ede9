"""The command of the study."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from experiments.reliability.__main__ import COUNTS, QUICK, TITLES, main
from experiments.reliability.outcomes import Tally


def test_a_part_is_printed_and_written(tmp_path, capsys):
    out = tmp_path / "results.txt"
    main(["--part", "tampered", "--quick", "--out", str(out)])
    lines = out.read_text().splitlines()
    assert lines[0] == TITLES["tampered"]
    assert lines[-1].split() == ["defects", "0"]
    assert lines[-2].split() == ["cases", str(QUICK["tampered"])]
    printed = capsys.readouterr().out.splitlines()
    assert printed[: len(lines)] == lines
    assert printed[len(lines)].endswith("seconds")


def test_all_parts_are_run_in_their_order_each_with_its_count(tmp_path, monkeypatch):
    asked = []

    def part(name):
        def campaign(count, seed):
            asked.append((name.rpartition(".")[2], count, seed))
            return Tally()

        return SimpleNamespace(campaign=campaign)

    monkeypatch.setattr(importlib, "import_module", part)
    main(["--seed", "3", "--out", str(tmp_path / "results.txt")])
    assert asked == [(name, count, 3) for name, count in COUNTS.items()]
    assert [line for line in (tmp_path / "results.txt").read_text().splitlines() if line in TITLES.values()] == list(
        TITLES.values()
    )
