"""What the text of a column is read as, and which of its cells could not be read."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest

from isopleth import InputError
from isopleth.tables.amounts import amount_of, unit_factor
from isopleth.tables.cells import MISSING_NUMBERS, MISSING_WORDS
from isopleth.tables.dates import calendar_day, calendar_form, calendar_share, moment_of
from isopleth.tables.numerals import Numerals, numerals_of
from isopleth.tables.text_times import days_of
from isopleth.tables.text_types import looks_like, typed


def read(cells, numerals=None, **how):
    """Read a column as a file with it is read."""
    found = numerals or numerals_of([(i, 0, cell) for i, cell in enumerate(cells)], "t", delimiter=";")
    how = {"placeholders": MISSING_NUMBERS} | how
    return typed("a", pa.array(cells, pa.string()), MISSING_WORDS, found, lambda row: f"row {row}", {}, **how)


def filled(cell, others, n=40):
    """Return a column of some cells again and again, with one cell of another kind in row 7."""
    cells = [others[i % len(others)] for i in range(n)]
    cells[7] = cell
    return cells


NUMBERS = [str(3 * i) for i in range(40)]
DAYS = [f"2021-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(40)]


@pytest.mark.parametrize(
    ("cell", "others", "kind"),
    [
        ("3O", NUMBERS, "int64"),
        ("46,3O", [f"{i},{i}" for i in range(40)], "double"),
        ("1.5.2", [f"{i}.5" for i in range(40)], "double"),
        ("1,2O4.50", [f"1,{i:03d}.50" for i in range(40)], "double"),
        ("$1O", [f"${i}" for i in range(40)], "int64"),
        ("5 in", [f"{i} cm" for i in range(40)], "int64"),
        ("2021-02-30", DAYS, "timestamp[us]"),
        ("0000-00-00", DAYS, "timestamp[us]"),
        ("20121-01-03", DAYS, "timestamp[us]"),
        ("31.01.2021", DAYS, "timestamp[us]"),
        ("20210230", [day.replace("-", "") for day in DAYS], "timestamp[us]"),
        ("2021-13", [day[:7] for day in DAYS], "timestamp[us]"),
        ("1994Q5", [f"199{i % 9}Q{i % 4 + 1}" for i in range(40)], "timestamp[us]"),
        ("7:75 a.m.", [f"{i % 12 + 1}:{i:02d} {'ap'[i % 2]}.m." for i in range(40)], "time64[us]"),
        ("2021-01-02 12:00", [f"{day} 12:00Z" for day in DAYS], "timestamp[us, tz=UTC]"),
        ("ture", ["true", "False"], "bool"),
    ],
)
def test_one_cell_of_another_kind_is_a_gap_that_is_named(cell, others, kind):
    found = read(filled(cell, others))
    assert str(found.values.type) == kind
    assert (found.unread.rows.tolist(), found.unread.texts, found.values.null_count) == ([7], (cell,), 1)
    without = read(filled("", others))
    assert found.values.equals(without.values)
    assert without.unread is None


def test_four_in_five_cells_decide_and_words_that_repeat_among_few_numbers_are_words():
    assert read(NUMBERS[:32] + ["x"] * 8).unread.texts == ("x",) * 8
    assert str(read(NUMBERS[:31] + ["x"] * 9).values.type) == "string"
    few = ["0", "1", "2", "3+"] * 10
    assert read(few[:-8] + ["1"] * 8).values.to_pylist()[3] == "3+"
    assert read(filled("l", ["0", "1", "2"])).unread.texts == ("l",)
    rare = read(["0", "1", "2"] * 20 + ["x", "x"])
    assert (rare.unread, rare.values[61].as_py()) == (None, "x")
    assert "'x' in row 60, and nearly all other cells are numbers: the column is taken as categories" in str(
        rare.notes[0]
    )
    assert read(filled("maybe", ["true", "false"]) + ["maybe"]).values[7].as_py() == "maybe"


def test_words_for_missing_cells_beside_numbers_and_times_are_said_with_their_row():
    for others in (NUMBERS, DAYS):
        found = read(filled("unknown", others))
        assert (found.unread, found.values.null_count) == (None, 1)
        assert "'unknown' among" in str(found.notes[0])
        assert "first in row 7" in str(found.notes[0])
        assert read(filled("unknown", others), placeholders=frozenset()).unread.texts == ("unknown",)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1,234.50)", -1234.5),
        ("\u22125.2", -5.2),
        ("2,471.58-", -2471.58),
        ("4,27,483.58", 427483.58),
        ("2\u2019471.58", 2471.58),
        ("2.5k", 2500.0),
        ("$2.5M", 2.5e6),
        ("18cm", 18.0),
        ("16.3%", 16.3),
        ("$10,805.74", 10805.74),
        ("-$5", -5.0),
        ("USD 1,200", 1200.0),
        ("33 patients", 33.0),
        ("5 km/h", 5.0),
        *(
            (text, None)
            for text in (
                "3/5",
                "A12",
                "12-34",
                "1.2.3",
                "(5",
                "--5",
                "007cm",
                "10.0.0.1",
                "2024-01",
                "5 and 6",
                "85,l",
                "7.kg",
            )
        ),
    ],
)
def test_amounts_that_are_certain_are_read(text, value):
    found = amount_of(text)
    assert (found and found.value) == value


def test_a_column_of_amounts_has_one_unit():
    found = read(["$1,200", "($3.50)", "$0", "0"] * 5 + ["7 EUR"])
    assert found.values.to_pylist()[:4] == [1200.0, -3.5, 0.0, 0.0]
    assert found.unread.texts == ("7 EUR",)
    assert "'$1,200' is read as the number 1200.0, without '$'" in str(found.notes[0])
    assert str(read(["5 cm", "2 in"] * 10).values.type) == "string"
    assert "look like numbers with a sign or unit, such as 'EUR 38'" in str(read(["EUR 38", "USD 3"] * 10).notes[0])
    assert "look like lengths of time, such as '25:10'" in str(read(["25:10", "3:05", "101:59"] * 10).notes[0])
    german = read(["1.234,50 \u20ac", "17,20 \u20ac"] * 10)
    assert german.values.to_pylist()[:2] == [1234.5, 17.2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2014-01", datetime(2014, 1, 1)),
        ("2014M03", datetime(2014, 3, 1)),
        ("1994Q2", datetime(1994, 4, 1)),
        ("Q4 1994", datetime(1994, 10, 1)),
        ("Jan 2014", datetime(2014, 1, 1)),
        ("01-Jan-24", datetime(2024, 1, 1)),
        ("3. M\u00e4rz 2024", datetime(2024, 3, 3)),
        ("May 14, 2024 1:05 PM", datetime(2024, 5, 14, 13, 5)),
        ("20240131", datetime(2024, 1, 31)),
        ("05/Oct/2026", datetime(2026, 10, 5)),
        ("05/Oct/2026:02:00:00 +0200", datetime(2026, 10, 5, tzinfo=UTC)),
        ("2024-W05", datetime(2024, 1, 29)),
        ("7:10 a.m.", time(7, 10)),
        ("12:05 AM", time(0, 5)),
        ("2024-01-31 12:00 CET", datetime(2024, 1, 31, 11, tzinfo=UTC)),
        ("2024-01-31 12:00 CST", datetime(2024, 1, 31, 18, tzinfo=UTC)),
        ("2024-07-31 12:00 CDT", datetime(2024, 7, 31, 17, tzinfo=UTC)),
        ("2024-07-31 12:00 Europe/Berlin", datetime(2024, 7, 31, 10, tzinfo=UTC)),
        *(
            (text, None)
            for text in ("2024-01-31 12:00 IST", "Jan-14", "25:00", "13:00 pm", "May 5", "12", "2024-02-30")
        ),
    ],
)
def test_times_that_are_certain_are_read(text, value):
    found = moment_of(text)
    assert (found and found.value) == value


def test_years_that_follow_each_other_are_no_months():
    assert str(read([f"20{i:02d}-{i + 1:02d}" for i in range(1, 12)]).values.type) == "string"


def test_whole_numbers_are_days_and_months_only_if_all_are():
    days = [str(20240100 + i) for i in range(1, 32)]
    assert read(days).values[4].as_py() == datetime(2024, 1, 5)
    assert str(read([*days, "20240132"]).values.type) == "timestamp[us]"  # named as one that is no day
    assert read(days, wanted="numeric").values[4].as_py() == 20240105
    months = [str(100 * (2023 + i // 12) + i % 12 + 1) for i in range(20)]
    assert read(months).values[13].as_py() == datetime(2024, 2, 1)
    assert str(read([str(202301 + i) for i in range(20)]).values.type) == "int64"


def test_limits_are_intervals():
    cells = ["<0.5", ">2400", "BDL", "n.d."] + [f"{i}.5" for i in range(40)]
    found = read(cells)
    assert found.unread is None
    assert found.censored.rows.tolist() == [0, 1, 2, 3]
    assert found.censored.lower.tolist() == [-np.inf, 2400.0, -np.inf, -np.inf]
    assert found.censored.upper.tolist() == [0.5, np.inf, 0.5, 0.5]
    assert found.censored.limits == (("above", 2400.0), ("below", 0.5))
    assert found.censored.take(np.array([9, 2, 0])).rows.tolist() == [1, 2]
    assert str(read(["<1", "1", "2", ">2"] * 10).values.type) == "string"  # classes, not measurements
    assert read(["BDL"] + cells[4:]).unread.texts == ("BDL",)


def test_lists_in_cells_that_commas_cut_say_nothing_of_the_decimal_sign():
    lists = [str(i % 5) for i in range(30)] + ["2,2", "3,1"]
    codes = [str(516 + i) for i in range(30)] + ["516,520"]
    for column in (lists, codes):
        assert numerals_of([(i, 0, cell) for i, cell in enumerate(column)], "t", delimiter=",") == Numerals()
    grouped = [(i, 1, cell) for i, cell in enumerate(["1,204.50", "17.25"] * 9)]
    found = numerals_of([*grouped, *((i, 0, cell) for i, cell in enumerate(codes))], "t", delimiter=",")
    assert found == Numerals(".", grouped=True)
    listed = read(codes, found)
    assert (str(listed.values.type), listed.unread) == ("string", None)
    assert "look like lists of numbers, such as '516,520'" in str(listed.notes[0])
    assert read(codes, found, wanted="numeric").unread.texts == ("516,520",)
    assert read(["990", "1,204", "1,310"] * 9, found).values.to_pylist()[:3] == [990, 1204, 1310]


def test_two_forms_of_dates_are_refused_and_a_form_that_is_rare_is_named():
    with pytest.raises(InputError, match=r"two formats, '2021-01-01' in row 0 and '13.01.2021' in row 1"):
        read(["2021-01-01", "13.01.2021"] * 5)
    days = [f"{i % 28 + 1}/{i % 12 + 1}/2021" for i in range(40)]
    found = read(filled("1/31/2021", days))
    assert found.unread.texts == ("1/31/2021",)
    assert found.unread.kind == "dates with days before months"


def test_a_mistyped_decimal_sign_is_named():
    commas = [f"{i},5" for i in range(40)]
    found = read(filled("46.30", commas))
    assert (found.unread.texts, found.values[8].as_py()) == (("46.30",), 8.5)
    assert read(filled("46,3", [f"{i}.5" for i in range(40)])).unread.texts == ("46,3",)
    points = [f"1,{i:03d}.5" for i in range(40)]
    assert read(filled("46,30", points)).unread.texts == ("46,30",)
    with pytest.raises(InputError, match="write numbers in two ways"):
        read(commas[:9] + points[:9])


def test_names_with_numbers_are_no_dates_and_names_of_months_are():
    assert looks_like([f"person {i}" for i in range(20)]) is None
    assert looks_like([f"{i} apples" for i in range(20)]) is None
    assert looks_like(["May 3", "Jun 14", "Juli 2"]) == "dates or times"


def whole_numbers(days, others):
    """Cells of a column of whole numbers, the last of which are no days."""
    days = [int((datetime(2024, 1, 1) + timedelta(days=k)).strftime("%Y%m%d")) for k in range(days)]
    return pa.array(days + [20_240_000 + k * 100 + 77 for k in range(others)])


@pytest.mark.parametrize(("days", "others", "read"), [(5, 0, True), (4, 0, False), (300, 3, True), (40, 40, False)])
def test_whole_numbers_are_days_where_nearly_all_are_and_not_too_few(days, others, read):
    found = days_of("when", whole_numbers(days, others))
    assert (found is not None) == read
    if read and others:
        assert found.unread.rows.tolist() == list(range(days, days + others))


def test_half_of_the_first_numbers_have_to_be_days_and_a_month_is_none_of_one_year_only():
    assert calendar_share([20240131, 7])
    assert not calendar_share([20240131, 7, 8])
    assert not calendar_share([])
    assert calendar_form([202401, 202402, 202403, 202404, 202405, 202501]) == "202401"
    assert calendar_form([202401, 202402, 202403, 202404, 202405, 202406]) is None
    assert calendar_form([202401, 202402, 202403, 202404, 202501]) is None


@pytest.mark.parametrize(
    ("value", "day"),
    [
        (20240229, date(2024, 2, 29)),
        (20230229, None),
        (202412, date(2024, 12, 1)),
        (202413, None),
        (18000101, date(1800, 1, 1)),
        (17991231, None),
        (22991231, date(2299, 12, 31)),
        (23000101, None),
        (229912, date(2299, 12, 1)),
        (230001, None),
    ],
)
def test_days_and_months_of_five_centuries_are_known(value, day):
    assert calendar_day(value) == day


def test_a_stray_unit_in_a_column_of_plain_numbers_is_assumed_to_be_that_of_all():
    plain = [str(60 + i % 40) for i in range(100)]
    for text in ("84 mmHg", "$84"):
        found = read([*plain[:17], text, *plain[17:]])
        assert found.values.to_pylist()[17] == 84
        assert found.unread is None
        assert "on the assumption that the numbers without a unit are in" in str(found.notes[0])
    for stray in (["184 mmHg"], ["84 %"], ["84 mmHg", "84 kPa"]):  # not usual there, another number, and two units
        assert len(read([*plain, *stray]).unread) == len(stray)


def test_numbers_without_the_unit_of_their_column_are_assumed_to_be_in_it_where_they_are_usual():
    in_unit = [f"{20 + i % 50}.5 mg" for i in range(200)]
    found = read([*in_unit, "31.5", "44.5", "69.5"])
    assert found.values.to_pylist()[-3:] == [31.5, 44.5, 69.5]
    assert found.unread is None
    assert "'31.5' is read as the number 31.5, on the assumption that it is in mg, too, and so are 2 more" in str(
        found.notes[-1]
    )
    assert read([*in_unit, "31.5", "0.031", "31500"]).unread.texts == ("0.031", "31500")
    assert read([*[f"{text[:-3]} %" for text in in_unit], "31.5"]).unread.texts == ("31.5",)  # or a share of 31.5


def test_units_that_differ_by_prefixes_are_converted_and_others_stay_unread():
    found = read(
        [*[f"{20 + i % 50}.5 \u00b5g/L" for i in range(200)], "0.0224 mg/L", "<0.004 mg/L", "31 g", "7 \u03bcg/l"]
    )
    assert found.values.to_pylist()[-4] == 22.4
    assert found.censored.upper.tolist() == [4.0]
    assert found.values.to_pylist()[-1] == 7.0
    assert found.unread.texts == ("31 g",)
    assert "'0.0224 mg/L' is converted to 22.4 \u00b5g/L, and so is 1 more" in str(found.notes[-1])


def test_of_two_units_of_equally_many_cells_the_order_of_rows_does_not_choose():
    cells = [*[f"{10 + i} mm" for i in range(20)], *[f"{10 + i} cm" for i in range(20)]]
    one, two = read(cells).values.to_pylist(), read(cells[::-1]).values.to_pylist()
    assert one == two[::-1]
    assert (one[0], one[-1]) == (10.0, 290.0)


@pytest.mark.parametrize(
    ("unit", "other", "factor"),
    [
        ("mg/L", "\u00b5g/L", 1e3),
        ("mg/dL", "mg/L", 10.0),
        ("kWh", "MWh", 1e-3),
        ("cm", "mm", 10.0),
        ("mL", "l", 1e-3),
        ("min", "in", None),
        ("mmol/L", "mg/L", None),
        ("g", "g/L", None),
        ("kg", "lb", None),
    ],
)
def test_prefixes_of_units_are_powers_of_ten(unit, other, factor):
    assert unit_factor(unit, other) == (factor if factor is None else pytest.approx(factor, rel=1e-12))
