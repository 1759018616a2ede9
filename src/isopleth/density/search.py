"""Choosing a length scale by what it does for rows held out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from isopleth.entry import on_host
from isopleth.errors import DataWarning, InputError
from isopleth.frame import bounded
from isopleth.kernels import Kernel
from isopleth.length_scales import RULES
from isopleth.rows import held_out_parts

CRITERIA = ("hyvarinen", "likelihood", "stable_minimum")
_LARGEST = float(np.finfo(np.float64).max)
# Scales on either side that a stable minimum is below.
NEIGHBOURS = 3

# On 91 made-up and 22 real tables of 1 to 166 columns, the best factors of Gaussian densities were between 0.1 and 4,
# and of Laplacian ones between 2.2 and, falling as columns grow more numerous, 0.03; beyond 50 columns some were
# smaller. The upper end leaves room for the three neighbours of a stable minimum.
DEFAULT_GRID = tuple(2.0 ** (k / 2) for k in range(-10, 7))


class FittedDensity(Protocol):
    """What a search asks of a density in frame coordinates, at unit length scale."""

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Normalised log density of each row."""

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        """Trace of the Hessian of log p plus half of the squared gradient, of each row."""

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Whether f > 0."""


# A density of rows in frame coordinates and weights: `fit(kernel, z, weights)`.
Fit = Callable[[Kernel, np.ndarray, np.ndarray], FittedDensity]


@dataclass(frozen=True)
class Search:
    r"""A length scale chosen by held-out rows, to be given as ``length_scale``.

    Densities are fitted at multiples of a base scale without some rows, and the multiple that suits these rows best is taken.
    The exact Hyvarinen loss of a density p (score matching, [1]_; proposed for this choice by [2]_, who estimate it),

    .. math:: J(p) = \frac{1}{n} \sum_i \operatorname{tr} \nabla^2 \log p(y_i) + \tfrac12 |\nabla \log p(y_i)|^2,

    is, up to a constant, half the Fisher divergence from the density that the rows y come from. It is computed in the
    coordinates x/unit, unit being the fitted attribute ``unit_``, which does not change along the path.

    Parameters
    ----------
    criterion : {"hyvarinen", "likelihood", "stable_minimum"}, optional
        What is best. "hyvarinen": the smallest held-out Hyvarinen loss. "likelihood": the largest mean held-out log density.
        "stable_minimum", the rule of [2]_: the largest scale whose Hyvarinen loss is below those of three neighbours on either
        side. Scales are looked at from the largest down and no further than needed; if there is none, a warning says so and
        the smallest loss is taken. None is "likelihood" for kernels that change sign, since J is infinite where f does, and for
        those that are as rough as the Laplacian in one column (see the notes), and "hyvarinen" for all others.
    grid : array-like of shape (k,), optional
        Multiples of the base scale to try, positive and at least two. The default has 17, from 1/32 to 8 in steps of the
        square root of 2.
    base : {"scott", "median"}, float or array-like of shape (n_features,), default="scott"
        The base scale, as for ``length_scale``. With ``base=1.0`` the grid is in the units of the data.
    cv : int or float, default=5
        Number of folds, at least 2; or, between 0 and 1, the share of rows in one hold-out, which is faster. The parting is of
        distinct rows, so copies of a row stay together, and always the same whatever the order of the rows and of the columns.

    Raises
    ------
    InputError
        If a parameter cannot be used.

    Notes
    -----
    A scale at which f is not positive at some held-out row has an infinite Hyvarinen loss and is not chosen. For kernels that
    are as rough as the Laplacian, the Hyvarinen loss of one column leaves out atoms at the centres, which held-out rows never
    see: it is refused there. Rows that are copies but for rounding part into different folds and pull every criterion to
    small scales, most of all for rough kernels: round such columns first. Columns with bounds are judged as the logarithms or
    logits in which they are fitted. A scale chosen here suits the density; it need not suit the detection of anomalies.

    The estimator keeps what was found as ``search_path_``, a :class:`~isopleth.density.SearchPath`.

    References
    ----------
    .. [1] A. Hyvarinen (2005). Estimation of Non-Normalized Statistical Models by Score Matching. JMLR 6.
    .. [2] M. Kozdoba, B. Perets and S. Mannor (2024). Sobolev Space Regularised Pre Density Models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP, Search
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = SOSREP(length_scale=Search(grid=[0.5, 1, 2, 4], cv=0.2)).fit(X)
    >>> density.search_path_.best_factor
    2.0
    """

    criterion: str | None = None
    grid: Any = None
    base: Any = "scott"
    cv: int | float = 5

    def __post_init__(self) -> None:
        if self.criterion is not None and self.criterion not in CRITERIA:
            raise InputError(f"criterion = {self.criterion!r}: expected one of {', '.join(CRITERIA)}, or None.")
        # Tuples, so that two searches can be compared and hashed.
        if self.grid is not None:
            object.__setattr__(self, "grid", _checked_grid(self.grid))
        object.__setattr__(self, "base", _checked_base(self.base))
        object.__setattr__(self, "cv", _checked_cv(self.cv))
        if self.criterion == "stable_minimum" and len(self.factors) <= 2 * NEIGHBOURS:
            raise InputError(
                f"grid has {len(self.factors)} factors, too few for 'stable_minimum', which compares a scale with three on "
                f"either side; give at least {2 * NEIGHBOURS + 1}."
            )

    @property
    def factors(self) -> np.ndarray:
        """Multiples of the base scale, each once and ascending."""
        return np.unique(np.asarray(DEFAULT_GRID if self.grid is None else self.grid))

    def criterion_for(self, kernel: Kernel) -> str:
        """What chooses for a kernel that is bound to its dimension.

        Raises
        ------
        InputError
            If the criterion is a Hyvarinen loss that the kernel is too rough for.
        """
        blind = kernel.bound_dim == 1 and kernel.smoothness <= 0.5
        if self.criterion is None:
            return "hyvarinen" if kernel.nonnegative and not blind else "likelihood"
        if self.criterion != "likelihood" and blind:
            raise InputError(
                f"criterion = {self.criterion!r} cannot judge {kernel!r} in one column, where held-out rows do not see the kinks "
                "at the centres; take criterion='likelihood', or a smoother kernel such as 'gaussian' or 'matern52'."
            )
        return self.criterion


def _numbers(values: Any) -> np.ndarray | None:
    """Positive, finite numbers in at most one axis; None for anything else."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError):
        return None
    if given.dtype.kind not in "iuf" or given.ndim > 1:
        return None
    given = given.astype(np.float64)
    return given if (np.isfinite(given) & (given > 0)).all() else None


