"""The study of the loss curve: the splits, the paper's rule, exact losses beside probes."""

import numpy as np
import pytest
from experiments import loss_curve
from experiments.loss_curve import curve, main, split, stable_minimum


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a small table, in which rows far out are anomalies."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(120, 2)), rng.normal(5.0, 0.5, size=(20, 2))])
    np.savez(tmp_path / "1_toy.npz", X=np.column_stack([X, np.ones(140)]), y=np.repeat([0, 1], [120, 20]))
    return tmp_path


def test_a_split_is_standardised_and_its_held_out_rows_are_new(folder):
    with np.load(folder / "1_toy.npz") as file:
        X, y = np.tile(file["X"], (2, 1)), np.tile(file["y"], 2)
    np.savez(folder / "2_twice.npz", X=X, y=y)
    data = split(folder / "2_twice.npz", 1000)
    assert data.fitted.shape == (196, 2)  # the constant column is left out
    known = {row.tobytes() for row in data.fitted}
    assert not any(row.tobytes() in known for row in data.held_out)
    assert len(data.held_out) == len(data.labels) < 84


def test_the_papers_rule():
    losses = np.array([9.0, 1.0, 5.0, 6.0, 7.0, 2.0, 4.0, 5.0, 6.0, 3.0])
    assert stable_minimum(losses) == 5
    assert stable_minimum(np.arange(10.0)) is None
    assert stable_minimum(np.where(np.arange(10) < 5, np.inf, losses)) == 5
    assert stable_minimum(np.full(10, np.nan)) is None


def test_probes_are_near_the_exact_loss_and_anomalies_are_found(folder, monkeypatch):
    monkeypatch.setattr(loss_curve, "FACTORS", (0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6))
    found = curve(split(folder / "1_toy.npz", 200), "gaussian", 100)
    assert (np.abs(found.probes - found.exact) < 4 * found.errors).all()
    assert (found.auc > 0.5).all()
    choices = found.choices()
    assert found.exact[choices["smallest exact loss"]] == found.exact.min()
    assert found.auc[choices["best AUC"]] == found.auc.max()


def test_the_command_prints_and_draws(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(loss_curve, "FACTORS", (0.1, 0.2, 0.5, 1.0, 1.4, 2.0, 4.0))
    out, figure = tmp_path / "out.txt", tmp_path / "out.png"
    main(["--data", str(folder), "--tables", "toy", "--probes", "4", "--out", str(out), "--figure", str(figure)])
    assert capsys.readouterr().out.strip() == out.read_text().strip()
    assert out.read_text().count("smallest exact loss:") == 2
    assert figure.stat().st_size > 0
    with pytest.raises(SystemExit, match=r"absent: no file .* it comes from"):
        main(["--data", str(folder), "--tables", "absent"])


def test_a_table_without_anomalies_to_rank_is_refused(folder):
    with np.load(folder / "1_toy.npz") as file:
        np.savez(folder / "2_calm.npz", X=file["X"], y=np.zeros(140))
    with pytest.raises(SystemExit, match=r"2_calm: the held-out rows have no anomalies"):
        split(folder / "2_calm.npz", 1000)
