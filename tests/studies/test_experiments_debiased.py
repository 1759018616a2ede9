"""Parts of the study of debiased kernel density estimates."""

from __future__ import annotations

import numpy as np
import pytest
from experiments import debiased

from isopleth import KDE


@pytest.mark.parametrize("name", ["normal", "two modes", "skewed", "four modes"])
def test_the_closed_form_is_the_integral(name):
    mixture = debiased.mixtures(2)[name]
    rows = mixture.draw(np.random.default_rng(0), 40)
    axis = np.linspace(-9.0, 9.0, 361)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)
    truth = mixture.smoothed(grid, 0.0).sum(axis=1)
    assert truth.sum() * 0.05**2 == pytest.approx(1.0, abs=1e-9)
    estimate = np.exp(KDE(length_scale=0.4, frame="scale").fit(rows).score_samples(grid))
    assert mixture.error(rows, 0.4) == pytest.approx(((estimate - truth) ** 2).sum() * 0.05**2, rel=1e-6)


@pytest.mark.slow
def test_the_command_prints_both_tables(capsys, monkeypatch):
    monkeypatch.setattr(debiased, "SCALES", np.geomspace(0.12, 1.2, 6))
    monkeypatch.setattr(debiased, "SIZES", (60, 120))
    debiased.main(["--quick", "--runs", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 4 + 3
    assert "theory" in lines[6]
