"""``isopleth score``: answers in files, chunk by chunk, and runs that are interrupted."""

from __future__ import annotations

import os
import signal
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forked
from cli import shell
from isopleth import KDE, LSDD, AnomalyDetector, ClassPriorEstimator, NystromKEF, RandomFeatureSOSREP, read_table
from isopleth.io import resume as journals
from isopleth.io import save

run = partial(shell.run, "score")
refused = partial(shell.refused, "score")

X = np.random.default_rng(0).normal(size=(80, 3))


def named(model, *names):
    """The model as a table with these names makes it."""
    model.feature_names_in_ = np.array(names, dtype=object)
    return model


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="c,a,b", comments="")
    return path


@pytest.fixture
def model(tmp_path):
    """A model of two columns with the names a and c."""
    save(named(KDE(length_scale=0.5, frame="scale").fit(X[:, [1, 0]]), "a", "c"), tmp_path / "model")
    return tmp_path / "model"


def test_rows_beyond_the_range_of_a_density_are_counted(tmp_path):
    rows = np.concatenate([X, [[1e3, 0.0, 0.0], [-1.0, 900.0, 0.0]]])
    np.save(tmp_path / "x.npy", rows)
    options = {"n_frequencies": 50, "length_scale": 1.5, "random_state": 0}
    for number, model in enumerate(
        (RandomFeatureSOSREP(**options), RandomFeatureSOSREP(**options, bounds={0: (-9.0, 99.0)}), KDE(frame="scale"))
    ):
        save(model.fit(X), tmp_path / "m")
        lost = int(np.isneginf(model.score_samples(rows)).sum())
        result = run(tmp_path / "m", tmp_path / "x.npy", "--out", tmp_path / "r.npy", "--chunk-rows", 30)
        first, *more = result.stdout.splitlines()
        assert first.startswith("82 rows: log_density in ")
        bounds = " or its bounds" if number == 1 else ""
        rows_are = "row is" if lost == 1 else "rows are"
        said = f"{lost} {rows_are} beyond the range of the density{bounds}: log_density is -inf and does not rank them"
        assert more == ([said] if number < 2 else [])
        assert (lost > 0) == (number < 2)


def test_every_kind_of_model_says_what_it_says_in_memory(tmp_path, file):
    detector, score = AnomalyDetector(random_state=0).fit(X), NystromKEF(landmarks=10, random_state=0).fit(X)
    difference = LSDD(length_scale=1.0, alpha=0.1, random_state=0).fit(X, X + 1)
    density, vectors = KDE(length_scale=0.5, frame="scale").fit(X), score.grad_log_density(X)
    expected = {
        density: {"log_density": density.score_samples(X)},
        detector: {
            "score": detector.score_samples(X),
            "pvalue": detector.p_values(X),
            "label": detector.predict(X) < 0,
        },
        named(score, "c", "a", "b"): dict(zip(["d_c", "d_a", "d_b"], vectors.T, strict=True)),
        difference: {"difference": difference.difference(X)},
    }
    for fitted, columns in expected.items():
        save(fitted, tmp_path / "m")
        for suffix in (".csv", ".parquet", ".npy"):
            out = tmp_path / f"r{suffix}"
            result = run(tmp_path / "m", file, "--out", out, "--chunk-rows", 30)
            assert result.exit_code == 0, result.output
            table = read_table(out, keep_identifiers=True)
            offset = 0 if suffix == ".npy" else 1
            if offset:
                assert table.names == ["line", *columns]
                assert table.values[:, 0].tolist() == list(range(2, 82))
            for j, values in enumerate(columns.values()):
                np.testing.assert_allclose(table.values[:, j + offset], values, rtol=1e-12)
            out.unlink()


def test_a_pipeline_says_what_its_last_step_says(tmp_path, file):
    detector = make_pipeline(StandardScaler(), AnomalyDetector(random_state=0)).fit(X)
    assert run(_saved(detector, tmp_path), file, "--out", tmp_path / "d.csv").exit_code == 0
    table, scaled = read_table(tmp_path / "d.csv", keep_identifiers=True), detector[0].transform(X)
    assert table.names == ["line", "score", "pvalue", "label"]
    np.testing.assert_allclose(table.values[:, 2], detector[1].p_values(scaled), rtol=1e-12)
    assert np.array_equal(table.values[:, 3], detector.predict(X) < 0)
    for density in (
        make_pipeline(StandardScaler(), KDE(frame="scale")).fit(X),
        make_pipeline(KDE(frame="scale")).fit(X),
    ):
        assert run(_saved(density, tmp_path), file, "--out", tmp_path / "k.csv").exit_code == 0
        table = read_table(tmp_path / "k.csv", keep_identifiers=True)
        assert table.names == ["line", "log_density"]
        np.testing.assert_allclose(table.values[:, 1], density.score_samples(X), rtol=1e-12)
    vectors = make_pipeline(StandardScaler(), NystromKEF(landmarks=10)).fit(X)
    assert "holds a Pipeline, which" in refused(_saved(vectors, tmp_path), file, "--out", tmp_path / "v.csv")


