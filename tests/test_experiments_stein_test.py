"""The study of the Stein test prints its tables."""

from __future__ import annotations

import pytest

pytest.importorskip("experiments", reason="the studies are not beside an installed package")

from experiments import stein_test


def test_both_tables_are_printed(monkeypatch, tmp_path, capsys):
    for table in ("LEVEL", "POWER"):
        first = next(iter(getattr(stein_test, table).items()))
        monkeypatch.setattr(stein_test, table, dict([first]))
    stein_test.main(["--runs", "3", "--out", str(tmp_path / "table.txt")])
    text = (tmp_path / "table.txt").read_text()
    assert text == capsys.readouterr().out
    assert text.count("\n") == 4
