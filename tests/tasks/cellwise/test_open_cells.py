"""Cells that hold something that was meant, or whose right value is only likely, are flagged and stay as they are."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from isopleth import CellwiseDetector


def judged(table):
    """Return the cells of a table, and the repaired table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cells that cannot be read
        detector = CellwiseDetector(random_state=0, n_estimators=20).fit(table)
        return detector.cells(), detector.repaired(table)


def wells(n=400, seed=11):
    """Two metals that go with each other, the second below a limit in a third of the wells, and a day."""
    rng = np.random.default_rng(seed)
    iron = np.exp(rng.normal(1.0, 0.6, n))
    lead = iron**0.8 * np.exp(rng.normal(-1.0, 0.3, n))
    days = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(n) % 250, unit="D")
    table = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "iron": iron.round(2)})
    limit = np.where(np.arange(n) % 2, 0.4, 0.6)
    table["lead"] = [f"<{end}" if value < end else f"{value:.3f}" for value, end in zip(lead, limit, strict=True)]
    return table.astype(object)


@pytest.mark.parametrize(
    ("column", "text", "why"),
    [
        ("lead", "n.d.", "below a limit of detection that is not said"),
        ("lead", "broken", "cannot be read"),
        ("day", "open", "cannot be read"),
        ("day", "30.02.2024", "cannot be read"),
        ("day", "Total", "cannot be read"),
    ],
)
def test_a_cell_that_is_not_of_the_kind_of_its_column_stays(column, text, why):
    table = wells()
    table.loc[[5, 90], column] = text
    found, repaired = judged(table)
    j = found.names.index(column)
    assert found.flagged[[5, 90], j].all()
    assert found.repairs == {}
    assert {found.unclear[i, j] for i in (5, 90)} == {why}
    assert repaired.equals(table)
    assert "What should stand there is clear enough" not in " ".join(found.to_dict()["summary"])


def minerals(n=600, seed=3):
    """A salt in millimoles that goes with another one, and a column of its own."""
    rng = np.random.default_rng(seed)
    other = rng.normal(140.0, 3.0, n)
    salt = 5.4 + 0.05 * (other - 140.0) + rng.normal(0.0, 0.35, n)
    return pd.DataFrame({"other": other.round(0), "salt": salt.round(1), "ward": rng.choice(["A", "B"], n)})


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 8])
def test_numbers_that_are_ten_times_too_large_are_divided_whatever_their_number(count):
    right = minerals()
    table, rows = right.copy(), np.flatnonzero((right["salt"] - 5.4).abs() < 0.45)[20 : 20 + count]
    table.loc[rows, "salt"] = (table.loc[rows, "salt"] * 10.0).round(1)
    found, repaired = judged(table)
    assert set(found.repairs.values()) == {"salt is 10 times too large"}
    pd.testing.assert_frame_equal(repaired, right)


@pytest.mark.parametrize("count", [1, 5])
def test_numbers_in_another_unit_are_no_factor_of_ten(count):
    table = minerals()
    table.loc[40 : 39 + count, "salt"] = (table.loc[40 : 39 + count, "salt"] * 18.016).round(0)
    found, repaired = judged(table)
    assert found.flagged[40 : 40 + count, 1].all()
    assert found.repairs == {}
    assert repaired.equals(table)


def test_a_factor_of_ten_beside_numbers_that_it_does_not_explain_is_not_certain():
    table = minerals()
    table.loc[[40, 41, 42], "salt"] = [54.0, 91.0, 27.0]  # only the first one is usual without a factor
    found, _ = judged(table)
    assert found.repairs == {}
    assert found.unclear[40, 1] == "salt may be 10 times too large"
    assert not found.mistakes
    assert found.usual[40, 1] != 54.0


def test_a_rare_word_of_its_own_stays():
    table = minerals(3000)
    table["state"] = "done"
    table.loc[17, "state"] = "refused"
    found, repaired = judged(table)
    assert (17, 3) not in found.repairs
    assert repaired["state"][17] == "refused"


def test_what_another_column_determines_is_usual_though_the_law_says_otherwise():
    rng = np.random.default_rng(5)
    codes = {"Ulm": 8907, "Trier": 5429, "Kiel": 2410, "Jena": 774}
    town = rng.choice(list(codes), 500, p=[0.4, 0.3, 0.2, 0.1])
    table = pd.DataFrame({"town": town, "code": [codes[each] for each in town], "guest": np.arange(500) // 4})
    for row, word in ((13, "Jena"), (200, "Kiel")):
        table.loc[row, "code"] = codes[word] if town[row] != word else codes["Ulm"]
    found, _ = judged(table)
    j = found.names.index("code")
    for row in (13, 200):
        assert found.flagged[row, j]
        assert found.usual[row, j] == codes[town[row]] != table["code"][row]
