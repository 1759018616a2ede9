"""Forms of cells: what writes the known cells of a column back as they are writes new ones like them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from isopleth.tables.forms import form_of

NUMBERS = {
    "8.60 7.51 20.63": (9.5, "9.50"),
    "5 2.5 -3.25": (4.125, "4.12"),
    "1,826.46 581.53 -2,285.66": (-1234567.0, "-1,234,567.00"),
    "3.981e+05 8.888e+04": (-99999.0, "-1.000e+05"),
    "3.981E5 8.888E-4": (0.5, "5.000E-1"),
    "+5 -3": (4, "+4"),
    ".5 -.25 3.5": (0.125, ".12"),
    "02116 00007": (12, "00012"),
    "0.8123456789012345 0.1": (1 / 3, "0.3333333333333333"),
    "-0.5 -1.5": (0.01, "0.0"),
}


@pytest.mark.parametrize("texts", NUMBERS)
def test_numbers_have_the_decimals_signs_and_groups_of_their_column(texts):
    known, (value, expected) = texts.split(" "), NUMBERS[texts]
    form = form_of(known, [float(text.replace(",", "")) for text in known])
    assert [form(float(text.replace(",", ""))) for text in known] == known
    assert form(value) == form(np.float64(value).item()) == expected


@pytest.mark.parametrize(
    ("known", "values", "value", "expected"),
    [
        (["1.826,46", "581,53"], [1826.46, 581.53], 1e6, "1.000.000,00"),
        (["1\u202f826,5", "581,0"], [1826.5, 581.0], 1e6, "1\u202f000\u202f000,0"),
        (["16.3%", "30.6%"], [16.3, 30.6], 5.0, "5.0%"),
        (["16.3%", "30.6%"], [0.163, 0.306], 0.05, "5.0%"),
        (["$10,805.74", "$3.10", "-$5.00"], [10805.74, 3.1, -5.0], -7777.5, "-$7,777.50"),
        (["(1,234.50)", "3.10"], [-1234.5, 3.1], -7.0, "(7.00)"),
        (["\u22125.5", "3.1"], [-5.5, 3.1], -7.0, "\u22127.0"),
        (["2,471.58-", "3.10"], [-2471.58, 3.1], -7.0, "7.00-"),
        (["0.50", "12.25"], [Decimal("0.50"), Decimal("12.25")], Decimal("7"), "7.00"),
        (["TRUE", "FALSE"], [True, False], True, "TRUE"),
        (["yes", "no"], [True, False], False, "no"),
        (["true"], [True], False, "false"),
        (["a", "b"], [1.0, 2.0], 2.5, "2.5"),  # of no form that is known
        ([], [], 2.5, "2.5"),
    ],
)
def test_what_stands_around_a_number_and_words_of_truth_values(known, values, value, expected):
    form = form_of(known, values)
    assert form(value) == expected
    if known and expected != "2.5":
        assert [form(each) for each in values] == known


DAY, OTHER = datetime(2024, 9, 12, 5, 30), datetime(2023, 11, 30, 17, 5, 1)
JAPAN = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("%d/%m/%Y", "06/05/2022"),
        ("%m/%d/%y", "05/06/22"),
        ("%Y%m%d", "20220506"),
        ("%d-%b-%y", "06-May-22"),
        ("%d/%b/%Y", "06/May/2022"),
        ("%d/%b/%Y:%H:%M:%S", "06/May/2022:07:08:09"),
        ("%B %Y", "May 2022"),
        ("%Y-%m-%dT%H:%M:%S", "2022-05-06T07:08:09"),
        ("%Y/%m/%d %I:%M %p", "2022/05/06 07:08 AM"),
        ("%A, %d %b %Y, %H.%M", "Friday, 06 May 2022, 07.08"),
    ],
)
def test_times_are_written_as_their_column_writes_them(form, expected):
    known = [value.strftime(form) for value in (DAY, OTHER)]
    assert form_of(known, [DAY, OTHER])(datetime(2022, 5, 6, 7, 8, 9)) == expected


def test_times_by_a_clock_of_their_own_dates_quarters_and_times_of_day():
    asked = datetime(2022, 5, 6, 20, tzinfo=UTC)
    moments = [each.replace(tzinfo=UTC) for each in (DAY, OTHER)]
    assert form_of([f"{each.isoformat()}Z" for each in (DAY, OTHER)], moments)(asked) == "2022-05-06T20:00:00Z"
    local = [each.astimezone(JAPAN).isoformat(sep=" ") for each in moments]
    assert form_of(local, moments)(asked) == "2022-05-07 05:00:00+09:00"
    assert form_of(["1994Q1", "1994Q3"], [datetime(1994, 1, 1), datetime(1994, 7, 1)])(datetime(2022, 5, 6)) == "2022Q2"
    assert form_of(["5/5/2024"], [datetime(2024, 5, 5)], day_first=True)(datetime(2022, 1, 12)) == "12/1/2022"
    assert form_of(["2024-01-31"], [date(2024, 1, 31)])(datetime(2022, 5, 6)) == "2022-05-06"
    assert form_of(["7:10 a.m.", "11:45 p.m."], [time(7, 10), time(23, 45)])(time(0, 5)) == "12:05 a.m."
    assert form_of(["soon", "later on"], [DAY, OTHER])(DAY) == "2024-09-12 05:30:00"
