"""Log densities and scores of fitted estimators as functions of tensors that require a gradient."""

import numpy as np
import pytest

from isopleth import KDE, SOSREP, InputError, KernelScore, RandomFeatureSOSREP
from isopleth.kernels import SDO, ProductLaplacian

torch = pytest.importorskip("torch")

ROWS = np.random.default_rng(0).normal(size=(80, 2)) * [1.0, 3.0] + [5.0, -2.0]
NEW = np.random.default_rng(1).normal(size=(6, 2)) * [1.0, 3.0] + [5.0, -2.0]
MODELS = {
    "kde": KDE(frame="scale"),
    "kde, debiased": KDE(debias=KernelScore(), frame="scale"),
    "kde, matern": KDE(kernel="matern52", length_scale=[0.8, 2.0], frame="scale"),
    "sosrep": SOSREP(frame="scale"),
    "sosrep, sdo": SOSREP(kernel=SDO(order=5), frame="scale"),
    "sosrep, landmarks": SOSREP(landmarks=30, frame="scale"),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param].fit(ROWS)


def wanting(dtype=torch.float64):
    return torch.as_tensor(NEW, dtype=dtype).requires_grad_()


def test_values_are_those_without_a_graph(model):
    x = wanting()
    np.testing.assert_allclose(model.score_samples(x).detach().numpy(), model.score_samples(NEW), rtol=1e-9)
    got = model.grad_log_density(x)
    np.testing.assert_allclose(got.detach().numpy(), model.grad_log_density(NEW), rtol=1e-7, atol=1e-9)


def test_the_gradient_of_the_log_density_is_the_score(model):
    x = wanting()
    (slope,) = torch.autograd.grad(model.score_samples(x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), model.grad_log_density(NEW), rtol=1e-7, atol=1e-9)


def test_derivatives_agree_with_differences(model):
    x = wanting()
    assert torch.autograd.gradcheck(model.score_samples, (x,))
    assert torch.autograd.gradcheck(model.grad_log_density, (x,))


def test_grad_of_torch_func_and_float32(model):
    x = wanting(torch.float32)
    model.score_samples(x).sum().backward()
    assert x.grad.dtype == torch.float32
    got = torch.func.grad(lambda rows: model.score_samples(rows).sum())(x.detach())
    torch.testing.assert_close(got, x.grad)


def test_the_log_density_in_frames_has_a_gradient():
    model = SOSREP(frame="auto").fit(torch.as_tensor(ROWS))
    x = wanting()
    (slope,) = torch.autograd.grad(model.score_samples(x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), model.grad_log_density(NEW), rtol=1e-7, atol=1e-9)
    assert torch.autograd.gradcheck(model.score_samples, (x,))
    with pytest.raises(InputError, match="frame='scale'"):
        model.grad_log_density(x)


def test_a_model_of_tensors_and_a_constant_column():
    rows = np.column_stack([ROWS, np.full(80, 7.0)])
    new = np.column_stack([NEW, np.full(6, 7.0)])
    with pytest.warns(UserWarning, match="constant"):
        model = KDE(frame="scale").fit(torch.as_tensor(rows))
    x = torch.as_tensor(new).requires_grad_()
    torch.testing.assert_close(model.score_samples(x).detach(), model.score_samples(x.detach()))
    torch.testing.assert_close(model.grad_log_density(x).detach(), model.grad_log_density(x.detach()))
    model.grad_log_density(x).square().sum().backward()
    assert bool((x.grad[:, 2] == 0.0).all())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_rows_on_a_gpu(model):
    x = wanting()
    there = x.detach().cuda().requires_grad_()
    for rows in (x, there):
        model.score_samples(rows).sum().backward()
    assert there.grad.device == there.device
    torch.testing.assert_close(there.grad.cpu(), x.grad, rtol=1e-7, atol=1e-9)


def test_far_rows_have_log_densities_with_gradients():
    x = torch.tensor([[500.0, 0.0]], dtype=torch.float64, requires_grad=True)
    model = KDE(frame="scale").fit(ROWS)
    out = model.score_samples(x)
    out.backward()
    assert bool(torch.isfinite(out).all())
    np.testing.assert_allclose(x.grad.numpy(), model.grad_log_density(x.detach().numpy()), rtol=1e-9)
    torch.testing.assert_close(model.grad_log_density(x).detach(), x.grad, rtol=1e-9, atol=0.0)


def test_scores_of_far_and_near_rows_together_have_derivatives():
    x = torch.tensor([[5.0, -2.0], [60.0, 200.0], [4.0, -1.0]], dtype=torch.float64, requires_grad=True)
    model = KDE(frame="scale").fit(ROWS)
    np.testing.assert_allclose(
        model.grad_log_density(x).detach().numpy(), model.grad_log_density(x.detach().numpy()), rtol=1e-9, atol=1e-12
    )
    assert torch.autograd.gradcheck(model.grad_log_density, (x,), eps=1e-4, atol=1e-5)
    gaps = torch.func.grad(lambda rows: model.grad_log_density(rows).square().sum())(x.detach())
    assert bool(torch.isfinite(gaps).all())


@pytest.mark.parametrize(
    "model",
    [
        KDE(bounds={0: (0.0, None)}, frame="scale"),
        RandomFeatureSOSREP(kernel="gaussian", random_state=0),
        KDE(kernel=ProductLaplacian(), frame="scale"),
    ],
    ids=["bounds", "features", "product"],
)
def test_densities_of_other_forms_are_refused(model):
    fitted = model.fit(np.abs(ROWS))
    for question in (fitted.score_samples, fitted.grad_log_density):
        with pytest.raises(InputError, match="only sums of radial kernels over numeric columns"):
            question(wanting())


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.zeros(3, 1, requires_grad=True), "X has 1 columns; expected 2"),
        (torch.full((3, 2), torch.nan, requires_grad=True), "not finite"),
        (torch.zeros(3, requires_grad=True), r"X has shape \(3,\)"),
    ],
)
def test_rows_that_do_not_fit_are_refused(x, words):
    model = KDE(frame="scale").fit(ROWS)
    for question in (model.score_samples, model.grad_log_density):
        with pytest.raises(InputError, match=words):
            question(x)
