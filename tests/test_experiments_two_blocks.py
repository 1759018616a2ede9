"""The experiment on two blocks, against dense algebra."""

import numpy as np
import pytest
from experiments import two_blocks
from experiments.two_blocks import all_pairs, exact_ratio, gap, ratios, two_simplices
from scipy.optimize import fsolve

from isopleth.kernels import Gaussian
from isopleth.operators import Operator
from isopleth.solvers import SCALING_SOLVERS


def test_the_points_have_the_two_block_matrix():
    k = Operator(Gaussian(), two_simplices(4, 0.9, 0.3, 0.5)).dense()
    expected = np.full((8, 8), 0.5 * 0.9 * 0.3)
    expected[:4, :4], expected[4:, 4:] = 0.9**2, 0.3**2
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(k, expected, rtol=1e-12)


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


def test_the_ratio_at_400_rows_a_block():
    sosrep, kde = ratios(400, 0.9, 0.3, 0.5)
    assert sosrep == pytest.approx(8.78, abs=0.005)
    assert kde == pytest.approx(4.16, abs=0.005)


def test_clusters_of_a_dense_and_a_loose_group_have_the_wider_gap_under_sosrep():
    rng = np.random.default_rng(0)
    z = np.concatenate([0.2 * rng.normal(size=(60, 2)), [2.5, 0.0] + 0.6 * rng.normal(size=(60, 2))])
    (pair,) = all_pairs(z, 2)
    assert pair.first.mean() > pair.second.mean() > pair.between.mean()
    assert np.mean(pair.sosrep[0]) == pytest.approx(0.0, abs=1e-12)
    assert gap(pair.sosrep) > gap(pair.kde) > 0


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
