"""Candidates of a fit, frames and length scales, and the choice among them by held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from isopleth.core.arrays import Backend
from isopleth.core.errors import InputError, meant
from isopleth.core.progress import Progress, unheard
from isopleth.core.rows import held_out_parts, sample_places
from isopleth.core.scales import resolve_length_scale
from isopleth.core.threads import check_stopped, map_threads
from isopleth.density.choices import Choices
from isopleth.density.frame_density import FrameDensity
from isopleth.density.normal_mixture import fit_normals, held_out_normals
from isopleth.density.search import Search, smallest_loss, warn_of_choice
from isopleth.density.solver import Solver
from isopleth.density.stack import Component, Mapped, Member, StackDensity
from isopleth.frames import FRAMES, ComposedMap, Frame, FrameMap, Gaussianize, Marginal, ScaleMap, get_frame
from isopleth.kernels import Gaussian, Kernel, Workspace

# Multiples of the rule for the length scale in each frame of a stack. Half of the columns of a table may have no gaps in its
# values, and another half nothing but gaps: no single factor suits all.
FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)

# The factor of a mixture of normal densities in a frame, which has no length scale. A sum of kernels has one shape near every
# cluster, however many rows there are; these have one for each cluster.
NORMALS = math.nan

# Weights of candidates are lowered by this and cut off at 0, which is continuous in the rows.
NEGLIGIBLE = 2e-3

# Most rows by which the weights are chosen.
MOST_JUDGED = 2048

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


@dataclass(frozen=True)
class Unchanged(Frame):
    """The coordinates themselves, for rows that are divided by their length scales already."""

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> FrameMap:
        return ScaleMap(np.zeros(rows.shape[1]), np.ones(rows.shape[1]))


@dataclass(frozen=True)
class Recipe:
    """Recipe of the components of a mixture; a fitted value keeps it to fit other rows at the same length scales."""

    frames: Mapping[str, Frame]  # frames by name
    rule: str | None  # rule for length scales in the coordinates of a frame; None for rows in units of theirs
    kernel: Kernel  # bound to the number of columns
    solver: Solver
    members: tuple[Member, ...] = ()  # what the mixture consists of

    @classmethod
    def of_scaled(cls, kernel: Kernel, solver: Solver) -> Recipe:
        """Return the recipe of one component in columns that are divided by their length scales."""
        return cls({"scale": Unchanged()}, None, kernel, solver, (("scale", 1.0, 1.0),))

    def component(
        self, name: str, fitted: FrameMap, t: np.ndarray, mass: np.ndarray, factor: float, backend: Backend
    ) -> tuple[Component, dict[str, Any]]:
        """Fit kernels to rows `t` in a frame, at a multiple of the rule for the length scale."""
        check_stopped()
        scale, kernel = factor * self._scale(t, mass), replace(self.kernel, dim=t.shape[1])
        density, report = self.solver.fit(kernel, backend.array(t / scale), backend.array(mass))
        total = density.log_normalizer + float(np.log(scale).sum())
        return Component(name, factor, 1.0, fitted, scale, density, total), report

    def _scale(self, t: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Return the length scale of each coordinate of a frame by the rule."""
        scale = np.ones(t.shape[1]) if self.rule is None else self.solver.rules(self.kernel)[self.rule](t, mass)
        return np.asarray(np.maximum(scale, LEAST_SCALE * scale.max()))

    def log_densities(
        self,
        t: np.ndarray,
        mass: np.ndarray,
        rows: np.ndarray,
        factors: Sequence[float],
        backend: Backend,
        work: Workspace,
    ) -> Iterator[np.ndarray]:
        """Yield log densities of `rows` by fits to rows `t` in a frame, at multiples of the rule for the length scale."""
        scale, kernel = self._scale(t, mass), replace(self.kernel, dim=t.shape[1])
        z, there = backend.array(t / scale), backend.array(rows / scale)
        for logs in self.solver.log_densities(kernel, z, backend.array(mass), there, factors, work):
            yield logs - np.log(scale).sum()

    def fit(
        self,
        rows: np.ndarray,
        weights: np.ndarray,
        backend: Backend,
        with_kernels: tuple[np.ndarray, np.ndarray] | None = None,
        wider: float = 1.0,
    ) -> tuple[FrameDensity, dict[str, Any]]:
        """Fit the mixture, and return facts of the fit by name too.

        `with_kernels` are the places and weights of the rows that have kernels, by default all, and `wider` a factor of all
        length scales. The mixture of one component in the coordinates of the rows is this component.
        """
        chosen, mass = (np.arange(len(rows)), weights) if with_kernels is None else with_kernels
        found, reports = [], []
        names = {name for name, _, _ in self.members}
        everywhere = Mapped(rows)
        mapped = everywhere if len(chosen) == len(rows) else Mapped(rows[chosen])
        shown = self.solver.budget.verbose if len(self.members) > 1 else False
        with Progress("fits in frames", 2 * len(self.members), shown) as tick:
            maps = fit_maps({name: frame for name, frame in self.frames.items() if name in names}, rows, weights)
            tick(len(self.members))
            for name, factor, share in self.members:
                if math.isnan(factor):
                    one = _normals(name, maps[name], everywhere.at(maps[name]).rows, weights, wider)
                else:
                    t = mapped.at(maps[name]).rows
                    one, report = self.component(name, maps[name], t, mass, wider * factor, backend)
                    reports.append(report)
                found.append(replace(one, weight=share))
                tick()
        if self.rule is None and wider == 1.0:
            return found[0].density, reports[0]
        return StackDensity(tuple(found)), _joined(reports)

    def refit(self, rows: np.ndarray, weights: np.ndarray, backend: Backend) -> FrameDensity:
        """Fit other rows."""
        return self.fit(rows, weights, backend)[0]


