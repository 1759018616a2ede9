"""The same model gives the same bytes in a file."""

from __future__ import annotations

import time
from zipfile import ZipFile

import numpy as np

from isopleth import AnomalyDetector, RandomFeatureSOSREP
from isopleth.io import load, save

X = np.random.default_rng(0).normal(size=(60, 2))


def saved(model, folder, name) -> bytes:
    save(model, folder / name)
    return (folder / name).read_bytes()


def test_neither_time_nor_place_in_memory_shows(tmp_path, monkeypatch):
    one = saved(AnomalyDetector(random_state=0).fit(X), tmp_path, "one")
    monkeypatch.setattr(time, "time", lambda: 1e9)
    other = AnomalyDetector(random_state=0).fit(X.copy())
    assert saved(other, tmp_path, "other") == one
    assert saved(load(tmp_path / "one"), tmp_path, "again") == one


def test_another_model_has_other_bytes(tmp_path):
    models = [RandomFeatureSOSREP(n_frequencies=5, random_state=seed).fit(X) for seed in (0, 1)]
    assert saved(models[0], tmp_path, "one") != saved(models[1], tmp_path, "other")


def test_an_array_in_two_places_is_kept_once(tmp_path):
    model = RandomFeatureSOSREP(n_frequencies=5, random_state=0).fit(X)
    model.first_ = model.second_ = np.arange(1000.0)
    save(model, tmp_path / "model")
    with ZipFile(tmp_path / "model") as archive:
        assert sum(member.file_size > 8000 for member in archive.infolist() if member.filename.endswith(".npy")) == 1
    kept = load(tmp_path / "model")
    assert np.array_equal(kept.first_, kept.second_)
