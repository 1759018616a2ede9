"""Check of a kernel that was written elsewhere: each formula against a slow form that needs no other formula than phi."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import gammaln, roots_jacobi

from isopleth.core.errors import InputError
from isopleth.kernels.base import _PRODUCTS, Kernel, Workspace

Numbers = np.ndarray | float

_S = np.geomspace(0.05, 60.0, 40)  # squared distances at which formulas are compared
_LOG_R = np.linspace(-40.0, 40.0, 8001)  # logarithms of distances, for tails that decrease as a power
_DRAWS = 10_000
_SIGMAS = 5.0  # standard deviations by which a mean of draws may miss; a share has at most half of one


def check_kernel(kernel: Kernel, dims: Sequence[int] = (1, 2, 5)) -> list[str]:
    r"""Check the formulas of a kernel, such as one of your own, against slow forms of them.

    In each dimension, :math:`\varphi(0) = 1`; derivatives and the Laplacian are compared with finite differences; a matrix of
    random points is positive semidefinite; derivatives are 0 where distances
    overflow. Methods that the kernel defines are
    checked, too: logarithms against phi, integral and self-convolution against quadrature, draws against the densities that they
    come from, and wave vectors against phi as their mean cosine. Orders and methods that it does not define are left out.

    Parameters
    ----------
    kernel : Kernel
        Kernel to check. If it is bound to a dimension, only that one is checked.
    dims : sequence of int, default=(1, 2, 5)
        Dimensions in which a kernel is checked that is not bound to one.

    Returns
    -------
    list of str
        What was checked, as the kernel defines it: ``"phi"``, ``"phi'"`` and so on, and names of methods.

    Raises
    ------
    InputError
        If a formula is wrong: names the first one, the dimension, where, what it gave and what was expected. Also if
        `kernel` is no radial kernel.

    Examples
    --------
    >>> from isopleth.kernels import Gaussian, Kernel, check_kernel
    >>> check_kernel(Gaussian(), dims=(2,))[:3]
    ['phi', "phi'", "s phi''"]
    >>> class Wrong(Kernel):
    ...     smoothness = 0.5
    ...
    ...     def _product(self, s, order, work):
    ...         return 1 / (1 + s) if order == 0 else -1 / (1 + s)
    >>> check_kernel(Wrong(), dims=(2,))
    Traceback (most recent call last):
    isopleth.core.errors.InputError: Wrong(dim=2): phi' at s = 0.05 is -0.952381; expected -0.907029, by finite differences.
    """
    if not isinstance(kernel, Kernel) or kernel.by_columns:
        raise InputError(f"kernel = {kernel!r}: expected an instance of a radial kernel, a subclass of Kernel.")
    checked: dict[str, None] = {}
    for dim in (kernel.dim,) if kernel.dim is not None else dims:
        bound = kernel.bind(dim)
        for check in (_values, _derivatives, _far, _positive, _logarithms, _normaliser, _density, _spectrum):
            checked |= dict.fromkeys(check(bound))
    return list(checked)


def _compare(kernel: Kernel, what: str, at: Numbers, got: Numbers, want: Numbers, most: Numbers, by: str) -> None:
    """Refuse a formula at the first point where it is further from a slow form than `most`; NaN is far."""
    at, got, want = np.atleast_1d(at), np.atleast_1d(got), np.atleast_1d(want)
    wrong = np.flatnonzero(~(np.abs(got - want) <= most))
    if len(wrong):
        i = wrong[0]
        raise InputError(f"{kernel!r}: {what} at s = {at[i]:g} is {got[i]:g}; expected {want[i]:g}, {by}.")


def _orders(kernel: Kernel) -> list[int]:
    """Return the orders of derivatives that a kernel defines, which end where its formula refuses one."""
    found = [0]
    for order in range(1, 5):
        try:
            kernel.derivative(1.0, order)
        except InputError:
            break
        found.append(order)
    return found


def _values(kernel: Kernel) -> Iterator[str]:
    """Check phi(0), and that phi is a number of the kind of its argument."""
    _compare(kernel, "phi", np.zeros(1), kernel(np.zeros(1)), np.ones(1), 1e-10, "as every kernel has")
    single = kernel(_S.astype(np.float32))
    if single.dtype != np.float32:
        raise InputError(f"{kernel!r}: phi of float32 is {single.dtype}; expected float32.")
    _compare(kernel, "phi", _S, single, kernel(_S), 1e-4, "as in float64")
    yield "phi"


def _derivatives(kernel: Kernel) -> Iterator[str]:
    """Compare each product of derivatives with differences of the one before, and the Laplacian with those in space."""
    h, orders = 1e-5 * _S, _orders(kernel)
    for order in orders[1:]:
        power = (order - 1) // 2
        high, low = (kernel.derivative(s, order - 1) / s**power for s in (_S + h, _S - h))
        want = _S ** (order // 2) * (high - low) / (2.0 * h)
        most = 1e-5 * np.abs(want) + 2e-6 * np.abs(want).max()
        _compare(kernel, _PRODUCTS[order], _S, kernel.derivative(_S, order), want, most, "by finite differences")
        yield _PRODUCTS[order]
    if len(orders) > 2:
        x = np.sqrt(_S)[:, None] * np.eye(kernel.bound_dim).mean(axis=0) * math.sqrt(kernel.bound_dim)
        h, want = 1e-3 * np.sqrt(_S), np.zeros(len(_S))
        for e in np.eye(kernel.bound_dim):
            high, low = (kernel(np.sum((x + sign * h[:, None] * e) ** 2, axis=1)) for sign in (1.0, -1.0))
            want += (high - 2.0 * kernel(_S) + low) / h**2
        most = 1e-3 * np.abs(want) + 1e-3 * np.abs(want).max()
        _compare(kernel, "the Laplacian", _S, kernel.laplacian(_S), want, most, "by finite differences")
        yield "laplacian"


def _far(kernel: Kernel) -> Iterator[str]:
    """Check that nothing is NaN anywhere, and derivatives are 0 where distances overflow: sums multiply them by distances."""
    s = np.array([0.0, 1e-300, 1e-30, 1e30, 1e300, math.inf])
    for order in _orders(kernel):
        got = kernel.derivative(s, order)
        if order:
            most = np.array([1e-290, 0.0])  # some powers of 1e300 that are right are not yet 0
            _compare(kernel, _PRODUCTS[order], s[4:], got[4:], np.zeros(2), most, "which far rows need")
        lost = s[np.isnan(got) if order else ~np.isfinite(got)]
        if len(lost):
            raise InputError(f"{kernel!r}: {_PRODUCTS[order]} at s = {lost[0]:g} is not finite.")
    yield "phi"


def _positive(kernel: Kernel) -> Iterator[str]:
    """Check that a matrix of random points has no negative eigenvalue, and no negative value where there should be none."""
    x = 2.0 * np.random.default_rng(0).normal(size=(120, kernel.bound_dim))
    gram = kernel(squareform(pdist(x, "sqeuclidean")))
    least = np.linalg.eigvalsh(gram).min()
    if not least > -1e-9:
        raise InputError(f"{kernel!r}: a matrix of 120 points has the eigenvalue {least:g}; expected none below 0.")
    if kernel.nonnegative and gram.min() < 0.0:
        raise InputError(f"{kernel!r}: phi is {gram.min():g} somewhere; set nonnegative = False, or correct it.")
    yield "phi"


def _logarithms(kernel: Kernel) -> Iterator[str]:
    """Compare log phi with phi, and its slope with differences, where phi does not underflow."""
    s = _S[_S < 10.0]
    if kernel.nonnegative and type(kernel)._log is not Kernel._log:
        _compare(kernel, "log phi", s, kernel.log(s), np.log(kernel(s)), 1e-8, "the logarithm of phi")
        yield "_log"
        if type(kernel)._log_slope is not Kernel._log_slope:
            h = 1e-5 * s
            want = (kernel.log(s + h) - kernel.log(s - h)) / (2.0 * h)
            most = 1e-5 * np.abs(want) + 1e-6
            got = kernel._log_slope(s.copy(), Workspace())
            _compare(kernel, "_log_slope", s, got, want, most, "by finite differences")
            yield "_log_slope"


def _log_sphere(dim: int) -> float:
    """Return the logarithm of the area of the unit sphere."""
    return float(math.log(2.0) + 0.5 * dim * math.log(math.pi) - gammaln(0.5 * dim))


def _tails(logs: np.ndarray) -> tuple[float, float]:
    """Integrate an integrand below and above the grid, where it continues as a power of the distance."""
    step = _LOG_R[1] - _LOG_R[0]
    ends = [(logs[0], logs[1]), (logs[-1], logs[-2])]
    low, high = (math.exp(a) * step / (b - a) if b > a > -math.inf else 0.0 for a, b in ends)
    return low, high


def _log_integral(dim: int, radial: np.ndarray) -> float:
    """Integrate over space a function that is given at the distances of the grid."""
    with np.errstate(divide="ignore"):
        logs = dim * _LOG_R + np.log(np.abs(radial))
    top = logs.max()
    total = np.trapezoid(np.sign(radial) * np.exp(logs - top), _LOG_R) + sum(_tails(logs - top))
    return _log_sphere(dim) + float(top + np.log(max(total, 1e-300)))


def _overlap(kernel: Kernel, distance: float) -> float:
    """Return the logarithm of the self-convolution at a distance: polar coordinates around the point between both centres."""
    dim = kernel.bound_dim
    t, weight = (np.array([1.0]), np.ones(1)) if dim == 1 else roots_jacobi(32, 0.5 * dim - 1.5, 0.5 * dim - 1.5)
    r, product = np.exp(_LOG_R), np.zeros(len(_LOG_R))
    for cosine, share in zip(t, weight / weight.sum(), strict=True):
        near, far = ((r + sign * 0.5 * distance * cosine) ** 2 for sign in (-1.0, 1.0))
        beside = 0.25 * distance**2 * (1.0 - cosine**2)
        product += share * kernel(near + beside) * kernel(far + beside)
    return _log_integral(dim, product)


def _normaliser(kernel: Kernel) -> Iterator[str]:
    """Compare constant and shape of the self-convolution with quadrature, if the square integrates."""
    if kernel.square_integrable:
        found, at_zero = kernel.self_convolution(), _overlap(kernel, 0.0)
        _compare(
            kernel, "the log_constant of self_convolution", 0.0, found.log_constant, at_zero, 1e-4, "by quadrature"
        )
        for distance in (0.0, 1.0, 3.0):
            want = math.exp(_overlap(kernel, distance) - at_zero)
            _compare(kernel, "psi of self_convolution", distance**2, found(distance**2), want, 5e-3, "by quadrature")
        yield "self_convolution"


def _draws(kernel: Kernel, what: str, draws: np.ndarray, density: Callable[[np.ndarray], np.ndarray]) -> None:
    """Compare distances of draws from 0 with a density of distances, and their directions with equal ones."""
    dim = kernel.bound_dim
    if draws.shape != (_DRAWS, dim):
        raise InputError(f"{kernel!r}: {what}({_DRAWS}, rng) has shape {draws.shape}; expected ({_DRAWS}, {dim}).")
    distance, radial = np.sort(np.linalg.norm(draws, axis=1)), dim * _LOG_R + density(np.exp(_LOG_R))
    weight = np.exp(radial - radial.max())
    low, high = (tail / (_LOG_R[1] - _LOG_R[0]) for tail in _tails(radial - radial.max()))
    below = low + np.concatenate([[0.0], np.cumsum(0.5 * (weight[1:] + weight[:-1]))])
    with np.errstate(divide="ignore"):
        share = np.interp(np.log(distance), _LOG_R, below / (below[-1] + high))
    gap = np.abs(share - (np.arange(_DRAWS) + 0.5) / _DRAWS).max()
    mean = np.abs(np.divide(draws, np.linalg.norm(draws, axis=1)[:, None]).mean(axis=0)).max()
    if not (2.0 * gap <= _SIGMAS / math.sqrt(_DRAWS) and mean <= _SIGMAS / math.sqrt(_DRAWS)):
        raise InputError(f"{kernel!r}: draws of {what} do not have the density that they should come from.")


def _density(kernel: Kernel) -> Iterator[str]:
    """Compare the integral with quadrature, and draws with phi, if the kernel is a density."""
    if not kernel.integrable:
        return
    want = _log_integral(kernel.bound_dim, kernel(np.exp(2.0 * _LOG_R)))
    _compare(kernel, "log_integral", 0.0, kernel.log_integral(), want, 1e-4, "by quadrature")
    yield "log_integral"
    if type(kernel).sample is not Kernel.sample:
        with np.errstate(divide="ignore"):
            _draws(kernel, "sample", kernel.sample(_DRAWS, np.random.default_rng(0)), lambda r: np.log(kernel(r * r)))
        yield "sample"


def _spectrum(kernel: Kernel) -> Iterator[str]:
    """Check that the mean cosine of wave vectors is phi, and that their density has their distances and the integral 1."""
    if not kernel.has_spectrum:
        return
    omega = kernel.sample_frequencies(_DRAWS, np.random.default_rng(0))
    axis = np.eye(kernel.bound_dim)[0]

    def density(r: np.ndarray) -> np.ndarray:
        return kernel.log_spectral_density(r[:, None] * axis)

    _draws(kernel, "sample_frequencies", omega, density)
    distance = np.linspace(0.1, 3.0, 12)
    waves = np.cos(np.outer(omega @ axis, distance))
    most = _SIGMAS * waves.std(axis=0) / math.sqrt(_DRAWS) + 1e-9
    _compare(
        kernel,
        "the mean cosine of sample_frequencies",
        distance**2,
        waves.mean(axis=0),
        kernel(distance**2),
        most,
        "phi",
    )
    yield "sample_frequencies"
    total = _log_integral(kernel.bound_dim, np.exp(density(np.exp(_LOG_R))))
    if not abs(total) < 1e-4:
        raise InputError(f"{kernel!r}: log_spectral_density has the integral {math.exp(total):g}; expected 1.")
    yield "log_spectral_density"
