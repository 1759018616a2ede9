"""The squared L2 distance as a loss, against LSDD."""

import numpy as np
import pytest

from isopleth import LSDD, InputError

torch = pytest.importorskip("torch")

from isopleth.torch import ksd, mmd, squared_l2, svgd_direction  # noqa: E402


def samples(n, d, seed=0, shift=0.0):
    made = shift + torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.requires_grad_()


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("dim", [1, 5])
def test_it_is_the_combined_estimate_of_lsdd(relative, dim):
    x, y = samples(60, dim), samples(50, dim, seed=1, shift=0.7)
    centers, scale = samples(40, dim, seed=2).detach(), np.linspace(0.8, 1.3, dim)
    got = squared_l2(x, y, scale, 0.03, centers, relative=relative)
    rows = [a.detach().numpy() for a in (x, y, centers)]
    model = LSDD(length_scale=scale[None, :], alpha=0.03, centers=rows[2]).fit(*rows[:2])
    assert float(got.detach()) == pytest.approx(float(model.squared_l2("combined", relative=relative)), rel=1e-9)


@pytest.mark.parametrize("dim", [1, 5])
def test_gradients_agree_with_differences(dim):
    centers = samples(8, dim, seed=2).detach()
    x, y = samples(5, dim), samples(6, dim, seed=1)
    assert torch.autograd.gradcheck(lambda x, y: squared_l2(x, y, 0.9, 0.1, centers), (x, y))


def test_equal_samples_are_at_no_distance_and_steps_down_the_gradient_bring_others_there():
    y = samples(150, 2, seed=1, shift=1.5).detach()
    assert float(squared_l2(y, y, 1.0, 0.1)) == pytest.approx(0.0, abs=1e-25)
    x, shift = samples(100, 2).detach(), torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([shift], lr=0.2)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        losses.append(squared_l2(x + shift, y, 1.0, 0.1))
        losses[-1].backward()
        optimiser.step()
    assert float(losses[-1].detach()) < 0.2 * float(losses[0].detach())
    assert float((x.mean(dim=0) + shift.detach() - y.mean(dim=0)).norm()) < 0.5


def test_centres_of_many_rows_are_spread_over_both_samples_and_float32_is_enough():
    x, y = samples(1200, 3).detach(), samples(300, 3, seed=1, shift=0.5).detach()
    want = squared_l2(x, y, 1.0, 0.1, torch.cat([x[::5], y[::2]]))
    assert float(squared_l2(x, y, 1.0, 0.1)) == float(want)
    single = squared_l2(x.float(), y.float(), 1.0, 0.1)
    assert single.dtype == torch.float32
    assert float(single) == pytest.approx(float(want), rel=1e-3)


def test_automatic_half_precision_leaves_the_distance_alone():
    x, y = samples(40, 3).detach().float(), samples(40, 3, seed=1, shift=1.0).detach().float()
    want = squared_l2(x, y, 1.0, 0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert float(squared_l2(x, y, 1.0, 0.1)) == float(want)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": torch.zeros(0, 2)}, "x has no rows"),
        ({"y": torch.zeros(0, 2)}, "y has no rows"),
        ({"centers": np.zeros((3, 2))}, "centers is of type ndarray"),
        ({"centers": torch.zeros(3, 4)}, "x has 2 columns and centers has 4"),
    ],
)
def test_samples_and_centres_that_do_not_fit_are_refused(change, words):
    given = {"x": torch.zeros(3, 2), "y": torch.ones(4, 2), "length_scale": 1.0, "alpha": 0.1, **change}
    with pytest.raises(InputError, match=words):
        squared_l2(**given)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_losses_refuse_entries_that_are_not_finite(bad):
    x, y = torch.eye(5), torch.ones(5, 5)
    z = x.clone()
    z[3, 1] = bad
    losses = (lambda: mmd(z, y), lambda: mmd(y, z), lambda: squared_l2(y, z), lambda: ksd(z, -x), lambda: ksd(x, -z))
    for loss in (*losses, lambda: svgd_direction(z, -x), lambda: svgd_direction(x, -z)):
        with pytest.raises(InputError, match="has entries that are not finite"):
            loss()


@pytest.mark.parametrize("alpha", [0.0, -1.0, True, "x", float("nan")])
def test_a_ridge_that_is_none_is_refused(alpha):
    with pytest.raises(InputError, match="alpha = "):
        squared_l2(samples(5, 2), samples(5, 2), 1.0, alpha)


def test_a_ridge_that_is_nothing_beside_rounding_is_refused():
    x = samples(300, 1).detach().float()
    with pytest.raises(InputError, match="is too small"):
        squared_l2(x, x, 5.0, 1e-12)
