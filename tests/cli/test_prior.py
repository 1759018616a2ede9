"""``isopleth prior``: the table it prints, the files it writes, and one line for all that is wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from cli import shell
from cli.shell import rows_of
from isopleth import ClassPriorEstimator

run = partial(shell.run, "prior")
refused = partial(shell.refused, "prior")

RNG = np.random.default_rng(0)
Y = np.repeat(["good", "bad"], 30)
X = RNG.normal(size=(60, 3)) + 2.0 * (Y == "good")[:, None]
NEW = RNG.normal(size=(80, 3)) + 2.0 * (np.arange(80) < 60)[:, None]


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.csv"
    rows = ["a,kind,b,c", *(f"{x[0]!r},{y},{x[1]!r},{x[2]!r}" for x, y in zip(X.tolist(), Y, strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def test(tmp_path):
    path = tmp_path / "test.csv"
    np.savetxt(path, NEW[:, ::-1], delimiter=",", header="c,b,a", comments="", fmt="%.17g")
    return path


def test_shares_are_those_of_the_estimator_whatever_the_order_of_the_columns(train, test, tmp_path):
    result = run(train, "--target", "kind", test, "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    expected = ClassPriorEstimator(random_state=0).fit(X, Y).estimate(NEW)
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Of 80 rows without labels, about ")
    assert lines[3].split() == ["class", "prior", "lower", "upper"]
    numbers = (expected.priors[0], expected.lower[0], expected.upper[0])
    assert lines[4].split() == ["bad", *(f"{number:.4g}" for number in numbers)]
    rows = rows_of(tmp_path / "out.csv")
    assert [row["class"] for row in rows] == ["bad", "good"]
    np.testing.assert_allclose([float(row["prior"]) for row in rows], expected.priors)


def test_intervals_for_the_population(train, test, tmp_path):
    result = run(train, test, "--target", "kind", "--population", "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert "for the share in the population that the rows were drawn from" in result.stdout
    expected = ClassPriorEstimator(random_state=0).fit(X, Y).estimate(NEW, population=True)
    np.testing.assert_allclose([float(row["upper"]) for row in rows_of(tmp_path / "out.csv")], expected.upper)


def test_shares_of_groups(tmp_path):
    """The region is in both files; it says nothing of the class, and shares are estimated in each."""
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    rows = [f"{x[0]!r},{x[1]!r},{x[2]!r},{y},r{i % 2}" for i, (x, y) in enumerate(zip(X.tolist(), Y, strict=True))]
    train.write_text("\n".join(["a,b,c,kind,region", *rows]) + "\n")
    rows = [f"r{i // 40},{x[0]!r},{x[1]!r},{x[2]!r}" for i, x in enumerate(NEW.tolist())]
    test.write_text("\n".join(["region,a,b,c", *rows]) + "\n")
    result = run(train, test, "--target", "kind", "--by", "region", "--out", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert "Of the 2 groups of region, r0 has the largest share of good" in result.stdout
    expected = ClassPriorEstimator(random_state=0).fit(X, Y).estimate(NEW, by=np.repeat(["r0", "r1"], 40))
    found = rows_of(tmp_path / "out.csv")
    assert [(row["group"], row["class"]) for row in found] == [(g, c) for g in ("r0", "r1") for c in ("bad", "good")]
    upper = np.concatenate([each.upper for each in expected.groups.values()])
    np.testing.assert_allclose([float(row["upper"]) for row in found], upper)
    assert "--by kind is the target, too" in refused(train, test, "--target", "kind", "--by", "kind")
    assert "has no column 'town' (--by)" in run(train, test, "--target", "kind", "--by", "town").stderr


def test_a_picture_and_another_level(train, test, tmp_path):
    pytest.importorskip("matplotlib")
    result = run(train, test, "--target", "kind", "--confidence-level", "0.5", "--plot", tmp_path / "shares.png")
    assert result.exit_code == 0, result.output
    assert "a confidence of 50 %" in result.stdout
    assert (tmp_path / "shares.png").read_bytes().startswith(b"\x89PNG")


def test_other_files(tmp_path):
    np.save(tmp_path / "train.npy", np.column_stack([X, Y == "good"]))
    np.save(tmp_path / "test.npy", NEW)
    result = run(tmp_path / "train.npy", tmp_path / "test.npy", "--target", "x4")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[4].split()[0] == "0"
    np.savetxt(tmp_path / "bare.tsv", np.column_stack([Y == "good", X]), delimiter="\t")
    other = run(tmp_path / "bare.tsv", tmp_path / "test.npy", "--target", "x1")
    assert other.stdout.splitlines()[4].split()[1] == result.stdout.splitlines()[4].split()[1]


def test_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: X[:, j] for j, name in enumerate("abc")}
    parquet.write_table(arrow.table({**columns, "kind": Y.tolist()}), tmp_path / "train.parquet")
    parquet.write_table(arrow.table({name: NEW[:, j] for j, name in enumerate("abc")}), tmp_path / "test.parquet")
    arguments = (tmp_path / "train.parquet", tmp_path / "test.parquet", "--target", "kind")
    assert run(*arguments).stdout.splitlines()[5].split()[0] == "good"
    parquet.write_table(arrow.table({**columns, "kind": [None, *Y.tolist()[1:]]}), tmp_path / "train.parquet")
    assert "row 1: no class in column 'kind'; fill the cell or drop the row." in refused(*arguments)


def test_chosen_columns_only(train, test):
    result = run(train, test, "--target", "kind", "--columns", "b,a")
    expected = ClassPriorEstimator(random_state=0).fit(X[:, [1, 0]], Y).estimate(NEW[:, [1, 0]])
    assert f"{expected.priors[0]:.4g}" in result.stdout


def test_the_index_of_a_frame_is_no_column_to_learn_from(train, test):
    expected = run(train, test, "--target", "kind").stdout
    lines = train.read_text().splitlines()
    train.write_text("\n".join(f"{'' if i == 0 else i - 1},{line}" for i, line in enumerate(lines)) + "\n")
    result = run(train, test, "--target", "kind")
    assert result.stdout == expected
    assert "60 rows: 3 numbers; left out: x1 (identifier)" in result.stderr


class TestRefusals:
    def test_no_such_target(self, train, test):
        assert "has no column 'sort' (--target); it has 'a', 'kind', 'b', 'c'." in refused(
            train, test, "--target", "sort"
        )

    def test_the_target_among_the_columns(self, train, test):
        assert "--columns names the target 'kind' too" in refused(
            train, test, "--target", "kind", "--columns", "a,kind"
        )

    def test_nothing_but_the_target(self, tmp_path, test):
        path = tmp_path / "train.csv"
        path.write_text("kind\n1\n2\n")
        assert "there is nothing to learn from" in refused(path, test, "--target", "kind")

    def test_a_row_without_class(self, train, test):
        train.write_text(train.read_text().replace(",good,", ",,", 1))
        assert "train.csv, line 2: no class in column 'kind'; fill the cell or drop the row." in refused(
            train, test, "--target", "kind"
        )

    def test_words_besides_the_target(self, train, test):
        head, *rows = train.read_text().splitlines()
        train.write_text("\n".join([f"name,{head}", *(f"{'xy'[i % 2]},{row}" for i, row in enumerate(rows))]) + "\n")
        assert (
            "test.csv lacks 'name' of the columns that the model was fitted on"
            in run(train, test, "--target", "kind").stderr
        )
        assert run(train, test, "--target", "kind", "--exclude", "name").exit_code == 0
        head, *rows = test.read_text().splitlines()
        test.write_text("\n".join([f"{head},name", *(f"{row},{'xy'[i % 2]}" for i, row in enumerate(rows))]) + "\n")
        result = run(train, test, "--target", "kind")
        assert result.exit_code == 0, result.output
        assert ": 3 numbers, 1 category" in result.stderr

    def test_one_class(self, train, test):
        train.write_text(train.read_text().replace(",bad,", ",good,"))
        assert "column 'kind' has one class only, 'good'; expected rows of at least two classes." in refused(
            train, test, "--target", "kind"
        )

    def test_level(self, train, test):
        assert "expected a number between 0 and 1" in refused(
            train, test, "--target", "kind", "--confidence-level", "95"
        )

    def test_files_that_would_be_overwritten(self, train, test):
        assert "is the same file as TEST" in refused(train, test, "--target", "kind", "--out", test)


class TestMixedTables:
    def write(self, path, n, ill, seed, *, named=True):
        rng = np.random.default_rng(seed)
        sick = np.arange(n) < ill * n
        fever = np.where(rng.random(n) < np.where(sick, 0.9, 0.1), "true", "false")
        colour = np.where(rng.random(n) < np.where(sick, 0.8, 0.2), "red", "blue")
        value = [f"{v:.2f}" if known else "" for v, known in zip(rng.normal(size=n), rng.random(n) > 0.2, strict=True)]
        day = [f"2024-01-{k:02}" for k in rng.integers(1, 29, n)]
        rows = zip(np.where(sick, "ill", "well"), fever, colour, value, day, strict=True)
        skip = 0 if named else 1
        lines = [["kind", "fever", "colour", "value", "day"][skip:], *(row[skip:] for row in rows)]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
        return path

    def test_words_truth_values_times_and_gaps(self, tmp_path):
        train = self.write(tmp_path / "train.csv", 300, 0.5, 0)
        test = self.write(tmp_path / "test.csv", 500, 0.2, 1, named=False)
        for more in ([], ["--ignore-missing"]):
            result = run(train, test, "--target", "kind", *more)
            assert result.exit_code == 0, result.output
            assert "1 number, 2 categories, 1 time" in result.stderr
            shares = {line.split()[0]: float(line.split()[1]) for line in result.stdout.splitlines()[4:6]}
            assert abs(shares["ill"] - 0.2) < 0.08
