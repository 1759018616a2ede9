"""Record batches of Arrow: the same bits as from files, from every source, and answers batch by batch."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyarrow import parquet

from isopleth import KDE, LSDD, SOSREP, AnomalyDetector, InputError, NystromKEF, RandomFeatureSOSREP
from isopleth.distributed import BatchParts, FileParts, fit, grad_log_density, p_values, predict, score_samples

NAMES = ["a", "b", "c"]
ROWS = np.random.default_rng(0).normal(size=(3000, 3))
TABLE = pa.table(dict(zip(NAMES, ROWS.T, strict=True)))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("batches") / "rows.parquet"
    parquet.write_table(TABLE, path)
    return path


def cut(sizes):
    """Batches of these numbers of rows, again and again."""
    start, k = 0, 0
    while start < len(ROWS):
        yield TABLE.slice(start, sizes[k % len(sizes)]).combine_chunks().to_batches()[0]
        start, k = start + sizes[k % len(sizes)], k + 1


SOURCES = {
    "function": lambda path: lambda: cut([700, 1, 33]),
    "iterator": lambda path: cut([250]),
    "one batch": lambda path: iter(TABLE.combine_chunks().to_batches()),
    "reader": lambda path: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=99)),
    "table": lambda path: TABLE,
    "dataset": lambda path: pyarrow.dataset.dataset(path),
    "scanner": lambda path: pyarrow.dataset.dataset(path).scanner(batch_size=123),
    "polars": lambda path: pl.read_parquet(path),
    "pandas": lambda path: pd.read_parquet(path),
    "batches of polars": lambda path: lambda: pl.read_parquet(path).iter_slices(400),
}
MODELS = {
    "density": (RandomFeatureSOSREP(n_frequencies=40, random_state=0), "coef_"),
    "landmarks": (SOSREP(landmarks=50, length_scale=1.0, frame="scale"), "dual_coef_"),
    "score": (NystromKEF(landmarks=30, random_state=0), "coef_"),
}


def bits(model) -> bytes:
    return (
        model.score_samples(TABLE).tobytes()
        if hasattr(model, "score_samples")
        else model.grad_log_density(TABLE).tobytes()
    )


@pytest.fixture(scope="module")
def expected(path):
    return bits(fit(MODELS["density"][0], FileParts(path, chunk_rows=800)))


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_bits_of_the_file(source, path, expected):
    found = fit(MODELS["density"][0], BatchParts(SOURCES[source](path), chunk_rows=800))
    assert bits(found) == expected
    assert found.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_gives_the_bits_of_the_file(name, path):
    model, _ = MODELS[name]
    expected = bits(fit(model, FileParts(path)))
    assert bits(fit(model, cut([700, 11]))) == expected


def test_two_samples_in_batches(path):
    model = LSDD(length_scale=1.0, alpha=0.1, centers=20, random_state=0)
    other = TABLE.slice(0, 900)
    files = fit(model, FileParts(path), BatchParts(other)).difference(TABLE).tobytes()
    assert fit(model, cut([77]), iter(other.to_batches(max_chunksize=10))).difference(TABLE).tobytes() == files


def test_weights_are_a_column():
    weighted = TABLE.append_column("w", pa.array(np.repeat([1.0, 2.0], 1500)))
    doubled = pa.concat_tables([TABLE, TABLE.slice(1500)])
    model, _ = MODELS["landmarks"]
    one = fit(model, iter(weighted.to_batches(max_chunksize=500)), sample_weight="w").score_samples(TABLE)
    two = fit(model, iter(doubled.to_batches(max_chunksize=500))).score_samples(TABLE)
    np.testing.assert_allclose(one, two, atol=1e-7)
    with pytest.raises(InputError, match="pass its name"):
        fit(model, TABLE, sample_weight=np.ones(3000))


def test_an_iterator_is_read_once_and_from_a_file_after_that():
    read = []

    def counting():
        for batch in cut([500]):
            read.append(batch.num_rows)
            yield batch

    model, _ = MODELS["density"]
    assert bits(fit(model, counting())) == bits(fit(model, TABLE))
    assert sum(read) == 3000


def test_columns_are_chosen_and_ordered():
    parts = BatchParts(TABLE, columns=["c", "a"])
    rows, weights = parts.sample(10_000)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, ROWS[:, [2, 0]]))
    assert weights.sum() == 3000


def test_integers_booleans_and_decimals_are_numbers():
    table = pa.table(
        {"i": pa.array([1, 2, 3], pa.int32()), "b": [True, False, True], "d": pa.array([1, 2, 3], pa.decimal128(5, 2))}
    )
    rows, _ = BatchParts(table).sample(5)
    assert sorted(map(tuple, rows)) == [(1.0, 1.0, 1.0), (2.0, 0.0, 2.0), (3.0, 1.0, 3.0)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (iter([]), "no batch of rows"),
        (pa.table({"a": ["x"], "b": [1.0]}), "no numbers in column 'a'"),
        (iter([3]), "a batch is int"),
        (iter([*TABLE.to_batches(), pa.record_batch({"z": [1.0]})]), "different columns"),
        (lambda: [*TABLE.to_batches(), pa.record_batch({"z": [1.0]})], "no column 'a', 'b', 'c'"),
        (pa.table({"a": [1.0, None, 2.0], "b": [1.0, 2.0, 3.0]}), r"NaN in 'a' \(1 row in rows from 1 on\)"),
    ],
)
def test_rows_that_cannot_be_used(source, message):
    with pytest.raises(InputError, match=message):
        fit(RandomFeatureSOSREP(n_frequencies=10), source)


def test_missing_columns_are_named():
    with pytest.raises(InputError, match="no column 'z'; they have 'a', 'b', 'c'"):
        BatchParts(TABLE, columns=["z"])
    with pytest.raises(InputError, match="expected record batches"):
        BatchParts(3)


class TestAnswers:
    def test_batches_keep_their_columns_and_get_the_answer(self, path):
        model = fit(MODELS["density"][0], FileParts(path))
        more = TABLE.append_column("name", pa.array([f"p{k}" for k in range(3000)]))
        batches = list(score_samples(model, iter(more.to_batches(max_chunksize=1100))))
        assert [batch.num_rows for batch in batches] == [1100, 1100, 800]
        assert batches[0].schema.names == [*NAMES, "name", "score_samples"]
        found = pa.Table.from_batches(batches)
        assert found["score_samples"].to_numpy().tobytes() == model.score_samples(TABLE).tobytes()
        assert found["name"].to_pylist()[-1] == "p2999"

    def test_every_answer(self):
        detector = AnomalyDetector(n_estimators=10, random_state=0).fit(TABLE.slice(0, 300).to_pandas())
        for function in (score_samples, p_values, predict):
            (batch,) = function(detector, iter(TABLE.slice(0, 50).combine_chunks().to_batches()))
            expected = getattr(detector, function.__name__)(TABLE.slice(0, 50).to_pandas())
            np.testing.assert_array_equal(batch.column(function.__name__).to_numpy(), expected)
        density = KDE(frame="scale").fit(ROWS[:200])
        (batch,) = grad_log_density(density, iter(TABLE.slice(0, 9).combine_chunks().to_batches()))
        assert batch.schema.names[3:] == ["d_a", "d_b", "d_c"]
        np.testing.assert_array_equal(
            np.stack([column.to_numpy() for column in batch.columns[3:]], axis=1), density.grad_log_density(ROWS[:9])
        )

    def test_words_are_read_by_the_model(self):
        mixed = pa.table({"x": ROWS[:200, 0], "city": np.where(ROWS[:200, 1] > 0, "Rome", "Oslo")})
        model = KDE(frame="scale").fit(mixed.to_pandas())
        (batch,) = score_samples(model, iter(mixed.combine_chunks().to_batches()))
        np.testing.assert_allclose(batch.column("score_samples").to_numpy(), model.score_samples(mixed.to_pandas()))

    def test_nothing_is_read_before_it_is_asked_for(self):
        model = KDE(frame="scale").fit(ROWS[:100])
        answers = score_samples(model, (pytest.fail("read too early") for _ in range(1)))
        assert iter(answers) is answers

    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            (pa.record_batch({"a": [1.0], "b": [1.0]}), "no column 'c'"),
            (pa.record_batch({"a": [1.0], "b": [None], "c": [2.0]}), "batch 0: X contains NaN in 'b'"),
        ],
    )
    def test_batches_that_the_model_refuses(self, batch, message):
        with pytest.raises(InputError, match=message):
            list(score_samples(fit(MODELS["density"][0], TABLE), iter([batch])))


def test_duckdb_relations(path):
    duckdb = pytest.importorskip("duckdb")
    model, _ = MODELS["density"]
    relation = duckdb.sql(f"select * from '{path}'")
    expected = bits(fit(model, FileParts(path)))
    assert bits(fit(model, BatchParts(relation))) == expected
    assert bits(fit(model, duckdb.sql(f"select * from '{path}'").to_arrow_reader(500))) == expected


def lines_of_the_page() -> str:
    """The lines of Python that the page shows for Spark."""
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "more_machines.rst").read_text(encoding="utf-8")
    block = text[text.index(".. Spark in ten lines") :]
    found = re.search(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", block)
    assert found
    return "\n".join(line[4:] for line in found[1].splitlines())


def test_the_lines_for_spark_are_python():
    compile(lines_of_the_page(), "more_machines.rst", "exec")


def test_spark(path):
    """Run the lines of the page: the fit has the bits of one process, and each row gets its log density."""
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = spark.read.parquet(str(path)).repartition(4)
        names = {"frame": frame, "spark": spark}
        exec(lines_of_the_page(), names)
        scored = names["scored"].toPandas()
        model = names["model"]
        assert len(scored) == 3000
        np.testing.assert_allclose(scored["score_samples"], model.score_samples(scored[NAMES]))
        alone = fit(RandomFeatureSOSREP(random_state=0), TABLE)
        # Spark divides the rows in its own way, so that sums differ in their last digits.
        np.testing.assert_allclose(model.score_samples(TABLE), alone.score_samples(TABLE), atol=1e-5)
    finally:
        spark.stop()
