"""Numbers as the commands print them, and tables that are folded to the width of a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.cli.text import ColumnNumbers, aligned, pvalue_text, significant


@pytest.mark.parametrize("step", [1.0, 1e-3, 1e-7, 1e-12])
def test_neighbours_are_told_apart(step):
    values = np.random.default_rng(0).normal() * 3 + step * np.arange(50)
    numbers = ColumnNumbers(values)
    assert len({numbers.text(value) for value in values}) == 50


def test_other_numbers_have_four_digits():
    values = np.random.default_rng(0).normal(size=10)
    numbers = ColumnNumbers(values)
    assert all(float(numbers.text(value)) == pytest.approx(value, rel=1e-3) for value in values)
    assert max(len(numbers.text(value).strip("-0.")) for value in values) <= 6


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([100000, 99999, 7], ["100000", "99999", "7"]),
        ([23.1, 4.25, 1000], ["23.10", "4.25", "1000.00"]),
        ([1234567.5, 0.5], ["1234567.5", "0.5"]),
        ([1e20, 1.0], ["1e+20", "1"]),
        ([-0.125, 2], ["-0.125", "2.000"]),
    ],
)
def test_numbers_with_few_decimals_have_all_of_them(column, texts):
    numbers = ColumnNumbers(np.array(column, dtype=float))
    assert [numbers.text(value) for value in column] == texts


def test_a_value_between_whole_numbers_keeps_its_decimals():
    assert ColumnNumbers(np.array([1.0, 2.0, 3.0])).text(2.3714) == "2.371"
    assert ColumnNumbers(np.array([1.0, 2.0, 3.0])).text(np.nan) == "nan"


def test_statistics_of_a_dense_column_stay_short():
    numbers = ColumnNumbers(np.random.default_rng(0).normal(size=10_000) * 1e6)
    assert numbers.statistic(123456.789) == "123457"
    assert significant(-2.0, 4) == "-2"


@pytest.mark.parametrize(
    ("p", "rows", "text"),
    [
        (0.05, None, "0.05"),
        (1e-6, None, "1e-06"),
        (9.9e-7, None, "< 1e-6"),
        (0.0, None, "< 1e-6"),
        (1e-248, 200, "< 0.0005"),
        (0.0005, 200, "0.0005"),
        (1e-5, 10**9, "1e-05"),
        (1e-12, 10**9, "< 1e-6"),
    ],
)
def test_p_values_claim_no_more_than_the_rows_support(p, rows, text):
    assert pvalue_text(p, rows) == text


def test_tables_are_folded_to_the_width_of_the_terminal(monkeypatch):
    long = "  ".join(f"column_{j}=1.2345" for j in range(9))
    cells = [["rank", "columns"], ["1", long], ["2", "x" * 200], ["3", "short"]]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    folded = aligned(cells).splitlines()
    assert max(map(len, folded)) <= 80
    assert folded[1].startswith("   1  column_0=1.2345")
    assert folded[2].startswith("      column_")
    assert "".join("".join(line.split()) for line in folded) == "".join("".join(row) for row in cells).replace(" ", "")
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert len(aligned(cells).splitlines()) == 4  # a pipe gets one row a line
