"""Densities in frames, and mixtures of such densities with weights from held-out rows: one component, a search, or a stack."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.errors import InputError
from isopleth.core.progress import Progress
from isopleth.core.rows import held_out_parts, sample_places
from isopleth.core.scales import Rule, resolve_length_scale
from isopleth.core.threads import check_stopped, map_threads
from isopleth.density.frame_density import ExpansionDensity, FrameDensity, RootDensity
from isopleth.density.landmarks import mass_near
from isopleth.density.normal_mixture import fit_normal_mixture, shrunken_normal
from isopleth.density.search import Search, path_of_factors
from isopleth.frames import FRAMES, ComposedMap, Frame, FrameMap, Gaussianize, MapAt, Marginal, ScaleMap, get_frame
from isopleth.frames.compose import chain, divided_by
from isopleth.frames.derivatives import value_and_divergence
from isopleth.kernels import Gaussian, Kernel
from isopleth.kernels.directed import DirectedPairs, summed

# Multiples of the rule for the length scale in each frame of a stack. Half of the columns of a table may have no gaps in its
# values, and another half nothing but gaps: no single factor suits all.
FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)

# The factor of a mixture of normal densities in a frame, which has no length scale. A sum of kernels has one shape near every
# cluster, however many rows there are; these have one for each cluster.
NORMALS = math.nan

# Weights of candidates are lowered by this and cut off at 0, which is continuous in the rows.
NEGLIGIBLE = 2e-3

# Most rows by which the weights are chosen, and most kernels of one component.
MOST_JUDGED, MOST_KERNELS = 2048, 4096

# Least length scale of a coordinate, relative to the largest. Coordinates of frames have unit deviation, except directions in
# which the rows do not vary: the deviation of these is rounding noise, to which no density should shrink.
LEAST_SCALE = 0.1

# Frames of the stacks. Those of "auto" keep marginals and conditionals in closed form.
STACKS: Mapping[str, tuple[str, ...]] = {
    "auto": ("scale", "whiten", "marginal", "gp1"),
    "deep": ("scale", "whiten", "marginal", "gp1", "gp2", "gp4"),
}

# Fewer distinct rows than these say nothing about weights, and have the first frame.
FEWEST = 5

# Steps of the EM algorithm: a fixed number, so that weights are smooth functions of the rows.
_STEPS = 300

# Residual of the fits that are only compared.
ROUGH = 1e-3

# Name of the frame, factor and weight of a component.
Member = tuple[str, float, float]

# Fits a density to rows at unit length scale, with a report of attributes by name.
Fitter = Callable[[Kernel, np.ndarray, np.ndarray], tuple[FrameDensity, dict[str, Any]]]


@dataclass(frozen=True)
class Component:
    """Density of rows x: kernels of unit length scale at T(x)/scale.

    Parameters
    ----------
    frame : str
        Name of the frame.
    factor : float
        Multiple of the rule for the length scale; NaN for a mixture of normal densities.
    weight : float
        Share of the mixture.
    map : FrameMap
        The fitted map T.
    scale : array of shape (d,)
        Length scales in the coordinates of the map.
    density : FrameDensity
        Density of T(x)/scale.
    log_normalizer : float
        Logarithm of its integral, in the coordinates of the map.
    """

    frame: str
    factor: float
    weight: float
    map: FrameMap
    scale: np.ndarray
    density: FrameDensity
    log_normalizer: float


@dataclass(frozen=True)
class StackDensity(FrameDensity):
    r"""Mixture :math:`p(x) = \sum_k w_k\, p_k(T_k(x)/s_k)\, |\det T_k'(x)| / \prod_j s_{kj}`, normalised."""

    components: tuple[Component, ...]  # those of one frame are adjacent and share its map

    @property
    def _backend(self) -> Backend:
        return self.components[0].density._backend

    @property
    def members(self) -> list[Member]:
        """Name of the frame, factor and weight of each component."""
        return [(one.frame, one.factor, one.weight) for one in self.components]

    @property
    def log_normalizer(self) -> float:
        """0: the mixture is normalised."""
        return 0.0

    def _frames(self) -> Iterator[tuple[FrameMap, list[tuple[int, Component]]]]:
        """Yield each map with its components and their places."""
        for _, group in itertools.groupby(enumerate(self.components), key=lambda pair: pair[1].frame):
            members = list(group)
            yield members[0][1].map, members

    def log_terms(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of each component at rows, of shape (n, n_components), without its weight."""
        out = np.empty((len(y), len(self.components)))
        mapped = Mapped(y)
        for frame, members in self._frames():
            check_stopped()
            place = mapped.at(frame)
            for k, one in members:
                out[:, k] = one.density.log_unnormalized(place.rows / one.scale) - one.log_normalizer + place.log_volume
        return out

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log p at rows."""
        return np.asarray(logsumexp(self.log_terms(z) + np.log([one.weight for one in self.components]), axis=1))

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p and its gradient in one pass: a mean by the posterior probabilities of the components."""
        log_p, gradient = np.full(len(z), -np.inf), np.zeros(z.shape)
        mapped = Mapped(z)
        for frame, members in self._frames():
            check_stopped()
            place = mapped.at(frame)
            inner = log_p - np.inf, np.zeros(z.shape)
            for _, one in members:
                logs, slopes = one.density.evaluate(place.rows / one.scale)
                inner = _mixed(*inner, logs - one.log_normalizer + np.log(one.weight), slopes / one.scale)
            pulled = place.pullback(inner[1]) + place.grad_log_volume
            log_p, gradient = _mixed(log_p, gradient, inner[0] + place.log_volume, pulled)
        return log_p, gradient

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        """Return the Laplacian of log p plus half its squared gradient at rows."""
        one = self.components[0]
        if len(self.components) > 1 or not isinstance(one.density, ExpansionDensity):
            return super().hyvarinen_terms(z)
        field, frame = _Slope(one.density), chain(one.map, divided_by(one.scale))
        limit = one.density.expansion.memory_limit
        value, divergence = value_and_divergence(field, frame, z, np.ones(z.shape[1]), limit)
        return np.asarray(divergence + 0.5 * (value * value).sum(axis=1))

    def sample(self, n_samples: int, rng: np.random.Generator, verbose: bool | int = False) -> np.ndarray:
        """Draw components by their weights, then rows of each."""
        counts = rng.multinomial(n_samples, [one.weight for one in self.components])
        drawn = []
        for frame, members in self._frames():
            for k, one in members:
                if counts[k]:
                    z = one.density.sample(int(counts[k]), rng, verbose)  # type: ignore[attr-defined]
                    drawn.append(frame.inverse(z * one.scale))
        return rng.permutation(np.concatenate(drawn))


