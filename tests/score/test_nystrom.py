"""Nystrom forms: against dense algebra, the reference, the forms at all samples, and their symmetries."""

from functools import partial

import numpy as np
import pytest
from oracle import PROFILES, Dense

from isopleth import DataWarning, InputError, KernelScore, NystromKEF
from isopleth.kernels import IMQ, Gaussian
from isopleth.score import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
from isopleth.score.field import GaussianBase
from isopleth.score.spaces import SPACES
from isopleth.score.statistics import NystromStatistics

# The frame of the papers, in which length scales have the units of the columns.
scale_score = partial(KernelScore, frame="scale")
scale_nystrom = partial(NystromKEF, frame="scale", base=None)

SPACE = {"diagonal": "diagonal", "curlfree": "curl_free"}
KERNELS = ("gaussian", "imq", "matern52", "matern72")
CASES = [(2, kernel, space) for kernel in KERNELS for space in SPACE] + [
    pytest.param(8, kernel, space, marks=pytest.mark.slow) for kernel in KERNELS for space in SPACE
]
CASES += [pytest.param(32, "imq", space, marks=pytest.mark.slow) for space in SPACE]
REGULARIZERS = [
    Tikhonov(alpha=0.01),
    SpectralCutoff(threshold=0.02),
    SpectralCutoff(count=25),
    LandweberIteration(steps=200),
    NuIteration(steps=12, nu=2.0),
]


