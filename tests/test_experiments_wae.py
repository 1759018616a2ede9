"""The auto-encoders: data, networks, training that can be interrupted, and likelihoods against closed forms."""

import csv

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from experiments.wae import __main__ as command  # noqa: E402 - after the check for torch
from experiments.wae.images import CROP, SIDE, load_digits, load_faces  # noqa: E402
from experiments.wae.likelihood import Annealing, linear_decoder, log_likelihoods  # noqa: E402
from experiments.wae.networks import DigitNetworks, FaceNetworks  # noqa: E402
from experiments.wae.training import NETWORKS, STRENGTHS, KernelEntropy, Run, Settings, SlicedEntropy, seconds_a_step  # noqa: E402
from PIL import Image  # noqa: E402

from isopleth.score import KEF, Stein  # noqa: E402


@pytest.fixture
def digits(tmp_path):
    """Return a folder with a small mnist.npz."""
    rng = np.random.default_rng(0)
    train, test = (rng.integers(0, 256, size=(n, 28, 28), dtype=np.uint8) for n in (130, 20))
    (tmp_path / "mnist").mkdir()
    np.savez(tmp_path / "mnist" / "mnist.npz", x_train=train, x_test=test)
    return tmp_path


@pytest.fixture
def faces(tmp_path):
    """Return a folder with pictures of CelebA's form and size."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "celeba" / "img_align_celeba"
    folder.mkdir(parents=True)
    for k in range(6):
        pixels = rng.integers(0, 256, size=(218, 178, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k:06d}.jpg")
    return tmp_path


def test_pixels_are_white_with_their_grey_values_as_probabilities(digits):
    train, test = load_digits(digits)
    assert (len(train), len(test)) == (130, 20)
    generator = torch.Generator().manual_seed(0)
    rows = torch.zeros(4000, dtype=torch.long)
    x = train.batch(rows, generator)
    assert set(np.unique(x)) == {0.0, 1.0}
    np.testing.assert_allclose(x.mean(dim=0), train.values[0] / 255.0, atol=5 * 0.5 / 4000**0.5)


def test_a_missing_file_is_named_with_its_source(tmp_path):
    with pytest.raises(SystemExit, match=r"no file mnist.npz below .* it comes from https"):
        load_digits(tmp_path)
    with pytest.raises(SystemExit, match=r"no pictures img_align_celeba.* they come from"):
        load_faces(tmp_path)


def test_faces_are_cut_from_the_middle(faces):
    folder = faces / "celeba" / "img_align_celeba"
    grey = np.full((218, 178, 3), 51, dtype=np.uint8)
    top, left = (218 - CROP) // 2, (178 - CROP) // 2
    grey[top : top + CROP, left : left + CROP] = 204
    Image.fromarray(grey).save(folder / "000000.jpg", quality=95)
    train, test = load_faces(faces)
    assert (len(train), len(test)) == (5, 1)
    x = train.batch(torch.tensor([0, 1]), torch.Generator())
    assert x.shape == (2, 3, SIDE, SIDE)
    np.testing.assert_allclose(x[0], 204 / 127.5 - 1.0, atol=0.1)
    assert x.min() >= -1.0
    assert x.max() <= 1.0


def test_the_published_partition_is_followed(faces):
    part = "\n".join(f"{k:06d}.jpg {(0, 1, 2)[k % 3]}" for k in range(6))
    (faces / "celeba" / "list_eval_partition.txt").write_text(part + "\n")
    train, test = load_faces(faces)
    assert [file.stem for file in train.files] == ["000000", "000003"]
    assert [file.stem for file in test.files] == ["000002", "000005"]


def test_a_picture_that_is_too_small_is_named(faces):
    small = faces / "celeba" / "img_align_celeba" / "000000.jpg"
    Image.fromarray(np.zeros((100, 178, 3), dtype=np.uint8)).save(small)
    with pytest.raises(SystemExit, match=r"000000.jpg has 178 x 100 pixels; expected at least 140 x 140"):
        load_faces(faces)[0].batch(torch.tensor([0]), torch.Generator())


def test_the_log_likelihood_of_pixels_is_that_of_coins():
    torch.manual_seed(0)
    networks = DigitNetworks(3)
    z, x = torch.randn(5, 3), torch.bernoulli(torch.full((5, 784), 0.3))
    expected = torch.distributions.Bernoulli(logits=networks.decoder(z)).log_prob(x).sum(dim=1)
    torch.testing.assert_close(networks.log_likelihood(x, z), expected)
    torch.testing.assert_close(networks.cost(x, z), -expected)


@pytest.mark.parametrize("latent", [32, 64, 100, 128])
def test_networks_of_faces_have_matching_shapes(latent):
    torch.manual_seed(0)
    networks = FaceNetworks(latent, maps=4)
    x = torch.rand(2, 3, SIDE, SIDE) * 2.0 - 1.0
    mean = networks.encode(x, None)
    z = networks.encode(x, torch.Generator().manual_seed(0))
    assert z.shape == (2, latent)
    torch.testing.assert_close(z - mean, torch.randn(2, latent, generator=torch.Generator().manual_seed(0)))
    decoded = networks.decoder(z)
    assert decoded.shape == x.shape
    torch.testing.assert_close(networks.cost(x, z), ((x - decoded) ** 2).reshape(2, -1).sum(dim=1))
    torch.testing.assert_close(networks.shown(x)[1, 5, 6], 0.5 * (x[1, :, 5, 6] + 1.0))


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


def test_curl_free_scores_of_few_rows_in_many_columns_are_less_shrunk():
    """The reason for the difference in many latent dimensions: 64 rows of N(0, I), whose score is -z, in 128 columns."""
    z = torch.randn(64, 128, generator=torch.Generator().manual_seed(0))

    def share(entropy):
        x = z.clone().requires_grad_(True)
        entropy.surrogate(x).backward()
        return float((64 * x.grad * z).sum() / z.square().sum())

    assert share(KernelEntropy(KEF(alpha=1e-4, solver="cg", tol=1e-4, n_jobs=1))) > 0.9
    assert max(share(KernelEntropy(Stein(alpha=10.0**-k, n_jobs=1))) for k in range(2, 8)) < 0.3


def test_sliced_score_matching_finds_a_normal_score():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    entropy = SlicedEntropy(2, generator)
    entropy.optimiser.param_groups[0]["lr"] = 1e-2
    for _ in range(100):
        entropy.surrogate(2.0 * torch.randn(256, 2, generator=generator))
    z = 2.0 * torch.randn(500, 2, generator=generator)
    with torch.no_grad():
        error = (entropy.network(z) + z / 4.0).square().mean()
    assert error < 0.25 * (z / 4.0).square().mean()


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


def test_the_closed_form_of_the_linear_decoder():
    decoder = linear_decoder(1, 3, 0.4, torch.Generator().manual_seed(0))
    x = decoder.sample(2, torch.Generator().manual_seed(1))
    z = torch.linspace(-8.0, 8.0, 4001)
    values = decoder.given(x)(z[:, None, None].expand(-1, 2, 1)).double()
    prior = torch.exp(-0.5 * z.double() ** 2) / (2.0 * np.pi) ** 0.5
    integral = torch.trapezoid(torch.exp(values) * prior[:, None], z.double(), dim=0)
    torch.testing.assert_close(torch.log(integral), decoder.exact(x), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_annealing_agrees_with_quadrature_for_pixels():
    torch.manual_seed(0)
    networks = DigitNetworks(1).requires_grad_(False)
    for p in networks.decoder.parameters():
        p *= 2.0
    z = torch.linspace(-8.0, 8.0, 801)
    x = torch.bernoulli(torch.sigmoid(networks.decoder(torch.randn(3, 1))))
    values = networks.log_likelihood(x, z[:, None, None].expand(-1, 3, 1)).double()
    prior = -0.5 * z.double() ** 2 - 0.5 * np.log(2.0 * np.pi)
    exact = torch.logsumexp(values + prior[:, None], dim=0) + np.log(float(z[1] - z[0]))
    found = log_likelihoods(
        lambda z: networks.log_likelihood(x, z), 3, 1, Annealing(20, 100), torch.Generator().manual_seed(0)
    )
    gap = found.double() - exact
    assert gap.abs().max() < 0.3
    assert gap.mean().abs() < 0.1


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


def test_differences_are_paired_and_in_nats(digits):
    _, test = load_digits(digits)
    runs = [Run(Settings("mnist", name, 1e-4, latent)) for name, latent in (("stein", 2), ("kef", 2), ("kef", 3))]
    found = [np.array([-100.0, -90.0]), np.array([-98.0, -89.0]), np.array([-1.0, -2.0])]
    lines = list(command.comparison(list(zip(runs, found, strict=True)), test))
    assert len(lines) == 1 + 3 + 1
    assert lines[-1].startswith(
        "latent 2, seed 0: kef 0.0001 needs -1.50 nats more than stein 0.0001 (standard error 0.50"
    )


def test_the_spread_of_latent_variables():
    """Encoders of zeros draw from the standard normal distribution."""
    run = Run(Settings("mnist", "stein", 1e-4, 200))
    for p in run.networks.parameters():
        torch.nn.init.zeros_(p)

    class Blank:
        def __len__(self):
            return 50

        def batch(self, rows, generator):
            return torch.zeros(len(rows), 784)

    assert command.spread(run, Blank()) == pytest.approx(1.0, abs=0.03)


def test_the_command_stops_when_its_time_is_used_up(digits, tmp_path, capsys):
    given = ["--data", str(digits), "--latent", "2", "--estimators", "stein", "--test-rows", "0"]
    command.main([*given, "--out", str(tmp_path), "--cpu-hours", "0", "--epochs", "3"])
    assert "stopped at epoch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("estimator", "message"), [("stien", "no such estimator; expected stein"), ("kef:much", "'much' is not a number")]
)
def test_the_command_refuses_unknown_estimators(digits, estimator, message):
    with pytest.raises(SystemExit, match=message):
        command.main(["--data", str(digits), "--estimators", estimator])


def test_the_command_trains_on_faces(faces, tmp_path, monkeypatch):
    monkeypatch.setitem(NETWORKS, "celeba", lambda latent: FaceNetworks(latent, maps=4))
    command.main(
        [
            "--images",
            "celeba",
            "--data",
            str(faces),
            "--latent",
            "32",
            "--estimators",
            "kef",
            "--epochs",
            "1",
            "--out",
            str(tmp_path),
        ]
    )
    assert (tmp_path / "celeba-32-kef-0.0001-seed0.png").stat().st_size > 0
    with (tmp_path / "results.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert line["negative_log_likelihood"] == ""


@pytest.mark.slow
def test_steps_are_timed_in_turn(digits, capsys):
    train, _ = load_digits(digits)
    runs = [Run(Settings("mnist", name, strength, 2)) for name, strength in STRENGTHS.items()]
    found = seconds_a_step(runs, train, 2)
    assert [len(seconds) for seconds in found] == [2] * len(STRENGTHS)
    assert min(min(seconds) for seconds in found) > 0
    command.main(["--data", str(digits), "--latent", "2", "--estimators", "stein", "kef", "--time-steps", "2"])
    assert "times the first" in capsys.readouterr().out