def _normals(name: str, fitted: FrameMap, t: np.ndarray, weights: np.ndarray, wider: float = 1.0) -> Component:
    """Return a mixture of normal densities in a frame, fitted to the mapped rows `t`."""
    density = fit_normals(t, weights, _one_normal(fitted)).wider(wider)
    return Component(name, NORMALS, 1.0, fitted, np.ones(t.shape[1]), density, 0.0)


def _one_normal(fitted: FrameMap) -> bool:
    """Return whether a frame has one normal density, of shrunken covariance, for a candidate: columns are not whitened there."""
    return fitted.by_columns and fitted.dim > 1


def fit_maps(
    frames: Mapping[str, Frame], rows: np.ndarray, weights: np.ndarray, tick: Callable[[], None] = unheard
) -> dict[str, FrameMap]:
    """Fit frames by name; layers that Gaussianizations and the marginal frame have in common are fitted once.

    `tick` is called after each, and those that take long come last.
    """
    found: dict[str, FrameMap] = {}
    layers: dict[float, tuple[FrameMap, ...]] = {}

    def cost(pair: tuple[str, Frame]) -> tuple[int, int]:
        frame = pair[1]
        if isinstance(frame, Gaussianize):
            return 1, -frame.layers
        return 2 * (frame == Marginal()), 0

    for name, frame in sorted(frames.items(), key=cost):
        check_stopped()
        if isinstance(frame, Gaussianize):
            if frame.ridge not in layers:
                layers[frame.ridge] = frame.fit(rows, weights).maps
            found[name] = ComposedMap(layers[frame.ridge][: 2 * frame.layers])
        elif layers and frame == Marginal():
            found[name] = next(iter(layers.values()))[0]
        else:
            found[name] = frame.fit(rows, weights)
        tick()
    return {name: found[name] for name in frames}


