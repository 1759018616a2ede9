"""The study of costs on a cluster runs, and its formula adds up."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.array")
study = pytest.importorskip("experiments.distributed")


def test_the_formula_has_every_cost_as_often_as_it_says():
    nothing = dict.fromkeys(("survey", "add", "merge", "send", "task", "begin", "solve", "check"), 0.0)

    def seconds(workers, **cost):
        return study.Costs(**{**nothing, **cost}, size=0).predicted(16 * study.PART, workers, 3)

    assert seconds(1, add=1.0) == 3 * 16 * study.PART
    assert seconds(5, add=1.0) == 3 * 4 * study.PART
    assert seconds(4, survey=1.0) == 4 * study.PART
    assert seconds(4, merge=1.0) == pytest.approx(3 * (4 + 14))
    assert seconds(4, send=1.0) == pytest.approx(3 * (3 + 14))
    assert seconds(1, send=1.0) == 0.0
    assert seconds(4, task=1.0) == pytest.approx(16 + 3 * 16 * 8 / 7)
    assert (seconds(4, begin=1.0), seconds(4, solve=1.0), seconds(4, check=1.0)) == (4.0, 3.0, 1.0)


@pytest.mark.slow
def test_it_runs(tmp_path):
    study.main(["--quick", "--out", str(tmp_path / "table.txt")])
    assert "1,000,000,000" in (tmp_path / "table.txt").read_text(encoding="utf-8")