def mixture(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3.0 * rng.integers(0, 2, size=(n, 1))


def distance(a, b):
    return float(np.linalg.norm(np.asarray(a) - b) / np.linalg.norm(b))


class Literal(Dense):
    """The form of appendix C.1, with its 1/M: least squares of least norm, over blocks of d x d numbers in either space."""

    def __init__(self, X, kernel, sigma, space, m):
        # what the oracle has of all samples is not needed, and takes long
        self.X, self.phi, self.sigma, self.space = X, PROFILES[kernel], sigma, space
        self.M, self.d = X.shape
        self.Z = X[:m]
        self.from_samples, self.gram = self.blocks(self.Z, X), self.blocks(self.Z, self.Z)
        self.squares = self.from_samples @ self.from_samples.T / self.M

    def blocks(self, x, y):
        block = self.block(x, y)
        return np.kron(block, np.eye(self.d)) if self.space == "diagonal" else block

    def solve(self, lam, extra=0.0):
        rhs = self.zeta(self.Z).ravel() + extra
        self.c = -np.linalg.lstsq(self.squares + lam * self.gram, rhs)[0]
        return self

    def field(self, x):
        return (self.blocks(x, self.Z) @ self.c).reshape(x.shape)

    def energy(self, x):
        u = (x[:, None] - self.Z) / self.sigma
        slope = self.phi((u**2).sum(axis=2))[1]
        return -2 * (slope * np.einsum("ijk,jk->ij", u, self.c.reshape(self.Z.shape))).sum(axis=1) / self.sigma


def moves(X, Q):
    """The same rows and queries, in other words: with what takes vectors back."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0]
        yield X @ turn, Q @ turn, turn.T
        yield np.nextafter(X, X + rng.choice([-1.0, 1.0], X.shape)), Q, np.eye(X.shape[1])


@pytest.mark.data
@pytest.mark.parametrize(("d", "kernel", "space"), CASES)
def test_every_number_of_the_reference(shared, d, kernel, space):
    """Within ten times what the oracle moves when rows are rotated or moved by one unit in the last place."""
    reference = np.load(shared / "reference" / "score_dense64.npz")
    X, Q = reference[f"input/d{d}/M64/X"], reference[f"input/d{d}/query"]
    sigma = float(reference[f"input/d{d}/M64/sigma"])
    prefix = f"dense64/d{d}/M64/{kernel}/{space}/nystrom_first32/lam"
    keys = [key for key in reference if key.startswith(prefix)]
    assert len(keys) == (4 if d < 32 else 2) * (1 + (space == "curlfree"))
    oracle = Literal(X, kernel, sigma, space, 32)
    moved = [(Literal(x, kernel, sigma, space, 32), q, back) for x, q, back in moves(X, Q)]
    unit = sigma**2 if space == "curlfree" else 1.0  # the kernel there has no factor of the squared length scale
    wrong = []
    for lam in sorted({key.removeprefix(prefix).split("/")[0] for key in keys}):
        alpha = Tikhonov(alpha=float(lam) * unit)
        model = scale_nystrom(kernel, SPACE[space], alpha, landmarks=X[:32], length_scale=sigma).fit(X)
        solved = [(one.solve(float(lam)), q, back) for one, q, back in moved]
        base = oracle.solve(float(lam))
        shifts = [distance(one.field(q) @ back, base.field(Q)) for one, q, back in solved]
        found = {prefix + lam: (model.grad_log_density(Q), base.field(Q), shifts)}
        if space == "curlfree":
            shifts = [distance(one.energy(q), base.energy(Q)) for one, q, _ in solved]
            found[prefix + lam + "/energy"] = model.log_density(Q), base.energy(Q), shifts
        for key, (got, literal, shifts) in found.items():
            tolerance = max(1e-12, 10 * max(shifts))
            errors = [distance(a, reference[key]) for a in (got, literal)]
            print(f"{key}: library {errors[0]:.1e}, oracle {errors[1]:.1e}, tolerance {tolerance:.1e}")
            if max(errors) > tolerance:
                wrong.append(key)
    assert not wrong


@pytest.mark.parametrize("space", list(SPACES))
@pytest.mark.parametrize("kernel", ["gaussian", "imq", "matern52", "matern72"])
def test_tikhonov_is_the_literal_form(space, kernel):
    X, Q = mixture(150, 3), mixture(40, 3, seed=1)
    model = scale_nystrom(kernel, space, Tikhonov(alpha=0.02), landmarks=X[:20], length_scale=1.3).fit(X)
    lam = 0.02 / 1.3**2 if space == "curl_free" else 0.02
    want = Literal(X, kernel, 1.3, space, 20).solve(lam)
    assert distance(model.grad_log_density(Q), want.field(Q)) < 1e-9
    assert distance(model.grad_log_density_, want.field(X)) < 1e-9
    if space == "curl_free":
        assert distance(model.log_density(Q), want.energy(Q)) < 1e-9


@pytest.mark.parametrize("space", list(SPACES))
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_all_samples_as_landmarks_are_the_truncated_form(space, regularizer):
    X, Q = mixture(60, 3), mixture(40, 3, seed=1)
    for base in (None, "gaussian"):
        at_all = scale_score("imq", space, regularizer, "median", base, solver="eigen").fit(X)
        want = at_all.grad_log_density(Q)
        if at_all.zeta_factor_:  # polynomials have a term zeta; what stands for it is the kernels' part of their filter
            want = truncated(at_all, regularizer, Q)
        got = scale_nystrom("imq", space, regularizer, base=base).fit(X)
        assert distance(got.grad_log_density(Q), want) < 1e-8
        assert distance(got.grad_log_density_, at_all.grad_log_density_) < 1e-8


def truncated(model, regularizer, Q):
    """-K_QX A^+ g(A) h / M for the samples of `model`, by the eigenvectors of its matrix."""
    space, z = model._space, model._centers
    h = space.zeta(z, z, np.full(len(z), 1 / len(z)))
    if model.base_ is not None:
        h = h + space.operator(z).matvec(model.base_.value(z) / len(z))
    values, vectors = np.linalg.eigh(space.gram(z) / len(z))
    g = regularizer.filter(values, values[-1]) / values
    c = -space.unstack(vectors @ (g[:, None] * (vectors.T @ space.stack(h))), z.shape[1]) / len(z)
    q = model._frame.forward(Q)
    out = space.operator(q, z).matvec(c)
    return (out + (0.0 if model.base_ is None else model.base_.value(q))) / model.length_scale_


@pytest.mark.parametrize("space", list(SPACES))
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_filters_by_the_symmetric_root(space, regularizer):
    """c = -K^(-1/2) g(K^(-1/2) A K^(-1/2)) K^(-1/2) h with the symmetric root of K_ZZ, where all of it counts."""
    z = mixture(120, 2) / 2.0
    space = SPACES[space](IMQ(dim=2))
    system = NystromStatistics(space, z[:9]).accumulate(z).system()
    values, vectors = np.linalg.eigh(system.gram)
    root = (vectors / np.sqrt(values)) @ vectors.T
    sigma, basis = np.linalg.eigh(root @ system.squares @ root)
    g = basis @ np.diag(regularizer.filter(sigma, sigma[-1])) @ basis.T
    want = -root @ g @ root @ system.rhs
    assert distance(system.solve(regularizer), want) < 1e-8


def test_landmarks_that_coincide_or_nearly_so_count_once():
    z = mixture(100, 2)
    space = SPACES["curl_free"](Gaussian(dim=2))
    near = np.concatenate([z[:10], z[:10], z[:10] + 1e-9])
    q = mixture(30, 2, seed=1)
    for regularizer in (Tikhonov(alpha=0.01), LandweberIteration(steps=30)):
        want = space.operator(q, z[:10]).matvec(NystromStatistics(space, z[:10]).accumulate(z).solve(regularizer))
        got = space.operator(q, near).matvec(NystromStatistics(space, near).accumulate(z).solve(regularizer))
        assert distance(got, want) < 1e-4


@pytest.mark.parametrize("base", [None, "gaussian"])
def test_log_density_and_divergence_belong_to_the_score(base):
    X, Q = mixture(300, 3), mixture(20, 3, seed=1)
    model = scale_nystrom(landmarks=40, base=base, random_state=0).fit(X)
    score, h = model.grad_log_density(Q), 1e-5
    divergence = 0.0
    for j in range(3):
        up, down = Q + h * np.eye(3)[j], Q - h * np.eye(3)[j]
        slope = (model.log_density(up) - model.log_density(down)) / (2 * h)
        np.testing.assert_allclose(slope, score[:, j], rtol=1e-6, atol=1e-7)
        divergence += (model.grad_log_density(up)[:, j] - model.grad_log_density(down)[:, j]) / (2 * h)
    np.testing.assert_allclose(model.divergence(Q), divergence, rtol=1e-6, atol=1e-7)
    loss = np.mean(divergence + 0.5 * (score**2).sum(axis=1)) * model.unit_[0] ** 2
    assert model.hyvarinen_loss(Q) == pytest.approx(loss, rel=1e-6)
    assert model.score(Q) == -model.hyvarinen_loss(Q)


def test_the_base_measure_is_solved_with_the_rest():
    """Tikhonov with a base s0: the literal form of what is left, h + K_ZX W s0(X), on top of s0."""
    X, Q = mixture(120, 2), mixture(30, 2, seed=1)
    base = GaussianBase.fit(X, np.ones(120))
    literal = Literal(X, "imq", 1.0, "curl_free", 15)
    literal.solve(0.03, extra=literal.from_samples @ base.value(X).ravel() / 120)
    want = literal.field(Q) + base.value(Q)
    model = scale_nystrom(
        "imq", "curl_free", Tikhonov(alpha=0.03), landmarks=X[:15], length_scale=1.0, base="gaussian"
    ).fit(X)
    assert distance(model.grad_log_density(Q), want) < 1e-9


def test_columns_with_their_own_length_scales():
    X = mixture(150, 2) * [1.0, 1e3]
    one = scale_nystrom(landmarks=X[:15], length_scale=[1.0, 1e3]).fit(X).grad_log_density(X)
    other = (
        scale_nystrom(landmarks=X[:15] / [1.0, 1e3], length_scale=1.0)
        .fit(X / [1.0, 1e3])
        .grad_log_density(X / [1.0, 1e3])
    )
    assert distance(one * [1.0, 1e3], other) < 1e-9


@pytest.mark.parametrize("method", ["uniform", "kmeans++", "leverage"])
def test_few_landmarks_do_nearly_as_well_as_all_samples(method):
    """The rows are from a mixture of two normal densities, whose score is known."""
    X, Q = mixture(600, 2), mixture(1000, 2, seed=1)
    at = np.exp(-0.5 * np.stack([(Q**2).sum(axis=1), ((Q - 3.0) ** 2).sum(axis=1)]))
    truth = -Q + 3.0 * (at[1] / at.sum(axis=0))[:, None]
    regularizer = Tikhonov(alpha=1e-3)
    few = scale_nystrom(regularizer=regularizer, landmarks=60, landmark_method=method, random_state=0).fit(X)
    everything = scale_score(regularizer=regularizer, length_scale="median", base=None).fit(X)
    assert distance(few.grad_log_density(Q), truth) < 1.15 * distance(everything.grad_log_density(Q), truth) < 0.6


def test_full_forms_are_refused():
    with pytest.raises(InputError, match="truncated=True"):
        scale_nystrom(regularizer=Tikhonov(truncated=False)).fit(mixture(20, 2))


@pytest.mark.parametrize(
    "landmarks", [np.zeros((5, 3)), np.zeros(5), [["a", "b"]], np.full((2, 2), np.nan), np.zeros((0, 2))]
)
def test_landmarks_that_cannot_be_used(landmarks):
    with pytest.raises(InputError, match="landmarks"):
        scale_nystrom(landmarks=landmarks).fit(mixture(20, 2))


def test_too_rough_kernels_are_refused_by_the_name_of_one_that_works():
    with pytest.raises(InputError, match="Matern"):
        scale_nystrom("matern32").fit(mixture(20, 2))


def test_more_landmarks_than_memory():
    with pytest.raises(InputError, match="use at most"):
        scale_nystrom(regularizer=Tikhonov(), landmarks=100, memory_limit=1e6).fit(mixture(200, 4))


def test_a_threshold_above_all_eigenvalues_gives_a_warning():
    with pytest.warns(DataWarning, match="above the largest eigenvalue"):
        model = scale_nystrom(regularizer=SpectralCutoff(threshold=50.0), landmarks=10).fit(mixture(60, 2))
    assert not model.grad_log_density_.any()
