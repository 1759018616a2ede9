"""Mistakes that explain strange cells are undone exactly, zeros that stand for gaps are no numbers, and right cells stay."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isopleth import CellwiseDetector
from isopleth.tables.rules import find_rules
from isopleth.tasks.cellwise.mistakes import NumberColumn, found_mistakes
from isopleth.tasks.cellwise.shifted import shifted_rows

# What is planted: row, cells as they are written, and the mistake that is said.
PLANTED = {
    5: ({"mass": 10.0}, "mass is 10 times too large"),
    17: ({"price": 0.01}, "price is 100 times too small"),
    29: ({"width": -1.0}, "width has a wrong sign"),
    41: ({"length": "height", "height": "length"}, "length and height are swapped"),
    53: ({"length": 0.0, "width": 0.0, "height": 0.0}, "0 stands for a missing cell"),
}


def boxes(n=500, seed=0):
    """Boxes: length > width > height, and what follows from them; a fiftieth of the ratings are halves."""
    rng = np.random.default_rng(seed)
    length = np.exp(rng.normal(3.2, 0.25, n))
    sides = {
        "length": length,
        "width": length * rng.uniform(0.7, 0.8, n),
        "height": length * rng.uniform(0.25, 0.35, n),
    }
    volume = np.prod(list(sides.values()), axis=0)
    mass, price = volume * np.exp(0.05 * rng.normal(size=n)) / 100.0, 20.0 + 0.1 * volume**0.8
    table = pd.DataFrame({name: side.round(1) for name, side in sides.items()} | {"mass": mass.round(2)})
    rating = rng.integers(1, 6, n) - 0.5 * (np.arange(n) % 50 == 7)
    return table.assign(price=price.round(0), rating=np.maximum(rating, 1.0))


@pytest.fixture(scope="module")
def judged():
    right = boxes()
    table = right.copy()
    for row, (cells, _) in PLANTED.items():
        for name, what in cells.items():
            table.loc[row, name] = (
                right.loc[row, what] if isinstance(what, str) else round(right.loc[row, name] * what, 6)
            )
    detector = CellwiseDetector(random_state=0, n_estimators=30).fit(table)
    return right, table, detector, detector.cells()


def test_every_planted_mistake_is_named_and_no_right_cell_is_replaced(judged):
    *_, found = judged
    planted = {(row, name): said for row, (cells, said) in PLANTED.items() for name in cells}
    said = found.repairs | found.unclear
    assert {(i, found.names[j]): why for (i, j), why in said.items()} == planted
    assert {row for row, _ in found.unclear} == {53}
    assert {i: said for i, said in found.mistakes.items()} == {
        row: said for row, (_, said) in PLANTED.items() if "missing" not in said
    }


def test_a_mistake_is_undone_exactly_and_zeros_of_absent_cells_stay_beside_what_is_usual(judged):
    right, table, detector, found = judged
    repaired = detector.repaired(table)
    for row, (cells, said) in PLANTED.items():
        for name in cells:
            if "missing" in said:
                assert repaired[name][row] == 0.0
                assert found.usual[row, found.names.index(name)] == pytest.approx(right[name][row], rel=0.25)
            else:
                assert repaired[name][row] == pytest.approx(right[name][row], rel=1e-9), (row, name)
    changed = (repaired != table).to_numpy()
    assert set(np.flatnonzero(changed.any(axis=1))) == set(PLANTED) - {53}


def test_the_right_cells_of_a_row_with_a_mistake_are_not_blamed(judged):
    *_, found = judged
    for row, (cells, _) in PLANTED.items():
        assert {found.names[j] for j in np.flatnonzero(found.flagged[row])} == set(cells)


def test_the_changes_are_listed_and_said_in_a_sentence(judged):
    *_, found = judged
    changes = pd.DataFrame(found.changes())
    assert changes.columns.tolist() == ["row", "column", "old", "new", "reason"]
    assert changes["reason"][0] == "mass is 10 times too large"
    assert len(changes) == found.to_dict()["repairable_cells"]
    said = " ".join(found.to_dict()["summary"])
    assert "length and height are swapped in row 41" in said


def test_the_order_of_rows_and_columns_changes_no_mistake(judged):
    _, table, _, found = judged
    order = np.random.default_rng(1).permutation(len(table))
    moved = CellwiseDetector(random_state=0, n_estimators=30).fit(table.iloc[order, ::-1]).cells()
    cells = {(int(order[i]), moved.names[j]) for i, j in moved.repairs}
    assert cells == {(i, found.names[j]) for i, j in found.repairs}


def test_a_rare_number_in_the_range_of_its_column_is_flagged_and_not_replaced():
    table = boxes(seed=2)
    table.loc[9, "price"] = round(table["price"][9] * 1.7)  # dear, and perhaps right
    detector = CellwiseDetector(random_state=0, n_estimators=30).fit(table)
    found = detector.cells()
    assert found.flagged[9, found.names.index("price")]
    assert not found.repairs
    assert detector.repaired(table).equals(table)
    assert "only rare beside the others of the row" in " ".join(found.to_dict()["summary"])


def test_a_far_number_that_keeps_an_equation_is_flagged_and_not_replaced():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"units": rng.integers(1, 9, 400).astype(float), "price": rng.uniform(1.0, 3.0, 400).round(2)})
    table["total"] = (table["units"] * table["price"]).round(2)
    table.loc[7] = [40.5, 2.0, 81.0]
    found = CellwiseDetector(random_state=0, n_estimators=20).fit(table).cells()
    assert found.flagged[7].any()
    assert not found.repairs


def test_given_rules_judge_the_table_of_the_fit():
    table = boxes(100)
    detector = CellwiseDetector(random_state=0, n_estimators=5).fit(table)
    scores, half = detector.cells().scores.copy(), int(np.flatnonzero(table["rating"] % 1.0)[0])
    assert detector.use_rules([]).cells().scores[half, 5] < scores[half, 5] - 3.0  # without: rating is whole


class TestRules:
    """Exceptions that look like no error are a custom, and 0 is no number of a column that begins far from it."""

    @staticmethod
    def kinds(values):
        return {each.rule.kind for each in find_rules({"x": values})}

    @pytest.mark.parametrize("exceptions", [[57.5] * 10, [53.1, 55.4, 57.7, 58.2, 60.3, 56.6]])
    def test_fractions_in_the_middle_of_whole_numbers_are_a_custom(self, exceptions):
        whole = np.random.default_rng(0).integers(52, 64, 600).astype(float)
        assert "whole" in self.kinds(whole)
        assert "whole" not in self.kinds(np.r_[whole, exceptions])

    def test_fractions_far_from_the_others_are_errors(self):
        whole = np.random.default_rng(0).integers(52, 64, 600).astype(float)
        assert "whole" in self.kinds(np.r_[whole, 5.7, 5.4, 6.1, 5.5, 5.9])

    def test_zeros_are_wrong_where_the_others_begin_far_from_them(self):
        rng = np.random.default_rng(1)
        zeros, normal = np.zeros(4), rng.normal(size=800)
        for right in (np.exp(normal), rng.exponential(size=800), rng.poisson(5.0, 800) + 1.0, normal):
            assert "not zero" not in self.kinds(np.r_[right, zeros])
        for far in (60.0 + 5.0 * normal, 326.0 + 4000.0 * rng.exponential(size=800)):
            assert "not zero" in self.kinds(np.r_[far, zeros])
            assert "not zero" not in self.kinds(far)

    def test_exceptions_of_words_that_repeat_are_a_custom(self):
        from isopleth.tables.rules import Words

        town = np.arange(400) % 4
        state = town.copy()
        state[:40:4] = 1
        names = tuple("abcd")
        custom = {"town": Words(names, town), "state": Words(names, state)}
        assert "town -> state" not in {str(each.rule) for each in find_rules(custom)}
        state = town.copy()
        state[:12:4], state[1:12:4] = [1, 2, 3], [0, 2, 3]
        errors = {"town": Words(names, town), "state": Words(names, state)}
        assert "town -> state" in {str(each.rule) for each in find_rules(errors)}

    def test_a_misspelling_that_repeats_is_none_of_the_usual_words(self):
        from isopleth.tables.rules import Words

        words = ("Fair", "Good", "Ideal", "Idael")
        for rows, usual in ((900, 3), (90, 4)):  # beside fewer rows it may be a rare code
            codes = np.r_[np.arange(rows) % 3, 3, 3]
            rules = find_rules({"cut": Words(words, codes)})
            assert f"cut is one of its {usual} usual words" in {str(each.rule) for each in rules}


@pytest.mark.parametrize(("of_second", "said"), [(0.0, {}), (4.0, {0: (0, 1)})])
def test_cells_are_swapped_only_if_both_gain_by_it(of_second, said):
    """The number of another cell fits where one is wrong by chance, and the other cell hardly minds which number it gets."""
    rows = np.random.default_rng(0).uniform(size=(50, 6))
    scores = np.zeros(rows.shape)
    scores[0, :2] = 12.0, of_second

    def judge(changed, at, row, column):
        # Without the swap of the first two nothing fits.
        swapped = (changed(np.arange(len(at)))[:, [0, 1]] == rows[at][:, [1, 0]]).all(axis=1)
        return np.where(swapped, 0.0, 12.0)[row], np.full(len(row), 6.0)

    def standing(at, asked):
        return scores[at]

    found = found_mistakes(rows, scores, np.full(rows.shape, 6.0), range(6), judge, standing, np.eye(6, dtype=bool))
    assert {row: each.columns for row, each in found.found.items()} == said
    assert found.swappable == {
        (0, 0),
        (0, 1),
    }  # it is possible all the same: what is usual in the first need not be right


def test_few_numbers_far_from_all_others_are_not_in_the_range_of_a_column():
    ages = np.random.default_rng(0).integers(18, 90, 900).astype(float)
    years = np.r_[ages, 1926.0, 1945.0]
    for column in (NumberColumn.of(years), NumberColumn.of(ages)):
        assert column.holds(62.0)
        assert not column.holds(1934.0)
    assert NumberColumn.of(-years).holds(-62.0)
    assert not NumberColumn.of(-years).holds(-1934.0)
    assert NumberColumn.of(np.r_[np.zeros(900), 7.0]).holds(7.0)  # of a column of zeros nothing is far
    assert NumberColumn.of(np.r_[ages[:20], 1926.0]).holds(1926.0)  # and of few numbers none is few


def test_two_wrong_cells_among_many_that_are_at_home_are_no_shift():
    rng = np.random.default_rng(0)
    values = rng.uniform(5.0, 9.0, (100, 6)) + np.array([0.0, 0.5, 0.0, 0.5, 0.0, 30.0])
    values[3, 1], values[3, 2] = 50.0, 60.0
    values[:, 0] = rng.uniform(40.0, 70.0, 100)
    flagged = np.zeros(values.shape, dtype=bool)
    flagged[3, 1:3] = True
    assert not shifted_rows(list("abcdef"), values, flagged)


def test_a_date_is_repaired_by_the_digit_that_makes_it_usual_in_its_row_and_by_nothing_else():
    rng = np.random.default_rng(4)
    ordered = np.datetime64("2025-01-06") + np.sort(rng.integers(0, 240, 400)).astype("timedelta64[D]")
    due = ordered + rng.integers(10, 40, 400).astype("timedelta64[D]")
    right = pd.DataFrame(
        {"ordered": pd.to_datetime(ordered), "due": pd.to_datetime(due), "pieces": rng.poisson(9.0, 400)}
    )
    table = right.copy()
    planted = {
        (11, "ordered"): ({"years": -10}, "a digit of the year of ordered is wrong"),
        (50, "ordered"): ({"years": -100}, "the century of ordered is wrong"),
        (200, "due"): ({"years": 10}, "a digit of the year of due is wrong"),
        (320, "due"): ({"years": -179}, None),
    }
    for cell, (moved, _) in planted.items():
        table.loc[cell] = table.loc[cell] + pd.DateOffset(**moved)
    detector = CellwiseDetector(random_state=0, n_estimators=30).fit(table)
    found, repaired = detector.cells(), detector.repaired(table)
    reasons = {(i, found.names[j]): why for (i, j), why in found.repairs.items()}
    assert reasons == {cell: said for cell, (_, said) in planted.items() if said}
    assert found.flagged[320, 1]
    for cell, (_, said) in planted.items():
        assert repaired.loc[cell] == (right if said else table).loc[cell]
