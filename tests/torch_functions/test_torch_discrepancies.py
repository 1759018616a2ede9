"""Discrepancies against literal sums over pairs under torch's own differentiation, and against closed forms."""

import math

import pytest

from isopleth import InputError
from isopleth.frames import Whiten

torch = pytest.importorskip("torch")

from isopleth.torch import kernel_product, ksd, mmd, squared_l2, svgd_direction  # noqa: E402


def samples(n, d, seed=0, shift=0.0, dtype=torch.float64):
    return shift + torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def gaussian(x, y, scale):
    return torch.exp(-0.5 * ((x[:, None] - y[None]) ** 2).sum(dim=2) / scale**2)


def imq(a, b, scale):
    return (1.0 + ((a - b) ** 2).sum() / scale**2) ** -0.5


def literal_stein(x, score, scale):
    """The matrix of u(x_i, x_j) for the inverse multiquadric, by torch's derivatives of one pair at a time."""
    from torch.func import grad, jacrev

    first, second = grad(imq, argnums=0), grad(imq, argnums=1)
    mixed = jacrev(first, argnums=1)
    out = []
    for a, s in zip(x, score, strict=True):
        for b, t in zip(x, score, strict=True):
            pair = (a, b, scale)
            out.append((s @ t) * imq(*pair) + s @ second(*pair) + t @ first(*pair) + torch.trace(mixed(*pair)))
    return torch.stack(out).reshape(len(x), len(x))


