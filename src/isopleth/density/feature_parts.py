"""SOSREP in random features over rows in parts: a survey, and a pass for each step of Newton's method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Self

import numpy as np

from isopleth._namespace import HOST
from isopleth.density.bounds import Bounds
from isopleth.density.feature_density import FeatureDensity
from isopleth.density.feature_newton import newton
from isopleth.density.feature_sosrep import CHECKED, RandomFeatureSOSREP
from isopleth.density.feature_statistics import FeatureStatistics
from isopleth.density.search import Search
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.kernels import get_kernel
from isopleth.length_scales import Rule, loss_units, resolve_length_scale
from isopleth.parts import Parts, take_columns
from isopleth.survey import ColumnMoments, Survey
from isopleth.validation import varying_columns, warn_few_rows

SAMPLE = CHECKED + 1
"""Rows of the sample: one more than are fitted exactly tells that there are more."""


def fit_parts(estimator: RandomFeatureSOSREP, parts: Parts) -> RandomFeatureSOSREP:
    """Fit SOSREP in random features to rows in parts, of which no more than the sums of a pass are kept.

    The first pass takes column moments and a sample, each other one the sums of a step of Newton's method. The model is that of
    ``estimator.fit`` to all rows, but for rounding, with two exceptions where there are more than 2,000 distinct rows: the rule
    "median" goes by a sample, and so does ``approximation_error_``, by another one than in memory. "auto" and "scott" count
    repeated rows one by one if weights add up to less than the rows.

    Parameters
    ----------
    estimator : RandomFeatureSOSREP
        What is to be fitted; its `length_scale` is no Search.
    parts : Parts
        The rows.

    Returns
    -------
    RandomFeatureSOSREP
        `estimator`.

    Raises
    ------
    InputError
        For what ``estimator.fit`` refuses, and for a Search.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import RandomFeatureSOSREP
    >>> from isopleth.density.feature_parts import fit_parts
    >>> from isopleth.parts import ArrayParts
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> model = RandomFeatureSOSREP(n_frequencies=50, random_state=0)
    >>> there = model.fit(X).score_samples(X)
    >>> here = fit_parts(model, ArrayParts(X, part_rows=1000)).score_samples(X)
    >>> told = np.isfinite(there)
    >>> bool(np.allclose(here[told], there[told], rtol=1e-9))
    True
    """
    estimator._validate_params()
    if isinstance(estimator.length_scale, Search):
        raise InputError(
            "length_scale is a Search, which holds out rows again and again; search on a sample that fits in memory, and pass "
            "the length_scale_ it finds."
        )
    estimator._forget()
    take_columns(estimator, parts)
    bounds = Bounds.of(estimator.bounds, parts.labels, parts.names)
    found = parts.sums(partial(_BoundedSurvey, parts.n_features), partial(_survey, bounds, parts.labels))
    found.check(bounds, parts.labels)
    survey, rows = found.survey, found.survey.sample.rows
    keep = varying_columns(estimator, np.stack([survey.moments.low, survey.moments.high]))
    frame = Frame.centred(rows, keep)
    kernel = get_kernel(estimator.kernel).bind(frame.dim)
    estimator._refuse(kernel)
    estimator._draw(kernel)
    if survey.sample.complete:  # else there are more rows than columns, or none can tell
        warn_few_rows(len(rows), frame.dim)
    rules = _rules(estimator, frame.centre(rows), survey.sample.weights)
    two, counts = survey.pair(keep)
    scale = resolve_length_scale(estimator.length_scale, two, counts, parts.labels, keep, rules=rules)
    unit = loss_units(scale, two, counts)
    frame = frame.scaled(scale)
    features = estimator._features(HOST)
    total = survey.moments.weight

    def sums_at(w: np.ndarray) -> FeatureStatistics:
        return parts.sums(partial(FeatureStatistics, features, w), partial(_accumulate, bounds, frame, total))

    solution = newton(sums_at, np.zeros(features.size), estimator.tol)
    density = FeatureDensity(kernel, features, solution.coefficients)
    estimator._set_fit(kernel, frame, bounds, unit, {**solution.report, "noise_level_": features.noise})
    place = np.arange(len(rows))
    estimator._keep(density, rows, place, frame.enter(rows), survey.sample.weights)
    estimator.log_normalizer_ = density.log_normalizer + frame.log_volume
    return estimator


class _BoundedSurvey:
    """A survey of rows on the whole line, and where they end as they are."""

    def __init__(self, n_features: int) -> None:
        self.survey, self.extent = Survey(n_features, SAMPLE), ColumnMoments(n_features)

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has seen, and return this one."""
        self.survey.merge(other.survey)
        self.extent.merge(other.extent)
        return self

    def check(self, bounds: Bounds, labels: list[str]) -> None:
        """Refuse rows that no density can be fitted to."""
        if not self.extent.n_rows:
            raise InputError("X has no rows of positive weight; expected at least two that differ.")
        bounds.check(np.stack([self.extent.low, self.extent.high]), np.ones(2, dtype=bool), labels)


def _survey(
    bounds: Bounds, labels: list[str], found: _BoundedSurvey, rows: np.ndarray, weights: np.ndarray | None
) -> _BoundedSurvey:
    rows, weights = _counted(rows, weights)
    bad = ~bounds.inside(rows)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        ends = f"({float(bounds.low[j])!r}, {float(bounds.high[j])!r})"
        raise InputError(
            f"X has {float(rows[i, j])!r} in {labels[j]}, on or beyond its bounds {ends} "
            f"(such rows there: {int(bad[:, j].sum())}); move the bound outwards, leave it out, or drop those rows."
        )
    found.extent.add(rows, weights)
    found.survey.add(bounds.enter(rows), weights)
    return found


def _counted(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of positive weight: the others may be anywhere."""
    return (rows, None) if weights is None else (rows[weights > 0], weights[weights > 0])


def _accumulate(
    bounds: Bounds,
    frame: Frame,
    total: float,
    sums: FeatureStatistics,
    rows: np.ndarray,
    weights: np.ndarray | None,
) -> FeatureStatistics:
    """Sums of a step, with the shares of the rows for weights, whose products neither over- nor underflow."""
    rows, weights = _counted(rows, weights)
    share = np.full(len(rows), 1.0 / total) if weights is None else weights / total
    return sums.accumulate(frame.enter(bounds.enter(rows)), share)


def _rules(estimator: RandomFeatureSOSREP, rows: np.ndarray, weights: np.ndarray) -> Mapping[str, Rule]:
    """The rules of the estimator, the one that needs rows by those of the sample."""
    rules = dict(estimator._rules())
    median = rules["median"]
    return {**rules, "median": lambda _rows, _weights: median(rows, weights)}
