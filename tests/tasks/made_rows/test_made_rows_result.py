"""Made rows beside their table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import ks_2samp

from isopleth import InputError
from isopleth.tables.relations import broken_relations, kept, relations_of
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


class TestRelations:
    RNG = np.random.default_rng(1)
    N = 200
    QUANTITY, PRICE, TAX = RNG.integers(1, 9, N), RNG.gamma(4, 3, N).round(2), RNG.gamma(2, 2, N).round(2)
    LOW = RNG.normal(size=N).round(2)
    SALES = pd.DataFrame(
        {
            "gross": (QUANTITY * PRICE + TAX).round(2),
            "net": (QUANTITY * PRICE).round(2),
            "quantity": QUANTITY,
            "price": PRICE,
            "tax": TAX,
            "low": LOW,
            "high": LOW + RNG.gamma(2, 0.5, N).round(2),
            "town": "a",
            "far": LOW + 1000.0,  # above all others, which says nothing
        }
    )

    def test_products_sums_and_orders_are_found_and_nothing_else(self):
        found = [str(relation) for relation in relations_of(self.SALES.to_dict("list"))]
        assert found[:2] == ["gross = net + tax", "net = quantity x price"]
        assert {"low <= high", "net <= gross", "price <= net"} <= set(found)
        assert not any("far" in relation for relation in found)
        one_off = self.SALES.assign(gross=self.SALES["gross"] + (np.arange(self.N) == 150))
        assert list(map(str, relations_of(one_off.to_dict("list"))))[:2] == [found[1], found[0]]  # a few wrong rows
        loose = self.RNG.normal(size=(60, 6)).round(1)
        assert relations_of(dict(zip("abcdef", loose.T.tolist(), strict=True))) == []

    def test_rows_that_break_a_relation_of_nearly_all_rows_are_found(self):
        numbers = {name: self.SALES[name].to_numpy(float) for name in self.SALES if name != "town"}
        assert broken_relations(numbers) == {}
        numbers["net"] = numbers["net"] + np.isin(np.arange(self.N), [7, 150])
        found = {str(relation): rows.tolist() for relation, rows in broken_relations(numbers).items()}
        assert found == {"gross = net + tax": [7, 150], "net = quantity x price": [7, 150]}
        # Columns that are nearly always 0, and a column with a few corrections, are no relations.
        rare = np.where(np.arange(self.N) % 50 == 3, np.arange(self.N), 0.0)
        assert broken_relations({"a": numbers["tax"] + rare, "b": numbers["tax"], "c": rare * (rare > 60.0)}) == {}
        assert broken_relations({"a": rare, "b": rare[::-1], "c": np.roll(rare, 1)}) == {}

    def test_gaps_break_nothing_and_stay(self):
        gaps = self.SALES.mask(np.random.default_rng(2).random(self.SALES.shape) < 0.1)
        relations = relations_of({name: [None if x != x else x for x in gaps[name]] for name in gaps})
        assert [str(relation) for relation in relations[:2]] == ["gross = net + tax", "net = quantity x price"]
        drawn = gaps.sample(frac=1.0, random_state=0).assign(quantity=gaps["quantity"].to_numpy())
        made = kept(pa.Table.from_pandas(drawn, preserve_index=False), relations).to_pandas()
        known = made[["net", "quantity", "price"]].notna().all(axis=1)
        np.testing.assert_allclose((made["quantity"] * made["price"])[known], made["net"][known], atol=0.0051)
        known = made[["gross", "net", "tax"]].notna().all(axis=1)  # of the new net, not of the old one
        np.testing.assert_allclose((made["net"] + made["tax"])[known], made["gross"][known], atol=1e-6)
        assert made["net"].isna().equals(drawn["net"].isna().reset_index(drop=True))

    def test_what_is_kept_and_what_is_broken_is_said(self):
        made = self.SALES.assign(low=self.SALES["high"].where(self.SALES.index > 4, self.SALES["high"] + 1.0))
        found = MadeRows.of(made, self.SALES)
        facts = found.to_dict()["relations"]
        assert (facts["low <= high"], facts["gross = net + tax"]) == (5, 0)
        summary = " ".join(found.to_dict()["summary"])
        assert "Kept, as in all or nearly all rows of the table: gross = net + tax, net = quantity x price" in summary
        assert "Broken, and in no or few rows of the table: low <= high in 5 rows." in summary
