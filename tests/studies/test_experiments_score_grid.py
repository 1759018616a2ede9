"""The experiment on grids of modes, against estimators fitted one by one."""

import numpy as np
import pytest
from experiments import score_grid
from experiments.score_grid import Cell, Judge, oracle_errors, true_score, vertices

from isopleth import KernelScore
from isopleth.score import Tikhonov
from isopleth.score.field import GaussianBase


def table(dim=2, n=40, seed=0):
    rng = np.random.default_rng(seed)
    modes = vertices("separated", dim)
    X, x = score_grid.sample(modes, n, rng), score_grid.sample(modes, 200, rng)
    return X, Judge(x, true_score(modes, x))


def test_the_oracle_is_the_best_of_estimators_fitted_one_by_one():
    X, judge = table()
    grid = oracle_errors(X, judge)
    median = score_grid.typical_distance(X)
    for (f, b, a), factor, base, alpha in (((2, 0, 5), 2.0, None, 10**-0.25), ((0, 1, 0), 0.5, "gaussian", 10.0)):
        model = KernelScore(
            frame="scale", regularizer=Tikhonov(alpha, truncated=False), length_scale=factor * median, base=base
        ).fit(X)
        assert grid[f, b, a] == pytest.approx(judge.error(model.grad_log_density(judge.x)), rel=1e-6)
    base = GaussianBase.fit(X, np.ones(len(X)))
    np.testing.assert_allclose(grid[:, 1, -1], judge.error(base.value(judge.x)), rtol=1e-3)
    default = KernelScore(frame="scale").fit(X)
    assert grid.min() <= judge.error(default.grad_log_density(judge.x)) * (1.0 + 1e-9)


def test_the_command_writes_its_table(tmp_path, capsys):
    out = tmp_path / "table.txt"
    words = [
        *["--runs", "2", "--rows", "32", "--columns", "2", "--targets", "separated", "--workers", "1", "--out"],
        str(out),
    ]
    assert score_grid.main(words) == 0
    written = out.read_text(encoding="utf-8")
    assert written == capsys.readouterr().out
    line = next(line for line in written.splitlines() if line.startswith("separated"))
    default, gaussian, kde, ratio = (float(word) for word in line.split()[4:8])
    assert ratio == pytest.approx(default / min(gaussian, kde), abs=0.02)
    errors = [score_grid.run(Cell("separated", 2, 32), seed) for seed in range(2)]
    assert default == pytest.approx(np.median([e.default for e in errors]), rel=0.01)
    assert gaussian == pytest.approx(np.median([e.gaussian for e in errors]), rel=0.01)
    for wrong in (["--runs", "0"], ["--rows", "5"], ["--targets", "cube"]):
        with pytest.raises(SystemExit):
            score_grid.main(wrong)
