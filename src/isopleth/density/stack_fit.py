"""Fits of densities in frames: from rows in standard deviations to one component, a search, or a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from isopleth.density.landmarks import nearest_rows
from isopleth.density.search import Search, path_of_factors
from isopleth.density.stack import (
    FACTORS,
    FEWEST,
    MOST_JUDGED,
    Member,
    StackDensity,
    StackPath,
    StackRule,
    folds_for,
    mixture_weights,
)
from isopleth.errors import InputError
from isopleth.frames import Frame
from isopleth.length_scales import Rule, resolve_length_scale


@dataclass(frozen=True)
class FrameOptions:
    """What the parameters of an estimator ask for."""

    frames: Mapping[str, Frame]  # frames by name
    rule: Rule  # rule for length scales in the coordinates of a frame
    factors: tuple[float, ...]  # its multiples
    search: Search | None  # search that chooses one of these

    @classmethod
    def of(
        cls,
        length_scale: Any,
        frames: Mapping[str, Frame],
        rules: Mapping[str, Rule],
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
            return cls(frames, rules[asked], factors, search)
        factor = float(scale[0])
        factors = tuple(factor * search.factors) if search else (factor,)
        return cls(frames, rules["scott"], factors, search)


@dataclass(frozen=True)
class FramedFit:
    """Result of a fit."""

    density: StackDensity
    # chosen, mass: (m,): places of the rows that have kernels, and their weights
    chosen: np.ndarray
    mass: np.ndarray
    report: dict[str, Any]  # attributes of the solver
    attributes: dict[str, Any]  # path of the choice


def fit_in_frames(
    options: FrameOptions,
    rule: StackRule,
    y: np.ndarray,
    weights: np.ndarray,
    log_volume: float,
    most_kernels: int,
    memory_limit: float,
    n_jobs: int | None,
) -> FramedFit:
    """Choose weights by held-out rows, and fit the components that have some.

    Rows `y` are distinct and in standard deviations; `log_volume` is the log of the volume of these; `chosen` and `mass` are
    the places and weights of the rows that have kernels.
    """
    members, attributes = _members(options, rule, y, weights, log_volume)
    chosen, mass = _kernels(y, weights, most_kernels, memory_limit, n_jobs)
    density, reports = rule.fitted(members, y, weights, chosen, mass)
    return FramedFit(density, chosen, mass, _joined(reports), attributes)


def _members(
    options: FrameOptions, rule: StackRule, y: np.ndarray, weights: np.ndarray, log_volume: float
) -> tuple[list[Member], dict[str, Any]]:
    candidates = rule.candidates
    if len(candidates) == 1:
        return [(*candidates[0], 1.0)], {}
    if len(y) < FEWEST and options.search is None:
        return [(candidates[0][0], 1.0, 1.0)], {}
    judged = _sample(len(y), MOST_JUDGED)
    rows, w = y[judged], weights[judged]
    search = options.search
    logs = rule.held_out(rows, w, folds_for(len(rows)) if search is None else search.cv)
    held = ~np.isnan(logs).any(axis=1)
    logs, w = logs[held] - log_volume, w[held]
    if search is None:
        shares = mixture_weights(logs, w)
        means = (w / w.sum()) @ logs
        path = StackPath([name for name, _ in candidates], np.array([f for _, f in candidates]), means, shares)
        members = [(*one, float(share)) for one, share in zip(candidates, shares, strict=True) if share > 0.0]
        return members, {"stack_path_": path}
    if search.criterion not in (None, "likelihood"):
        raise InputError(
            f"criterion = {search.criterion!r} needs second derivatives, which densities in frames do not have; take "
            "Search(criterion='likelihood'), or frame='scale'."
        )
    by_factor = [[k for k, (_, f) in enumerate(candidates) if f == factor] for factor in rule.factors]
    shares_at = [mixture_weights(logs[:, places], w) for places in by_factor]
    with np.errstate(divide="ignore"):
        terms = [-logsumexp(logs[:, p] + np.log(s), axis=1) for p, s in zip(by_factor, shares_at, strict=True)]
    path_found = path_of_factors(search, np.array(rule.factors), np.array(terms), w, y.shape[1])
    best = path_found.best_index
    members = [
        (*candidates[k], float(share)) for k, share in zip(by_factor[best], shares_at[best], strict=True) if share > 0.0
    ]
    return members, {"search_path_": path_found}


def _sample(n: int, most: int) -> np.ndarray:
    """Return places of at most `most` of the distinct rows; the order of these does not depend on that of the table."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).permutation(n)[:most])


def _kernels(
    y: np.ndarray, weights: np.ndarray, most: int, memory_limit: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have kernels, and their weights: those of the rows that they are nearest to."""
    chosen = _sample(len(y), most)
    if len(chosen) == len(y):
        return chosen, weights
    nearest = nearest_rows(y, y[chosen], memory_limit, n_jobs)
    mass = np.bincount(nearest, weights, minlength=len(chosen))
    return chosen, mass * (len(chosen) / mass.sum())


def _joined(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the largest residual and the sum of the steps, and anything else as the last component has it."""
    out = dict(reports[-1])
    if "residual_" in out:
        out["residual_"] = max(report["residual_"] for report in reports)
        out["n_iter_"] = sum(report["n_iter_"] for report in reports)
    return out
