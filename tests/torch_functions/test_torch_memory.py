"""A differentiated product takes a tile, not a matrix; and without torch there is one sentence."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

PEAK = """
import torch
from isopleth.torch import kernel_product

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

n, d = 8192, 16
x, y = (torch.randn(n, d, dtype=torch.float64, requires_grad=True) for _ in range(2))
v = torch.randn(n, dtype=torch.float64, requires_grad=True)
kernel_product("gaussian", x[:600], y[:600], v[:600]).sum().backward()  # threads and libraries are there from now on
for a in (x, y, v):
    a.grad = None
before = status("VmRSS")
kernel_product("gaussian", x, y, v).sum().backward()
assert all(bool(torch.isfinite(a.grad).all()) for a in (x, y, v))
print(status("VmHWM") - before)
"""

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)

sys.meta_path.insert(0, Absent())
import isopleth
try:
    import isopleth.torch
except isopleth.MissingExtraError as error:
    print(error)
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the process's peak from /proc")
@pytest.mark.slow
def test_forward_and_backward_of_8192_points_stay_far_below_the_matrix():
    assert float(run(PEAK)) < 300.0  # MiB; one matrix of all pairs is 512


def test_without_torch_there_is_one_sentence_and_isopleth_itself_works():
    assert (
        run(WITHOUT).strip() == "isopleth.torch needs torch, which is not installed: pip install torch (extra 'torch')."
    )


def test_isopleth_itself_never_imports_torch():
    assert run("import sys, isopleth; print('torch' in sys.modules)").strip() == "False"
