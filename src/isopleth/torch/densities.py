"""Log densities of fitted estimators and their gradients, as functions of tensors that require a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from isopleth.backend import to_numpy
from isopleth.density.fitted import ExpansionDensity, RootDensity
from isopleth.errors import InputError
from isopleth.torch.checks import check_points, computed, constant
from isopleth.torch.log_sums import log_kernel_sum
from isopleth.torch.products import gradient_product, kernel_product


def score_samples(density: ExpansionDensity, frame: Any, log_normalizer: float, X: Tensor) -> Tensor:
    """Return the log density at rows, with a graph.

    Parameters
    ----------
    density : ExpansionDensity
        The density in frame coordinates.
    frame : Frame
        The map to frame coordinates.
    log_normalizer : float
        Logarithm of the integral, in units of the data.
    X : Tensor of shape (n, n_features)
        Rows.

    Returns
    -------
    Tensor of shape (n,)
        As `score_samples` of the estimator returns it; minus infinity where a kernel that can be negative sums to 0.
    """
    z, centers, coefficients = _at(density, frame, X)
    given = (density.expansion.kernel, z, centers)
    if density.expansion.kernel.nonnegative:
        log_sum = log_kernel_sum(*given, torch.log(coefficients), **_budget(density))
    else:
        log_sum = torch.log(kernel_product(*given, coefficients, **_budget(density)).abs())
    return _power(density) * log_sum - log_normalizer


def grad_log_density(density: ExpansionDensity, frame: Any, X: Tensor) -> Tensor:
    """Return the gradient of the log density at rows, with a graph; arguments are as for :func:`score_samples`.

    It is NaN at rows so far from all centres that the density underflows.
    """
    z, centers, coefficients = _at(density, frame, X)
    given = (density.expansion.kernel, z, centers, coefficients)
    slope = gradient_product(*given, **_budget(density)) / kernel_product(*given, **_budget(density))[:, None]
    kept = torch.as_tensor(np.flatnonzero(frame.keep), device=X.device)
    out = z.new_zeros((len(z), X.shape[1]))
    return out.index_copy(1, kept, _power(density) * slope / torch.as_tensor(frame.scale, device=X.device))


def _power(density: ExpansionDensity) -> float:
    """Return the power of the expansion that the density is, up to a constant."""
    return 2.0 if isinstance(density, RootDensity) else 1.0


def _budget(density: ExpansionDensity) -> dict[str, Any]:
    return {"memory_limit": density.expansion.memory_limit, "n_jobs": density.expansion.n_jobs}


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
