"""The study of densities on real tables."""

import numpy as np
import pandas as pd
import pytest
from experiments import (
    densities,
    density_equivariance,
    density_methods,
    density_pictures,
    density_tables,
    density_targets,
)


def test_tables_keep_continuous_columns_of_complete_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    x = rng.normal(size=(n, 2))
    columns = {
        "a": x[:, 0],
        "copy": 3 * x[:, 0] + 1,
        "counts": rng.integers(9, size=n),
        "b": x[:, 1],
        "c": rng.normal(size=n),
    }
    table = pd.DataFrame(columns).assign(target=["yes"] * n)
    table.loc[:9, "b"] = np.nan
    table.loc[5:, "c"] = np.nan
    (tmp_path / "mixed").mkdir()
    (tmp_path / "oddbench").mkdir()
    table.to_csv(tmp_path / "mixed" / "numbers.csv", index=False)
    table[["a", "target"]].to_csv(tmp_path / "mixed" / "one.csv", index=False)
    np.savez(tmp_path / "oddbench" / "Parts.npz", train=x[:150].astype("float32"), test=x[150:].astype("float32"))
    found = density_tables.find_tables(tmp_path)
    tables = {name: density_tables.read_table(name, path) for name, path in found.items()}
    assert tables["mixed/one"] is None
    numbers = tables["mixed/numbers"].X
    assert sorted(map(tuple, numbers)) == sorted(map(tuple, x[10:]))
    assert not (numbers == x[10:]).all()
    assert tables["oddbench/Parts"].X.shape == (n, 2)


@pytest.mark.parametrize("name", density_targets.TARGETS)
def test_formulas_of_made_data(name):
    """By Stein's identity the score of draws has mean 0, and its product with the draws -1."""
    target = density_targets.TARGETS[name]
    X = target.draw(4000, np.random.default_rng(0))
    assert X.shape == (4000, target.dim)
    score = density_targets.gradient(target.log_density, X)
    for terms, mean in ((score, 0.0), (X * score, -1.0)):
        assert (np.abs(terms.mean(axis=0) - mean) < 5.0 * terms.std(axis=0) / 4000**0.5).all()


@pytest.mark.parametrize("method", density_methods.METHODS)
def test_methods_return_log_densities(method):
    X = density_targets.TARGETS["banana, d = 2"].draw(60, np.random.default_rng(0))
    library = {"zuko": "zuko", "KDEpy": "KDEpy", "arfpy": "arfpy"}.get(method.replace(",", "").split()[0])
    if library:
        pytest.importorskip(library)
    fit = density_methods.METHODS[method]
    if "zuko" in method:
        fit.keywords["seconds"] = 0.5
    log_density = fit((X - X.mean(axis=0)) / X.std(axis=0), 0)
    t = np.linspace(-6, 6, 121)
    grid = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    mass = np.exp(log_density(grid)).sum() * 0.01
    assert mass == pytest.approx(1.0, abs=0.25 if library else 0.06)


def test_the_study_runs_goes_on_and_prints(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "oddbench").mkdir()
    names = [f"t{i}" for i in range(20) if density_tables.is_reported(f"oddbench/t{i}")][:2]
    for name in names:
        X = rng.normal(size=(220, 3))
        X[:, 2] = X[:, 2].round(1)
        np.savez(tmp_path / "oddbench" / f"{name}.npz", train=X[:110], test=X[110:])
    monkeypatch.setattr(densities, "TARGETS", {"banana, d = 2": density_targets.TARGETS["banana, d = 2"]})
    out = tmp_path / "out.csv"
    options = ["--data", str(tmp_path), "--out", str(out), "--rows", "100", "--methods"]
    densities.main([*options, "normal distribution"])
    first = out.read_text()
    densities.main([*options, "normal distribution", "SOSREP, auto"])
    assert out.read_text().startswith(first)
    lines = out.read_text().splitlines()
    assert len(lines) == len(set(lines))
    densities.main(["--page", str(out)])
    said = capsys.readouterr().out
    assert "real, 100 rows fitted, 2 tables" in said
    assert "repeated, 100 rows fitted, 2 tables" in said
    assert "made, 100 rows fitted: Hellinger" in said


def test_pictures_and_equivariance(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    (tmp_path / "oddbench").mkdir()
    name = next(f"t{i}" for i in range(20) if density_tables.is_reported(f"oddbench/t{i}"))
    np.savez(tmp_path / "oddbench" / f"{name}.npz", train=rng.normal(size=(160, 2)), test=rng.normal(size=(40, 2)))
    monkeypatch.setattr(density_pictures, "FRAMES", ["scale", "gp1"])
    monkeypatch.setattr(density_pictures, "ROWS", 100)
    monkeypatch.setattr(density_pictures, "GRID", 12)
    density_pictures.main(["--data", str(tmp_path), "--out", str(tmp_path / "picture.png")])
    assert (tmp_path / "picture.png").stat().st_size > 1000
    monkeypatch.setattr(density_equivariance, "FRAMES", ["whiten"])
    monkeypatch.setattr(density_equivariance, "SEEDS", 1)
    density_equivariance.main()
    units, affine, logarithms = map(float, capsys.readouterr().out.splitlines()[1].split()[1:])
    assert units < 1e-9
    assert affine < 1e-6
    assert logarithms > 0.1
