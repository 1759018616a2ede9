"""The study of costs on a cluster runs, and its formula adds up."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.array")
study = pytest.importorskip("experiments.distributed")


def test_the_formula_has_every_cost_as_often_as_it_says():
    costs = ("survey", "row", "worker", "scheduler", "begin", "solve", "check", "idle")

    def seconds(workers, rows=16 * study.PART, **cost):
        return study.Costs(**{**dict.fromkeys(costs, 0.0), **cost}, size=0, share=1.0).fit(rows, workers, 3)

    assert seconds(1, row=1.0) == 3 * 16 * study.PART
    assert seconds(5, row=1.0) == 3 * 4 * study.PART
    assert seconds(5, row=1.0, rows=10) == 3 * 10
    assert seconds(4, survey=1.0) == 4 * study.PART
    assert seconds(1, worker=1.0) == 4 * 16
    assert seconds(4, worker=1.0) == 4 * (4 + 14)
    assert seconds(4, scheduler=1.0) == 4 * 16
    assert study.Costs(1.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0, 1.0).processors(7, 2, 3, 40.0) == 7 * 31 + 40
    assert (seconds(4, begin=1.0), seconds(4, solve=1.0), seconds(4, check=1.0)) == (4.0, 3.0, 1.0)


@pytest.mark.slow
def test_it_runs(tmp_path):
    study.main(["--quick", "--out", str(tmp_path / "table.txt")])
    assert "1,000,000,000" in (tmp_path / "table.txt").read_text(encoding="utf-8")
