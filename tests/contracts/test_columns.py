"""Kinds of columns, and tables of every library as the same numbers."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pytest

from isopleth import SOSREP, AnomalyDetector, DataWarning, InputError
from isopleth.tables.cells import SourceTable
from isopleth.tables.schema import Schema, source_of

N = 40


def shop(n=N, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(["red", "blue", "green"])
    price = rng.lognormal(size=n)
    price[3] = np.nan
    colour = words[rng.integers(3, size=n)].astype(object)
    colour[5] = None
    return {
        "order_no": np.arange(1000, 1000 + n),
        "price": price,
        "colour": colour,
        "paid": rng.uniform(size=n) < 0.5,
        "bought": [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=17 * i) for i in range(n)],
        "comment": [f"the customer wrote line {i} of a long and winding text" for i in range(n)],
        "empty": [None] * n,
        "shop": ["north"] * n,
    }


def pandas_frame(data):
    return pd.DataFrame(data)


def polars_frame(data):
    return pytest.importorskip("polars").from_pandas(pd.DataFrame(data).assign(empty=None))


def arrow_table(data):
    return pytest.importorskip("pyarrow").Table.from_pandas(pd.DataFrame(data), preserve_index=False)


class Stream:
    """Nothing but the Arrow stream interface, as the results of some databases have."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


LIBRARIES = pytest.mark.parametrize(
    "make",
    [pandas_frame, polars_frame, arrow_table, lambda data: Stream(arrow_table(data))],
    ids=["pandas", "polars", "pyarrow", "stream"],
)


@LIBRARIES
def test_every_library_gives_the_same(make):
    data = shop()
    columns = Schema.of(make(data))
    assert [(c.name, c.kind) for c in columns.columns] == [
        ("price", "numeric"),
        ("colour", "categorical"),
        ("paid", "categorical"),
        ("bought", "time"),
    ]
    assert columns.left_out == {
        "order_no": "identifier",
        "comment": "free text",
        "empty": "no value",
        "shop": "one value only",
    }
    assert columns.summary(N) == (
        "40 rows: 1 number, 2 categories, 1 time; left out: order_no (identifier), comment (free text), empty (no value), "
        "shop (one value only)"
    )
    encoded = columns.encode(make(data))
    np.testing.assert_allclose(encoded.numeric[:, 0], data["price"])
    np.testing.assert_allclose(encoded.numeric[:, 1], 17 * 3600.0 * np.arange(N))
    assert columns.categorical_names == ["colour", "paid"]
    for j, name in enumerate(["colour", "paid"]):
        words = [None if code < 0 else columns.levels[j][code] for code in encoded.codes[:, j]]
        assert words == [None if cell is None else str(cell) for cell in data[name]]
    assert columns.sizes == (4, 2)  # truth values have no third word
    assert not encoded.unseen


@LIBRARIES
def test_columns_are_put_in_order_and_missing_ones_named(make):
    data = shop()
    columns = Schema.of(make(data))
    turned = dict(reversed(shop(seed=1).items()))
    plain, other = columns.encode(make(shop(seed=1))), columns.encode(make(turned | {"new": [1] * N}))
    np.testing.assert_array_equal(plain.numeric, other.numeric)
    np.testing.assert_array_equal(plain.codes, other.codes)
    assert other.extra == ["new"]
    with pytest.raises(InputError, match="X lacks column 'colour'"):
        columns.encode(make({name: cells for name, cells in data.items() if name != "colour"}))


