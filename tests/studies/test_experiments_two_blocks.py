"""The experiment on two blocks, against dense algebra."""

import numpy as np
import pytest
from experiments import two_blocks
from experiments.two_blocks import exact_ratio, ratios
from scipy.optimize import fsolve

from isopleth.solvers import SCALING_SOLVERS


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("solver", SCALING_SOLVERS)
def test_every_solver_gives_the_ratio_of_the_two_equations(beta, solver):
    size, gamma, gamma_prime = 12, 0.9, 0.3
    own, other = 1 + (size - 1) * gamma**2, 1 + (size - 1) * gamma_prime**2
    cross = size * beta * gamma * gamma_prime
    # Equation 72, in the inverses of a and b.
    u, v = fsolve(
        lambda t: [own * t[0] ** 2 + cross * t[0] * t[1] - 1, other * t[1] ** 2 + cross * t[0] * t[1] - 1], [0.3, 0.3]
    )
    sosrep, kde = ratios(size, gamma, gamma_prime, beta, solver)
    assert sosrep == pytest.approx((v / u) ** 2, rel=1e-6)
    assert sosrep == pytest.approx(exact_ratio(size, gamma, gamma_prime), rel=1e-8)
    assert kde == pytest.approx((own + cross) / (other + cross), rel=1e-12)


def test_the_command_draws_and_asks_for_letter(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(two_blocks, "SIZES", (3, 5))
    monkeypatch.setattr(two_blocks, "SIZE", 5)
    rng = np.random.default_rng(0)
    X = np.concatenate([0.2 * rng.normal(size=(60, 2)), [2.5, 0.0] + 0.6 * rng.normal(size=(60, 2))])
    np.savez(tmp_path / "20_letter.npz", X=X, y=np.zeros(120))
    blocks, clusters = tmp_path / "blocks.png", tmp_path / "letter.png"
    two_blocks.main(["--out", str(blocks), "--data", str(tmp_path), "--letter", str(clusters), "--clusters", "2"])
    assert "in 1 of all 1 pairs" in capsys.readouterr().out
    assert blocks.stat().st_size > 0
    assert clusters.stat().st_size > 0
    (tmp_path / "20_letter.npz").unlink()
    with pytest.raises(SystemExit, match=r"letter: no file .* it comes from"):
        two_blocks.main(["--data", str(tmp_path)])
