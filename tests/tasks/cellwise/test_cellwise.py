"""Wrong cells are found by the others of their rows and by rules, and repaired."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isopleth import AnomalyDetector, CellwiseDetector, InputError, read_table
from isopleth.results.result import ShownCells
from isopleth.tables.rules import Words, find_rules, rules_of_json, rules_to_json
from isopleth.tasks.cellwise import model as module
from isopleth.tasks.cellwise.result import CellFindings

PRICES = {"Stuhl": 49.9, "Tisch": 400.0, "Lampe": 25.5, "Regal": 89.0}
KINDS = {"Stuhl": "Sitz", "Tisch": "Tische", "Lampe": "Licht", "Regal": "Lager"}


def orders(n=600, seed=0):
    """Orders in which a rare article has a price of its own."""
    rng = np.random.default_rng(seed)
    article = rng.choice(list(PRICES), n, p=[0.4, 0.03, 0.3, 0.27])
    price = np.round([PRICES[a] * rng.choice([0.95, 1.0, 1.05]) for a in article], 2)
    count, discount = rng.integers(1, 9, n), rng.choice([0.0, 0.05, 0.1, 0.15], n)
    kind = pd.Series([KINDS[a] for a in article], dtype=object)
    total = np.round(count * price * (1.0 - discount), 2)
    columns = {"article": article.astype(object), "kind": kind, "count": count, "price": price}
    return pd.DataFrame({**columns, "discount": discount, "total": total})


def wrong_orders():
    """Orders with wrong cells, the right ones, and rows and columns of the wrong ones."""
    table = orders()
    right = table.copy()
    table.loc[5, "total"] *= 10.0
    table.loc[9, "kind"] = "Licht" if right["kind"][9] != "Licht" else "Sitz"
    table.loc[50, "article"] = "Stuhll"
    table.loc[77, "total"] = -table.loc[77, "total"]
    table.loc[99, "price"] = 400.0 if right["price"][99] < 300.0 else 49.9
    return right, table, [(5, "total"), (9, "kind"), (50, "article"), (77, "total"), (99, "price")]


@pytest.fixture(scope="module")
def judged():
    right, table, wrong = wrong_orders()
    return right, table, wrong, CellwiseDetector(random_state=0).fit(table)


def test_wrong_cells_are_named_and_ordinary_rare_rows_are_not(judged):
    _, table, wrong, detector = judged
    found = detector.cells()
    named = [(int(i), found.names[found.worst[i]]) for i in found.order[: len(wrong)]]
    assert sorted(named) == sorted(wrong)
    assert {(int(i), found.names[j]) for i, j in zip(*np.nonzero(found.flagged), strict=True)} == set(wrong)
    rare = set(np.flatnonzero(table["article"] == "Tisch").tolist())
    # The detector of unusual rows answers another question: it puts the rare article first.
    unusual = AnomalyDetector(n_estimators=20, random_state=0).fit(table).training_scores_.argsort()[:30]
    assert len(set(unusual.tolist()) & rare) >= 10


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_a_table_of_complete_numbers_is_repaired(library):
    rng = np.random.default_rng(0)
    x = rng.uniform(10.0, 20.0, size=400)
    rows = np.column_stack([x, 2.0 * x + 0.1 * rng.normal(size=400)])
    rows[7, 1] *= 10.0
    right = pd.DataFrame(rows, columns=["a", "b"])
    table = {"pandas": lambda: right, "polars": lambda: pl.from_pandas(right), "pyarrow": lambda: pa.table(right)}
    given = rows if library == "numpy" else table[library]()
    repaired = CellwiseDetector(random_state=0).fit(given).repaired(given)
    assert type(repaired) is type(given)
    cells = np.asarray(repaired.to_pandas() if library == "pyarrow" else repaired)
    assert abs(cells[7, 1] - 2.0 * cells[7, 0]) < 0.5
    assert (cells != rows).sum() <= 4


def test_flagged_cells_are_repaired_exactly_where_a_rule_tells(judged):
    right, table, wrong, detector = judged
    repaired = detector.repaired(table)
    changed = (repaired != table).to_numpy()
    certain = set(wrong) - {(50, "article")}  # Stuhll looks like Stuhl, and kind and price of the row say Regal
    assert {(int(i), table.columns[j]) for i, j in zip(*np.nonzero(changed), strict=True)} == certain
    for row, column in [(5, "total"), (77, "total"), (9, "kind")]:
        assert repaired[column][row] == right[column][row]
    assert abs(repaired["price"][99] - right["price"][99]) < 0.02  # its total is rounded
    assert repaired.dtypes.equals(table.dtypes)
    assert table["article"][50] == "Stuhll"  # the given table stays


def test_relations_are_named_with_the_rows_that_break_them(judged):
    *_, detector = judged
    said = "\n".join(detector.cells().to_dict()["summary"])
    assert "total = count x price x (1 - discount) in 597 of 600 rows; not in rows 5, 77, 99." in said
    assert "article -> kind in 598 of the 599 rows whose article stands in several rows; not in row 9." in said
    assert "total >= 0 in 599 of 600 rows; not in row 77." in said
    against = detector.cells().table().set_index("row")["against"]
    assert against[5] == "total is 10 times too large; not total = count x price x (1 - discount)"


def test_rules_are_read_again_and_judge_another_table(judged):
    *_, detector = judged
    rules = rules_of_json(rules_to_json(detector.rules_), "rules.json")
    assert [str(rule) for rule in rules] == [str(found.rule) for found in detector.rules_]
    other = orders(200, 1)
    other.loc[3, "total"] += 1.0
    later = CellwiseDetector(random_state=0, n_estimators=10).fit(other).use_rules(rules)
    broken = {str(found.rule): found.broken.tolist() for found in later.cells(other).rules}
    assert broken["total = count x price x (1 - discount)"] == [3]
    with pytest.raises(InputError, match=r"no rules that can be read.*isopleth cells --rules"):
        rules_of_json("{}", "rules.json")
    with pytest.raises(InputError, match="which the table does not have"):
        CellwiseDetector(n_estimators=2).fit(other[["count", "discount"]]).use_rules(rules)


def test_copies_and_the_order_of_rows_and_columns_change_nothing(judged):
    _, table, _, detector = judged
    order = np.random.default_rng(1).permutation(len(table))
    moved = CellwiseDetector(random_state=0).fit(table.iloc[order, ::-1])
    np.testing.assert_allclose(moved.cell_scores_[:, ::-1], detector.cell_scores_[order], rtol=1e-9, atol=1e-9)
    copies = pd.concat([table, table.iloc[[5, 5, 5, 5]]], ignore_index=True)
    assert CellwiseDetector(random_state=0, n_estimators=20).fit(copies).row_scores_[5] > 7.0


def test_gaps_are_not_judged_and_new_rows_are():
    table = orders(300)
    table.loc[::7, "price"] = np.nan
    table.loc[::11, "kind"] = None
    detector = CellwiseDetector(random_state=0, n_estimators=20).fit(table)
    np.testing.assert_array_equal(np.isnan(detector.cell_scores_), table.isna().to_numpy())
    new = orders(20, 3)
    new.loc[4, "kind"] = "never seen"
    new.loc[6, "total"] = 1e9
    with pytest.warns(UserWarning, match="words that were not among the training rows"):
        scores = detector.score_cells(new)
    assert scores.argmax(axis=1)[4] == table.columns.get_loc("kind")
    assert sorted(np.argsort(-scores.max(axis=1))[:2].tolist()) == [4, 6]


def test_cells_that_cannot_be_read_come_first():
    table = orders(200).astype({"price": object, "total": object})
    table.loc[[3, 8], "price"] = ["1xx19", "n.v.t"]
    table.loc[50:57, "total"] = "empty"  # a word that stands for missing cells
    with pytest.warns(UserWarning, match="1xx19"):
        found = CellwiseDetector(random_state=0, n_estimators=5).fit(table).cells()
    first = found.table().head(2)
    assert first["row"].tolist() == [3, 8]
    assert first["value"].tolist() == ["1xx19", "n.v.t"]
    assert first["against"].tolist() == ["cannot be read, and total = count x price x (1 - discount)", "cannot be read"]
    assert not {*range(50, 58)} & set(found.table()["row"][found.table()["against"] == "cannot be read"])


@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_a_clean_table_has_hardly_any_flag(kind):
    rng, flags = np.random.default_rng(5), 0
    for seed in range(3):
        z = rng.normal(size=(300, 2))
        X = pd.DataFrame(z @ rng.normal(size=(2, 5)) + 0.5 * rng.standard_t(4, size=(300, 5)))
        if kind == "words":
            X = X.apply(lambda column: pd.cut(column, 4, labels=list("abcd")).astype(str))
        flags += CellwiseDetector(random_state=seed, n_estimators=30).fit(X).cells().flagged.any(axis=1).sum()
    assert flags <= 9  # of 900 rows


def test_p_values_of_rows_are_valid_and_hardly_any_right_row_is_selected(judged):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 1)) @ np.ones((1, 4)) + 0.2 * rng.normal(size=(400, 4))
    detector = CellwiseDetector(random_state=0, n_estimators=20).fit(X)
    assert (detector.p_values_ <= 0.05).mean() <= 0.08
    assert detector.select(fdr=0.1).sum() <= 4
    _, _, wrong, other = judged
    selected = set(np.flatnonzero(other.select(fdr=0.1)).tolist())
    assert selected >= {row for row, _ in wrong}
    assert len(selected) <= len(wrong) + 2  # rows of the rare article


def groups(n=600, k=8, seed=1):
    """Articles with prices of their own, without a relation of columns, and rows whose price is that of another article."""
    rng = np.random.default_rng(seed)
    base, item = np.exp(rng.uniform(np.log(5.0), np.log(800.0), k)), rng.choice(k, n)
    price = np.round(base[item] * np.exp(0.05 * rng.normal(size=n)), 2)
    table = pd.DataFrame({"item": [f"item {i}" for i in item], "price": price, "count": rng.integers(1, 9, n)})
    table["shop"] = rng.choice(list("NSEW"), n)
    wrong = []
    for i in rng.permutation(n)[:12]:
        other = float(rng.choice(price[item != item[i]]))
        if abs(np.log(other / price[i])) > 0.5 and len(wrong) < 5:
            table.loc[i, "price"] = other
            wrong.append(int(i))
    return table, wrong


def test_the_value_of_another_group_is_wrong_without_a_rule():
    table, wrong = groups()
    detector = CellwiseDetector(random_state=0).fit(table)
    found = detector.cells()
    assert not [each for each in found.rules if len(each.rule.columns) > 1]
    flagged = np.flatnonzero(found.flagged.any(axis=1))
    assert len(set(flagged.tolist()) & set(wrong)) >= 4  # of 5
    assert len(flagged) <= len(wrong) + 2
    assert {found.names[j] for j in found.worst[wrong]} <= {"price", "item"}  # either is wrong beside the other
    # By the values of the column alone none of them is unusual.
    low, high = np.quantile(table["price"], [0.01, 0.99])
    assert table["price"][wrong].between(low, high).all()


def test_a_wrong_part_is_found_though_its_result_agrees_with_it():
    table = orders()
    i = int(np.flatnonzero(table["article"] == "Lampe")[3])
    table.loc[i, "price"] = 89.0  # of another article
    table.loc[i, "total"] = round(table["count"][i] * 89.0 * (1.0 - table["discount"][i]), 2)
    found = CellwiseDetector(random_state=0, n_estimators=30).fit(table).cells()
    assert found.flagged[i].any()
    assert found.names[found.worst[i]] in ("price", "article", "kind")


def test_rare_words_are_wrong_only_where_they_come_from_another_word_or_column():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"fuel": rng.choice(["diesel", "petrol"], 400), "body": rng.choice(["sedan", "estate"], 400)})
    table["x"] = rng.normal(size=400)
    table.loc[5, "fuel"], table.loc[9, "fuel"], table.loc[20, "body"] = "dieseel", "hydrogen", "petrol"
    found = CellwiseDetector(random_state=0, n_estimators=20).fit(table).cells()
    flagged = {(int(i), found.names[j]) for i, j in zip(*np.nonzero(found.flagged), strict=True)}
    assert flagged == {(5, "fuel"), (20, "body")}


def regions(wrong, n=800):
    """Regions, grades and sales that the region tells in part; `wrong`: words to plant and what they stand for."""
    rng = np.random.default_rng(4)
    region, grade = rng.choice(["north", "south", "east"], n, p=[0.45, 0.3, 0.25]), rng.choice(["A", "B", "C"], n)
    sales = rng.poisson([{"north": 5, "south": 9, "east": 3}[word] for word in region])
    right = pd.DataFrame({"region": region.astype(object), "grade": grade.astype(object), "sales": sales})
    table = right.copy()
    free = set(range(n))  # one wrong cell a row
    for column, words in wrong.items():
        for word, meant in words.items():
            row = min(i for i in free if right[column][i] == meant)
            table.loc[row, column] = word
            free.remove(row)
    return right, table


def test_dates_that_are_swapped_are_flagged_by_the_order_that_other_rows_keep():
    rng, swapped = np.random.default_rng(0), [3, 50, 201]
    ordered = np.datetime64("2024-01-01") + rng.integers(0, 300, 400)
    delivered = ordered + 1 + rng.poisson(3, 400)
    ordered[swapped], delivered[swapped] = delivered[swapped], ordered[swapped]
    times = {"ordered": pd.to_datetime(ordered), "delivered": pd.to_datetime(delivered)}
    table = pd.DataFrame(times | {"amount": np.exp(rng.normal(4.0, 0.6, 400)).round(2)})
    found = CellwiseDetector(random_state=0).fit(table).cells()
    assert {str(each.rule): each.broken.tolist() for each in found.rules}["delivered >= ordered"] == swapped
    assert found.flagged[swapped][:, :2].any(axis=1).all()
    assert found.repairs == {}  # which of the two is wrong is open
    assert any("delivered >= ordered in 397 of 400 rows" in sentence for sentence in found.to_dict()["summary"])


@pytest.mark.parametrize("code", [False, True])
def test_a_spelling_is_not_certain_where_the_row_speaks_for_another_word(code):
    """In the row of a lamp, by price or article number, chiar was written as chair with certainty."""
    rng = np.random.default_rng(0)
    item = rng.choice(["chair", "lamp", "table"], 200)
    price = pd.Series(item).map({"chair": 80.0, "lamp": 30.0, "table": 200.0}) + rng.normal(0.0, 2.0, 200)
    table = pd.DataFrame({"item": item, "price": price.round(2), "stock": rng.integers(1, 50, 200)})
    if code:
        table["article"] = table["item"].map({"chair": "C1", "lamp": "L7", "table": "T3"})
    lamp, chair = (int(np.flatnonzero(item == word)[5]) for word in ("lamp", "chair"))
    table.loc[[lamp, chair], "item"] = "chiar"
    found = CellwiseDetector(random_state=0).fit(table).cells()
    assert found.flagged[[lamp, chair], 0].all()
    assert found.repairs == {(chair, 0): "looks like 'chair'"}


def test_misspelt_words_are_flagged_and_repaired_to_the_word_that_they_are_a_form_of():
    south = dict.fromkeys(["South", "soth", "souuth", "sputh", "suoth", "SOUTH"], "south")
    others = {"North": "north", "nroth": "north", "NORTH": "north", "eats": "east", "est": "east", "East": "east"}
    right, table = regions({"region": south | others, "grade": {"b": "B", "c": "C"}})
    detector = CellwiseDetector(random_state=0, n_estimators=20).fit(table)
    found, repaired = detector.cells(), detector.repaired(table)
    planted = (table != right).to_numpy()
    assert planted.sum() == 14
    assert found.flagged[planted].all()
    pd.testing.assert_frame_equal(repaired[["region", "grade"]], right[["region", "grade"]])
    said = found.table().set_index("value")
    for word, meant in (south | others | {"b": "B"}).items():
        assert said["usual"][word] == meant
        assert said["against"][word].startswith(f"looks like {meant!r}")


def test_a_word_between_two_others_is_repaired_to_the_likelier_one():
    rng = np.random.default_rng(5)
    word = rng.choice(["cat", "car"], 300)
    table = pd.DataFrame({"word": word.astype(object), "x": np.where(word == "cat", 5.0, -5.0) + rng.normal(size=300)})
    at = [int(np.flatnonzero(word == each)[0]) for each in ("cat", "car")]
    table.loc[at, "word"] = ["cab", "caq"]
    repaired = CellwiseDetector(random_state=0, n_estimators=20).fit(table).repaired(table)
    assert repaired["word"][at].tolist() == ["cat", "car"]


def test_codes_and_case_that_says_something_are_no_wrong_forms():
    rng = np.random.default_rng(6)
    code = rng.choice(["A1", "A2", "B1"], 400, p=[0.7, 0.28, 0.02])
    gene = rng.choice(["AA", "Aa", "aa"], 400, p=[0.8, 0.18, 0.02])
    table = pd.DataFrame({"code": code.astype(object), "gene": gene.astype(object), "x": rng.normal(size=400)})
    table.loc[7, "code"] = "A3"
    found = CellwiseDetector(random_state=0, n_estimators=20).fit(table).cells()
    assert not found.flagged[:, :2].any()
    assert not any("looks like" in reason for reason in found.against)


def people(n=200):
    """Names, cities, ages, incomes and memberships."""
    rng = np.random.default_rng(0)
    columns = {
        "city": rng.choice(["Berlin", "Paris", "Rome"], n).tolist(),
        "age": rng.integers(18, 80, n).tolist(),
        "income": (rng.gamma(4.0, 120.0, n).astype(int) * 100).tolist(),
        "member": rng.choice(["yes", "no"], n).tolist(),
        "visits": rng.integers(1, 60, n).astype(float).tolist(),
    }
    return pd.DataFrame(columns, dtype=object)


@pytest.mark.filterwarnings("ignore")
def test_rows_whose_cells_stand_one_column_too_far_are_told_as_shifted(tmp_path):
    table = people()
    right = table.loc[50].tolist()
    table.loc[50] = ["Jr.", *right[:-1]]  # as by a comma in a name
    right = table.loc[100].tolist()
    table.loc[100] = [*right[1:], None]
    table.loc[150, "age"] = "4o"  # a cell that cannot be read is no shift
    table.to_csv(tmp_path / "people.csv", index=False)
    frame = read_table(tmp_path / "people.csv", warn=False).frame
    found = CellwiseDetector(random_state=0, n_estimators=10).fit(frame).cells()
    assert {row: (shift.column, shift.to) for row, shift in found.shifts.items()} == {
        50: ("age", "left"),
        100: ("city", "right"),
    }
    against = dict(zip(*(found.columns_of_rows()[name].tolist() for name in ("row", "against")), strict=True))
    assert against[50] == "shifted: from age on the cells fit one column to the left"
    assert against[150] == "cannot be read"
    assert found.to_dict()["shifted"][1] == {"place": 100, "from": "city", "to": "right"}
    assert CellwiseDetector(random_state=0, n_estimators=5).fit(people()).cells().shifts == {}


@pytest.mark.filterwarnings("ignore")
def test_cells_of_a_large_table_are_shown_when_they_are_asked_for_and_are_the_same(monkeypatch):
    table = people().infer_objects()
    table.loc[7, "age"] = 4000.0
    model = CellwiseDetector(random_state=0, n_estimators=5).fit(table)
    small = model.cells()
    monkeypatch.setattr(module, "_SHOWN_AT_ONCE", 0)
    large = model.cells()
    assert isinstance(large.values, ShownCells)
    assert large.to_dict() == small.to_dict()
    assert large.shifts == small.shifts
    for name, column in small.columns_of_rows().items():
        assert large.columns_of_rows()[name].tolist() == column.tolist()


@pytest.mark.filterwarnings("ignore")
def test_few_rows_of_a_result_are_made_without_the_others(monkeypatch):
    found = CellwiseDetector(random_state=0, n_estimators=5).fit(people().infer_objects()).cells()
    whole, made, of_rows = found.to_dict()["table"], [], CellFindings._of_rows
    monkeypatch.setattr(CellFindings, "_of_rows", lambda self, rows: made.append(len(rows)) or of_rows(self, rows))
    assert found.to_dict(3)["table"] == whole[:3]
    assert f"{len(found) - 10:,} more rows" in found._repr_html_()
    assert made == [3, 10]


@pytest.mark.parametrize(
    ("scores", "said"), [([9.0, 0.0], "1 cell in 1 row of 2 does"), ([9.0, 8.0], "2 cells in 2 rows of 2 do")]
)
def test_one_cell_does_and_several_do_not_fit(scores, said):
    nats, cells = np.array(scores)[:, None], np.zeros((2, 1))
    found = CellFindings(["x"], nats, np.full((2, 1), 5.0), nats, cells, cells, cells, cells)
    assert found.to_dict()["summary"][0] == f"{said} not fit the other cells of the row."


def test_a_row_that_repeats_an_earlier_one_is_named_where_rows_do_not_repeat_by_themselves():
    table = people().infer_objects()
    table["x"] = np.arange(200.0) % 97
    table = pd.concat([table, table.iloc[[30]]], ignore_index=True)
    found = CellwiseDetector(random_state=0, n_estimators=5).fit(table).cells()
    assert found.repeats == {200: 30}
    assert "1 row repeats an earlier one: row 200 (as 30)." in found.to_dict()["summary"]
    words = table[["city", "member"]]  # six kinds of rows, all of which repeat
    assert CellwiseDetector(random_state=0, n_estimators=5).fit(words.iloc[:200]).cells().repeats.keys() <= set(
        range(200)
    )


class TestRules:
    """Rules are found where nearly all rows keep them, and not by chance."""

    def test_sums_products_and_discounts(self):
        table = orders(300)
        cells = {name: table[name].to_numpy(float) for name in ("count", "price", "discount", "total")}
        cells["fee"] = np.round(3.0 * cells["count"] + np.arange(300.0) % 7, 2)
        cells["all"] = np.round(cells["total"] + cells["fee"], 2)
        found = {str(each.rule) for each in find_rules(cells) if each.rule.kind == "equation"}
        assert found == {"total = count x price x (1 - discount)", "all = total + fee"}

    def test_unrelated_columns_have_no_equation_and_constants_tell_nothing(self):
        rng = np.random.default_rng(4)
        cells = {name: rng.integers(0, 4, 400).astype(float) for name in "abcd"} | {"one": np.ones(400)}
        assert not [each for each in find_rules(cells) if len(each.rule.columns) > 1]

    def test_words_tell_words_only_where_they_do(self):
        rng = np.random.default_rng(5)
        first = rng.integers(0, 5, 500)
        told, free = first % 3, rng.integers(0, 3, 500)
        told[7] = (told[7] + 1) % 3
        names = tuple(f"w{i}" for i in range(5))
        cells = {"a": Words(names, first), "b": Words(names[:3], told), "c": Words(names[:3], free)}
        found = {str(each.rule): each.broken.tolist() for each in find_rules(cells)}
        assert found["a -> b"] == [7]
        assert not {"a -> c", "b -> c", "c -> a", "c -> b", "b -> a"} & set(found)


def test_tables_of_words_are_counted_though_few_of_their_rows_differ():
    rng = np.random.default_rng(1)
    article = rng.choice(["lamp", "bulb", "chair"], size=500, p=[0.4, 0.35, 0.25])
    kind = np.where(article == "chair", "furniture", "light").astype(object)
    table = pd.DataFrame({"article": article, "kind": kind, "region": rng.choice(["n", "s"], size=500)})
    wrong = [7, 90]
    table.loc[wrong, "kind"] = ["furniture" if word == "light" else "light" for word in kind[wrong]]
    detector = CellwiseDetector(n_estimators=30, random_state=0).fit(table)
    order = np.argsort(-detector.row_scores_)
    assert set(order[:2]) == set(wrong)
    assert (detector.row_scores_[wrong] > 3.0).all()  # nats
    assert detector.row_scores_[order[2]] < 1.0
