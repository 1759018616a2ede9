"""The two-sample test on tables with words, truth values, times and missing cells, and with groups of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from isopleth import DataWarning, InputError, two_sample_test
from people import people

pandas = pytest.importorskip("pandas")

FEW = {"n_resamples": 99, "random_state": 0, "n_jobs": 1}


def changes_of(X, Y, **more):
    found = two_sample_test(X, Y, **FEW, **more).changes()
    return dict(zip(found["column"], found["description"], strict=True)), found


def test_a_share_of_a_word_a_share_of_gaps_and_times_are_found_and_described():
    X = people(300)
    assert changes_of(X, people(200, 1))[0] == {}
    described, found = changes_of(X, people(200, 1, red=0.5))
    assert list(described) == ["colour"]
    assert described["colour"].startswith("share of 'red': 1")
    assert found["level"] == ["red"]
    assert found["level_after"][0] - found["level_before"][0] == pytest.approx(found["share"][0], abs=0.1)
    described, found = changes_of(X, people(200, 1, gap=0.3))
    assert list(described) == ["age"]
    assert "missing: 4.33 % -> 28.5 %" in described["age"]
    assert found["missing_after"][0] == people(200, 1, gap=0.3)["age"].isna().mean()
    described, found = changes_of(X, people(200, 1, days=50))
    assert list(described) == ["day"]
    assert described["day"].startswith("median: 2024-02-")
    assert found["time_after"][0] == people(200, 1, days=50)["day"].median().to_datetime64()


def test_swapped_samples_and_reordered_rows_give_the_same_pvalue():
    X, Y = people(80, gap=0.2), people(60, 1, red=0.4)
    expected = two_sample_test(X, Y, **FEW)
    for compared in (True, False):
        expected = two_sample_test(X, Y, compare_missing=compared, **FEW)
        assert two_sample_test(Y, X, compare_missing=compared, **FEW).pvalue == expected.pvalue
        mixed = two_sample_test(X.sample(frac=1.0, random_state=0), Y, compare_missing=compared, **FEW)
        assert mixed.pvalue == expected.pvalue


def test_words_are_decided_by_both_samples():
    X, Y = people(120), people(120, 1)
    Y["colour"] = Y["colour"].where(Y["colour"] != "red", "purple")
    result = two_sample_test(X, Y, **FEW | {"n_resamples": 499})
    assert set(result.problem.encoding.kinds[1].levels) == {"red", "blue", "green", "purple"}
    assert result.pvalue <= 0.03
    assert two_sample_test(Y, X, **FEW | {"n_resamples": 499}).statistic == pytest.approx(result.statistic)


def test_identifiers_that_begin_anew_in_each_sample_are_left_out():
    X, Y = people(40), people(50, 1)
    for frame in (X, Y):
        frame.insert(0, "order_no", np.arange(len(frame)))
    with pytest.warns(DataWarning, match=r"left out: 'order_no' \(identifier\)"):
        result = two_sample_test(X, Y, **FEW)
    assert result.names == ["age", "colour", "day", "member"]


def test_arrays_with_gaps_and_named_categories():
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 5, (200, 2)).astype(float), rng.integers(0, 5, (200, 2)).astype(float)
    Y[Y[:, 0] == 2, 0] = 4
    assert two_sample_test(X, Y, categorical=[0], **FEW).witness.columns() == ["column 0"]
    Y[:80, 1] = np.nan
    assert "column 1" in two_sample_test(X, Y, **FEW).witness.columns()
    assert np.isnan(two_sample_test(X, Y, categorical=[0], **FEW).length_scale).tolist() == [True, False]


def test_gaps_may_count_for_nothing():
    X, Y = people(400, gap=0.05), people(400, 1, gap=0.4)
    assert two_sample_test(X, Y, **FEW).pvalue == 0.01
    blind = two_sample_test(X, Y, compare_missing=False, **FEW)
    assert blind.pvalue > 0.05
    assert blind.separation().low < 0.5
    Y["age"] += 4.0
    assert two_sample_test(X, Y, compare_missing=False, **FEW).witness.columns() == ["age"]


def draw_null(rng, n, m, gaps, words, gaps_of_second=None):
    """A word column and two numbers, one of which depends on the word; cells are missing at random."""
    word = rng.integers(0, words, n + m)
    table = pandas.DataFrame(
        {"word": [f"w{k}" for k in word], "x": rng.normal(size=n + m), "y": rng.normal(size=n + m) + word % 3}
    )
    share = np.where(np.arange(n + m) < n, gaps, gaps if gaps_of_second is None else gaps_of_second)
    table = table.mask(rng.random(table.shape) < share[:, None])
    return table[:n], table[n:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "gaps", "words", "more"),
    [
        (40, 40, (0.3, 0.3), 50, {}),
        (30, 60, (0.3, 0.3), 5, {"compare_missing": False}),
        (60, 40, (0.1, 0.5), 5, {"compare_missing": False}),
    ],
)
def test_the_level_is_exact(n, m, gaps, words, more):
    found = []
    for run in range(400):
        X, Y = draw_null(np.random.default_rng([run, n]), n, m, gaps[0], words, gaps[1])
        found.append(two_sample_test(X, Y, n_resamples=39, centers=30, n_jobs=1, random_state=run, **more).pvalue)
    assert binomtest(int((np.array(found) <= 0.1 + 1e-9).sum()), 400, 0.1).pvalue > 0.001


def patients(rng, count, effect=1.0):
    """Rows of patients whose own level differs more than their rows do."""
    size = rng.integers(1, 8, count)
    name = np.repeat(np.arange(count), size)
    return rng.normal(size=(len(name), 2)) * 0.3 + effect * rng.normal(size=(count, 2))[name], name


def test_groups_are_permuted_as_blocks():
    rejected = {"rows": 0, "groups": 0}
    for run in range(40):
        rng = np.random.default_rng([run, 7])
        (X, a), (Y, b) = patients(rng, 12), patients(rng, 14)
        few = FEW | {"n_resamples": 39, "centers": 30, "random_state": run}
        rejected["rows"] += two_sample_test(X, Y, **few).pvalue <= 0.05
        rejected["groups"] += two_sample_test(X, Y, groups=(a, b + 100), **few).pvalue <= 0.05
    assert rejected["rows"] > 20
    assert binomtest(rejected["groups"], 40, 0.05).pvalue > 0.001


def test_two_parts_of_a_group_take_each_others_place():
    """Differences between patients hide nothing if each patient is in both samples."""
    rng = np.random.default_rng(0)
    level = 10.0 * rng.normal(size=(20, 1))
    name = np.repeat(np.arange(20), 4)
    X, Y = level[name] + rng.normal(size=(80, 1)), level[name] + rng.normal(size=(80, 1)) + 1.5
    assert two_sample_test(X, Y, **FEW).pvalue > 0.05
    assert two_sample_test(X, Y, groups=(name, name), **FEW).pvalue <= 0.05


@pytest.mark.parametrize(("before", "after", "apart"), [(5, 1, 0), (5, 1, 100), (3, 2, 0)])
def test_groups_of_unlike_sizes_keep_the_level(before, after, apart):
    """Means of five rows vary less than single rows: swapped as they are, they rejected in 78 % of such pairs."""
    rejected = 0
    for run in range(80):
        rng = np.random.default_rng([run, before, after])
        level, (one, two) = (
            2.0 * rng.normal(size=(224, 2)),
            (np.repeat(np.arange(12), size) for size in (before, after)),
        )
        X, Y = level[one] + rng.normal(size=(12 * before, 2)), level[two + apart] + rng.normal(size=(12 * after, 2))
        few = FEW | {"n_resamples": 39, "centers": 30, "random_state": run}
        rejected += two_sample_test(X, Y, groups=(one, two + apart), **few).pvalue <= 0.05
    assert binomtest(rejected, 80, 0.05, "greater").pvalue > 0.001


def test_rows_that_groups_leave_out_are_told_and_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    one, two = np.repeat(np.arange(8), 3), np.repeat(np.arange(8), 2)
    X, Y, order = rng.normal(size=(24, 2)), rng.normal(size=(16, 2)), rng.permutation(24)
    result = two_sample_test(X, Y, groups=(one, two), **FEW)
    assert any("the test uses 32 of 40 rows, drawn at random" in sentence for sentence in result.to_dict()["summary"])
    assert two_sample_test(X[order], Y, groups=(one[order], two), **FEW).statistic == pytest.approx(result.statistic)


def test_groups_fold_the_classifier():
    """A classifier that has seen rows of a patient recognises the others; folds that divide no patient prevent that."""
    rng = np.random.default_rng(1)
    (X, a), (Y, b) = patients(rng, 12, 10.0), patients(rng, 12, 10.0)
    assert two_sample_test(X, Y, **FEW).separation().low > 0.7
    found = two_sample_test(X, Y, groups=(a, b + 100), **FEW).separation()
    assert found.low < 0.5 < 0.9 > found.accuracy


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (([0] * 9, [1] * 8), "2 groups of X and Y can be assigned to the samples in 2 ways only"),
        (([0] * 9, [0] * 8), "in 2 ways only, so no p-value can be below 0.5"),
        (3, "expected two arrays"),
    ],
)
def test_groups_that_cannot_be_used(groups, message):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=message):
        two_sample_test(rng.normal(size=(9, 1)), rng.normal(size=(8, 1)), groups=groups, **FEW)


def test_few_groups_give_a_warning_and_gaps_must_be_compared_with_groups():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 9, 1))
    groups = np.repeat([0, 1], [4, 5]), np.repeat([2, 3], [4, 5])
    with pytest.warns(
        DataWarning,
        match=r"groups can be assigned to the samples in 6 ways only, so no p-value can be much below 0\.33",
    ):
        two_sample_test(X, Y, groups=groups, **FEW)
    with pytest.raises(InputError, match="exclude each other"):
        two_sample_test(X, Y, groups=groups, compare_missing=False, **FEW)


def test_tables_that_are_hardly_there():
    X, Y = people(20), people(15, 1)
    for frame in (X, Y):
        frame["empty"], frame["constant"] = np.nan, "same"
    with pytest.warns(DataWarning, match="'empty'"):
        result = two_sample_test(X, Y, **FEW)
    assert result.names == ["age", "colour", "day", "member"]
    X = X.astype(object)
    X.loc[3] = None
    with pytest.warns(DataWarning):
        assert two_sample_test(X, Y, **FEW).pvalue > 0.01
    with pytest.raises(InputError, match=r"use separation\(\)"):
        result.confidence_interval()
    with pytest.raises(InputError, match="Y lacks 'day'; give the columns"):
        two_sample_test(X, Y.drop(columns="day"), **FEW)
    assert result.plot().axes


def parcels(n, seed, in_one=0.0, in_all=0.0):
    rng = np.random.default_rng(seed)
    country = rng.choice(["AT", "DE", "CH", "FR"], n)
    days = rng.normal(size=n) + 3.0 * (country == "FR") + in_all + in_one * (country == "AT")
    return pandas.DataFrame({"country": country, "days": days, "x": rng.normal(size=n)})


def test_the_group_of_rows_in_which_a_column_changed_is_named():
    """And none where all rows changed alike, also if groups differ from each other."""
    found = two_sample_test(parcels(300, 0), parcels(300, 1, in_one=1.5), **FEW)
    (group,) = found.changed_groups
    assert (group.column, group.group, group.change, group.elsewhere) == ("days", "country AT", "higher", False)
    assert group.after - group.before == pytest.approx(1.5, abs=0.4)
    assert any(
        words.startswith("days is higher in rows with country AT (median ") for words in found.to_dict()["summary"]
    )
    swapped = two_sample_test(parcels(300, 1, in_one=1.5), parcels(300, 0), **FEW).changed_groups[0]
    assert (swapped.group, swapped.pvalue, swapped.before) == (group.group, group.pvalue, group.after)
    assert swapped.change == "lower"
    named = sum(
        bool(two_sample_test(parcels(200, [run, 0]), parcels(200, [run, 1], in_all=1.0), **FEW).changed_groups)
        for run in range(5)
    )
    assert binomtest(named, 5, 0.05, "greater").pvalue > 0.001


def changed(table, change):
    """Return a table of parcels with one change: spread or two countries, most countries, rows with large x, one word."""
    here = {
        "spread": table.country == "AT",
        "two": table.country.isin(["AT", "CH"]),
        "most": table.country != "AT",
        "large": table.x > 0.8,
        "factor": table.country != "none",
    }[change]
    factor = {"spread": 3.0, "factor": 2.0}.get(change, 1.0)
    return table.assign(days=table.days * np.where(here, factor, 1.0) + 2.0 * (here & (factor == 1.0)))


@pytest.mark.parametrize(
    ("change", "group", "words"),
    [
        ("spread", "country AT", "more spread"),
        ("two", "country AT or CH", "higher"),
        ("most", "country other than AT", "higher"),
        ("large", "x above", "higher"),
    ],
)
def test_groups_of_other_kinds(change, group, words):
    first, second = parcels(500, [5, 0]), changed(parcels(500, [5, 1]), change)
    found = two_sample_test(first, second, **FEW).changed_groups[0]
    assert (found.column, found.change) == ("days", words)
    assert found.group.startswith(group)
    if change == "spread":
        assert found.after > 2.0 * found.before


def test_a_factor_in_all_rows_and_a_group_that_grew_are_no_change_of_a_group():
    first, later = parcels(400, [6, 0]), parcels(400, [6, 1])
    first["days"], later["days"] = np.exp(first.days / 3.0), 2.0 * np.exp(later.days / 3.0)
    assert two_sample_test(first, later, **FEW).changed_groups == []
    more = pandas.concat([parcels(400, [9, 2]), parcels(400, [9, 3])])
    more = more[(more.country == "FR") | (np.arange(800) % 2 == 0)]
    result = two_sample_test(parcels(400, [9, 4]), more, **FEW)
    assert result.pvalue < 0.05
    assert result.changed_groups == []


def test_a_column_that_is_known_in_most_rows_tells_groups():
    first, second = parcels(500, [5, 0]), changed(parcels(500, [5, 1]), "large")
    for seed, table in enumerate((first, second)):
        table.loc[np.random.default_rng(seed).random(500) < 0.2, "days"] = np.nan
    group = two_sample_test(first, second, **FEW).changed_groups[0]
    assert group.column == "days"
    assert group.group.startswith("x above")


def test_telling_rows_have_the_lines_of_files():
    found = two_sample_test(parcels(60, [3, 0]), parcels(60, [3, 1], in_all=2.0), **FEW)
    told = replace(found, lines=(np.arange(2, 62), np.arange(102, 162))).telling_rows()
    rows = found.telling_rows()
    first = np.array(rows["sample"]) == "X"
    assert told["line"] == (np.array(rows["row"]) + np.where(first, 2, 102)).tolist()


def test_groups_are_found_in_many_rows_and_not_where_nothing_differs():
    first, second = parcels(9000, [7, 0]), parcels(9000, [7, 1], in_one=0.5)
    (group,) = two_sample_test(first, second, **FEW).changed_groups
    assert (group.column, group.group) == ("days", "country AT")
    assert two_sample_test(first[:200], parcels(200, [7, 2]), **FEW).changed_groups == []


def fares(n, seed, bus=1.0, wait=5.0):
    rng = np.random.default_rng(seed)
    mode = rng.choice(["bus", "car", "plane", "train"], n)
    level, spread = (np.array([words[each] for each in mode]) for words in (LEVELS, SPREADS))
    cost = level * np.exp(spread * rng.normal(size=n)) * np.where(mode == "bus", bus, 1.0)
    return pandas.DataFrame(
        {"mode": mode, "cost": cost, "wait": np.where(mode == "car", 0.0, wait + rng.normal(size=n))}
    )


LEVELS = {"bus": 33.0, "car": 20.0, "plane": 85.0, "train": 50.0}
SPREADS = {"bus": 0.3, "car": 0.6, "plane": 0.3, "train": 0.5}


def test_levels_of_groups_do_not_hide_a_change_in_one_of_them():
    """Bus fares that rose by three tenths were not seen beside fares of planes that are three times as high and as far apart."""
    shown = []
    for run in range(8):
        found = two_sample_test(fares(400, [run, 0]), fares(440, [run, 1], bus=1.3), **FEW).in_groups("mode").found
        shown.append(found[0].column == "cost" and found[0].group == "mode bus" and found[0].pvalue <= 0.05)
    assert sum(shown) >= 5


def test_a_small_change_in_one_group_is_shown_by_all_rows_of_it():
    """Only 2,000 rows of each sample were looked at, whatever they had: more rows showed no more."""
    for run in range(2):
        first, second = fares(12_000, [run, 0, 9]), fares(9_000, [run, 1, 9], bus=1.06)
        found = two_sample_test(first, second, **FEW).in_groups("mode").found
        assert found[0].column == "cost"
        assert "bus" in found[0].group
        assert found[0].pvalue <= 0.02
        assert all(each.pvalue > 0.05 for each in found[1:])


def test_a_group_below_all_others_does_not_hide_its_change():
    """Ranks among all rows say nothing of a group that stays the lowest one."""
    shown = []
    for run in range(4):
        first, second = (fares(300, [run, side, 5]) for side in (0, 1))
        for table, factor in ((first, 1.0), (second, 1.7)):
            car = table["mode"] == "car"
            table.loc[car, "cost"] = 10.0 * factor * (table.loc[car, "cost"] / 20.0) ** 0.5
        found = two_sample_test(first, second, **FEW).in_groups("mode").found
        shown.append((found[0].column, found[0].group) == ("cost", "mode car") and found[0].pvalue <= 0.05)
    assert sum(shown) >= 3


@pytest.mark.parametrize("change", [lambda cost: 1.4 * cost, lambda cost: cost + 12.0, lambda cost: 1.2 * cost + 5.0])
def test_a_change_that_is_alike_in_all_groups_is_of_none(change):
    found = []
    for run in range(4):
        first, second = fares(300, [run, 0]), fares(300, [run, 1])
        second["cost"] = change(second["cost"])
        groups = two_sample_test(first, second, **FEW).in_groups("mode").found
        found += [each for each in groups if each.column == "cost" and each.pvalue <= 0.05]
    assert len(found) <= 1


def test_a_column_that_is_one_value_in_a_group_warns_of_nothing(recwarn):
    found = two_sample_test(fares(200, [1, 2]), fares(200, [1, 3]), **FEW).in_groups("mode")
    assert all(each.pvalue > 0.05 for each in found.found)
    assert not recwarn.list


def test_the_test_of_all_columns_does_not_contradict_the_answer():
    first, second = fares(400, [2, 0]), fares(400, [2, 1], bus=1.2)
    for table in (first, second):
        for j in range(6):
            table[f"x{j}"] = np.random.default_rng([len(table), j, int(table is first)]).normal(size=len(table))
    found = two_sample_test(first, second, **FEW)
    assert found.pvalue > 0.05
    said = replace(found, asked=found.shifts("cost", by="mode")).to_dict()["summary"]
    assert any("does not take back the answer above" in words for words in said)
    assert not any("No difference between the two samples" in words for words in said)
