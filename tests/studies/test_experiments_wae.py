"""The auto-encoders: data, networks, training that can be interrupted, and likelihoods against closed forms."""

import csv

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from experiments.wae import __main__ as command  # noqa: E402 - after the check for torch
from experiments.wae.images import load_digits  # noqa: E402
from experiments.wae.likelihood import Annealing, linear_decoder, log_likelihoods  # noqa: E402
from experiments.wae.training import STRENGTHS, Run, Settings  # noqa: E402


@pytest.fixture
def digits(tmp_path):
    """Return a folder with a small mnist.npz."""
    rng = np.random.default_rng(0)
    train, test = (rng.integers(0, 256, size=(n, 28, 28), dtype=np.uint8) for n in (130, 20))
    (tmp_path / "mnist").mkdir()
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=train, x_test=test)
    return tmp_path


def test_the_gradient_of_a_step_is_that_of_cost_and_divergence():
    """With a known score -z of q, the gradients of the entropy and of the prior cancel, and only the cost is left."""

    class Normal:
        def surrogate(self, z):
            return (z.detach() * z).sum() / len(z)

    run = Run(Settings("mnist", "stein", 1e-4, 2))
    run.entropy = Normal()
    x = torch.bernoulli(torch.full((64, 784), 0.5))
    state = run.generator.get_state()
    run.step(x)
    after = [p.grad.clone() for p in run.networks.parameters()]
    other = Run(Settings("mnist", "stein", 1e-4, 2))
    other.generator.set_state(state)
    other.networks.cost(x, other.networks.encode(x, other.generator)).mean().backward()
    for found, expected in zip(after, other.networks.parameters(), strict=True):
        torch.testing.assert_close(found, expected.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("estimator", ["kef", "ssm"])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(digits, tmp_path, estimator):
    train, _ = load_digits(digits)
    settings = Settings("mnist", estimator, STRENGTHS[estimator], 4)
    whole, first, second = Run(settings), Run(settings), Run(settings)
    for _ in range(2):
        whole.train_epoch(train)
    first.train_epoch(train)
    first.save(tmp_path / "run.pt")
    second.load(tmp_path / "run.pt")
    second.train_epoch(train)
    assert second.epoch == 2
    assert second.cost == whole.cost
    for a, b in zip(second.networks.parameters(), whole.networks.parameters(), strict=True):
        assert torch.equal(a, b)


def test_annealing_agrees_with_a_linear_decoder():
    """The mean over 40 rows is within a tenth of a nat of the closed form."""
    generator = torch.Generator().manual_seed(0)
    decoder = linear_decoder(4, 20, 0.3, generator)
    x = decoder.sample(40, generator)
    found = log_likelihoods(decoder.given(x), len(x), 4, Annealing(temperatures=300), generator)
    gap = (found - decoder.exact(x)).numpy()
    assert abs(gap.mean()) < 0.1
    assert np.abs(gap).max() < 1.0


def test_the_command_trains_evaluates_and_goes_on(digits, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    given = ["--data", str(digits), "--latent", "2", "--estimators", "stein", "kef:1e-3", "--out", str(out)]
    few = [*given, "--test-rows", "3"]
    monkeypatch.setattr(command, "Annealing", lambda: Annealing(2, 4, 2))
    monkeypatch.setattr(command, "SHOWN", 2)
    command.main([*few, "--epochs", "1"])
    command.main([*few, "--epochs", "2"])
    printed = capsys.readouterr().out
    assert printed.count("mnist-2-stein-0.0001-seed0: epoch 1 of") == 1
    assert printed.count("mnist-2-kef-0.001-seed0: epoch 2 of 2") == 1
    with (out / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["estimator"], line["epochs"]) for line in lines] == [
        ("stein", "1"), ("kef", "1"), ("stein", "2"), ("kef", "2"),
    ]  # fmt: skip
    assert all(float(line["negative_log_likelihood"]) > 0 for line in lines)
    assert "latent 2, seed 0: kef 0.001 needs" in printed
    known = np.load(out / "mnist-2-stein-0.0001-seed0-epoch2.npy")
    assert float(lines[2]["negative_log_likelihood"]) == pytest.approx(-known.mean(), abs=0.006)
    assert (out / "mnist-2-kef-0.001-seed0.png").stat().st_size > 0
