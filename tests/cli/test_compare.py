"""``isopleth compare``: what it prints and writes, and one line for all that is wrong."""

from __future__ import annotations

import json
from functools import partial

import jsonschema
import numpy as np
import pandas as pd
import pytest

from cli import shell
from cli.shell import rows_of
from isopleth import two_sample_test
from isopleth.cli.json_schema import json_schema

run = partial(shell.run, "compare")
as_json = partial(shell.found, "compare")
refused = partial(shell.refused, "compare")

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(60, 3)), RNG.normal(size=(40, 3)) + [0.0, 2.0, 0.0]


def write(path, values, header):
    np.savetxt(path, values, delimiter=",", header=header, comments="")
    return path


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "a.csv", A, "age,income,height"), write(tmp_path / "b.csv", B, "age,income,height")


SNAPSHOT = """\
The two samples (60 and 40 rows) differ: p = 0.01.
A row can be assigned to its sample with an accuracy of 83.7 % (72.8 % to 92.0 %, 95 % confidence; guessing has 50 %), so \
about 67.5 % of one sample (at least 45.6 %) differ from the other.
1 of 3 columns differs by itself: income.
height is not shown to differ by itself, but among rows alike in age it is lower by 0.53 standard deviations of such rows.

pvalue  pvalue_given_others   share  column  change
  0.01                 0.01  0.6318  income  median: -0.007994 -> 1.609;  spread: 1.223 -> 1.706
  0.13                 0.04  0.2254  height  median: 0.304 -> -0.3353;  spread: 1.273 -> 1.191
  0.56                    1       0     age  median: -0.07936 -> -0.2126;  spread: 1.709 -> 1.279

pvalue of a column: it alone, adjusted for the number of columns, so that the chance to name any column falsely is at most 5%.
pvalue_given_others: the column among rows that are alike in the others, adjusted likewise.
share: about this share of the values would have to change to give the column its distribution in the other table.
Such rows: rows of one sample that are alike in the other columns. --target says the same in units of a column.
before is a.csv, after is b.csv. spread: from the first quartile to the third.
The p-value of the whole comparison is from 99 permutations of rows and is exact for independent rows.
"""


def test_what_is_printed(files):
    result = run(*files, "--resamples", 99)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == SNAPSHOT
    found = as_json(*files, "--resamples", 99)
    assert found["summary"] == SNAPSHOT.splitlines()[:4]
    separation = two_sample_test(A, B, n_resamples=99, random_state=0).separation()
    assert found["separation"]["accuracy"] == separation.accuracy
    assert (found["before"], found["after"], found["n_resamples"]) == (*map(str, files), 99)


def test_columns_are_matched_by_name(files, tmp_path):
    other = write(tmp_path / "c.csv", B[:, [2, 0, 1]], "height,age,income")
    found, expected = (as_json(files[0], path) for path in (other, files[1]))
    assert found["table"] == expected["table"]


def test_no_difference(files, tmp_path):
    other = write(tmp_path / "c.csv", np.random.default_rng(1).normal(size=(50, 3)), "age,income,height")
    assert "No difference between the two samples" in run(files[0], other, "--resamples", 99).stdout


def test_a_difference_that_no_column_shows(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 1))
    files = write(tmp_path / "a.csv", np.c_[x, x], "p,q"), write(tmp_path / "b.csv", np.c_[x, -x], "p,q")
    assert "The relation of p and q differs: rank correlation " in run(*files, "--resamples", 99).stdout


def test_rows_are_written_with_their_differences(files, tmp_path):
    out = tmp_path / "rows.csv"
    assert run(*files, "--out", out).exit_code == 0
    rows = rows_of(out)
    witness = two_sample_test(A, B, random_state=0).witness
    assert [row["line"] for row in rows] == [*map(str, range(2, 62)), *map(str, range(2, 42))]
    assert {row["file"] for row in rows[:60]} == {str(files[0])}
    found = [float(row["difference"]) for row in rows]
    np.testing.assert_allclose(found, np.concatenate([witness.x, witness.y]), rtol=1e-6, atol=1e-9)


def test_rows_are_numbered_where_one_file_has_no_lines(files, tmp_path):
    np.save(tmp_path / "b.npy", B)
    out = tmp_path / "rows.csv"
    for other, options, header in (
        (tmp_path / "b.npy", [], "file,row,difference"),
        (files[1], ["--row-numbers"], "file,line,row,difference"),
    ):
        assert run(files[0], other, "--out", out, "--resamples", 9, *options).exit_code == 0
        rows = rows_of(out)
        assert ",".join(rows[0]) == header
        assert [row["row"] for row in rows] == [*map(str, range(1, 61)), *map(str, range(1, 41))]


