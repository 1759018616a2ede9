"""The study of costs on a cluster runs, and its formula adds up."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.array")
study = pytest.importorskip("experiments.distributed")


@pytest.mark.slow
def test_it_runs(tmp_path):
    study.main(["--quick", "--out", str(tmp_path / "table.txt")])
    assert "1,000,000,000" in (tmp_path / "table.txt").read_text(encoding="utf-8")
