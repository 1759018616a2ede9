"""Twenty texts, each read by the shell, by `read_table`, by pandas and by polars: the same kinds and scores, or a warning."""

from __future__ import annotations

import csv
import io
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import isopleth
from isopleth import DataWarning, InputError
from isopleth.cli.commands import program
from isopleth.tables.schema import Schema

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N = 48
RNG = np.random.default_rng(5)
A, B = RNG.normal(20.0, 4.0, N).round(2), RNG.lognormal(7.0, 1.0, N).round(2)
WORDS = RNG.choice(["red", "blue", "green"], N).tolist()
DAYS = [np.datetime64("2024-01-01") + int(i) for i in RNG.integers(0, 300, N)]
PARTS = [str(day).split("-") for day in DAYS]


def text(**columns):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def gaps(cells, word):
    return [word if i % 7 == 3 else cell for i, cell in enumerate(cells)]


def comma(values):
    return [f"{value:.2f}".replace(".", ",") for value in values]


GALLERY = {
    "numbers": text(a=A, b=B),
    "one number and words": text(a=A, w=WORDS),
    "thousands separators": text(a=A, b=[f"{value:,.2f}" for value in B], w=WORDS),
    "decimal commas": text(a=comma(A), b=comma(B), w=WORDS),
    "points between groups, decimal commas": text(
        a=comma(A), b=[f"{v:,.2f}".translate({44: ".", 46: ","}) for v in B], w=WORDS
    ),
    "years first": text(d=DAYS, a=A),
    "days first": text(d=[f"{d}.{m}.{y}" for y, m, d in PARTS], a=A),
    "months first": text(d=[f"{m}/{d}/{y}" for y, m, d in PARTS], a=A),
    "instants": text(t=[f"{day}T12:00:00+09:00" for day in DAYS], a=A),
    "numbers named as identifiers": text(order_id=RNG.permutation(10**6)[:N], a=A, w=WORDS),
    "identifiers and a repeated row": text(order_id=[*range(700, 700 + N - 1), 700], a=A, w=WORDS),
    "words that name rows": text(token=[f"k{i:05d}" for i in RNG.permutation(10**5)[:N]], a=A, b=B),
    "rows that are counted": text(nr=range(1, N + 1), a=A, w=WORDS),
    "N/A": text(a=gaps(A, "N/A"), b=B, w=gaps(WORDS, "N/A")),
    "empty cells": text(a=gaps(A, ""), b=B, w=gaps(WORDS, "")),
    "dashes among numbers": text(a=gaps(A, "-"), b=B),
    "truth values": text(a=A, paid=RNG.choice(["True", "False"], N)),
    "truth values and gaps": text(a=A, paid=gaps(RNG.choice(["true", "false"], N).tolist(), "")),
    "categories of numbers": text(a=A, grade=RNG.integers(1, 4, N), w=WORDS),
    "numbers and codes": text(a=A, size=[*RNG.integers(1, 10, N - 3), "small", "small", "large"]),
}
# Texts of which a library reads a column of numbers as text, which is words in a frame.
TEXT_IN_FRAMES = {
    "thousands separators": ["pandas", "polars"],
    "decimal commas": ["pandas", "polars"],
    "points between groups, decimal commas": ["pandas", "polars"],
    "N/A": ["polars"],
    "dashes among numbers": ["pandas", "polars"],
}
SAME = [(name, [lib for lib in ("pandas", "polars") if lib not in TEXT_IN_FRAMES.get(name, ())]) for name in GALLERY]
OTHERS = {"only an identifier beside numbers": text(order_id=RNG.permutation(10**6)[:N], a=A, b=B)}


def read_by(library, content):
    return pd.read_csv(io.StringIO(content)) if library == "pandas" else pl.read_csv(io.StringIO(content))


def scores_of(table):
    detector = isopleth.AnomalyDetector(random_state=0).fit(table)
    return detector.training_scores_


def test_there_are_twenty():
    assert len(GALLERY) == 20


@pytest.mark.filterwarnings("ignore::isopleth.core.errors.DataWarning")
@pytest.mark.parametrize(("name", "libraries"), SAME)
def test_kinds_are_the_same(tmp_path, name, libraries):
    path = tmp_path / "t.csv"
    path.write_text(GALLERY[name])
    table = isopleth.read_table(path)
    for library in libraries:
        found = Schema.of(read_by(library, GALLERY[name]))
        assert [(c.name, c.kind, c.levels) for c in found.columns] == [
            (c.name, c.kind, c.levels) for c in table.schema.columns
        ]
        assert found.left_out == table.schema.left_out
        assert [c.origin for c in found.columns] == [c.origin for c in table.schema.columns]


@pytest.mark.filterwarnings("ignore::isopleth.core.errors.DataWarning")
@pytest.mark.parametrize(("name", "libraries"), SAME)
def test_scores_are_the_same(tmp_path, name, libraries):
    path, out = tmp_path / "t.csv", tmp_path / "scores.csv"
    path.write_text(GALLERY[name])
    scores = scores_of(isopleth.read_table(path))
    for library in libraries:
        np.testing.assert_array_equal(scores_of(read_by(library, GALLERY[name])), scores)
    result = CliRunner().invoke(program, ["anomalies", str(path), "--out", str(out)])
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(pd.read_csv(out)["score"], scores, rtol=1e-12)


@pytest.mark.parametrize("name", TEXT_IN_FRAMES)
def test_text_that_looks_like_numbers_is_words_in_a_frame_with_a_warning(name):
    for library in TEXT_IN_FRAMES[name]:
        with pytest.warns(
            DataWarning, match=r"'[ab]' holds text that looks like numbers, such as .*so it is taken as words"
        ):
            scores_of(read_by(library, GALLERY[name]))


def test_an_identifier_among_nothing_but_numbers_is_warned_of(tmp_path):
    """A frame of numbers is taken as it is, which scikit-learn asks for; the warning says what differs."""
    (content,) = OTHERS.values()
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.warns(DataWarning, match="left out: 'order_id'"):
        assert isopleth.read_table(path).names == ["a", "b"]
    for library in ("pandas", "polars"):
        with pytest.warns(DataWarning, match=r"'order_id' may identify rows.*read_table leaves it out"):
            scores_of(read_by(library, content))
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            scores_of(read_by(library, text(a=A, b=B)))


def test_numbers_that_can_be_read_in_two_ways_are_refused(tmp_path):
    content = text(a=["1,234", "2,345", "3,456"] * 4, b=range(12))
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=r"may be 1234 or 1\.234"):
        isopleth.read_table(path)
    for library in ("pandas", "polars"):
        with pytest.raises(InputError, match=r"may be 1234 or 1\.234"):
            Schema.of(read_by(library, content), numeric=["a"])
