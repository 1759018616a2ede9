"""The study of the loss curve: the splits, the paper's rule, exact losses beside probes."""

import numpy as np
import pytest
from experiments import loss_curve
from experiments.loss_curve import curve, main, split


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a small table, in which rows far out are anomalies."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(120, 2)), rng.normal(5.0, 0.5, size=(20, 2))])
    np.savez(tmp_path / "1_toy.npz", X=np.column_stack([X, np.ones(140)]), y=np.repeat([0, 1], [120, 20]))
    return tmp_path


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