def _checked_grid(grid: Any) -> tuple[float, ...]:
    factors = _numbers(on_host(grid, "grid"))
    if factors is None or factors.ndim == 0 or len(np.unique(factors)) < 2:
        raise InputError(f"grid = {grid!r}: expected at least two different positive factors of the base scale.")
    return tuple(factors.tolist())


def _checked_base(base: Any) -> Any:
    if isinstance(base, str) and base in RULES:
        return base
    scales = _numbers(on_host(base, "base"))
    if scales is None or scales.size == 0:
        raise InputError(f"base = {base!r}: expected 'scott', 'median', a positive number or one a column.")
    return tuple(scales.tolist()) if scales.ndim else float(scales)


def _checked_cv(cv: Any) -> int | float:
    if isinstance(cv, Integral) and not isinstance(cv, bool) and int(cv) >= 2:
        return int(cv)
    if isinstance(cv, Real) and not isinstance(cv, Integral) and 0 < float(cv) < 1:
        return float(cv)
    raise InputError(f"cv = {cv!r}: expected a number of folds, at least 2, or a held-out share between 0 and 1.")


def run_search(
    search: Search,
    kernel: Kernel,
    rows: np.ndarray,
    weights: np.ndarray,
    base_scale: np.ndarray,
    unit: np.ndarray,
    fit: Fit,
) -> SearchPath:
    """Held-out losses along the grid of `search`.

    Parameters
    ----------
    search : Search
        What to try.
    kernel : Kernel
        Bound to the dimension of the rows.
    rows : array of shape (n, d)
        Distinct rows of the columns that vary, centred, in the units of the data, in the order of
        :func:`~isopleth.rows.distinct_rows`.
    weights : array of shape (n,)
        Their weights.
    base_scale : array of shape (d,)
        What the factors multiply.
    unit : array of shape (d,)
        The unit of each column in Hyvarinen losses, proportional to `base_scale`.
    fit : callable
        ``fit(kernel, z, weights)``: the density of rows `z` in frame coordinates.

    Raises
    ------
    InputError
        If the criterion does not suit the kernel, or the loss is infinite at every scale.

    Warns
    -----
    DataWarning
        If the best scale is at an end of the grid, or there is no stable minimum.
    """
    criterion = search.criterion_for(kernel)
    factors = search.factors
    parts = held_out_parts(len(rows), search.cv)
    losses, errors, shares = np.full((3, len(factors)), np.nan)
    stable = None
    for i in reversed(range(len(factors))):
        scale = factors[i] * base_scale
        with np.errstate(over="ignore"):
            z = bounded(rows / scale)
        terms, positive = _held_out(criterion, kernel, z, weights, parts, fit)
        if criterion == "likelihood":
            terms += math.fsum(np.log(scale))
        else:
            with np.errstate(over="ignore"):
                terms *= min((unit[0] / scale[0]) ** 2, _LARGEST)
        losses[i], errors[i], shares[i] = _summary(terms, positive, weights)
        if criterion == "stable_minimum" and _is_stable(losses, i + NEIGHBOURS):
            stable = i + NEIGHBOURS
            break
    best = _smallest(losses, criterion, bool((shares > 0).any())) if stable is None else stable
    path = SearchPath(criterion, factors, factors[:, None] * base_scale, losses, errors, shares, best)
    _warn_of(path, search, stable)
    return path