def test_words_that_were_not_there_are_the_last_category_and_counted():
    columns = Schema.of(pd.DataFrame(shop()))
    new = pd.DataFrame(shop()).assign(colour=["pink", "red", None, " red "] * 10)
    encoded = columns.encode(new)
    assert encoded.unseen == {"colour": 10}
    red = columns.levels[0].index("red")
    assert encoded.codes[:4, 0].tolist() == [3, red, -1, red]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["12", "n/a", "-", "3.5"] * 5, "categorical"),  # text is text, also where it looks like numbers
        (["1", "2", "?", ""] * 5, "categorical"),
        ([12, "n/a", "-", 3.5] * 5, "numeric"),
        (["02116", "01002"] * 10, "categorical"),
        (["12", "small", "large", "7"] * 5, "categorical"),
        (["+", "-"] * 10, "categorical"),
        (["yes", "no", "NA", "null"] * 5, "categorical"),
        ([f"2024-01-{day:02d}" for day in range(1, 21)], "time"),
        ([0, 1] * 10, "numeric"),
        (pd.Categorical(["1", "2"] * 10), "categorical"),
        (pd.Series([1, None] * 10, dtype="Int64"), "numeric"),
        (pd.to_timedelta(np.arange(20) * 7 % 5, unit="s"), "numeric"),
        ([datetime.date(2024, 1, 1 + i % 9) for i in range(20)], "time"),
    ],
)
def test_kinds_of_single_columns(cells, kind):
    columns = Schema.of(pd.DataFrame({"x": cells}))
    assert [column.kind for column in columns.columns] == [kind]


def test_a_frame_has_missing_cells_of_its_own_so_that_words_are_words():
    columns = Schema.of(pd.DataFrame({"x": [12, "n/a", "-", 3.5] * 5, "y": ["a", "NA", "b", "?"] * 5}))
    encoded = columns.encode(pd.DataFrame({"x": ["1", "-"], "y": ["?", "b"]}))
    np.testing.assert_array_equal(encoded.numeric, [[1.0], [np.nan]])
    assert columns.levels == [("?", "NA", "a", "b")]
    assert encoded.codes.ravel().tolist() == [0, 3]
    among, words = map(str, columns.notes)
    assert among == "column 'x': '-', 'n/a' among numbers counts as missing."
    assert words == "column 'y' holds '?', 'NA', which are words there; leave missing cells empty (None)."


def test_words_that_the_user_names_are_missing_in_every_later_table():
    frame = pd.DataFrame({"y": ["a", "NA", "b", "?"] * 5})
    kept = Schema.of(frame, missing=["?"])
    assert (kept.levels, kept.notes) == ([("NA", "a", "b")], ())
    for schema in (kept, Schema.from_dict(json.loads(json.dumps(kept.to_dict())))):
        assert schema.encode(frame).codes.ravel().tolist()[:4] == [1, 0, 2, -1]


def test_text_of_a_frame_that_looks_like_numbers_is_words_with_a_note():
    for cells in (["1,234.50", "17.25"] * 6, [f"{i}.5" for i in range(12)]):
        columns = Schema.of(pd.DataFrame({"x": cells, "y": ["a", "b"] * 6}))
        assert "numeric" not in [column.kind for column in columns.columns]
        assert "'x' holds text that looks like numbers, such as" in str(columns.notes[0])
        assert columns.left_out.get("x") in (None, "text that looks like numbers")
        assert Schema.of(pd.DataFrame({"x": cells}), numeric=["x"]).columns[0].kind == "numeric"


