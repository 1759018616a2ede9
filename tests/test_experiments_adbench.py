"""The open board of anomaly tables: settings, resumption, the page."""

import csv
import sys

import numpy as np
import pytest
from experiments import adbench, adbench_flags
from experiments.adbench_boards import TIMES, oddbench, tables
from experiments.adbench_boards import adbench as adbench_task
from experiments.adbench_methods import NAMES, PYOD, method
from experiments.adbench_page import page, ranks


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    for board in ("adbench", "oddbench"):
        (tmp_path / board).mkdir()
    for i in range(2):
        X = rng.normal(size=(120, 3))
        X[:12] += 6.0
        y = np.r_[np.ones(12), np.zeros(108)]
        np.savez(tmp_path / "adbench" / f"{i}_a.npz", X=X, y=y)
        np.savez(tmp_path / "oddbench" / f"t{i}.npz", train=rng.normal(size=(60, 3)), test=X, test_labels=y)
    return tmp_path


def test_copies_are_exact_or_moved_and_stay_on_their_side_of_the_split(data):
    path = tables(data, "adbench")[0]
    plain, exact, moved = (adbench_task(path, s, 1) for s in ("as they are", "copies", "copies moved 1 %"))
    assert exact.labels.sum() == moved.labels.sum() == TIMES * plain.labels.sum()
    anomalies = exact.test[exact.labels == 1]
    assert len(np.unique(anomalies, axis=0)) <= plain.labels.sum()
    assert len(np.unique(moved.test[moved.labels == 1], axis=0)) == moved.labels.sum()
    seen = {row.tobytes() for row in np.round(exact.train, 9)}
    assert not any(row.tobytes() in seen for row in np.round(anomalies, 9))


def test_a_clean_reference_holds_ordinary_rows_only(data):
    task = adbench_task(tables(data, "adbench")[0], "clean reference", 1)
    assert len(task.train) == 54
    assert task.labels.sum() == 12
    assert len(task.test) == len(task.labels) == 66
    odd = oddbench(tables(data, "oddbench")[0], "clean reference", 1)
    assert odd.train.shape == (60, 3)
    np.testing.assert_allclose(odd.train.mean(axis=0), 0.0, atol=1e-12)
    assert oddbench(tables(data, "oddbench")[0], "as they are", 1).test is None


def test_neighbours_of_training_rows_are_other_rows(data):
    task = oddbench(tables(data, "oddbench")[0], "as they are", 1)
    distances = np.sort(np.linalg.norm(task.train[:, None] - task.train, axis=2), axis=1)[:, 1:6]
    np.testing.assert_allclose(method("5-NN")(task, False, 0), distances.mean(axis=1))
    np.testing.assert_allclose(method("DTE-NP")(task, False, 0), (distances**2).mean(axis=1))


def test_a_run_goes_on_where_it_stopped_and_the_page_follows(data, monkeypatch, capsys):
    out = data / "board.csv"
    command = [
        "adbench",
        "--data",
        str(data),
        "--out",
        str(out),
        "--seeds",
        "1",
        "--settings",
        "as they are",
        "clean reference",
    ]
    monkeypatch.setattr(sys, "argv", [*command, "--methods", "isopleth"])
    adbench.main()
    first = out.read_text()
    monkeypatch.setattr(sys, "argv", [*command, "--methods", "isopleth", "5-NN"])
    adbench.main()
    assert out.read_text().startswith(first)
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 2 * 2 * 2
    assert min(float(line["auc"]) for line in lines if line["method"] == "isopleth") > 0.9
    text = page(lines)
    assert "adbench, the rows as they are, anomalies among them: 2 tables, seeds 1" in text
    mean = 100 * np.mean(
        [
            float(n["auc"])
            for n in lines
            if (n["board"], n["setting"], n["method"]) == ("oddbench", "clean reference", "5-NN")
        ]
    )
    assert f"{mean:.1f}" in text.split("oddbench, fitted to ordinary rows only")[1]
    monkeypatch.setattr(sys, "argv", ["adbench", "--page", str(out)])
    adbench.main()
    assert capsys.readouterr().out.strip() == text.strip()


def test_ranks_share_ties():
    np.testing.assert_allclose(ranks(np.array([[0.9, 0.5], [0.9, 0.7], [0.1, 0.6]])), [[1.5, 3], [1.5, 1], [3, 2]])


def test_names_are_those_of_methods():
    assert len(set(NAMES)) == len(NAMES)
    pytest.importorskip("pyod")
    for name in PYOD:
        assert callable(method(name))


def test_flags_are_counted_by_table_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    lines = adbench_flags.selected_by_table({"a": [np.array([1, 0]), np.array([1, 1])], "b": [np.empty(0)]})
    assert len(lines) == 2
    assert lines[1].split() == ["a", "4", "25.0", "%"]
    p = np.linspace(0.0, 0.99, 400)
    y = (np.random.default_rng(0).random(400) < p).astype(int)
    assert len(adbench_flags.reliability([p], [y])) == len(adbench_flags.EDGES)
    adbench_flags.draw([p], [y], tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
