"""The open board of anomaly tables: settings, resumption, the page."""

import csv
import sys

import numpy as np
import pytest
from experiments import adbench, adbench_methods
from experiments.adbench_boards import TIMES, Task, oddbench, tables, with_copies
from experiments.adbench_boards import adbench as adbench_task
from experiments.adbench_kernels import KERNELS, density_score, length_scale, median_distance
from experiments.adbench_page import page
from experiments.adbench_pictures import critical_difference
from scipy.spatial.distance import cdist, pdist


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
    rows, y = np.zeros((20, 2)), np.arange(20) < 3
    for setting, still in (("copies", 20 - 3 + 5 * 3), ("copies moved 1 %", 20 - 3), ("copies, all moved 1 %", 0)):
        found, labels = with_copies(rows, y.astype(int), setting, np.ones(2), np.random.default_rng(0))
        assert ((found == 0.0).all(axis=1).sum(), labels.sum()) == (still, 15)
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


def test_a_run_goes_on_where_it_stopped_and_the_page_follows(data, monkeypatch, capsys):
    out = data / "board.csv"
    monkeypatch.setitem(adbench_methods.OWN, "isopleth", adbench_methods.OWN[adbench_methods.FAST])
    command = ["adbench", "--data", str(data), "--out", str(out), "--seeds", "1"]
    command += ["--settings", "as they are", "clean reference"]
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
    assert "adbench, the rows as they are, anomalies among them: 2 tables, seed 1; detectors" in text
    asked = ("oddbench", "clean reference", "5-NN")
    mean = 100 * np.mean([float(n["auc"]) for n in lines if (n["board"], n["setting"], n["method"]) == asked])
    assert f"{mean:.1f}" in text.split("oddbench, fitted to ordinary rows only")[1]
    monkeypatch.setattr(sys, "argv", ["adbench", "--page", str(out)])
    adbench.main()
    assert capsys.readouterr().out.strip() == text.strip()


def lines_of(values, setting="as they are", board="adbench"):
    """Lines of a file from AUC by method, seed and table."""
    same = {"board": board, "setting": setting, "seconds": 1}
    return [
        {**same, "method": name, "seed": seed, "table": table, "auc": auc, "pr": auc}
        for (name, seed, table), auc in values.items()
    ]


def test_the_score_of_a_kernel_density_is_minus_the_log_of_its_mean_kernel():
    rng = np.random.default_rng(2)
    task = Task(rng.normal(size=(40, 2)), rng.normal(size=(10, 2)), np.zeros(10))
    scale = length_scale(task.train, "KDE", "gaussian", "fixed", 0)
    assert scale == pytest.approx(np.partition(pdist(task.train), 389)[389] / 4)
    by_hand = -np.log(np.exp(-((cdist(task.test, task.train) / scale) ** 2) / 2).mean(axis=1) / (2 * np.pi * scale**2))
    np.testing.assert_allclose(density_score("KDE", "gaussian", "fixed")(task, False, 0), by_hand, rtol=1e-6)
    assert median_distance(task.train, "sdo") == pytest.approx(median_distance(task.train, "gaussian") / np.sqrt(2))


def test_critical_differences_are_those_of_the_tables():
    # Demsar (2006), table 5: q = 2.343 (3 methods), 2.728 (5), 3.164 (10)
    for methods, q in ((3, 2.343), (5, 2.728), (10, 3.164)):
        assert critical_difference(methods, 30) == pytest.approx(q * np.sqrt(methods * (methods + 1) / 180), rel=1e-3)


def test_pictures_are_drawn_from_the_file(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    names = ["isopleth", "IForest", "MCD", *list(KERNELS)[:2]]
    out = tmp_path / "board.csv"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, adbench.FIELDS)
        writer.writeheader()
        for board in ("adbench", "oddbench"):
            writer.writerows(lines_of({(n, "1", t): rng.random() for n in names for t in ("1_a", "2_b")}, board=board))
    monkeypatch.setattr(sys, "argv", ["adbench", "--pictures", str(out), "--to", str(tmp_path)])
    adbench.main()
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn == {f"anomalies_board_{kind}.png" for kind in ("boxes", "ranks", "heat")}