@pytest.mark.parametrize(
    ("name", "cells", "left"),
    [
        ("customer_id", np.random.default_rng(0).permutation(10**6)[:30], True),
        ("customerId", np.random.default_rng(0).permutation(10**6)[:30], True),
        ("x", np.arange(30) + 5, True),
        ("x", np.random.default_rng(0).permutation(30), False),
        ("x", np.random.default_rng(0).permutation(120) + 5, True),
        ("rank", np.random.default_rng(0).permutation(120) + 1, False),
        ("x", np.cumsum(1 + np.arange(30) % 4), False),
        ("order_id", np.r_[np.random.default_rng(0).permutation(10**6)[:29], 7, 7][:30], True),
        (
            "order_id",
            np.r_[np.random.default_rng(0).permutation(10**6)[:29], np.random.default_rng(0).permutation(10**6)[:1]],
            True,
        ),
        ("token", [f"a{i % 29:05d}" for i in range(30)], True),
        ("year", np.arange(1990, 2020), False),
        ("amount", np.random.default_rng(0).permutation(10**6)[:30], False),
        ("x", np.arange(30) + 0.5, False),
        ("id", np.arange(30) // 2, False),
        ("token", [f"a{i:05d}" for i in range(30)], True),
        ("paid", [f"a{i % 7}" for i in range(30)], False),
        ("order", np.r_[1001:1041, 1040, 1041:1100], True),  # one number is there twice
        ("order", np.r_[1001:1041, 9999, 1042:1100], True),  # one is wrong
        ("order", pd.array([None, *range(1002, 1100)], dtype="Int64"), True),
        ("x", np.r_[np.random.default_rng(0).permutation(120) + 5, 5], True),
        ("visitors", np.random.default_rng(0).integers(100, 130, 120), False),
        ("Unnamed: 0", np.cumsum(1 + np.arange(30) % 4), True),  # holes in the labels of rows
        ("", np.random.default_rng(0).permutation(300)[:30], True),
        ("", np.arange(30) % 7, False),
    ],
)
def test_identifiers(name, cells, left):
    table = pd.DataFrame({name: cells, "z": np.random.default_rng(1).normal(size=len(cells))})
    columns = Schema.of(table)
    assert columns.left_out == ({name: "identifier"} if left else {})
    assert not Schema.of(table, keep_identifiers=True).left_out
    assert Schema.of(table, identifiers=[name]).left_out == {name: "identifier"}


def test_distinct_numbers_of_more_digits_than_float64_has_are_an_identifier():
    long = np.random.default_rng(0).integers(2**60, 2**61, 30)
    table = pd.DataFrame({"kunde": long, "z": np.arange(30) % 7})
    assert Schema.of(table).left_out == {"kunde": "identifier"}
    for names, options in ((["kunde", "z"], {"keep_identifiers": True}), (["stamp", "z"], {})):
        with pytest.raises(InputError, match=f"column '{names[0]}' holds {long[0]} in row 0, a whole number beyond"):
            Schema.of(table.set_axis(names, axis=1), **options)
    with pytest.raises(InputError, match="would round"):
        Schema.of(table.assign(kunde=2**60 + table["z"]))  # seven values


def test_long_words_that_repeat_are_categories_and_one_repeat_in_twenty_is_forgiven_an_identifier():
    sentences = [f"a customer of the shop number {i % 9} wrote this" for i in range(100)]
    for repeats, left_out in ((5, {"token": "identifier"}), (6, {})):
        tokens = [f"a{max(i, repeats):05d}" for i in range(100)]
        assert Schema.of(pd.DataFrame({"token": tokens, "said": sentences})).left_out == left_out


def test_cells_are_shown_as_the_table_has_them():
    table = pd.DataFrame(
        {"t": pd.to_datetime(["2024-01-31 12:30", None, "2024-02-01 00:00"] * 4), "w": ["x", None, "y"] * 4}
    )
    schema = Schema.of(table)
    shown = schema.shown(schema.encode(table).rows)
    assert shown[:2].tolist() == [[datetime.datetime(2024, 1, 31, 12, 30), "x"], [None, None]]


def test_an_identifier_alone_is_refused():
    with pytest.raises(InputError, match=r"no column is left to use: id \(identifier\)"):
        Schema.of(pd.DataFrame({"id": np.arange(30)}))


def test_what_is_said_of_columns_holds():
    table = pd.DataFrame(shop())
    columns = Schema.of(table, numeric=["order_no"], categorical=["price"], identifiers=["paid"])
    kinds = {column.name: column.kind for column in columns.columns}
    assert kinds["order_no"] == "numeric"
    assert kinds["price"] == "categorical"
    assert columns.left_out["paid"] == "identifier"
    with pytest.raises(
        InputError, match=r"no column 'prise' \(numeric\), perhaps 'price' is meant; those that are used are"
    ):
        Schema.of(table, numeric=["prise"])
    with pytest.raises(InputError, match=r"column 'colour' holds '\w+' in row 0"):
        Schema.of(table, numeric=["colour"])


def test_arrays_are_not_guessed_at():
    rows = np.column_stack([np.arange(30), np.arange(30) % 3])
    columns = Schema.of(rows)
    assert [(c.name, c.kind) for c in columns.columns] == [(0, "numeric"), (1, "numeric")]
    columns = Schema.of(rows, categorical=[1])
    encoded = columns.encode(rows[:4])
    assert [columns.levels[0][code] for code in encoded.codes[:, 0]] == ["0", "1", "2", "0"]
    with pytest.raises(InputError, match="name it in categorical"):
        Schema.of(np.array([["a", 1.0]] * 12, dtype=object))
    with pytest.raises(InputError, match="has 3 columns; expected 2"):
        columns.encode(np.zeros((2, 3)))


def test_declared_levels_that_do_not_occur_are_kept():
    pl = pytest.importorskip("polars")
    cells = pl.Series("x", ["a", "b"] * 6, dtype=pl.Enum(["c", "b", "a"]))
    assert Schema.of(cells.to_frame()).levels == [("a", "b", "c")]


def test_many_levels():
    words = [f"w{i % 10_000}" for i in range(20_000)]
    columns = Schema.of(pd.DataFrame({"x": words}))
    assert columns.sizes == (10_001,)
    assert len(np.unique(columns.encode(pd.DataFrame({"x": words})).codes)) == 10_000


def test_cells_that_cannot_be_read_are_named():
    columns = Schema.of(pd.DataFrame({"x": [1.5, 2.5] * 6, "t": pd.date_range("2024-01-01", periods=12)}))
    with pytest.raises(InputError, match="column 'x' holds 'many' in row 1"):
        columns.encode(pd.DataFrame({"x": ["1", "many"], "t": ["2024-01-01"] * 2}))
    with pytest.raises(InputError, match="column 't' holds 'soon' in row 0"):
        columns.encode(pd.DataFrame({"x": [1.0], "t": ["soon"]}))
    with pytest.raises(InputError, match="infinity in row 1"):
        columns.encode(pd.DataFrame({"x": [1.0, np.inf], "t": ["2024-01-01"] * 2}))
    with pytest.raises(InputError, match="no names"):
        columns.encode(np.zeros((2, 2)))
    with pytest.raises(InputError, match="lazy"):
        Schema.of(pytest.importorskip("polars").LazyFrame({"x": [1]}))
    with pytest.raises(InputError, match="named 'a'"):
        Schema.of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


TOKYO, UTC = datetime.timezone(datetime.timedelta(hours=9)), datetime.UTC


def hours(zone, n=20):
    start = datetime.datetime(2024, 1, 1, 9, tzinfo=TOKYO)
    moments = [start + datetime.timedelta(hours=30 * i) for i in range(n)]
    return [moment.astimezone(zone) if zone else moment.replace(tzinfo=None) for moment in moments]


@pytest.mark.parametrize(
    "cells", [list, lambda m: pd.Series(m), lambda m: [x.isoformat() for x in m]], ids=["objects", "pandas", "text"]
)
def test_instants_are_the_same_in_every_zone(cells):
    here, there = (pd.DataFrame({"t": cells(hours(zone))}) for zone in (TOKYO, UTC))
    columns = Schema.of(here)
    assert columns.columns[0].zone is not None
    np.testing.assert_array_equal(columns.encode(here).numeric, columns.encode(there).numeric)
    naive = pd.DataFrame({"t": cells(hours(None))})
    for first, second in ((here, naive), (naive, here)):
        with pytest.raises(InputError, match="time") as raised:
            Schema.of(first).encode(second)
        assert raised.value.column == "t"
        with pytest.raises(InputError, match="in one table") as raised:
            Schema.of(first, also=second)
        assert raised.value.column == "t"


@pytest.mark.parametrize(
    ("truth", "other"),
    [
        ([True, False] * 10, [1, 0] * 10),
        ([True, False] * 10, [1.0, 0.0] * 10),
        ([True, False] * 10, ["true", "FALSE"] * 10),
        (pd.Categorical([1, 2] * 10), [1.0, 2.0] * 10),
        (pd.Categorical(["1", "2"] * 10), [1, 2] * 10),
    ],
)
def test_the_same_values_of_other_types_are_the_same(truth, other):
    one, two = (pd.DataFrame({"x": cells, "y": ["a", "b"] * 10}) for cells in (truth, other))
    for fitted, new in ((one, two), (two, one)):
        columns = Schema.of(fitted)
        before, after = columns.encode(fitted), columns.encode(new)
        np.testing.assert_array_equal(before.codes, after.codes)
        np.testing.assert_array_equal(before.numeric, after.numeric)
        both = Schema.of(fitted, also=new)
        assert len(both.levels[0]) == 2
        np.testing.assert_array_equal(both.encode(fitted).codes, both.encode(new).codes)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([2**53 + 1, 2**53 + 2] * 6, dtype=np.uint64),
        [2**53 + 1, 5] * 6,
        [decimal.Decimal(2**60 + 1), decimal.Decimal(3)] * 6,
    ],
)
def test_numbers_that_floats_would_make_equal_are_refused(cells):
    with pytest.raises(InputError, match="would round") as raised:
        Schema.of(pd.DataFrame({"amount": cells, "z": ["a", "b"] * 6}))
    assert (raised.value.column, raised.value.row) == ("amount", 0)
    assert len(set(Schema.of(pd.DataFrame({"amount": cells}), categorical=["amount"]).levels[0])) == 2


