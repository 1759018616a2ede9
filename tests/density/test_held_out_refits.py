"""Refits for held-out densities are made once."""

from __future__ import annotations

import numpy as np

from isopleth import KDE, load, save
from isopleth.density.fitted import Fitted


def test_held_out_log_densities_are_computed_once_for_a_fit_and_are_in_no_file(tmp_path, monkeypatch):
    X = np.random.default_rng(2).normal(size=(40, 2))
    density, other = KDE().fit(X), KDE().fit(X[:30])
    save(density, tmp_path / "before")
    refit, fits = Fitted.refit, []
    monkeypatch.setattr(Fitted, "refit", lambda self, *rows: fits.append(len(rows[0])) or refit(self, *rows))
    levels = [density.level_set(0.5), density.level_set(0.9)]
    assert len(fits) == 5
    assert density.level_set([0.5, 0.9]).tolist() == levels
    assert len(fits) == 5
    assert other.level_set(0.5) != levels[0]
    assert density.fit(X[:30]).level_set(0.5) == other.level_set(0.5)  # a new fit has its own
    density.fit(X).level_set(0.5)
    save(density, tmp_path / "after")
    assert (tmp_path / "before").stat().st_size == (tmp_path / "after").stat().st_size
    assert load(tmp_path / "after").level_set(0.9) == levels[1]