def _held_out(
    criterion: str, kernel: Kernel, z: np.ndarray, weights: np.ndarray, parts: list[np.ndarray], fit: Fit
) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each row held out, NaN for rows that never are, and whether f is positive there."""
    terms = np.full(len(z), np.nan)
    positive = np.ones(len(z), dtype=bool)
    for part in parts:
        fitted = fit(kernel, z[~part], weights[~part])
        positive[part] = fitted.positive(z[part])
        if criterion == "likelihood":
            found = -fitted.log_density(z[part])
        elif positive.all():
            found = fitted.hyvarinen_terms(z[part])
        else:  # the scale is lost already: rows are counted and no more
            found = np.full(part.sum(), np.inf)
        terms[part] = np.where(np.isfinite(found), found, np.inf)
    return terms, positive


def _summary(terms: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    """Weighted mean of the held-out losses, its standard error, and the share of the weight where f is not positive."""
    held_out = ~np.isnan(terms)
    terms = terms[held_out]
    share = weights[held_out] / weights[held_out].max()
    share /= share.sum()
    lost = float(share[~positive[held_out]].sum())
    if np.isinf(terms).any():
        return math.inf, math.nan, lost
    n = len(terms)
    mean = float(share @ terms)
    error = math.sqrt(n / (n - 1) * float(share**2 @ (terms - mean) ** 2)) if n > 1 else math.nan
    return mean, error, lost


def _is_stable(losses: np.ndarray, i: int) -> bool:
    """Whether loss `i` is below its neighbours on either side, all of which are there."""
    if not NEIGHBOURS <= i < len(losses) - NEIGHBOURS:
        return False
    around = np.delete(losses[i - NEIGHBOURS : i + NEIGHBOURS + 1], NEIGHBOURS)
    return bool(np.isfinite(losses[i]) and (around > losses[i]).all())


def _smallest(losses: np.ndarray, criterion: str, changes_sign: bool) -> int:
    if np.isinf(losses).all():
        if criterion == "likelihood":
            raise InputError(
                "the held-out log density is minus infinity at every scale of the grid; add larger factors to it."
            )
        if not changes_sign:
            raise InputError(
                "the held-out Hyvarinen loss overflows at every scale of the grid, so far apart are the rows; add larger factors "
                "to it, or take a larger base."
            )
        raise InputError(
            "the held-out Hyvarinen loss is infinite at every scale of the grid, since f is not positive at some rows; take "
            "criterion='likelihood', or add larger factors."
        )
    return int(np.argmin(losses))


def _warn_of(path: SearchPath, search: Search, stable: int | None) -> None:
    """Say where the choice is not what was asked for or may not be the best."""
    # To the caller of the estimator's fit.
    level = 6
    if path.criterion == "stable_minimum" and stable is None:
        warnings.warn(
            f"no loss of the grid is below those of three neighbours on either side; the smallest one, at factor "
            f"{path.best_factor:.4g}, is taken.",
            DataWarning,
            stacklevel=level,
        )
    end = {0: ("smallest", "smaller"), len(path.factors) - 1: ("largest", "larger")}.get(path.best_index)
    if end is not None:
        warnings.warn(
            f"the best scale is the {end[0]} of the grid, {path.best_factor:.4g} times the base scale {search.base!r}; extend "
            f"Search(grid=...) to {end[1]} factors.",
            DataWarning,
            stacklevel=level,
        )


@dataclass(frozen=True, eq=False, repr=False)
class SearchPath:
    r"""Held-out losses of a density along a grid of length scales, smaller being better.

    Parameters
    ----------
    criterion : {"hyvarinen", "likelihood", "stable_minimum"}
        What chose. Losses are mean held-out Hyvarinen losses in the coordinates x/unit (the fitted attribute ``unit_``), or,
        for "likelihood", minus the mean held-out log density in nats per unit of volume of the data (columns with bounds as
        logarithms or logits).
    factors : ndarray of shape (k,)
        Multiples of the base scale, ascending.
    length_scales : ndarray of shape (k, d)
        The length scales of the columns that vary, in the units of the data.
    losses : ndarray of shape (k,)
        Weighted means over the held-out rows; inf where f is not positive at a row or its loss is not finite, NaN where a
        lazy search did not look.
    standard_errors : ndarray of shape (k,)
        Of the losses, over held-out rows: :math:`\sqrt{\tfrac{n}{n-1} \sum_i \bar w_i^2 (t_i - \bar t)^2}` for losses
        :math:`t_i` of the n distinct rows held out, their weights :math:`\bar w` scaled to sum 1 and the mean :math:`\bar t`.
        Copies of a row are one observation in it. Rows are taken as independent, which leaves out that folds share training
        rows. Losses along a path are of the same rows, so their differences are known better than this says.
    share_not_positive : ndarray of shape (k,)
        Share of the held-out weight at rows where f is not positive.
    best_index : int
        Place of the chosen scale.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP, Search
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> SOSREP(length_scale=Search(grid=[0.5, 1, 2, 4], cv=0.2)).fit(X).search_path_
    SearchPath: criterion 'hyvarinen', best factor 2, 4 of 4 scales computed
        factor         loss   std. error  not positive
           0.5       48.307           23         0.00%
             1      0.75506          1.5         0.00%
             2     -0.91918         0.17         0.00%  <- best
             4     -0.75259        0.038         0.00%
    """

    criterion: str
    factors: np.ndarray
    length_scales: np.ndarray
    losses: np.ndarray
    standard_errors: np.ndarray
    share_not_positive: np.ndarray
    best_index: int

    @property
    def best_factor(self) -> float:
        """The chosen multiple of the base scale."""
        return float(self.factors[self.best_index])

    @property
    def best_length_scale(self) -> np.ndarray:
        """The chosen length scales, of shape (d,)."""
        return self.length_scales[self.best_index]

    @property
    def n_computed(self) -> int:
        """How many scales were looked at; the others were left out by a lazy search."""
        return int(np.sum(~np.isnan(self.losses)))

    def __repr__(self) -> str:
        """A table of one line a scale."""
        counted = f"{self.n_computed} of {len(self.factors)} scales computed"
        lines = [f"SearchPath: criterion {self.criterion!r}, best factor {self.best_factor:.4g}, {counted}"]
        lines += [f"{'factor':>10} {'loss':>12} {'std. error':>12} {'not positive':>13}"]
        for i, factor in enumerate(self.factors):
            if np.isnan(self.losses[i]):
                lines += [f"{factor:>10.4g} {'-':>12} {'-':>12} {'-':>13}"]
                continue
            numbers = f"{factor:>10.4g} {self.losses[i]:>12.5g} {self.standard_errors[i]:>12.2g}"
            best = "  <- best" if i == self.best_index else ""
            lines += [f"{numbers} {self.share_not_positive[i]:>13.2%}{best}"]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw losses and standard errors against the factors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure when left out.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_search

        return plot_search(self, ax)
