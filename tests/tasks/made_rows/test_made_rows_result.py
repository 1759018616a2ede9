"""Made rows beside their table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import ks_2samp

from isopleth.errors import InputError
from isopleth.tasks import MadeRows

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"x": RNG.normal(size=300), "city": RNG.choice(["Rome", "Oslo"], 300), "n": RNG.integers(0, 9, 300)}
)
MADE = pd.DataFrame(
    {"x": RNG.normal(0.5, 1, size=100), "city": np.repeat(["Rome", "Bern"], 50), "n": np.arange(100) % 9}
)


def test_distances_of_numbers_and_words():
    found = MadeRows.of(MADE, TABLE)
    assert found.distance["x"] == pytest.approx(ks_2samp(TABLE["x"], MADE["x"]).statistic)
    rome = (TABLE["city"] == "Rome").mean()
    assert found.distance["city"] == pytest.approx(0.5 * (abs(rome - 0.5) + (1.0 - rome) + 0.5))
    assert max(found.distance, key=found.distance.get) in found.to_dict()["summary"][1]


def test_the_table_may_be_an_array():
    numbers = MADE[["x", "n"]]
    assert (
        MadeRows.of(numbers, TABLE[["x", "n"]].to_numpy()).distance == MadeRows.of(numbers, TABLE[["x", "n"]]).distance
    )


def test_missing_cells_are_left_out():
    gaps = TABLE.assign(x=TABLE["x"].where(TABLE.index % 2 == 0), city=TABLE["city"].where(TABLE.index > 5))
    one, two = MadeRows.of(MADE, gaps).known_cells("x")
    assert (len(one), len(two)) == (150, 100)
    assert len(MadeRows.of(MADE, gaps).known_cells("city")[0]) == 294


def test_tables_are_like_the_made_rows():
    assert isinstance(MadeRows.of(pl.from_pandas(MADE), TABLE).table(), pl.DataFrame)
    pd.testing.assert_frame_equal(MadeRows.of(MADE, TABLE).table(), MADE, check_dtype=False)


def test_without_the_table_there_is_nothing_to_compare():
    found = MadeRows.of(MADE)
    assert found.distance == {}
    assert found.to_dict()["summary"] == ["100 rows were made."]
    with pytest.raises(InputError, match="nothing to draw"):
        found.plot()


def test_pictures_show_the_columns_that_differ_most():
    figure = MadeRows.of(MADE, TABLE).plot().figure
    assert figure.axes[0].get_title(loc="left").startswith("city: ")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["table", "made rows"]


def test_the_page_has_rows_and_columns_side_by_side(tmp_path):
    MadeRows.of(MADE, TABLE).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "100 rows were made, like those of a table of 300 rows." in text
    assert "How much each column differs from the table" in text
    assert "(p = " not in text[: text.index("</main>")]