def test_chosen_columns_and_arrays(files, tmp_path):
    np.save(tmp_path / "a.npy", A[:, :2])
    np.save(tmp_path / "b.npy", B[:, :2])
    for arguments, names in (
        ([tmp_path / "a.npy", tmp_path / "b.npy"], ["x1", "x2"]),
        ([*files, "--columns", "age"], ["age"]),
    ):
        assert as_json(*arguments, "--resamples", 9)["columns"] == names


def test_single_rows_have_no_accuracy(tmp_path):
    files = write(tmp_path / "a.csv", A[:1], "p,q,r"), write(tmp_path / "b.csv", B, "p,q,r")
    result = run(*files, "--resamples", 9)
    assert result.exit_code == 0, result.output
    assert "accuracy" not in result.stdout


def test_a_table_does_not_differ_from_itself(files):
    assert "is shown: p = 1." in run(files[0], files[0], "--resamples", 9).stdout


def test_columns_of_a_size_that_cannot_be_used_are_named(files, tmp_path):
    huge = [
        write(tmp_path / f"{name}.csv", rows * [1.0, 1e160, 1.0], "age,income,height")
        for name, rows in zip("pq", (A, B), strict=True)
    ]
    assert "'income' is of a size" in refused(*huge)


def test_wrong_input_is_one_line(files, tmp_path):
    other = write(tmp_path / "c.csv", B[:, :2], "length,weight")
    assert "no common column is left" in refused(files[0], other)
    np.save(tmp_path / "d.npy", B[:, :2])
    assert "has 3 columns" in refused(files[0], tmp_path / "d.npy")
    assert "does not exist" in refused(files[0], tmp_path / "none.csv")
    assert "same file" in refused(*files, "--out", files[0])
    broken = write(tmp_path / "e.csv", np.where(B > 3, np.inf, B), "age,income,height")
    assert "inf" in refused(files[0], broken)
    assert "names the groups 'age' too" in refused(*files, "--columns", "age,income", "--groups", "age")
    assert "no column 'patient'" in refused(*files, "--groups", "patient")


def test_wrong_columns_of_a_shift_are_told_before_the_test(files, tmp_path, monkeypatch):
    monkeypatch.setattr("isopleth.cli.compare.two_sample_test", None)
    assert "'incom'" in refused(*files, "--target", "incom")
    assert "'tall'" in refused(*files, "--target", "income", "--given", "age,tall")
    assert "which is the target" in refused(*files, "--target", "income", "--given", "income")
    assert "--by names 'sex', which no column has" in refused(*files, "--by", "sex")
    words = [tmp_path / name for name in ("words_a.csv", "words_b.csv")]
    for path in words:
        path.write_text("plan,x\n" + "".join(f"{'uvw'[i % 3]},{i}.5\n" for i in range(30)))
    assert "--target plan=u" in refused(*words, "--target", "plan")


def test_groups_are_answered_with_a_target_and_without(tmp_path):
    rng = np.random.default_rng(0)
    paths = []
    for name, factor in (("a.csv", 1.0), ("b.csv", 0.9)):
        member = rng.choice(["no", "yes"], 200, p=[0.8, 0.2])
        wage = rng.normal(10.0, 1.0, 200) * np.where(member == "yes", factor, 1.0)
        paths.append(tmp_path / name)
        lines = [f"{m},{w:.3f}" for m, w in zip(member, wage, strict=True)]
        paths[-1].write_text("\n".join(["member,wage", *lines]) + "\n")
    options = (*paths, "--resamples", 19, "--json")
    found = json.loads(run(*options, "--target", "wage", "--by", "member").stdout)
    first = found["shifts_in_groups"]["shifts"][0]
    assert (first["group"], first["pvalue"] < 0.05, found["shift"]) == ("member yes", True, None)
    assert found["summary"][0].startswith("In rows with member yes, given ")
    jsonschema.validate(found, json_schema("compare"))
    sought = json.loads(run(*options, "--by", "member").stdout)
    assert [each["column"] for each in sought["groups_sought"]["found"]] == ["wage"]
    share = json.loads(run(*options, "--target", "member=no").stdout)["shift"]
    assert (share["target"], share["word"]) == ("member", "no")


