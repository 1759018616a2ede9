"""A kernel that has only what a kernel must have: the tests of all kernels ask it for nothing else."""

from isopleth.kernels import Kernel
from templates.kernel import KernelTemplate


class LeanKernel(KernelTemplate):
    """The template without each method that it says may be deleted, and with a property that says no."""

    square_integrable = False
    self_convolution = Kernel.self_convolution
    log_integral = Kernel.log_integral
    sample = Kernel.sample
    sample_frequencies = Kernel.sample_frequencies
    log_spectral_density = Kernel.log_spectral_density
