"""Every number of the reference file, within ten times what the oracle moves when its inputs are rotated or moved by an ulp."""

from functools import lru_cache, partial

import numpy as np
import pytest
from oracle import Dense

from isopleth import KernelScore
from isopleth.score import LandweberIteration, NuIteration, SpectralCutoff, Stein, Tikhonov, kernel_score
from isopleth.score.spaces import SPACES
from isopleth.score.system import SampleSystem

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")

pytestmark = pytest.mark.data

SPACE = {"diagonal": "diagonal", "curlfree": "curl_free"}
CASES = [
    (d, kernel, space) for d in (2, 8) for kernel in ("gaussian", "imq", "matern52", "matern72") for space in SPACE
]
# Minutes for all of these; the default suite has each space and three kernels in two columns.
FAST = [(2, "gaussian", "curlfree"), (2, "imq", "diagonal"), (2, "matern72", "curlfree")]
SLOW = [case for case in CASES if case not in FAST]
SLOW += [(32, "imq", space) for space in SPACE]
CASES = [*(case for case in CASES if case not in SLOW), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
FLOOR = 1e-12


@pytest.fixture(scope="module")
def reference(shared):
    return dict(np.load(shared / "reference" / "score_dense64.npz"))


@pytest.fixture(autouse=True)
def one_system_a_case(monkeypatch):
    """Fits of one case differ in the regulariser: they share matrix and eigenvectors."""
    known = {}

    def system(space, z, weights, base=None, whole=False):
        key = (type(space), space.kernel, z.tobytes(), whole and len(z) <= z.shape[1])
        if key not in known:
            known[key] = SampleSystem(space, z, weights, base, whole=whole)
        return known[key]

    monkeypatch.setattr(kernel_score, "SampleSystem", system)


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def moves(X, Q, sigma):
    """The same data in other words: (rows, queries, length scale, how to take vectors back)."""
    turn = rotation(X.shape[1], 0)
    rng = np.random.default_rng(1)
    yield X @ turn, Q @ turn, sigma, turn.T
    up, aside = (np.nextafter(a, a + rng.choice([-1.0, 1.0], a.shape)) for a in (X, Q))
    yield up, aside, float(np.nextafter(sigma, 2 * sigma)), np.eye(X.shape[1])


def distance(a, b):
    return float(np.linalg.norm(np.asarray(a) - b) / max(np.linalg.norm(b), 1e-300))


def regularizer(key, ell2, lmax):
    """`ell2` turns the paper's lambda and eigenvalues into those at unit length scale."""
    name, *rest = key.split("/")
    number = float(rest[0][3:]) * ell2 if rest[0].startswith("lam") else 0.0
    if name == "tikhonov":
        return Tikhonov(number, truncated=False)
    if name in ("truncated_tol1e-12", "stein_in_sample"):
        return Tikhonov(number)
    if name == "cutoff":
        return SpectralCutoff(threshold=number) if number else SpectralCutoff(count=float(rest[0][4:]))
    if name == "landweber":
        eta = 0.01 if rest[0] == "eta0.01" else 0.9 / lmax
        return LandweberIteration(steps=int(rest[1][1:]), step_size=eta / ell2)
    nu, _, normalised = name.removeprefix("nu").partition("_")
    return NuIteration(steps=int(rest[0][1:]), nu=float(nu), largest=(lmax if normalised else 1.0) * ell2)


class Ours:
    """Results of the library for a key."""

    def __init__(self, X, kernel, sigma, space, lmax):
        self.X, self.sigma, self.kernel, self.space, self.lmax = X, sigma, kernel, SPACE[space], lmax
        self.ell2 = sigma**2 if space == "curlfree" else 1.0
        self.fit = lru_cache(self._fit)

    def _fit(self, key):
        return scale_score(
            self.kernel, self.space, regularizer(key, self.ell2, self.lmax), self.sigma, base=None, solver="eigen"
        ).fit(self.X)

    def _parts(self):
        z = (self.X - np.median(self.X, axis=0)) / self.sigma
        space = SPACES[self.space](self.fit("tikhonov/lam0.01")._space.kernel)
        return z, space, SampleSystem(space, z, np.full(len(z), 1 / len(z)))

    def answer(self, key, query):
        name, *rest = key.split("/")
        if name in ("lmax", "eig_K_over_M_top"):
            values = self._parts()[2].spectrum.values[::-1] / self.ell2
            return values[0] if name == "lmax" else values[:16]
        if name in ("zeta_query", "zeta_X"):
            z, space, _ = self._parts()
            x = z if name == "zeta_X" else (query - np.median(self.X, axis=0)) / self.sigma
            return space.zeta(x, z, np.full(len(z), 1 / len(z))) / (self.sigma * self.ell2)
        if rest[-1] == "n_kept":
            return np.sum(self._parts()[2].spectrum.values / self.ell2 >= float(rest[0][3:]))
        if name == "stein_augmented":
            alpha = float(rest[0][3:])
            model = Stein(self.kernel, alpha, length_scale=self.sigma, out_of_sample="augmented").fit(self.X)
            return model.grad_log_density(query)
        model = self.fit(key.removesuffix("/energy"))
        if name == "stein_in_sample":
            return model.grad_log_density_
        return model.log_density(query) if rest[-1] == "energy" else model.grad_log_density(query)


@pytest.mark.parametrize(("d", "kernel", "space"), CASES)
def test_every_number_of_the_reference(reference, d, kernel, space, capsys):
    X, Q = reference[f"input/d{d}/M64/X"], reference[f"input/d{d}/query"]
    sigma = float(reference[f"input/d{d}/M64/sigma"])
    prefix = f"dense64/d{d}/M64/{kernel}/{space}/"
    keys = [k.removeprefix(prefix) for k in reference if k.startswith(prefix) and "nystrom" not in k]
    assert len(keys) >= 18
    oracle = Dense(X, kernel, sigma, space)
    moved = [(Dense(x, kernel, s, space), q, back) for x, q, s, back in moves(X, Q, sigma)]
    ours = Ours(X, kernel, sigma, space, float(oracle.w[-1]))
    wrong, report = [], []
    for key in keys:
        want, base = reference[prefix + key], oracle.answer(key, Q)
        answers = [(o.answer(key, q), back) for o, q, back in moved]
        shift = max(distance(a @ back if np.ndim(a) == 2 else a, base) for a, back in answers)
        tolerance = max(FLOOR, 10 * shift)
        errors = distance(ours.answer(key, Q), want), distance(base, want)
        report.append(f"{prefix + key:62s} library {errors[0]:.1e} oracle {errors[1]:.1e} tolerance {tolerance:.1e}")
        if max(errors) > tolerance:
            wrong.append(report[-1])
    with capsys.disabled():
        worst = max(report, key=lambda line: float(line.split()[2]))
        print(f"\n{len(keys)} numbers of {prefix[:-1]}, worst: {worst}", end="")
    print("\n".join(report))
    assert not wrong, "\n".join(wrong)