@dataclass(frozen=True)
class FrameCandidates:
    """Frames and multiples of a rule for length scales that are compared by the log densities of held-out rows."""

    recipe: Recipe  # without members
    factors: tuple[float, ...]  # multiples of the rule
    normals: bool = False  # whether a mixture of normal densities in each frame is a candidate too
    search: Search | None = None  # search that chooses one factor

    @classmethod
    def of(
        cls,
        length_scale: Any,
        frames: Mapping[str, Frame],
        kernel: Kernel,
        solver: Solver,
        y: np.ndarray,
        weights: np.ndarray,
    ) -> FrameCandidates:
        """Read `length_scale`: the name of a rule, a factor of Scott's rule, or a Search."""
        search = length_scale if isinstance(length_scale, Search) else None
        asked, what = (search.base, "base of the Search") if search else (length_scale, "length_scale")
        if np.ndim(asked) > 0:
            raise InputError(
                f"{what} has numbers for each column, which have a meaning in frame='scale' only; take that, or one number: a "
                "multiple of Scott's rule in the coordinates of the frame."
            )
        names, rules = [f"column {j}" for j in range(y.shape[1])], solver.rules(kernel)
        scale = resolve_length_scale(asked, y, weights, names, np.ones(y.shape[1], dtype=bool), what, rules)
        if isinstance(asked, str):
            several = asked == "auto" and len(frames) > 1
            factors = tuple(search.factors) if search else FACTORS if several else (1.0,)
            normals = several and not search and isinstance(kernel, Gaussian)
            return cls(Recipe(frames, asked, kernel, solver), factors, normals, search)
        factor = float(scale[0])
        factors = tuple(factor * search.factors) if search else (factor,)
        return cls(Recipe(frames, "scott", kernel, solver), factors, False, search)

    @property
    def pairs(self) -> list[tuple[str, float]]:
        """Frame and factor of each candidate."""
        return [(name, factor) for name in self.recipe.frames for factor in (*self.factors, *[NORMALS] * self.normals)]

    def held_out(self, rows: np.ndarray, weights: np.ndarray, cv: int | float, backend: Backend) -> np.ndarray:
        """Return log densities by candidates fitted, frames included, without the fold of the row; NaN for rows not held out."""
        folds, pairs = held_out_parts(len(rows), cv), self.pairs
        out = np.full((len(rows), len(pairs)), np.nan)
        solver, workers = self.recipe.solver.for_folds(backend, len(rows), self.recipe.kernel.bound_dim)
        rough = replace(self.recipe, solver=solver.rough())

        def judge(fold: np.ndarray) -> np.ndarray:
            train, w = rows[~fold], weights[~fold]
            keep = train.min(axis=0) < train.max(axis=0)
            if not keep.any():
                return np.zeros((int(fold.sum()), len(pairs)))
            # Of tables with many columns, this takes most of the time.
            maps = fit_maps(rough.frames, train[:, keep], w, lambda: tick(len(pairs) // len(rough.frames)))
            here, there = Mapped(train[:, keep]), Mapped(rows[fold][:, keep])
            found, work = [], Workspace()  # matrices of all frames are in the same memory
            for fitted in maps.values():
                t, place = here.at(fitted).rows, there.at(fitted)
                logs = []
                for one in rough.log_densities(t, w, place.rows, self.factors[::-1], backend, work):
                    logs.append(one + place.log_volume)
                    tick()
                found += logs[::-1]
                if self.normals:
                    found.append(held_out_normals(t, w, place.rows, _one_normal(fitted)) + place.log_volume)
                    tick()
            return np.stack(found, axis=1)

        with Progress("choice of weights", 2 * len(folds) * len(pairs), self.recipe.solver.budget.verbose) as tick:
            found = map_threads(judge, folds, max(1, min(workers, len(folds))))
        for fold, logs in zip(folds, found, strict=True):
            out[fold] = logs
        return out

    def chosen(
        self, y: np.ndarray, weights: np.ndarray, log_volume: float, backend: Backend
    ) -> tuple[Recipe, dict[str, Any]]:
        """Choose weights by held-out rows `y`, in standard deviations; return the recipe with members, and the path by name."""
        pairs, search = self.pairs, self.search
        if len(pairs) == 1:
            return replace(self.recipe, members=((*pairs[0], 1.0),)), {}
        if len(y) < FEWEST and search is None:
            return replace(self.recipe, members=((pairs[0][0], 1.0, 1.0),)), {}
        judged = sample_places(len(y), MOST_JUDGED)
        rows, w = y[judged], weights[judged]
        logs = self.held_out(rows, w, folds_for(len(rows)) if search is None else search.cv, backend)
        held = ~np.isnan(logs).any(axis=1)
        logs, w = logs[held] - log_volume, w[held]
        if search is not None:
            return self._best(search, logs, w, y.shape[1])
        means = (w / w.sum()) @ logs
        shares = _with_kernels(mixture_weights(logs, w), means, ~np.isnan([factor for _, factor in pairs]))
        found = {"frames": [name for name, _ in pairs], "weights": shares, "best_index": int(shares.argmax())}
        path = Choices.of_rows(np.array([factor for _, factor in pairs]), -logs.T, w, y.shape[1], **found)
        return replace(self.recipe, members=_members(pairs, shares)), {"search_path": path}

    def _best(
        self, search: Search, logs: np.ndarray, weights: np.ndarray, columns: int
    ) -> tuple[Recipe, dict[str, Any]]:
        """Choose the factor at which the mixture of all frames is best."""
        if search.criterion not in (None, "likelihood"):
            raise InputError(
                f"criterion = {search.criterion!r} needs second derivatives, which densities in frames do not have; take "
                "Search(criterion='likelihood'), or frame='scale'."
            )
        by_factor = [[k for k, (_, f) in enumerate(self.pairs) if f == factor] for factor in self.factors]
        shares_at = [mixture_weights(logs[:, places], weights) for places in by_factor]
        with np.errstate(divide="ignore"):
            terms = [-logsumexp(logs[:, p] + np.log(s), axis=1) for p, s in zip(by_factor, shares_at, strict=True)]
        path = Choices.of_rows(np.array(self.factors), np.array(terms), weights, columns)
        smallest_loss(path.losses, "likelihood", False)
        warn_of_choice(path, search, None)
        best = path.best_index
        members = _members([self.pairs[k] for k in by_factor[best]], shares_at[best])
        return replace(self.recipe, members=members), {"search_path": path}


def _members(pairs: Sequence[tuple[str, float]], shares: np.ndarray) -> tuple[Member, ...]:
    """Return the candidates that have a share."""
    return tuple((*pair, float(share)) for pair, share in zip(pairs, shares, strict=True) if share > 0.0)


def frames_by_name(frame: Any, dim: int) -> dict[str, Frame]:
    """Return the frames of a stack, or the only one. In one column, whitening changes nothing."""
    if isinstance(frame, str) and frame in STACKS:
        return {name: get_frame(name) for name in (STACKS[frame] if dim > 1 else ("scale", "marginal"))}
    if not isinstance(frame, Frame) and frame not in FRAMES:
        names = [*STACKS, *FRAMES]
        raise InputError(
            f"frame = {frame!r}{meant([frame], names)}: expected a Frame, or one of {', '.join(map(repr, names))}."
        )
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


def _with_kernels(shares: np.ndarray, means: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """Return shares of which kernels have at least NEGLIGIBLE together, since the fitted attributes are those of kernels."""
    lacking = max(0.0, NEGLIGIBLE - float(shares[kernels].sum()))
    best = np.argmax(np.where(kernels, means, -np.inf))
    return (1.0 - lacking) * shares + lacking * (np.arange(len(shares)) == best)


def _joined(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the largest residual and the sum of the steps, and anything else as the last component has it."""
    out = dict(reports[-1])
    if "residual" in out:
        out["residual"] = max(report["residual"] for report in reports)
        out["n_iter"] = sum(report["n_iter"] for report in reports)
    return out
