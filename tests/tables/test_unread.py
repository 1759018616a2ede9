"""Cells that are not of the kind of their column: a second header is told from single mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import isopleth
from isopleth.tables.unread import CensoredCells, OddCells, UnreadCells, behind


def test_a_line_of_units_is_named_by_its_own_words_and_mistakes_below_by_theirs(tmp_path):
    path = tmp_path / "logger.csv"
    rows = [f"{5 + i % 7 / 3:.3f},{60 + i % 11 / 3:.1f},{'1O' if i in (6, 9) else 3 * i}" for i in range(40)]
    path.write_text("\n".join(["T,RH,n", "Deg C,%,7", *rows, ""]))
    table = isopleth.read_table(path, warn=False)
    said = " ".join(map(str, table.notes))
    assert "line 2 holds units or a second header ('Deg C', '%') and no row" in said
    assert "'1O' in line 9" in said
    assert table.frame["T"].to_pylist()[:2] == [None, 5.0]


def unread(texts, kind="numbers", asked=False):
    """Cells of a column by their rows."""
    return UnreadCells(np.array(list(texts), dtype=np.intp), tuple(texts.values()), kind, asked)


def at(row):
    return f"row {row}"


def notes(*columns, censored=()):
    odd = OddCells({f"c{j}": unread(texts) for j, texts in enumerate(columns)}, dict(censored))
    return [str(note) for note in odd.notes(at)]


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (({0: "mm"}, {0: "%"}), "row 0 holds units or a second header ('mm', '%') and no row"),
        (
            ({0: "mm", 1: "mean"}, {0: "%", 1: "sum"}),
            "row 0 to row 1 hold units or a second header ('mm', '%') and no row",
        ),
        (({0: "mm", 1: "x"}, {0: "%"}, {0: "V"}), "row 0 holds units"),  # one of three below: a mistake
        (({0: "mm"}, {5: "x"}), None),  # one column only
        (({0: "mm"}, {0: "%"}, {5: "x"}, {6: "y"}), "row 0 holds units"),  # half of the columns
        (({0: "mm"}, {0: "%"}, {5: "x"}, {6: "y"}, {7: "z"}), None),  # fewer
        (({1: "mm"}, {1: "%"}), None),  # not from the first row on
    ],
)
def test_first_lines_are_no_rows_where_half_of_the_odd_columns_and_two_have_words_there(columns, head):
    said = notes(*columns)
    assert said[0].startswith(head) if head else not any("second header" in note for note in said)
    left = sum(any(row > 1 or (row == 1 and len(columns) == 3) for row in texts) for texts in columns) if head else None
    assert len(said) == (1 + left if head else len(columns))


def test_sentences_count_cells_and_show_the_first_of_each_text():
    (one,), (two,) = notes({4: "x"}), notes({4: "x", 7: "y"})
    assert one.startswith("column 'c0': 1 cell is no number and counts as missing: 'x' in row 4; correct it")
    assert two.startswith(
        "column 'c0': 2 cells are no numbers and count as missing: 'x' in row 4, 'y' in row 7; correct them"
    )
    (again,) = notes({4: "x", 5: "x"})
    assert "'x' in row 4 and 1 more such cell;" in again
    (many,) = notes({row: text for row, text in enumerate("abcdef", 3)})
    assert "'a' in row 3, 'b' in row 4, 'c' in row 5 and 3 more such cells;" in many


def test_limits_are_counted_and_those_of_a_declared_type_are_not_told():
    limits = CensoredCells(np.array([3, 5]), ("<0.5", ">9"), np.array([-np.inf, 9.0]), np.array([0.5, np.inf]))
    (two,), (one,) = notes(censored={"z": limits}.items()), notes(censored={"z": limits.first(1).take([3])}.items())
    assert two.startswith("column 'z' holds numbers with limits: 2 cells say limits, '<0.5' in row 3 and 1 more;")
    assert one.startswith("column 'z' holds numbers with limits: 1 cell says a limit, '<0.5' in row 0;")
    declared = CensoredCells(limits.rows, limits.texts, limits.lower, limits.upper, declared=True)
    assert not notes(censored={"z": declared}.items())
    assert limits.limits == (("above", 9.0), ("below", 0.5))


def test_words_that_repeat_stand_for_missing_cells_and_codes_with_digits_do_not():
    for count, left in ((4, 4), (5, 0)):
        assert len(unread(dict.fromkeys(range(count), "empty")).wrong) == left
    assert len(unread(dict.fromkeys(range(9), "1O")).wrong) == 9


def odd_cells(rng, n_rows):
    """Odd cells of two columns of each sort in some rows of a table."""

    def rows(most):
        return np.sort(rng.choice(n_rows, rng.integers(1, most), replace=False))

    out = []
    for _ in range(2):
        marked, limited = rows(6), rows(6)
        ends = rng.normal(size=len(limited))
        sided = rng.random(len(limited)) < 0.5
        lower, upper = np.where(sided, -np.inf, ends), np.where(sided, ends, np.inf)
        texts = tuple(f"<{end:.3f}" for end in ends)
        out.append(
            (unread({int(i): f"w{rng.integers(9)}" for i in marked}), CensoredCells(limited, texts, lower, upper))
        )
    (a, b), (c, d) = out
    return OddCells({"a": a, "b": c}, {"a": b, "b": d})


def content(odd):
    """Cells as a set, so that nothing depends on how they are kept."""
    marked = {
        ("unread", name, *cell)
        for name, each in odd.unread.items()
        for cell in zip(each.rows.tolist(), each.texts, strict=True)
    }
    return marked | {
        ("censored", name, *cell)
        for name, each in odd.censored.items()
        for cell in zip(each.rows.tolist(), each.texts, each.lower.tolist(), each.upper.tolist(), strict=True)
    }


@pytest.mark.parametrize("seed", range(5))
def test_odd_cells_go_along_with_the_rows_that_are_taken_and_put_together(seed):
    rng = np.random.default_rng(seed)
    odd = odd_cells(rng, 20)
    assert content(OddCells.unpacked(odd.packed())) == content(odd)
    chosen = rng.permutation(20)[: rng.integers(20)]
    assert content(odd.take(chosen)) == {
        (sort, name, place, *rest)
        for sort, name, row, *rest in content(odd)
        for place in np.flatnonzero(chosen == row).tolist()
    }
    cut = int(rng.integers(1, 20))
    parts = odd.take(np.arange(cut)), odd.take(np.arange(cut, 20))
    assert content(behind(*parts, cut)) == content(odd)
    rows = {row for _, _, row, *_ in content(odd)}
    assert odd.rows.tolist() == sorted(rows)
    first = odd.first(2)
    assert all(len(cells) == len(odd.unread[name]) for name, cells in first.unread.items())
    assert content(first) <= content(odd)
    assert all(len(cells.rows) == min(2, len(cells)) for cells in first.unread.values())


def test_a_kind_that_is_said_is_another_one_where_most_cells_are_odd():
    odd = OddCells({name: unread({0: "x", 1: "y"}, asked=asked) for name, asked in (("a", True), ("b", False))}, {})
    assert list(odd.of_another_kind({"a": 2, "b": 2}).unread) == ["a"]
    assert not odd.of_another_kind({"a": 3, "b": 3}).unread
