"""Differentiable kernel sums and losses for PyTorch tensors on any device."""

from __future__ import annotations

from isopleth.core.errors import require

require("torch", "torch", "isopleth.torch")

from isopleth.torch.discrepancies import (  # noqa: E402  (a missing extra is reported first)
    ksd,
    mmd,
    squared_l2,
    svgd_direction,
)
from isopleth.torch.entropy import EntropyGradient, entropy_surrogate, mutual_information_surrogate  # noqa: E402
from isopleth.torch.log_sums import log_kernel_sum  # noqa: E402
from isopleth.torch.products import gradient_product, kernel_product  # noqa: E402

__all__ = [
    "EntropyGradient",
    "entropy_surrogate",
    "gradient_product",
    "kernel_product",
    "ksd",
    "log_kernel_sum",
    "mmd",
    "mutual_information_surrogate",
    "squared_l2",
    "svgd_direction",
]