@pytest.mark.parametrize("biased", [False, True])
def test_mmd_and_its_gradients_are_those_of_the_literal_form(biased):
    x, y = samples(12, 3).requires_grad_(), samples(9, 3, seed=1, shift=0.5).requires_grad_()
    scale = torch.tensor(1.4, dtype=torch.float64, requires_grad=True)
    xx, yy, xy = gaussian(x, x, scale), gaussian(y, y, scale), gaussian(x, y, scale)
    if biased:
        want = xx.mean() + yy.mean() - 2.0 * xy.mean()
    else:
        want = (xx.sum() - 12) / (12 * 11) + (yy.sum() - 9) / (9 * 8) - 2.0 * xy.mean()
    got = mmd(x, y, length_scale=scale, biased=biased)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)
    inputs = (x, y, scale)
    for one, other in zip(torch.autograd.grad(got, inputs), torch.autograd.grad(want, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("biased", [False, True])
def test_ksd_and_its_gradients_are_those_of_the_literal_form(biased):
    x = samples(6, 3, shift=0.3).requires_grad_()
    scale = torch.tensor(1.4, dtype=torch.float64, requires_grad=True)
    matrix = literal_stein(x, torch.sin(x) - x, scale)
    want = matrix.mean() if biased else (matrix.sum() - matrix.trace()) / 30
    got = ksd(x, lambda rows: torch.sin(rows) - rows, length_scale=scale, biased=biased)
    torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-13)
    for one, other in zip(torch.autograd.grad(got, (x, scale)), torch.autograd.grad(want, (x, scale)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["imq", "gaussian", "matern52", "matern72"])
def test_gradients_of_ksd_agree_with_differences(kernel):
    x, score = samples(5, 2).requires_grad_(), samples(5, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, s: ksd(x, s, kernel, 1.2), (x, score))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_one_tensor_counts_as_two_equal_samples(kernel, biased):
    rows = samples(30, 2, seed=5)

    def loss(rows, copied):
        rows = rows.clone().requires_grad_()
        value = mmd(rows, rows.clone() if copied else rows, kernel, 0.7, biased=biased)
        return value.detach(), torch.autograd.grad(value, rows)[0]

    for one, other in zip(loss(rows, False), loss(rows, True), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_mmd_of_normal_samples_has_the_value_and_gradient_of_the_closed_form():
    """For unit normal densities m apart and a Gaussian kernel of scale l, 2 (l^2/(l^2+2))^(d/2) (1 - e^(-m^2/(2 (l^2+2))))."""
    noise, y = samples(3000, 2), samples(3000, 2, seed=1)
    shift = torch.tensor([0.8, 0.0], dtype=torch.float64, requires_grad=True)
    out = mmd(noise + shift, y, length_scale=1.0)
    out.backward()
    decay = math.exp(-0.64 / 6.0)
    assert float(out.detach()) == pytest.approx(2.0 / 3.0 * (1.0 - decay), abs=0.015)
    assert float(shift.grad[0]) == pytest.approx(2.0 / 3.0 * decay * 0.8 / 3.0, abs=0.02)
    assert abs(float(shift.grad[1])) < 0.02


def test_ksd_is_near_0_for_the_true_score_and_its_gradient_leads_there():
    x = samples(2000, 2)
    assert abs(float(ksd(x, -x))) < 0.005
    shift = torch.tensor([0.5, 0.0], dtype=torch.float64, requires_grad=True)
    out = ksd(x + shift, lambda rows: -rows)
    out.backward()
    assert float(out.detach()) > 0.1
    assert float(shift.grad[0]) > 0.2
    assert abs(float(shift.grad[1])) < 0.1


@pytest.mark.parametrize("frame", ["balanced", Whiten(ridge=0.0)], ids=["balanced", "whiten"])
def test_discrepancies_and_directions_follow_affine_maps(frame):
    x = samples(80, 4)
    score = torch.sin(x) - x**3
    A = samples(4, 4, seed=1) * torch.tensor([1.0, 50.0, 1e-2, 3.0], dtype=torch.float64)
    moved, pulled = x @ A + 7.0, score @ torch.linalg.inv(A).T
    for biased in (False, True):
        torch.testing.assert_close(
            ksd(moved, pulled, frame=frame, biased=biased), ksd(x, score, frame=frame, biased=biased)
        )
    want = svgd_direction(x, score, frame=frame)
    got = svgd_direction(moved, pulled, frame=frame) @ torch.linalg.inv(A)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9 * float(want.abs().max()))


def test_balanced_coordinates_of_a_normal_density_are_those_in_which_it_is_standard_normal():
    """So they give the discrepancy and the direction of the standardised problem, wherever the rows are."""
    root = samples(3, 3, seed=2) + 2.0 * torch.eye(3, dtype=torch.float64)
    x = 0.1 * samples(50, 3, shift=30.0)
    y, pulled = x @ root.T, -x @ torch.linalg.inv(root)
    torch.testing.assert_close(ksd(y, pulled, frame="balanced"), ksd(x, -x), rtol=1e-6, atol=0.0)
    want = svgd_direction(x, -x) @ root.T
    torch.testing.assert_close(
        svgd_direction(y, pulled, frame="balanced"), want, rtol=0, atol=1e-6 * float(want.abs().max())
    )


@pytest.mark.parametrize("frame", ["balanced", "whiten"])
def test_framed_rows_that_do_not_vary(frame):
    x = torch.cat([samples(6, 2), torch.ones(6, 1, dtype=torch.float64)], dim=1)
    x = torch.cat([x, x[:, :1] - x[:, 1:2]], dim=1)  # a constant column, and one that depends on others
    assert torch.isfinite(svgd_direction(x, -x, frame=frame)).all()
    assert torch.isfinite(ksd(x, torch.zeros_like(x), frame=frame))
    assert torch.isfinite(svgd_direction(x[:1], -x[:1], frame=frame)).all()
    short = x.float().requires_grad_()
    ksd(short, lambda rows: -rows, frame=frame).backward()
    assert torch.isfinite(short.grad).all()


def test_ksd_of_scaled_rows():
    x = samples(40, 3)
    want = ksd(x, -x)
    torch.testing.assert_close(ksd(10.0 * x, -x / 10.0), want / 100.0, rtol=1e-9, atol=1e-12)


def test_the_direction_is_that_of_the_literal_form():
    x = samples(10, 2).requires_grad_()
    k = gaussian(x, x, 0.9)
    pushed = torch.stack([torch.autograd.grad(gaussian(x.detach(), x, 0.9)[i].sum(), x)[0] for i in range(10)])
    score = torch.cos(x)
    want = (k @ score + pushed.sum(dim=1)) / 10
    torch.testing.assert_close(svgd_direction(x, score, length_scale=0.9), want, rtol=1e-10, atol=1e-13)
    assert torch.autograd.gradcheck(lambda x: svgd_direction(x, torch.cos(x), length_scale=0.9), (x,))


def test_svgd_reaches_a_correlated_normal_density():
    precision = torch.linalg.inv(torch.tensor([[1.0, 0.8], [0.8, 2.0]], dtype=torch.float64))
    x = samples(150, 2, shift=2.0)
    for _ in range(400):
        x = x + 0.3 * svgd_direction(x, lambda rows: -rows @ precision)
    covariance = torch.cov(x.T)
    assert float(x.mean(dim=0).abs().max()) < 0.1
    assert float((covariance - torch.linalg.inv(precision)).abs().max()) < 0.25


def test_the_length_scale_of_its_own_is_the_median_distance_and_a_constant():
    x, y = samples(60, 3).requires_grad_(), samples(50, 3, seed=1, shift=0.5).requires_grad_()
    both = torch.cat([x, y]).detach()
    distances = torch.pdist(both).sort().values
    median = float(distances[(2 * len(distances) - 1) // 2 // 2])
    for function, scale in ((mmd, median), (squared_l2, median / 3.0**0.5)):
        values = [function(x, y), function(x, y, length_scale=scale)]
        torch.testing.assert_close(*values)
        torch.testing.assert_close(*(torch.autograd.grad(value, x)[0] for value in values))
    equal = torch.ones(5, 2, dtype=torch.float64)
    for function, scale in ((mmd, 1.0), (squared_l2, 1.0 / 2.0**0.5)):  # no two rows differ
        torch.testing.assert_close(function(equal, equal), function(equal, equal, length_scale=scale))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_squared_l2_with_its_own_length_scale_has_the_gradient_of_normal_densities(dim):
    """The distance of unit normal densities m apart is 2 (1 - e^(-m^2/4)) (4 pi)^(-d/2)."""
    noise, y = samples(600, dim), samples(600, dim, seed=1)
    shift = torch.zeros(dim, dtype=torch.float64)
    shift[0] = 1.0
    shift.requires_grad_()
    out = squared_l2(noise + shift, y)
    out.backward()
    unit = (4.0 * math.pi) ** (-0.5 * dim)
    assert float(out.detach()) == pytest.approx(2.0 * (1.0 - math.exp(-0.25)) * unit, rel=0.4)
    assert float(shift.grad[0]) == pytest.approx(math.exp(-0.25) * unit, rel=0.25)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_the_same_numbers_come_back_to_the_gpu():
    x, y = samples(200, 3), samples(150, 3, seed=1)
    for loss in (mmd, lambda x, y: ksd(x, -x), lambda x, y: svgd_direction(x, -x).square().sum(), squared_l2):
        here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
        loss(here, y).backward()
        loss(there, y.cuda()).backward()
        assert there.grad.device == there.device
        torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-7, atol=1e-9)


def test_second_derivatives_of_mmd():
    x, y = samples(4, 2).requires_grad_(), samples(5, 2, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, y: mmd(x, y, length_scale=1.1), (x, y))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: mmd(x, x[:1]), "y has 1 rows; expected at least 2"),
        (lambda x: mmd(x[:0], x, biased=True), "x has 0 rows; expected at least 1"),
        (lambda x: mmd(x, x[:, :1]), "x has 2 columns and y has 1"),
        (lambda x: ksd(x, x[:1]), r"score has shape \(1, 2\); expected \(5, 2\)"),
        (lambda x: ksd(x, lambda rows: 1.0), "score is of type float"),
        (lambda x: ksd(x, x.float()), r"score is of type torch\.float32"),
        (lambda x: ksd(x, x, length_scale=[1.0, 2.0]), "length_scale has several numbers"),
        (lambda x: ksd(x, x, "matern32"), "too rough for gradients of ksd"),
        (lambda x: ksd(x, x, frame="smooth"), "frame = 'smooth' is not affine"),
        (lambda x: svgd_direction(x, x, frame="round"), "frame = 'round': expected"),
        (lambda x: svgd_direction(x, x, "laplacian"), "no second derivatives at 0"),
        (lambda x: kernel_product("gaussian", x.to(torch.complex64), x, x[:, 0]), r"x is of type torch\.complex64"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call(samples(5, 2))
