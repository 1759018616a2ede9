"""Cells that are not of the kind of their column: a second header is told from single mistakes."""

from __future__ import annotations

import isopleth


def test_a_line_of_units_is_named_by_its_own_words_and_mistakes_below_by_theirs(tmp_path):
    path = tmp_path / "logger.csv"
    rows = [f"{5 + i % 7 / 3:.3f},{60 + i % 11 / 3:.1f},{'1O' if i in (6, 9) else 3 * i}" for i in range(40)]
    path.write_text("\n".join(["T,RH,n", "Deg C,%,7", *rows, ""]))
    table = isopleth.read_table(path, warn=False)
    said = " ".join(map(str, table.notes))
    assert "line 2 holds units or a second header ('Deg C', '%') and no row" in said
    assert "'1O' in line 9" in said
    assert table.frame["T"].to_pylist()[:2] == [None, 5.0]
