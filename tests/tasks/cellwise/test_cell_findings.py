"""Wrong cells in words, tables and pictures: of findings made by hand, so that no detector is fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from isopleth.tables.rules import FoundRule
from isopleth.tasks.cellwise.margins import flagged_cells, row_scores, worst_cells
from isopleth.tasks.cellwise.result import CellFindings
from isopleth.tasks.cellwise.shifted import shifted_rows


@dataclass(frozen=True)
class Law:
    """A rule in words."""

    words: str
    columns: tuple[str, ...]

    def __str__(self):
        return self.words


def findings(scores, **about):
    """Findings of cells whose number is row + column / 10, where 1 more or less is usual, in lines from 2 on."""
    scores = np.asarray(scores, dtype=float)
    n, d = scores.shape
    cells = np.arange(n)[:, None] + np.arange(d) / 10.0
    where = {"line": np.arange(n) + 2}
    about = {"where": where, "excess": scores} | about
    excess, bounds = about.pop("excess"), about.pop("bounds", np.full((n, d), 5.0))
    names = [f"c{j}" for j in range(d)]
    return CellFindings(names, scores, bounds, excess, cells, cells + 0.5, cells - 1.0, cells + 1.0, **about)


def summary(found):
    return found.to_dict()["summary"]


@pytest.mark.parametrize("seed", range(10))
def test_the_worst_cell_and_those_whose_law_alone_is_beyond_its_bound_are_flagged(seed):
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((30, 4)) < 0.2, np.nan, rng.integers(0, 9, (30, 4)) / 1.0)
    excess, bounds = scores - rng.integers(0, 3, (30, 4)), rng.integers(3, 6, (30, 4)) / 1.0
    columns, margins = worst_cells(scores, bounds)
    flagged = flagged_cells(scores, excess, bounds)
    for i in range(30):
        known = [j for j in range(4) if not np.isnan(scores[i, j])]
        worst = max(known, key=lambda j: scores[i, j] - bounds[i, j]) if known else 0  # of ties the first
        assert margins[i] == (scores[i, worst] - bounds[i, worst] if known else -np.inf)
        assert columns[i] == worst
        beyond = [j for j in known if scores[i, j] > bounds[i, j]]
        assert np.flatnonzero(flagged[i]).tolist() == [j for j in beyond if j == worst or excess[i, j] > bounds[i, j]]
        assert row_scores(scores)[i] == (scores[i, known].max() if known else -1e300)


def test_rows_are_in_the_order_of_what_is_beyond_their_bounds():
    found = findings([[0.0, 6.0], [9.0, 0.0], [0.0, 6.0], [np.nan, np.nan]])
    assert found.order.tolist() == [1, 0, 2, 3]
    table = found.to_dict()["table"]
    assert [(row["line"], row["column"], row["value"]) for row in table[:3]] == [
        (3, "c0", 1.0),
        (2, "c1", 0.1),
        (4, "c1", 2.1),
    ]
    assert [(row["excess"], row["flagged"], row["repairable"]) for row in table] == [
        (9.0, True, False),
        (6.0, True, False),
        (6.0, True, False),
        (0.0, False, False),
    ]
    assert (found.to_dict()["flagged_cells"], found.to_dict()["flagged_rows"], found.to_dict()["rows"]) == (3, 3, 4)
    assert found.to_dict(2)["table"] == table[:2]


def test_sentences_count_cells_and_rows_and_name_the_worst():
    assert summary(findings([[0.0, 5.0], [1.0, 2.0]])) == [
        "No cell of 2 rows is beyond its bound: all cells fit the others of their rows."
    ]
    several = summary(findings([[7.0, 8.0], [9.0, 0.0]]))
    assert several[0] == "3 cells in 2 rows of 2 do not fit the other cells of the row."
    assert several[1] == "The worst one is c0 1 in line 3: 0 to 2 is usual."
    assert several[2] == "3 are only rare beside the others of the row, and stay in a repaired table."


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "2 are only rare beside the others of the row, and stay in a repaired table."),
        (1, "1 is only rare beside the others of the row, and stays in a repaired table; the other 1 is replaced."),
        (2, "What should stand there is clear enough to replace all of them in a repaired table."),
    ],
)
def test_cells_that_are_certain_are_replaced_and_the_others_stay(count, said):
    repairs = dict(list({(1, 0): "a reason", (0, 1): "another"}.items())[:count])
    found = findings([[0.0, 6.0], [9.0, 0.0]], repairs=repairs)
    assert summary(found)[2] == said
    assert [row["repairable"] for row in found.to_dict()["table"]] == [count > 0, count > 1]
    changes = found.changes()
    order = sorted(repairs)
    assert changes["line"].tolist() == [i + 2 for i, _ in order]
    assert (changes["column"], changes["reason"]) == ([f"c{j}" for _, j in order], [repairs[cell] for cell in order])
    assert changes["old"] == [i + j / 10.0 for i, j in order]
    assert changes["new"] == [old + 0.5 for old in changes["old"]]


def test_what_is_usual_is_a_range_a_value_or_nothing():
    found = findings([[6.0, 0.0]])
    assert found.usual_text(0, 1) == "-0.9 to 1.1 is usual"
    words = np.array([["a", "b"]], dtype=object)
    assert replace(found, low=words, high=words).usual_text(0, 1) == "b is usual"
    assert replace(found, low=words, high=words[:, ::-1]).usual_text(0, 1) == "b is usual"
    assert replace(found, low=found.high).usual_text(0, 0) == "1 is usual"
    for nothing in (None, np.nan):
        assert replace(found, low=np.array([[nothing, nothing]])).usual_text(0, 0) == "nothing tells what is usual"


def test_mistakes_are_told_the_most_frequent_first():
    scores = np.zeros((12, 2))
    scores[:, 0] = 9.0
    one = summary(findings(scores, mistakes={3: "a and b are swapped"}))
    assert "One mistake explains 1 row: a and b are swapped in line 5." in one
    two = summary(findings(scores, mistakes={3: "x", 1: "y", 4: "y"}))
    assert "Mistakes explain 3 rows: y in lines 3, 6; x in line 5." in two
    tie = summary(findings(scores, mistakes={3: "x", 1: "y"}))
    assert "Mistakes explain 2 rows: y in line 3; x in line 5." in tie
    many = " ".join(summary(findings(scores, mistakes={i: f"m{i}" for i in range(10)})))
    assert "m7 in line 9; and 2 other mistakes." in many
    nine = " ".join(summary(findings(scores, mistakes={i: f"m{i}" for i in range(9)})))
    assert "m7 in line 9; and 1 other mistake." in nine


def test_repeated_rows_are_named_where_they_are_few():
    def said(n, repeats):
        return [words for words in summary(findings(np.zeros((n, 1)), repeats=repeats)) if "earlier" in words]

    assert said(100, {7: 3}) == ["1 row repeats an earlier one: line 9 (as 5)."]
    assert said(100, {7: 3, 8: 3}) == ["2 rows repeat an earlier one: line 9 (as 5), line 10 (as 5)."]
    assert said(100, {7: 3, 8: 3, 9: 3}) == []  # one in fifty at most
    assert said(100, {}) == []


def test_rules_are_told_with_their_exceptions_and_those_that_all_rows_keep_together():
    rules = [
        FoundRule(Law("a <= b", ("a", "b")), 50, np.array([4, 6])),
        FoundRule(Law("c = a + b", ("a", "b", "c")), 40, np.array([5])),
        FoundRule(Law("a -> d", ("a", "d")), 50, np.array([], dtype=int)),
        FoundRule(Law("d is whole", ("d",)), 50, np.array([], dtype=int)),
    ]
    found = findings(np.zeros((60, 1)), rules=rules)
    assert found.rules_in_words() == [
        "c = a + b in 39 of 40 rows; not in line 7.",
        "a <= b in 48 of 50 rows; not in lines 6, 8.",
        "In all rows: a -> d.",
    ]
    assert found.rules_as_records()[0] == {"rule": "a <= b", "rows": 50, "broken": [6, 8]}
    assert rules[0].weight == pytest.approx(np.log(25.0))
    assert rules[2].weight == pytest.approx(np.log(50.0))


def test_reasons_begin_with_what_is_surest():
    rules = [FoundRule(Law(f"r{k}", ("c0",)), 50, np.array([0])) for k in range(3)]
    scores = np.array([[9.0, 0.0], [8.0, 0.0], [7.0, 0.0], [0.0, 0.0]])
    excess = np.array([[9.0, 0.0], [-1.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    found = findings(scores, excess=excess, rules=rules)

    def told(found):
        said = found.explained(lambda i, j: ["c1", "c0", "c1"], lambda i, j: "word" if i == 0 else None)
        return dict(zip(said.order.tolist(), said.against, strict=False))

    said = told(found)
    assert said[0] == "looks like 'word'; not r0; not r1; c1 0.1; c0 0"
    assert said[1] == ""  # its law does not say so
    assert said[2] == "cannot be read"
    repaired = told(replace(found, repairs={(0, 0): "why"}))
    assert repaired[0] == "why; looks like 'word'; not r0; not r1; c1 0.1; c0 0"
    assert told(replace(found, mistakes={0: "swapped"}))[0] == "swapped; looks like 'word'; not r0; not r1"
    assert told(replace(found, repairs={(0, 0): "not r0"}))[0] == said[0]  # once is enough
    assert len(told(findings(np.zeros((30, 2))))) == 10  # of a table without a flag the first ten
    assert len(told(findings(np.full((30, 2), 9.0)))) == 30
    assert told(findings(np.full((3, 1), np.nan))) == {0: "", 1: "", 2: ""}


def test_a_picture_has_the_margins_of_all_rows_in_their_order():
    found = findings([[0.0, 6.0], [9.0, 0.0], [0.0, 5.0], [np.nan, np.nan]])
    (chart,) = found._charts()
    flagged, others = chart.series
    assert (flagged.x.tolist(), flagged.y.tolist(), list(flagged.notes)) == ([1, 2], [4.0, 1.0], ["c0, 3", "c1, 2"])
    assert (others.x.tolist(), others.y.tolist(), list(others.notes)) == ([3], [0.0], ["c1, 4"])
    assert findings(np.full((3, 1), np.nan))._charts() == []
    bounds = "A cell is flagged from a bound on: "
    assert any(note.startswith(bounds + "5 nats.") for note in found._notes())
    other = replace(found, bounds=np.array([[4.0, 5.0]] * 4))
    assert any(note.startswith(bounds + "4 to 5 nats") for note in other._notes())


def moved(row, first, step):
    """The cells of a row from one on in their neighbours' places, and a gap at the end that is left."""
    out = row.copy()
    if step > 0:
        out[first + 1 :], out[first] = row[first:-1], None
    else:
        out[first:-1], out[-1] = row[first + 1 :], None
    return out


@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize(("step", "to"), [(1, "left"), (-1, "right")])
def test_a_row_moved_from_any_column_on_is_found(first, step, to):
    rng = np.random.default_rng(0)
    rows = np.empty((40, 6), dtype=object)
    for j in range(6):
        words = np.array([f"{'abcdef'[j]}{k}" for k in range(3)], dtype=object)
        rows[:, j] = (10.0**j * rng.integers(4, 7, 40)).tolist() if j % 2 else rng.choice(words, 40)
    rows[7] = moved(rows[7], first, step)
    flagged = np.zeros(rows.shape, dtype=bool)
    flagged[[7, 9]] = True
    (found,) = shifted_rows(list("abcdef"), rows, flagged)
    assert (found.row, found.to) == (7, to)
    assert found.column == "abcdef"[max(first, int(step > 0))]  # nothing stands before the first column
    assert str(found) == f"shifted: from {found.column} on the cells fit one column to the {to}"
    flagged[:20] = True
    assert len(shifted_rows(list("abcdef"), rows, flagged)) == 1
    flagged[20] = True  # of more than half of the rows nothing is known
    assert shifted_rows(list("abcdef"), rows, flagged) == []