def test_a_schema_can_be_shown_and_kept():
    columns = Schema.of(pd.DataFrame(shop()))
    assert str(columns).splitlines()[:2] == [
        "price: numeric",
        "colour: categorical (" + ", ".join(columns.levels[0]) + ")",
    ]
    assert Schema.from_dict(json.loads(json.dumps(columns.to_dict()))) == columns


def test_times_of_day_are_seconds_since_midnight():
    times = [datetime.time(1, 2, 3, 500_000), datetime.time(9, 30), datetime.time(23, 59)]
    columns = Schema.of(pd.DataFrame({"t": times * 7}))
    seconds = columns.encode(pd.DataFrame({"t": times})).numeric[:, 0] + columns.columns[0].origin
    assert seconds.tolist() == [3723.5, 9.5 * 3600, 86340.0]


def test_two_tables_decide_kinds_together():
    one = pd.DataFrame(
        {"size": [1, 2, 3] * 4, "kind": ["a", "b"] * 6, "when": pd.to_datetime(["2024-01-01"] * 12), "no": range(12)}
    )
    two = pd.DataFrame(
        {
            "size": [None] * 6 + ["large", "small"] * 3,
            "kind": ["c"] * 12,
            "when": pd.to_datetime([None] * 6 + ["2023-05-01"] * 6),
            "no": range(12),
        }
    )
    for first, second in ((one, two), (two, one)):
        found = Schema.of(first, also=second)
        kinds = {column.name: column for column in found.columns}
        assert found.left_out == {"no": "identifier"}
        assert set(kinds["size"].levels) == {"1", "2", "3", "large", "small"}
        assert set(kinds["kind"].levels) == {"a", "b", "c"}
        assert (kinds["when"].kind, kinds["when"].origin) == ("time", pd.Timestamp("2023-05-01").timestamp())
        assert first is one or found.encode(one).unseen == {}


