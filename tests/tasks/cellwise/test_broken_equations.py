"""A row that breaks an equation which nearly all others keep is flagged, whatever the bounds of the table."""

import numpy as np
import pandas as pd
import pytest

from isopleth import CellwiseDetector


def _with_wrong_totals(seed, rows, wrong, n=700):
    """Return a table whose totals are a little off in some rows, beside columns without any relation and with far numbers."""
    rng = np.random.default_rng(seed)
    parts, post = rng.gamma(2.0, 90.0, n).round(2), rng.choice([4.9, 6.9, 12.5], n)
    table = pd.DataFrame(
        {"goods": parts, "post": post, "total": (parts + post).round(2), "site": rng.choice(list("kl"), n)}
    )
    table["noise"] = np.exp(1.2 * rng.standard_t(3, n)).round(2)
    table.loc[rows, "total"] += wrong
    return table


@pytest.mark.parametrize("seed", [21, 22])
@pytest.mark.parametrize("count", [2, 20])
def test_rows_that_break_a_sum_are_flagged_at_the_total(seed, count):
    """Many rows that break it lower the evidence against each, and far numbers of another column raise the bound."""
    rows = np.random.default_rng(seed).choice(700, count, replace=False)
    found = CellwiseDetector(n_estimators=20, random_state=0).fit(_with_wrong_totals(seed, rows, 1.0)).cells()
    total = found.names.index("total")
    assert found.flagged[rows, total].all()
    others = np.delete(found.flagged[:, :4], rows, axis=0)
    assert others.sum() <= 3


def test_a_bound_that_was_given_holds_for_equations_too():
    table = _with_wrong_totals(23, [4, 5], 1.0)
    assert not CellwiseDetector(threshold=50.0, n_estimators=20, random_state=0).fit(table).cells().flagged.any()


def test_new_rows_that_break_an_equation_are_flagged():
    detector = CellwiseDetector(n_estimators=20, random_state=0).fit(_with_wrong_totals(24, [], 0.0))
    new = _with_wrong_totals(25, [7], 0.5, n=40)
    flagged = detector.cells(new).flagged
    assert flagged[7, 2]


def test_a_wrong_number_of_days_is_found_by_its_dates():
    rng = np.random.default_rng(26)
    begin = pd.Timestamp("2023-03-01") + pd.to_timedelta(rng.integers(0, 400, 500), unit="D")
    days = rng.choice([14, 21, 28, 35, 60], 500)
    table = pd.DataFrame({"begin": begin, "end": begin + pd.to_timedelta(days, unit="D"), "days": days.astype(float)})
    table.loc[[11, 90], "days"] += 6.0
    found = CellwiseDetector(n_estimators=20, random_state=0).fit(table).cells()
    assert np.argwhere(found.flagged).tolist() == [[11, 2], [90, 2]]
    assert [found.usual[row, 2] for row in (11, 90)] == days[[11, 90]].tolist()


def test_swapped_cells_that_keep_an_equation_are_preferred_to_one_that_is_computed():
    rng = np.random.default_rng(27)
    old = rng.integers(1000, 60_000, 600).astype(float)
    used = np.round(300.0 * np.exp(0.5 * rng.normal(size=600)))
    table = pd.DataFrame({"old": old, "new": old + used, "used": used})
    table.loc[[3, 44], ["old", "new"]] = table.loc[[3, 44], ["new", "old"]].to_numpy()
    mistakes = CellwiseDetector(n_estimators=20, random_state=0).fit(table).cells().mistakes
    assert mistakes == {3: "old and new are swapped", 44: "old and new are swapped"}


def test_a_number_in_several_broken_equations_is_blamed_and_not_their_results():
    rng = np.random.default_rng(28)
    goods, post = rng.gamma(2.0, 90.0, 700).round(2), rng.choice([4.9, 6.9, 12.5], 700)
    net = (goods + post).round(2)
    tax = (0.07 * net).round(2)
    table = pd.DataFrame({"goods": goods, "post": post, "net": net, "tax": tax, "gross": (net + tax).round(2)})
    rows = np.arange(5, 700, 40)
    table.loc[rows, "net"] += 1.0
    found = CellwiseDetector(n_estimators=20, random_state=0).fit(table).cells()
    assert (found.worst[rows] == 2).all()
    assert found.flagged[rows, 2].all()


def test_what_an_equation_says_of_a_new_row_is_in_the_step_of_the_fit():
    """A row alone says no step: of a total of 170 it would be ten, and what is usual beside 900 in full hundreds is 0."""
    rng = np.random.default_rng(28)
    one, two = np.round(rng.uniform(10.0, 90.0, (2, 150)), 2)
    table = pd.DataFrame({"one": one, "two": two, "sum": (one + two).round(2)})
    row = pd.DataFrame({"one": [50.25], "two": [20.11], "sum": [170.0]})
    detector = CellwiseDetector(n_estimators=20, random_state=0).fit(table)
    beside = detector.cells(pd.concat([row, table[:5]], ignore_index=True))
    for found in (detector.cells(row), beside):
        assert found.flagged[0].tolist() == [False, False, True]
        assert found.usual[0, 2] == 70.36
    net = np.round(rng.lognormal(5.0, 0.7, 150), 2)
    taxed = CellwiseDetector(n_estimators=20, random_state=0).fit(
        pd.DataFrame({"net": net, "vat": (0.19 * net).round(2)})
    )
    assert taxed.cells(pd.DataFrame({"net": [78.37], "vat": [900.0]})).usual[0, 1] == 14.89


def test_names_of_columns_may_hold_braces():
    net = np.round(np.random.default_rng(29).lognormal(5.0, 0.7, 150), 2)
    table = pd.DataFrame({"net {EUR}": net, "{}": (0.19 * net).round(2)})
    table.loc[7, "{}"] += 3.0
    found = CellwiseDetector(n_estimators=20, random_state=0).fit(table).cells()
    assert found.mistakes == {7: "not {} = 0.19 x net {EUR}"}