def of_times(path, zone="", sizes=None):
    """Write 40 rows of an amount, a time and a size."""
    rng = np.random.default_rng(len(zone))
    sizes = rng.normal(size=40).round(3) if sizes is None else rng.choice(sizes, 40)
    days = np.datetime64("2024-01-01T12:00") + rng.integers(0, 90, 40) * np.timedelta64(1, "D")
    rows = zip(rng.normal(size=40), (f"{day}{zone}" for day in days), sizes, strict=True)
    path.write_text("amount,when,size\n" + "".join(f"{a:.4f},{t},{s}\n" for a, t, s in rows))
    return path


def schema_changes(a, b, *options):
    """The changes, the sentences before the test, and the columns of a comparison of two files."""
    printed = run(a, b, "--resamples", 19, "--json", *options)
    assert printed.exit_code == 0, printed.output
    found = json.loads(printed.stdout)
    schema = json.loads(run("--json-schema").stdout)
    jsonschema.validate(found, schema)
    for wrong in ({"column": "a"}, {"column": "a", "before": "words", "after": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found | {"schema_changes": [wrong]}, schema)
    said = [sentence for sentence in found["summary"] if sentence.startswith("Change of schema: ")]
    assert found["summary"][: len(said)] == said
    assert {row["column"] for row in found["table"]} == set(found["columns"])
    return [tuple(change.values()) for change in found["schema_changes"]], said, found["columns"]


def test_columns_that_one_table_has_are_a_change_of_schema(files, tmp_path):
    less, more = write(tmp_path / "c.csv", B[:, [1, 0]], "income,age"), tmp_path / "d.csv"
    write(more, np.c_[B, B[:, 0]], "age,income,height,weight")
    assert schema_changes(*files) == ([], [], ["age", "income", "height"])
    assert schema_changes(files[0], less) == (
        [("height", "numbers", None)],
        ["Change of schema: only the first table has 'height'; the 2 common columns are compared."],
        ["age", "income"],
    )
    assert schema_changes(less, more)[:2] == (
        [("height", None, "numbers"), ("weight", None, "numbers")],
        ["Change of schema: only the second table has 'height', 'weight'; the 2 common columns are compared."],
    )
    page = tmp_path / "page.html"
    text = run(files[0], less, "--resamples", 19, "--report", page).stdout
    assert text.startswith("Change of schema: only the first table has 'height'; ")
    assert "Change of schema: only the first table has" in page.read_text()


def test_the_common_columns_are_compared_as_if_there_were_no_others(files, tmp_path):
    less = write(tmp_path / "c.csv", B[:, :2], "age,income")
    found, expected = (
        json.loads(run(files[0], path, "--json", *more).stdout)
        for path, more in ((less, []), (files[1], ["--columns", "age,income"]))
    )
    assert (found["pvalue"], found["table"]) == (expected["pvalue"], expected["table"])


def test_columns_of_another_kind_are_a_change_of_schema(tmp_path):
    naive, aware = of_times(tmp_path / "a.csv"), of_times(tmp_path / "b.csv", "+01:00")
    words = of_times(tmp_path / "c.csv", sizes=["small", "large"])
    assert schema_changes(naive, aware) == (
        [("when", "times", "times with a zone")],
        [
            "Change of schema: 'when' holds times in the first table and times with a zone in the second; the 2 common columns "
            "are compared."
        ],
        ["amount", "size"],
    )
    changes, said, columns = schema_changes(words, aware)
    assert changes == [("when", "times", "times with a zone"), ("size", "words", "numbers")]
    assert (len(said), columns) == (1, ["amount"])
    assert schema_changes(naive, words, "--categorical", "size")[0] == []
    assert schema_changes(naive, aware, "--time-columns", "when", "--numeric", "size")[2] == ["amount", "size"]


def test_columns_without_names_change_their_kind_by_position(tmp_path):
    np.save(tmp_path / "a.npy", A[:, :2])
    write(tmp_path / "b.csv", B[:, :2], "age,income")
    words = tmp_path / "c.csv"
    words.write_text("age,colour\n" + "".join(f"{i * 0.37},{'red' if i % 3 else 'blue'}\n" for i in range(30)))
    assert schema_changes(tmp_path / "a.npy", tmp_path / "b.csv")[0] == []
    assert schema_changes(tmp_path / "a.npy", words)[0] == [("x2", "numbers", "words")]


def test_truth_values_gaps_and_identifiers_do_not_change_a_kind(tmp_path):
    rng = np.random.default_rng(0)
    for name, truths, gap in (("a.csv", ["true", "false"], ""), ("b.csv", ["1", "0"], "NA")):
        rows = zip(range(40), rng.choice(truths, 40), [gap] * 20 + ["3.5", "7"] * 10, strict=True)
        cells = (f"{i if name == 'a.csv' else 5},{t},{'' if name == 'a.csv' else g}\n" for i, t, g in rows)
        (tmp_path / name).write_text("order_no,open,size\n" + "".join(cells))
    changes, _, columns = schema_changes(tmp_path / "a.csv", tmp_path / "b.csv")
    assert changes == []
    assert "open" in columns
    assert "size" in columns


def test_tables_without_a_common_column_of_one_kind_are_refused(tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("size,old\n" + "".join(f"{i / 7:.3f},{i / 9:.3f}\n" for i in range(30)))
    b.write_text("size,new\n" + "".join(f"{'small' if i % 3 else 'large'},{i / 9:.3f}\n" for i in range(30)))
    line = refused(a, b)
    assert "no common column is left to compare" in line
    assert "'size' holds numbers in the first table and words in the second" in line


def test_a_typo_among_numbers_is_named_and_no_change_of_kind(files, tmp_path):
    rows = files[1].read_text().splitlines()
    rows[5] = rows[5].replace(rows[5].split(",")[1], "l2.5")
    (tmp_path / "c.csv").write_text("\n".join(rows) + "\n")
    assert "column 'income' holds 'l2.5' in line 6" in refused(files[0], tmp_path / "c.csv")


HEADER = "order_no,day,colour,temperature,open\n"


def mixed_rows(n, seed, red=0.2, gap=0.05, first="2024-01-01"):
    rng = np.random.default_rng(seed)
    days = np.datetime64(first) + rng.integers(0, 100, n)
    colours = rng.choice(["red", "blue", "green"], n, p=[red, 0.8 - red, 0.2])
    values = [
        "" if lost else f"{value:.2f}"
        for value, lost in zip(rng.normal(20.0, 2.0, n), rng.random(n) < gap, strict=True)
    ]
    cells = zip(np.arange(n).astype(str), days.astype(str), colours, values, rng.choice(["yes", "no"], n), strict=True)
    return HEADER + "".join(",".join(row) + "\n" for row in cells)


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(mixed_rows(300, 0))
    return path


def test_words_times_gaps_and_identifiers(mixed, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(mixed_rows(250, 1, red=0.45, gap=0.3, first="2024-03-01"))
    result = run(mixed, other, "--out", tmp_path / "rows.csv")
    assert result.exit_code == 0, result.output
    summary = "1 number, 2 categories, 1 time; left out: order_no (identifier)"
    assert result.stderr == f"isopleth: {mixed} and {other}: 550 rows: {summary}\n"
    found = as_json(mixed, other)
    assert (found["pvalue"], found["rows"], found["columns"]) == (
        0.001,
        [300, 250],
        ["day", "colour", "temperature", "open"],
    )
    table = {row["column"]: row for row in found["table"]}
    assert table["day"]["time_before"].startswith("2024-02-")
    assert "share of 'red': 20.3 % -> 49.2 %" in table["colour"]["description"]
    assert "missing: " in table["temperature"]["description"]
    assert table["open"]["pvalue"] > 0.05
    assert len(rows_of(tmp_path / "rows.csv")) == 550


def test_gaps_may_be_ignored_and_columns_come_in_any_order(mixed, tmp_path):
    other, turned = tmp_path / "other.csv", tmp_path / "turned.csv"
    other.write_text(mixed_rows(250, 1, gap=0.5))
    rows = [line.split(",") for line in other.read_text().splitlines()]
    turned.write_text("".join(",".join(row[::-1]) + "\n" for row in rows))
    found, again = (as_json(mixed, path) for path in (other, turned))
    assert found["pvalue"] <= 0.05
    assert found["table"] == again["table"]
    assert "No difference between the two samples" in run(mixed, other, "--ignore-missing").stdout
    assert "No difference between the two samples" in run(mixed, other, "--exclude", "temperature").stdout


def test_a_picture_of_words_and_gaps(mixed, tmp_path):
    pytest.importorskip("matplotlib")
    other = tmp_path / "other.csv"
    other.write_text(mixed_rows(250, 1, red=0.6, gap=0.6))
    assert run(mixed, other, "--resamples", 99, "--plot", tmp_path / "picture.svg").exit_code == 0
    assert "colour" in (tmp_path / "picture.svg").read_text()


def test_rows_of_a_group_belong_together(tmp_path):
    rng = np.random.default_rng(2)
    paths = []
    for name in "ab":
        level = np.repeat(rng.normal(size=8), 10)
        rows = zip(np.repeat([f"{name}{k}" for k in range(8)], 10), level + 0.1 * rng.normal(size=80), strict=True)
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("patient,value\n" + "".join(f"{patient},{value}\n" for patient, value in rows))
    assert "differ: p = " in run(*paths, "--columns", "value").stdout
    result = run(*paths, "--groups", "patient")
    assert "No difference between the two samples" in result.stdout
    assert as_json(*paths, "--groups", "patient")["columns"] == ["value"]


def test_groups_have_the_same_labels_in_text_and_in_typed_files(tmp_path):
    table = pd.DataFrame({"patient": np.arange(60) % 12, "value": np.random.default_rng(3).normal(size=60)})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "b.csv", index=False)
    table.to_parquet(tmp_path / "b.parquet")
    table.assign(patient=table["patient"] + 0.0).to_parquet(tmp_path / "floats.parquet")
    in_text, *typed = (
        as_json(tmp_path / "a.csv", tmp_path / name, "--groups", "patient")["pvalue"]
        for name in ("b.csv", "b.parquet", "floats.parquet")
    )
    assert typed == [in_text, in_text]


def months(folder, gaps):
    """Write the orders of two months, the second with gaps in the prices; ids go on, dates do not overlap."""
    paths = []
    for number, lost in ((1, 0.0), (2, gaps)):
        rng = np.random.default_rng(number)
        price = [
            f"{value:.2f}" if known else ""
            for value, known in zip(rng.gamma(2, 10, 300), rng.random(300) >= lost, strict=True)
        ]
        shops = rng.choice(["north", "south"], 300)
        rows = [f"{300 * number + i},2024-0{number}-{1 + i // 12:02d},{price[i]},{shops[i]}" for i in range(300)]
        paths.append(folder / f"month{number}.csv")
        paths[-1].write_text("\n".join(["order_id,order_date,price,shop", *rows, ""]))
    return paths


def test_two_months_are_not_told_apart_by_their_dates_and_numbers(tmp_path):
    equal = as_json(*months(tmp_path, 0.0), "--resamples", 99)
    assert equal["pvalue"] > 0.05
    assert equal["summary"][0].startswith("Not compared: order_id (identifier); order_date (nearly all times of one")
    assert equal["set_aside"].keys() == {"order_id", "order_date"}
    assert equal["telling_rows"] == []
    kept = json.loads(run(*months(tmp_path, 0.0), "--resamples", 99, "--json", "--keep-times").stdout)
    assert (kept["pvalue"], kept["table"][0]["column"]) == (0.01, "order_date")


def test_what_is_surest_comes_first_and_rows_tell_with_their_values(tmp_path):
    first, second = months(tmp_path, 0.2)
    page = tmp_path / "page.html"
    found = json.loads(run(first, second, "--resamples", 99, "--json", "--report", page).stdout)
    assert found["table"][0]["column"] == "price"
    assert found["table"][0]["description"].startswith("missing: 0 % -> 1")
    rows = found["telling_rows"]
    assert [row["sample"] for row in rows] == [first.name] * 10 + [second.name] * 10
    lines = second.read_text().split("\n")
    for row in rows[10:]:
        assert row["price"] is None
        assert lines[row["line"] - 1].endswith(f",,{row['shop']}")
    assert "price: missing: 0 %" in page.read_text()
    assert "Rows that tell the samples apart" in page.read_text()


def test_rows_that_both_tables_have_are_counted(tmp_path):
    both = A.tolist() + B.tolist()
    first, second = (
        write(tmp_path / "a.csv", A, "age,income,height"),
        write(tmp_path / "b.csv", both, "age,income,height"),
    )
    found = as_json(first, second, "--resamples", 99)
    assert found["shared_rows"] == [60, 60]
    assert found["summary"][0] == "All 60 rows of the first sample are also in the second."
