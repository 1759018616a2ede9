"""Functions that hide the differences between array libraries."""

import subprocess
import sys

import array_api_strict
import numpy as np
import pytest

from isopleth.core.arrays import add_at, full_precision


@pytest.mark.parametrize("rows", [[], [3], [0, 2, 4], [4, 2, 0], [1, 1, 3], [3, 1, 3]])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_rows_are_added_as_often_as_they_occur(rows, columns):
    rng = np.random.default_rng(0)
    start, values = rng.normal(size=(5, *columns)), rng.normal(size=(len(rows), *columns))
    want = start.copy()
    for row, value in zip(rows, values, strict=True):
        want[row] += value
    for xp in (np, array_api_strict):
        out = xp.asarray(start, copy=True)
        add_at(out, xp.asarray(np.array(rows, dtype=np.intp)), xp.asarray(values))
        np.testing.assert_array_equal(np.asarray(out), want)


def test_the_precision_of_torch_is_full_inside_and_restored_by_the_last_user():
    torch = pytest.importorskip("torch")
    before, x = torch.get_float32_matmul_precision(), torch.zeros(1)
    torch.set_float32_matmul_precision("medium")
    try:
        with full_precision(x):
            assert torch.get_float32_matmul_precision() == "highest"
            with full_precision(x):
                assert torch.get_float32_matmul_precision() == "highest"
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_detector_imports_no_other_estimators():
    """What a name does not need costs start-up: packages import their modules when a name is used."""
    code = """import sys, warnings, isopleth
isopleth.AnomalyDetector
print(*sys.modules)
warnings.simplefilter("ignore")
isopleth.SOSREP().fit([[0.0], [1.0], [3.0]])
isopleth.AnomalyDetector().fit([[0.0], [1.0], [3.0]])
print("torch" in sys.modules, "sklearn.tree" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *loaded, torch_is_loaded, trees_are_loaded = done.stdout.split()
    assert torch_is_loaded == "False"  # by a fit to arrays of NumPy either
    assert trees_are_loaded == "False"  # by a detector that explains no row
    assert "isopleth.tasks.anomaly.detector" in loaded
    needless = {"torch", "matplotlib", "jinja2", "scipy.signal", "sklearn.cluster", "click", "pyarrow.parquet"}
    needless |= {f"isopleth.{name}" for name in ("density", "score", "difference", "sampling", "tasks.drift", "io")}
    needless |= {f"isopleth.{name}" for name in ("conditional", "results", "tables.cells", "tasks.anomaly.result")}
    assert not needless & set(loaded)
