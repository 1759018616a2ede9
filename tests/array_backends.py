"""Array libraries and devices that tests send rows to; see the fixture `send`."""

from __future__ import annotations

from functools import partial

import array_api_strict
import numpy as np
import pytest


def torch_on(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return lambda a: torch.asarray(np.array(a), device=device)


BACKENDS = {
    "torch": lambda: torch_on("cpu"),
    # The way of tensors that NumPy cannot look into.
    "torch as a device": lambda: torch_on("cpu"),
    "cuda": lambda: torch_on("cuda"),
    # It refuses to mix devices, so that an array made on the wrong one is found without a second device.
    "strict": lambda: partial(array_api_strict.asarray, device=array_api_strict.Device("device1")),
}
