"""Chunks of files as parts of the rows, and fits over them that are interrupted."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD, SOSREP, NystromKEF, RandomFeatureSOSREP
from isopleth.core.parts import ArrayParts, ColumnMoments, FirstPass, RowSample
from isopleth.distributed import FileParts, fit
from isopleth.io import checkpoint as checkpoints
from isopleth.io import save
from isopleth.io.checkpoint import Checkpoint, restored, state_of
from isopleth.io.resume import Journal
from isopleth.score import Tikhonov

X = np.random.default_rng(0).normal(size=(300, 2))
ABOUT = {"FILE": "x"}

FITS = {
    "density on landmarks": lambda parts: fit(SOSREP(landmarks=30, frame="scale"), parts),
    "density": lambda parts: fit(RandomFeatureSOSREP(n_frequencies=20, random_state=0), parts),
    "score": lambda parts: fit(NystromKEF(landmarks=20, random_state=0), parts),
    "score of one ridge": lambda parts: fit(NystromKEF(regularizer=Tikhonov(), landmarks=X[:9], random_state=0), parts),
}


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


def model_bytes(model, folder) -> bytes:
    save(model, folder / "model")
    return (folder / "model").read_bytes()


def test_sums_are_those_of_the_same_parts_in_memory(file):
    parts = FileParts(file, chunk_rows=100)
    there = ArrayParts(X, part_rows=100).sums(lambda: ColumnMoments(2), ColumnMoments.add)
    here = parts.sums(lambda: ColumnMoments(2), ColumnMoments.add)
    assert (here.mean.tobytes(), here.deviation.tobytes()) == (there.mean.tobytes(), there.deviation.tobytes())
    assert (parts.names, parts.n_features) == (None, 2)


def test_names_are_those_of_the_file_and_of_the_chosen_columns(tmp_path):
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b", comments="")
    model = FITS["density"](FileParts(tmp_path / "x.csv", ["b"], chunk_rows=100))
    assert model.feature_names_in_.tolist() == ["b"]


@pytest.mark.parametrize("kind", ["density", "score"])  # of two passes, and of many
def test_a_fit_interrupted_anywhere_ends_with_the_same_bytes(tmp_path, file, kind, monkeypatch):
    (tmp_path / "whole").mkdir()
    whole = model_bytes(FITS[kind](FileParts(file, chunk_rows=100)), tmp_path / "whole")
    keep, stopped = checkpoints.KeptPass.keep, 0

    def killed(self, sums, rows, *, whole):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        keep(self, sums, rows, whole=whole)

    monkeypatch.setattr(checkpoints.KeptPass, "keep", killed)
    kept = tmp_path / "kept"
    while True:
        calls = 0
        try:
            with Journal(kept, ABOUT) as journal:
                model = FITS[kind](FileParts(file, chunk_rows=100, checkpoint=Checkpoint(journal, seconds=0.0)))
                break
        except KeyboardInterrupt:
            stopped += 1
            assert stopped < 200
    assert stopped >= 2
    assert model_bytes(model, tmp_path) == whole
    journal.remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "whole", "x.npy"]


def test_a_pass_that_was_made_is_not_made_again(tmp_path, file):
    def counted():
        shares = []
        with Journal(tmp_path / "kept", ABOUT) as journal:
            parts = FileParts(
                file, chunk_rows=100, checkpoint=Checkpoint(journal), progress=lambda *how_far: shares.append(how_far)
            )
            parts.sums(lambda: ColumnMoments(2), ColumnMoments.add)
        return shares

    assert counted() == [(1, 0.0), (1, 1 / 3), (1, 2 / 3), (1, 1.0)]
    assert counted() == [(1, 1.0)]


def test_state_brings_back_every_number():
    survey = FirstPass(2, 5).add(X)
    copy = restored(FirstPass(2, 5), state_of(survey))
    assert copy.sample.complete is False
    assert isinstance(copy.moments.weight, float)
    for name, values in state_of(survey).items():
        assert np.array_equal(state_of(copy)[name], values), name
    assert state_of(copy.merge(FirstPass(2, 5).add(X[:3]))).keys() == state_of(survey).keys()


def test_state_leaves_arrays_that_sums_do_not_change_as_they_are():
    sums = ColumnMoments(2)
    sums.about = X  # type: ignore[attr-defined]
    copy = ColumnMoments(2)
    copy.about = there = X.copy()  # type: ignore[attr-defined]
    assert restored(copy, state_of(sums)).about is there
    copy.about = -0.0 * np.abs(X)
    sums.about = 0.0 * np.abs(X)
    assert not np.signbit(restored(copy, state_of(sums)).about).any()


def test_state_of_other_sums_or_of_what_may_change_unseen_is_refused():
    with pytest.raises(KeyError):
        restored(ColumnMoments(2), state_of(RowSample(3)))
    sums = ColumnMoments(2)
    sums.seen = {1, 2}  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="set at seen"):
        state_of(sums)


def test_two_samples_in_two_files(tmp_path, file):
    np.save(tmp_path / "y.npy", X[:170] + 1.0)
    model = LSDD(length_scale=1.0, alpha=0.1, centers=X[:30])
    there = fit(model, ArrayParts(X, part_rows=70), ArrayParts(X[:170] + 1.0, part_rows=70)).difference(X)
    here = fit(model, FileParts(file, chunk_rows=70), FileParts(tmp_path / "y.npy", chunk_rows=70)).difference(X)
    assert np.array_equal(here, there)