@dataclass(frozen=True)
class _Slope:
    """Gradient of a log density, as a field in the coordinates of a frame."""

    density: ExpansionDensity

    @property
    def backend(self) -> Backend:
        """The backend of the centres of the kernels."""
        return self.density._backend

    def value(self, x: Array) -> np.ndarray:
        """Return the gradient at rows `x`."""
        return self.density.grad_log_density(to_numpy(x))

    def trace(self, x: np.ndarray, directions: np.ndarray, memory_limit: float) -> np.ndarray:
        """Return the sums of second derivatives of the log density along directions."""
        f, power = self.density.expansion, 2.0 if isinstance(self.density, RootDensity) else 1.0
        pairs = DirectedPairs(x, to_numpy(f.centers), directions, f.kernel)
        bent = summed(pairs, to_numpy(f.coefficients), DirectedPairs.second, memory_limit)
        along = np.sum(self.value(x) * directions, axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return power * bent / self.density._evaluate(f.value, x) - (along**2).sum(axis=0) / power


@dataclass(frozen=True)
class FrameOptions:
    """Frames, rule and multiples that the parameters of an estimator ask for."""

    frames: Mapping[str, Frame]  # frames by name
    rule: Rule  # rule for length scales in the coordinates of a frame
    factors: tuple[float, ...] = ()  # its multiples
    normals: bool = False  # whether a mixture of normal densities in each frame is a candidate too
    search: Search | None = None  # search that chooses one of these

    @classmethod
    def of(
        cls,
        length_scale: Any,
        frames: Mapping[str, Frame],
        rules: Mapping[str, Rule],
        kernel: Kernel,
        y: np.ndarray,
        weights: np.ndarray,
    ) -> FrameOptions:
        """Read `length_scale`: the name of a rule, a factor of Scott's rule, or a Search."""
        search = length_scale if isinstance(length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (length_scale, "length_scale")
        if np.ndim(asked) > 0:
            raise InputError(
                f"{what} has numbers for each column, which have a meaning in frame='scale' only; take that, or one number: a "
                "multiple of Scott's rule in the coordinates of the frame."
            )
        names = [f"column {j}" for j in range(y.shape[1])]
        scale = resolve_length_scale(asked, y, weights, names, np.ones(y.shape[1], dtype=bool), what, rules)
        if isinstance(asked, str):
            several = asked == "auto" and len(frames) > 1
            factors = tuple(search.factors) if search else FACTORS if several else (1.0,)
            return cls(frames, rules[asked], factors, several and not search and isinstance(kernel, Gaussian), search)
        factor = float(scale[0])
        factors = tuple(factor * search.factors) if search else (factor,)
        return cls(frames, rules["scott"], factors, search=search)

    @property
    def candidates(self) -> list[tuple[str, float]]:
        """Frame and factor of each candidate."""
        return [(name, factor) for name in self.frames for factor in (*self.factors, *[NORMALS] * self.normals)]


@dataclass(frozen=True)
class StackRule:
    """How the components of a stack are compared and fitted."""

    options: FrameOptions
    kernel: Kernel  # bound to the number of columns
    # fit, rough_fit: fits of the final components, and of those that are only compared
    fit: Fitter
    rough_fit: Fitter
    backend: Backend  # where rows are fitted
    workers: int  # number of rough fits at the same time
    verbose: bool | int  # whether to show progress

    def fitted(
        self,
        members: Sequence[Member],
        rows: np.ndarray,
        weights: np.ndarray,
        chosen: np.ndarray,
        mass: np.ndarray,
        wider: float = 1.0,
    ) -> tuple[StackDensity, dict[str, Any]]:
        """Fit a mixture with length scales that are `wider`, and return attributes of the solver by name too."""
        found, reports = [], []
        names = {name for name, _, _ in members}
        maps = fit_maps({name: frame for name, frame in self.options.frames.items() if name in names}, rows, weights)
        everywhere = Mapped(rows)
        mapped = everywhere if len(chosen) == len(rows) else Mapped(rows[chosen])
        with Progress("fits in frames", len(members), self.verbose) as tick:
            for name, group in itertools.groupby(members, key=lambda member: member[0]):
                for _, factor, share in group:
                    if math.isnan(factor):
                        one = _normals(name, maps[name], everywhere.at(maps[name]).rows, weights, wider)
                    else:
                        t = mapped.at(maps[name]).rows
                        one, report = self._component(name, maps[name], t, mass, wider * factor, self.fit)
                        reports.append(report)
                    found.append(replace(one, weight=share))
                    tick()
        return StackDensity(tuple(found)), _joined(reports)

    def _component(
        self, name: str, fitted: FrameMap, t: np.ndarray, mass: np.ndarray, factor: float, fit: Fitter
    ) -> tuple[Component, dict[str, Any]]:
        check_stopped()
        scale = self.options.rule(t, mass)
        scale = factor * np.maximum(scale, LEAST_SCALE * scale.max())
        kernel = replace(self.kernel, dim=t.shape[1])
        density, report = fit(kernel, self.backend.array(t / scale), self.backend.array(mass))
        total = density.log_normalizer + float(np.log(scale).sum())
        return Component(name, factor, 1.0, fitted, scale, density, total), report

    def held_out(self, rows: np.ndarray, weights: np.ndarray, cv: int | float) -> np.ndarray:
        """Return log densities by candidates fitted, frames included, without the fold of the row; NaN for rows not held out."""
        folds, candidates = held_out_parts(len(rows), cv), self.options.candidates
        out = np.full((len(rows), len(candidates)), np.nan)

        def judge(fold: np.ndarray) -> np.ndarray:
            train, w = rows[~fold], weights[~fold]
            keep = train.min(axis=0) < train.max(axis=0)
            if not keep.any():
                return np.zeros((int(fold.sum()), len(candidates)))
            maps, mapped = fit_maps(self.options.frames, train[:, keep], w), Mapped(train[:, keep])
            parts = []
            for name, factor in candidates:
                t = mapped.at(maps[name]).rows
                normal = math.isnan(factor)
                parts.append(
                    _normals(name, maps[name], t, w)
                    if normal
                    else self._component(name, maps[name], t, w, factor, self.rough_fit)[0]
                )
                tick()
            return StackDensity(tuple(parts)).log_terms(rows[fold][:, keep])

        with Progress("choice of weights", len(folds) * len(candidates), self.verbose) as tick:
            found = map_threads(judge, folds, max(1, min(self.workers, len(folds))))
        for fold, logs in zip(folds, found, strict=True):
            out[fold] = logs
        return out


def _normals(name: str, fitted: FrameMap, t: np.ndarray, weights: np.ndarray, wider: float = 1.0) -> Component:
    """Return a mixture of normal densities in a frame, fitted to the mapped rows `t`."""
    fit = shrunken_normal if fitted.by_columns and fitted.dim > 1 else fit_normal_mixture
    density = fit(t, weights).wider(wider)
    return Component(name, NORMALS, 1.0, fitted, np.ones(t.shape[1]), density, 0.0)


class Mapped:
    """Rows mapped by several maps; what these have in common is computed once."""

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self._found: dict[tuple[int, ...], MapAt] = {}

    def at(self, fitted: FrameMap) -> MapAt:
        """Return the map at the rows."""
        key: tuple[int, ...] = ()
        found: MapAt | None = None
        for one in fitted.maps if isinstance(fitted, ComposedMap) else (fitted,):
            key += (id(one),)
            if key not in self._found:
                self._found[key] = one.at(self._rows) if found is None else found.then(one.at(found.rows))
            found = self._found[key]
        assert found is not None
        return found


def _mixed(
    log_p: np.ndarray, gradient: np.ndarray, logs: np.ndarray, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log of the sum of two densities, and its gradient, from their logs and gradients."""
    total = np.logaddexp(log_p, logs)
    with np.errstate(invalid="ignore"):
        share = np.exp(logs - total)[:, None]  # NaN where both are 0
        mixed = gradient + share * (slopes - gradient)
    return total, np.where(share == 0.0, gradient, np.where(share == 1.0, slopes, mixed))


def fit_maps(frames: Mapping[str, Frame], rows: np.ndarray, weights: np.ndarray) -> dict[str, FrameMap]:
    """Fit frames by name; layers that Gaussianizations and the marginal frame have in common are fitted once."""
    found: dict[str, FrameMap] = {}
    layers: dict[float, tuple[FrameMap, ...]] = {}
    deep = {name: frame for name, frame in frames.items() if isinstance(frame, Gaussianize)}
    for name, one in sorted(deep.items(), key=lambda pair: -pair[1].layers):
        if one.ridge not in layers:
            layers[one.ridge] = one.fit(rows, weights).maps
        found[name] = ComposedMap(layers[one.ridge][: 2 * one.layers])
    for name, frame in frames.items():
        if name not in found:
            shared = layers and frame == Marginal()
            found[name] = next(iter(layers.values()))[0] if shared else frame.fit(rows, weights)
    return found


def rescaled(density: FrameDensity, factor: float, dim: int) -> StackDensity:
    """Return the density of rows whose quotients by `factor` have a density."""
    same = ScaleMap(np.zeros(dim), np.ones(dim))
    total = density.log_normalizer + dim * float(np.log(factor))
    return StackDensity((Component("scale", factor, 1.0, same, np.full(dim, factor), density, total),))


def frames_by_name(frame: Any, dim: int) -> dict[str, Frame]:
    """Return the frames of a stack, or the only one. In one column, whitening changes nothing."""
    if isinstance(frame, str) and frame in STACKS:
        return {name: get_frame(name) for name in (STACKS[frame] if dim > 1 else ("scale", "marginal"))}
    if not isinstance(frame, Frame) and frame not in FRAMES:
        raise InputError(f"frame = {frame!r}: expected a Frame, or one of {', '.join(map(repr, [*STACKS, *FRAMES]))}.")
    return {frame if isinstance(frame, str) else repr(frame): get_frame(frame)}


def folds_for(n: int) -> int:
    """Return the number of folds: halves of many rows; few rows need more, since half of them show too little."""
    return 2 if n >= 1000 else 3 if n >= 200 else min(5, n)


def mixture_weights(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the likeliest weights of a mixture, by EM. One more row that all describe alike keeps few rows from deciding."""
    top = logs.max(axis=1)
    counted = np.isfinite(top)
    if not counted.any():
        return np.full(logs.shape[1], 1.0 / logs.shape[1])
    P = np.exp(logs[counted] - top[counted, None])
    w = weights[counted] / weights[counted].sum()
    n, even = 1.0 / (w @ w), 1.0 / logs.shape[1]
    found = np.full(logs.shape[1], 1.0 / logs.shape[1])
    for _ in range(_STEPS):
        found = (n * found * ((w / (P @ found)) @ P) + even) / (n + 1.0)
    found = np.maximum(found - min(NEGLIGIBLE, 0.5 * found.max()), 0.0)
    return np.asarray(found / found.sum())


@dataclass(frozen=True, eq=False, repr=False)
class StackPath:
    """Held-out log densities of the candidates of a stack, and their weights.

    Parameters
    ----------
    frames : list of str
        Frame of each candidate.
    factors : ndarray of shape (k,)
        Multiple of the rule for the length scale of each; NaN for a mixture of normal densities.
    log_densities : ndarray of shape (k,)
        Weighted mean log density of held-out rows, in nats, columns in standard deviations.
    weights : ndarray of shape (k,)
        Weights of the candidates in the mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> path = SOSREP().fit(X).stack_path_
    >>> bool(path.weights.sum().round(12) == 1.0), sorted(set(path.frames))
    (True, ['gp1', 'marginal', 'scale', 'whiten'])
    """

    frames: list[str]
    factors: np.ndarray
    log_densities: np.ndarray
    weights: np.ndarray

    def __repr__(self) -> str:
        """Return a table with one line for each candidate."""
        lines = [f"StackPath: {int((self.weights > 0).sum())} of {len(self.weights)} candidates have weight"]
        lines += [f"{'frame':>10} {'factor':>7} {'log density':>12} {'weight':>7}"]
        rows = zip(self.frames, self.factors, self.log_densities, self.weights, strict=True)
        lines += [
            f"{name:>10} {'normals' if math.isnan(factor) else f'{factor:.4g}':>7} {log:>12.5g} {weight:>7.1%}"
            for name, factor, log, weight in rows
        ]
        return "\n".join(lines)


def chosen_members(
    rule: StackRule, y: np.ndarray, weights: np.ndarray, log_volume: float
) -> tuple[list[Member], dict[str, Any]]:
    """Choose weights by held-out rows `y`, in standard deviations; return the members with weight, and the path by name."""
    candidates, search = rule.options.candidates, rule.options.search
    if len(candidates) == 1:
        return [(*candidates[0], 1.0)], {}
    if len(y) < FEWEST and search is None:
        return [(candidates[0][0], 1.0, 1.0)], {}
    judged = sample_places(len(y), MOST_JUDGED)
    rows, w = y[judged], weights[judged]
    logs = rule.held_out(rows, w, folds_for(len(rows)) if search is None else search.cv)
    held = ~np.isnan(logs).any(axis=1)
    logs, w = logs[held] - log_volume, w[held]
    if search is None:
        shares = mixture_weights(logs, w)
        means = (w / w.sum()) @ logs
        shares = _with_kernels(shares, means, ~np.isnan([factor for _, factor in candidates]))
        path = StackPath([name for name, _ in candidates], np.array([f for _, f in candidates]), means, shares)
        members = [(*one, float(share)) for one, share in zip(candidates, shares, strict=True) if share > 0.0]
        return members, {"stack_path_": path}
    if search.criterion not in (None, "likelihood"):
        raise InputError(
            f"criterion = {search.criterion!r} needs second derivatives, which densities in frames do not have; take "
            "Search(criterion='likelihood'), or frame='scale'."
        )
    by_factor = [[k for k, (_, f) in enumerate(candidates) if f == factor] for factor in rule.options.factors]
    shares_at = [mixture_weights(logs[:, places], w) for places in by_factor]
    with np.errstate(divide="ignore"):
        terms = [-logsumexp(logs[:, p] + np.log(s), axis=1) for p, s in zip(by_factor, shares_at, strict=True)]
    path_found = path_of_factors(search, np.array(rule.options.factors), np.array(terms), w, y.shape[1])
    best = path_found.best_index
    members = [
        (*candidates[k], float(share)) for k, share in zip(by_factor[best], shares_at[best], strict=True) if share > 0.0
    ]
    return members, {"search_path_": path_found}


def _with_kernels(shares: np.ndarray, means: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """Return shares of which kernels have at least NEGLIGIBLE together, since the fitted attributes are those of kernels."""
    lacking = max(0.0, NEGLIGIBLE - float(shares[kernels].sum()))
    best = np.argmax(np.where(kernels, means, -np.inf))
    return (1.0 - lacking) * shares + lacking * (np.arange(len(shares)) == best)


def rows_with_kernels(
    y: np.ndarray, weights: np.ndarray, most: int, memory_limit: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have kernels, and their weights: those of the rows that they are nearest to."""
    chosen = sample_places(len(y), most)
    if len(chosen) == len(y):
        return chosen, weights
    mass = mass_near(y[chosen], y, weights, memory_limit, n_jobs)
    return chosen, mass * (len(chosen) / mass.sum())


def _joined(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the largest residual and the sum of the steps, and anything else as the last component has it."""
    out = dict(reports[-1])
    if "residual_" in out:
        out["residual_"] = max(report["residual_"] for report in reports)
        out["n_iter_"] = sum(report["n_iter_"] for report in reports)
    return out
