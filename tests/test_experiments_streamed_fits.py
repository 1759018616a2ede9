from __future__ import annotations

import numpy as np
import pytest
from experiments import streamed_fits
from experiments.streamed_fits import COLUMNS, DrawnParts, difference, main, measured, score

from isopleth.parts import ColumnMoments


def test_rows_are_drawn_alike_in_every_pass(monkeypatch):
    monkeypatch.setattr(streamed_fits, "PART", 300)
    parts = DrawnParts(1000, seed=0, shift=2.0)
    one, other = (parts.sums(lambda: ColumnMoments(COLUMNS), ColumnMoments.add) for _ in range(2))
    assert one.n_rows == 1000
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_allclose(one.mean, [2.0] + 9 * [0.0], atol=0.2)


def test_fits_are_measured():
    answer, processor, wall, memory = measured(
        lambda: difference({"length_scale": 1.5, "alpha": 1.0, "centers": 50}, 4000)
    )
    assert -1.0 < answer < 1.5
    assert processor > 0.0
    assert wall > 0.0
    assert memory > 50.0
    assert score("diagonal", 1000, 20) < 1.0


@pytest.mark.slow
def test_the_table(tmp_path, capsys):
    main(["--quick", "--out", str(tmp_path / "table.txt")])
    assert (tmp_path / "table.txt").read_text() == capsys.readouterr().out
    assert len((tmp_path / "table.txt").read_text().splitlines()) == 5
