"""Log densities of fitted estimators and their gradients, as functions of tensors that require a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError
from isopleth.density.fitted import Fitted
from isopleth.density.frame_density import ExpansionDensity
from isopleth.kernels import Kernel
from isopleth.torch.checks import TensorFunction, check_points, computed, constant, first_derivatives
from isopleth.torch.log_sums import log_kernel_sum
from isopleth.torch.products import gradient_product, kernel_product

# Sums of kernels below this have lost digits to underflow.
_TINY = 1e-280

# Step of differences of the gradient of a log density, in frame coordinates.
_STEP = 1e-4


class _LogSlope(TensorFunction):
    """Gradient of log sum_j c_j k(z_i, y_j), also where the sum underflows; its own derivative is taken by differences."""

    @staticmethod
    def forward(z: Tensor, centers: Tensor, log_coefficients: Tensor, kernel: Kernel, budget: dict[str, Any]) -> Tensor:
        with torch.enable_grad():
            rows = z.detach().requires_grad_()
            total = log_kernel_sum(kernel, rows, centers, log_coefficients, **budget).sum()
            return torch.autograd.grad(total, rows)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.kernel, ctx.budget = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return second derivatives along the gradient, by a central difference."""

        def compute(z: Tensor, centers: Tensor, log_coefficients: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
            # The Hessian is symmetric, so that its product with a vector is a derivative along this vector.
            size = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
            step = _STEP * grad / torch.where(size > 0.0, size, torch.ones_like(size))
            ends = [
                _LogSlope.forward(z + by, centers, log_coefficients, ctx.kernel, ctx.budget) for by in (step, -step)
            ]
            return ((ends[0] - ends[1]) * (size / (2.0 * _STEP)),)

        return *first_derivatives(compute, *ctx.saved_tensors, grad), None, None, None, None


class _OfRows(TensorFunction):
    """Log density of each row by functions of NumPy arrays, with the gradient that is known."""

    @staticmethod
    def forward(X: Tensor, model: Any) -> Tensor:
        return torch.as_tensor(to_numpy(model.score_samples(X.detach())), dtype=torch.float64, device=X.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        X, ctx.model = inputs
        ctx.save_for_backward(X)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the log densities of rows."""

        def compute(X: Tensor, grad: Tensor) -> tuple[Tensor, ...]:
            slope = torch.as_tensor(to_numpy(ctx.model.grad_log_density(X.detach())), device=X.device)
            return ((grad[:, None] * slope).to(X.dtype),)

        return *first_derivatives(compute, *ctx.saved_tensors, grad), None


def score_samples(model: Any, fitted: Fitted, X: Tensor) -> Tensor:
    """Return the log density at rows, with a graph; that of a mixture over frames has first derivatives only.

    It is minus infinity where a kernel that can be negative sums to 0.
    """
    if fitted.components is not None:  # a mixture over frames
        rows: Tensor = _OfRows.apply(X, model)
        return rows
    density = _sum_of_kernels(fitted)
    z, centers, coefficients = _at(density, fitted.coordinates.frame, X)
    given = (density.expansion.kernel, z, centers)
    if density.expansion.kernel.nonnegative:
        log_sum = log_kernel_sum(*given, torch.log(coefficients), **_budget(density))
    else:
        log_sum = torch.log(kernel_product(*given, coefficients, **_budget(density)).abs())
    return density.power * log_sum - fitted.log_normalizer


def grad_log_density(fitted: Fitted, X: Tensor) -> Tensor:
    """Return the gradient of the log density at rows, with a graph.

    Where sums of kernels that can be negative underflow, it is NaN.
    """
    if fitted.components is not None:  # a mixture over frames
        raise InputError(
            "X requires a gradient, and gradients of densities in frames have no derivatives; give X.detach(), or fit with "
            "frame='scale'."
        )
    density, frame = _sum_of_kernels(fitted), fitted.coordinates.frame
    z, centers, coefficients = _at(density, frame, X)
    kernel, budget = density.expansion.kernel, _budget(density)
    far = None
    if kernel.nonnegative:
        far = constant(lambda rows: kernel_product(kernel, rows, centers, coefficients, **budget) < _TINY, z)[:, None]
        if X.device.type == "cpu" and not bool(constant(torch.any, far)):
            far = None
    near = (kernel, z if far is None else torch.where(far, centers[:1], z), centers, coefficients)
    slope = gradient_product(*near, **budget) / kernel_product(*near, **budget)[:, None]
    if far is not None:
        slope = torch.where(far, _LogSlope.apply(z, centers, torch.log(coefficients), kernel, budget), slope)
    kept = torch.as_tensor(np.flatnonzero(frame.keep), device=X.device)
    out = z.new_zeros((len(z), X.shape[1]))
    return out.index_copy(1, kept, density.power * slope / torch.as_tensor(frame.scale, device=X.device))


def _sum_of_kernels(fitted: Fitted) -> ExpansionDensity:
    """Return the density as a sum of kernels in scaled columns, which has derivatives of every order of its kernel."""
    bounds, density = fitted.coordinates.bounds, fitted.density
    if not isinstance(density, ExpansionDensity) or np.isfinite([bounds.low, bounds.high]).any():
        raise InputError(
            "X requires a gradient, which only sums of radial kernels over numeric columns without bounds pass on; give "
            "X.detach()."
        )
    return density


def _budget(density: ExpansionDensity) -> dict[str, Any]:
    return density.expansion.budget.limits


def _at(density: ExpansionDensity, frame: Any, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows in frame coordinates, the centres and their coefficients, float64 on the device of the rows."""
    check_points(X, X, "X", "X")
    if X.shape[1] != len(frame.keep):
        raise InputError(f"X has {X.shape[1]} columns; expected {len(frame.keep)}, as at fit.")
    if X.device.type == "cpu" and not bool(constant(lambda rows: torch.isfinite(rows).all(), X)):
        raise InputError("X has entries that are not finite; expected finite numbers.")

    def there(a: Any) -> Tensor:
        return torch.as_tensor(to_numpy(a), dtype=torch.float64, device=X.device)

    kept = torch.as_tensor(np.flatnonzero(frame.keep), device=X.device)
    z = (computed(X).to(torch.float64).index_select(1, kept) - there(frame.shift)) / there(frame.scale)
    return z, there(density.expansion.centers), there(density.expansion.coefficients)
