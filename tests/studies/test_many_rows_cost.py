"""The table of what users wait for, and the cost of many rows: programs run, and what is counted is what was done."""

import numpy as np
from benchmarks import product, scale

from isopleth import AnomalyDetector


def test_programs_are_python_and_cost_processor_time(tmp_path):
    for row in product.rows(tmp_path, quick=True):
        for program in filter(None, (row.ours, row.beside)):
            compile(program, row.name, "exec")
    seconds, memory = product.cost("sum(range(3_000_000))")
    assert seconds > 0.01
    assert memory > 3
    line = product.line(product.Row("sums", "sum(range(3_000_000))", "pass", "nothing"), 1)
    assert line.startswith("sums ")
    assert line.endswith("nothing")


def test_rows_that_are_made_while_they_are_read_are_those_of_a_table():
    parts = scale.MadeRows(60_000, 3)
    found = scale.fit_parts(AnomalyDetector(max_fit_rows=300, n_estimators=5, random_state=0), parts)
    X = np.concatenate([np.random.default_rng(k).normal(size=(n, 3)) for k, n in enumerate((50_000, 10_000))])
    there = AnomalyDetector(max_fit_rows=300, n_estimators=5, random_state=0).fit(X)
    np.testing.assert_allclose(found.training_scores_, there.training_scores_, rtol=1e-9)
    assert len(parts.moved) == 3
    assert parts.moved[1] < 0.25 * X.nbytes  # of the sample, though the parts are the whole table
