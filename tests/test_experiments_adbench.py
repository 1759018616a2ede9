"""The open board of anomaly tables: settings, resumption, the page."""

import csv
import sys

import numpy as np
import pytest
from experiments import adbench, adbench_flags
from experiments.adbench_boards import TIMES, Task, oddbench, tables
from experiments.adbench_boards import adbench as adbench_task
from experiments.adbench_kernels import KERNELS, density_score, length_scale, median_distance
from experiments.adbench_methods import method
from experiments.adbench_page import HEADER, comparisons, page
from experiments.adbench_pictures import critical_difference
from experiments.adbench_published import FILES, beside
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
    assert "adbench, the rows as they are, anomalies among them: 2 tables, seed 1; detectors" in text
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


def lines_of(values, setting="as they are", board="adbench"):
    """Lines of a file from AUC by method, seed and table."""
    return [
        {
            "board": board,
            "setting": setting,
            "method": name,
            "seed": seed,
            "table": table,
            "auc": auc,
            "pr": auc,
            "seconds": 1,
        }
        for (name, seed, table), auc in values.items()
    ]


def test_methods_stand_beside_others_of_the_same_seeds():
    values = {("isopleth", s, t): 0.9 for s in "12" for t in ("1_a", "2_b")}
    values |= {("IForest", s, t): 0.8 for s in "12" for t in ("1_a", "2_b")}
    values |= {("MCD", "1", t): 0.7 for t in ("1_a", "2_b")} | {("LOF", "1", "1_a"): 0.6}
    found = comparisons(lines_of(values), "adbench", "as they are", ["isopleth", "IForest", "MCD", "LOF"])
    assert [(c.seeds, c.names) for c in found] == [
        (("1",), ["isopleth", "IForest", "MCD"]),
        (("1", "2"), ["isopleth", "IForest"]),
    ]
    text = page(lines_of(values))
    assert "not run on all tables: LOF" in text
    assert HEADER in text
    row = next(line for line in text.splitlines() if line.startswith("MCD"))
    assert row.split()[:4] == ["MCD", "70.0", "70.0", "3.00"]
    assert row.split()[8:] == ["+20.0", "0.0", "+20.0", "+20.0", "+20.0"]


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


def test_published_figures_stand_beside_measured_ones_of_the_same_tables(tmp_path):
    for name in FILES.values():
        (tmp_path / name).write_text("Dataset,IForest,VAE\nA,60,70\nb,80,70\nc,10,20\nimdb,0,0\n")
    values = {(name, "1", t): auc for name, auc in (("isopleth", 0.9), ("IForest", 0.75)) for t in ("1_a", "2_B")}
    lines = [line for setting in (*FILES, "copies") for line in lines_of(values, setting)]
    rows = [line.split() for line in beside(lines, tmp_path).splitlines()]
    assert ["paper,", "3", "paper,", "2", "here"] * 2 in rows
    assert ["IForest"] + ["50.0", "70.0", "75.0"] * 2 in rows
    assert ["isopleth"] + ["-", "-", "90.0"] * 2 in rows
    assert [row[-4:] for row in rows if row[:1] == ["best"]] == [["VAE", "53.3", "70.0", "-"]] * 2
    assert ["isopleth;", "here,", "seed", "1", "90.0"] in rows


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
    assert drawn == {f"anomalies_board_{kind}.png" for kind in ("boxes", "ranks", "heat", "kernels")}


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