def test_rows_have_their_lines_and_their_numbers_if_asked_for(tmp_path, file, model):
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:11], "", *lines[11:]]) + "\n")
    out = tmp_path / "r.csv"
    assert run(model, file, "--out", out, "--row-numbers", "--chunk-rows", 9).exit_code == 0
    table = read_table(out, keep_identifiers=True)
    assert table.names == ["line", "row", "log_density"]
    assert table.values[:, 0].tolist() == [*range(2, 12), *range(13, 83)]
    assert table.values[:, 1].tolist() == list(range(1, 81))
    np.save(tmp_path / "x.npy", X[:, :2])
    assert run(model, tmp_path / "x.npy", "--out", out, "--chunk-rows", 9).exit_code == 0
    table = read_table(out, keep_identifiers=True)
    assert table.names == ["row", "log_density"]
    assert table.values[:, 0].tolist() == list(range(1, 81))


def test_columns_are_matched_by_name(tmp_path, file, model):
    assert run(model, file, "--out", tmp_path / "r.npy").exit_code == 0
    np.testing.assert_allclose(
        np.load(tmp_path / "r.npy")[:, 0], KDE(length_scale=0.5, frame="scale").fit(X[:, :2]).score_samples(X[:, :2])
    )
    assert "lacks 'c'" in refused(model, file, "--out", tmp_path / "r.npy", "--columns", "a,b")
    np.save(tmp_path / "x.npy", X)
    assert "3 columns where the model was fitted on 2" in refused(
        model, tmp_path / "x.npy", "--out", tmp_path / "r.npy"
    )


def test_chunks_do_not_show_in_the_results(tmp_path, file, model):
    for size in (7, 80, 1000):
        assert run(model, file, "--out", tmp_path / f"{size}.csv", "--chunk-rows", size).exit_code == 0
    contents = [read_table(tmp_path / f"{size}.csv").values for size in (7, 80, 1000)]
    np.testing.assert_allclose(contents[1], contents[0], rtol=1e-13)
    assert np.array_equal(contents[1], contents[2])


def test_what_is_wrong_is_one_line_and_leaves_nothing(tmp_path, file, model):
    assert "ends in none of .csv, .parquet, .npy" in refused(model, file, "--out", tmp_path / "r.txt")
    assert "same file" in refused(model, file, "--out", file)
    assert "not fitted" in refused(_saved(KDE(frame="scale"), tmp_path), file, "--out", tmp_path / "r.csv")
    prior = ClassPriorEstimator().fit(X, X[:, 0] > 0)
    assert "says nothing of single rows" in refused(_saved(prior, tmp_path), file, "--out", tmp_path / "r.csv")
    file.write_text("a,b,c\n" + "1,2,3\n" * 9 + "1,2,x\n")
    assert "line 11" in refused(model, file, "--out", tmp_path / "r.csv")
    assert not list(tmp_path.glob("r.*"))


def _saved(model, folder):
    save(model, folder / "other")
    return folder / "other"


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy"])
def test_a_run_interrupted_anywhere_gives_the_same_bytes(tmp_path, file, model, suffix, monkeypatch):
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"r{suffix}"
    assert run(model, file, "--out", whole, "--chunk-rows", 9).exit_code == 0
    append, stops = journals.Journal.append, 0

    def stopped(self, key, arrays):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        append(self, key, arrays)

    monkeypatch.setattr(journals.Journal, "append", stopped)
    while True:
        calls = 0
        result = run(model, file, "--out", out, "--chunk-rows", 9, "--resume")
        if result.exit_code == 0:
            break
        assert result.exit_code == 130
        assert "continue with --resume" in result.stderr
        assert not out.exists()
        stops += 1
        assert stops < 20
    assert stops >= 3
    assert out.read_bytes() == whole.read_bytes()
    assert not (tmp_path / f"r{suffix}.partial").exists()


def test_what_an_interrupted_run_has_left_is_not_written_over(tmp_path, file, model, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "r.csv"
    with monkeypatch.context() as patched:
        patched.setattr("isopleth.cli.score._write", stopped)
        result = run(model, file, "--out", out)
    assert result.exit_code == 130
    assert "continue with --resume" in result.stderr
    assert "continue it with --resume" in refused(model, file, "--out", out)
    assert "begun with another --chunk-rows:" in refused(model, file, "--out", out, "--resume", "--chunk-rows", 5)
    save(KDE(length_scale=0.7, frame="scale").fit(X[:, :2]), model)
    assert "another --columns, MODEL:" in refused(model, file, "--out", out, "--resume", "--columns", "b,c")


def test_a_run_that_is_killed_goes_on_and_gives_the_same_bytes(tmp_path, file, model):
    """The signal cannot be caught."""
    out, partial = tmp_path / "r.csv", tmp_path / "r.csv.partial"
    append = journals.Journal.append

    def torn(self, key, arrays):
        append(self, key, arrays)
        if key == "30":
            os.kill(os.getpid(), signal.SIGKILL)

    def before():
        journals.Journal.append = torn

    command = ["score", str(model), str(file), "--out", str(out), "--chunk-rows", "10"]
    assert forked.run(command, before).returncode == -signal.SIGKILL
    assert partial.exists()
    assert not out.exists()
    assert run(*command[1:], "--resume").exit_code == 0
    assert run(*command[1:3], "--out", tmp_path / "whole.csv", "--chunk-rows", 10).exit_code == 0
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not partial.exists()
