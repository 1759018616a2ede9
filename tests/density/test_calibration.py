"""Intervals of missing numbers at levels that held-out cells have calibrated."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import SOSREP, DensityImputer, InputError, load, save
from isopleth.density.corrections import Calibration


def rows_of(n, seed, d=30):
    """Rows of two hidden numbers and noise, so that a line fits the rows that it was fitted to too well."""
    loadings = np.random.default_rng(9).normal(size=(2, d))
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) @ loadings + 0.5 * rng.normal(size=(n, d))


def share_inside(model, X):
    asked = X.copy()
    asked[:, 0] = np.nan
    lower, upper = model.impute_interval(asked)
    return np.mean((lower[:, 0] <= X[:, 0]) & (X[:, 0] <= upper[:, 0]))


def test_few_rows_of_many_columns(monkeypatch) -> None:
    found = {True: [], False: []}
    for seed in range(2):
        model = DensityImputer(SOSREP(frame="scale", n_jobs=1)).fit(rows_of(40, seed))
        for calibrated in found:
            with monkeypatch.context() as patch:
                if not calibrated:
                    patch.setattr(Calibration, "ends", lambda self, column, c: (0.5 - 0.5 * c, 0.5 + 0.5 * c))
                found[calibrated].append(share_inside(model, rows_of(150, 50 + seed)))
    assert 0.86 < np.mean(found[True]) < 0.98  # .93 in four samples
    assert np.mean(found[False]) < 0.8  # .71 in the same: residuals of the rows of the fit are too small


def test_levels_are_quantiles_over_one_more_cell() -> None:
    distances = np.arange(1.0, 10.0) / 20.0  # nine cells: those of level .8 are the eighth
    calibration = Calibration({0: (distances, np.ones(9)), 1: (np.empty(0), np.empty(0))})
    assert calibration.ends(0, 0.8) == pytest.approx((0.1, 0.9))
    assert calibration.ends(0, 0.999) == pytest.approx((0.05, 0.95))  # the largest
    assert calibration.ends(1, 0.8) == pytest.approx((0.1, 0.9))  # nothing is known of such a column


def test_weights_count_rows() -> None:
    X = rows_of(40, 5, d=4)
    X[::7, 2] = np.nan
    counts = np.resize([1, 2, 3], 40)
    asked = X[:5].copy()
    asked[:, 0] = np.nan
    ends = [
        DensityImputer().fit(rows, sample_weight=weights).impute_interval(asked)
        for rows, weights in ((X, counts), (np.repeat(X, counts, axis=0), None))
    ]
    np.testing.assert_allclose(ends[0][0][:, 0], ends[1][0][:, 0], rtol=1e-6)


def test_levels_are_found_once_and_kept(monkeypatch, tmp_path) -> None:
    X = rows_of(40, 3, d=3)
    X[0, 0] = np.nan
    imputer = DensityImputer().fit(X)
    ends = imputer.impute_interval(X)
    save(imputer, tmp_path / "imputer.isopleth")
    monkeypatch.setattr(Calibration, "of", None)
    for kept in (imputer, load(tmp_path / "imputer.isopleth")):
        np.testing.assert_array_equal(kept.impute_interval(X), ends)
    assert imputer.fit(X)._calibration is None


def test_other_frames_have_no_calibrated_intervals() -> None:
    with pytest.raises(InputError, match="need frame='scale'"):
        DensityImputer(SOSREP(frame="whiten")).fit(rows_of(40, 3, d=3)).impute_interval([[np.nan, 1.0, 1.0]])