def test_a_table_without_values_leaves_the_kind_to_the_other():
    one = pd.DataFrame({"size": [1.5, 2.5] * 6, "kind": ["a", "b"] * 6})
    empty = pd.DataFrame({"size": [None] * 12, "kind": [None] * 12})
    for first, second in ((one, empty), (empty, one)):
        assert [column.kind for column in Schema.of(first, also=second).columns] == ["numeric", "categorical"]


def test_rows_numbered_by_both_tables_are_an_identifier_and_other_numbers_are_not():
    rng = np.random.default_rng(0)
    one, two = (
        pd.DataFrame({"row": range(n), "kind": rng.choice(["a", "b"], n), "x": rng.integers(0, 9, n)}) for n in (20, 30)
    )
    assert Schema.of(one, also=two).left_out == {"row": "identifier"}
    assert Schema.of(one, also=two.assign(row=3)).left_out == {}


def test_cells_of_a_frame_that_are_of_another_kind_are_gaps_and_new_ones_are_refused():
    cells = [0.5 * i for i in range(60)]
    days = [f"2024-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(60)]
    table = pd.DataFrame({"m": [*cells[:9], "oops", *cells[10:]], "d": [*days[:5], "soon", *days[6:]]})
    columns = Schema.of(table)
    assert [(column.kind, column.unread) for column in columns.columns] == [("numeric", ("oops",)), ("time", ("soon",))]
    said = "column 'm': 1 cell is no number and counts as missing: 'oops' in row 9; correct it, or take the column as categories"
    assert any(said in str(note) for note in columns.notes)
    encoded = columns.encode(table)
    assert np.argwhere(np.isnan(encoded.numeric)).tolist() == [[5, 1], [9, 0]]
    assert {name: (c.rows.tolist(), c.texts) for name, c in encoded.odd.unread.items()} == {
        "m": ([9], ("oops",)),
        "d": ([5], ("soon",)),
    }
    table.loc[3, ["m", "d"]] = ["x", "2024-02-30"]
    with pytest.raises(
        InputError, match=r"'m' \(numbers\) holds 'x' in row 3; column 'd' \(times\) holds '2024-02-30' in row 3"
    ):
        columns.encode(table)
    assert Schema.from_dict(columns.to_dict()).columns == columns.columns


def test_whole_numbers_that_are_days_are_times_beside_words_and_said_among_numbers():
    days = pd.date_range("2024-01-01", periods=40).strftime("%Y%m%d").astype(int)
    table = pd.DataFrame({"day": days, "w": ["x", "y"] * 20})
    columns = Schema.of(table)
    assert columns.columns[0].kind == "time"
    seconds = columns.encode(table[:2]).numeric[:, 0]
    assert seconds.tolist() == [0.0, 86400.0]
    table = table.assign(w=np.random.default_rng(0).normal(size=40))
    with pytest.warns(DataWarning, match="'day' looks like days written as whole numbers"):
        AnomalyDetector(random_state=0).fit(table)


def strange(n=60):
    """Return columns whose kinds are seen by more than their types: some cells are of another kind, or written as others."""
    amounts = [0.5 * i for i in range(n)]
    days = [f"{i % 28 + 1}/{i % 12 + 1}/2024" for i in range(n)]
    return {
        "mixed": [*amounts[:9], "oops", "-", *amounts[11:]],
        "limits": [*amounts[:4], "<0.5", "<0.5", *amounts[6:]],
        "units": [f"{a} kg" for a in amounts],
        "days": [*days[:5], "soon", None, *days[7:]],
        "digits": [20240101 + i % 28 for i in range(n)],
        "clock": [f"{i % 24}:30" for i in range(n)],
        "blanks": [("a ", "b", " a", None)[i % 4] for i in range(n)],
        "truth": [("true", "False", None)[i % 3] for i in range(n)],
        "classes": [(1, 2, 3)[i % 3] for i in range(n)],
        "small": pd.Categorical([(1, "x", None)[i % 3] for i in range(n)]),
    }


@pytest.mark.parametrize("data", [shop(), strange()], ids=["of one kind", "strange"])
@pytest.mark.parametrize("choices", [{}, {"categorical": ["classes"]}], ids=["", "named"])
def test_what_decided_the_kinds_is_encoded_as_another_reading_would_be(data, choices, monkeypatch):
    """The rows of a fit are those that the same table gives later; a column whose cells are all of one kind is read once."""
    frame = pd.DataFrame(data)
    choices = {key: [name for name in names if name in frame] for key, names in choices.items()}
    read, cells = [], SourceTable.cells
    monkeypatch.setattr(SourceTable, "cells", lambda self, name, rule: read.append(name) or cells(self, name, rule))
    table = source_of(frame)
    columns = Schema.of(table, **choices)
    encoded, again = columns.encode(table), None
    times = dict.fromkeys(read, 0) | {name: read.count(name) for name in read}
    odd = {column.name for column in columns.columns if column.unread or column.limits}
    assert {name for name, count in times.items() if count > 1} <= odd | set(choices.get("categorical", ()))
    again = columns.encode(frame)
    np.testing.assert_array_equal(encoded.rows, again.rows)
    np.testing.assert_array_equal(encoded.limits.upper, again.limits.upper)
    assert encoded.odd.packed() == again.odd.packed()
    assert (encoded.unseen, encoded.extra) == (again.unseen, again.extra)


def test_a_column_of_one_truth_value_in_text_is_no_new_word():
    table = source_of(pd.DataFrame({"x": np.arange(20.0) ** 2, "new": ["true"] * 20}))
    columns = Schema.of(table).with_constants()
    assert columns.columns[1].levels == ("True",)
    assert columns.encode(table).unseen == {}


def test_columns_that_the_fit_does_not_know_are_named_and_not_used():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)})
    model = SOSREP(frame="marginal").fit(table)
    with pytest.warns(DataWarning, match="columns that the table of the fit does not have are not used: 'price'"):
        found = model.score_samples(table.assign(price=3.0))
    np.testing.assert_array_equal(found, model.score_samples(table))
