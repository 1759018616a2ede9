"""Choosing the scale, the base and the strength of a score by what they do for rows held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from isopleth._namespace import HOST, Home
from isopleth.folds import held_out_parts
from isopleth.frame import bounded
from isopleth.operators.threads import effective_n_jobs, map_threads
from isopleth.score.held_out import base_terms, held_out_terms
from isopleth.score.selection_path import SelectionPath
from isopleth.score.spaces import Space
from isopleth.score.system import solving_home
from isopleth.solvers.regularizers import Regularizer, Tikhonov

FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Of the median distance. On near-Gaussian data the best were 4 to 8, on separated modes 0.5 to 2."""

LARGEST_ALPHA, STEPS_A_DECADE = 10.0, 4
FLOOR = 0.3
"""Over the number of rows: the smallest alpha. Eigenvalues of K/M below 1/M are noise, and a few rows held out do not always
tell that."""

ALONE = 1e6
"""An alpha at which nothing is left but the base."""

ALONE_ERRORS, ALPHA_ERRORS = 1.5, 0.5
"""Standard errors by which a smaller loss has to be smaller: for any kernel at all, and for a smaller alpha. The first is the
larger, since the smallest of some hundred losses is smaller than it should be."""

COMPARED_ROWS = 512
"""Bases and scales are compared on so many rows at most; strengths on all."""


@dataclass(frozen=True)
class Candidates:
    """What is left to the folds.

    Parameters
    ----------
    bases : tuple of {None, "gaussian"}
        Base measures.
    factors : tuple of float
        Multiples of a base scale.
    regularizer : Regularizer, optional
        If the choice of strength is made already.
    """

    bases: tuple[str | None, ...]
    factors: tuple[float, ...]
    regularizer: Regularizer | None = None

    def regularizers(self, n: int) -> tuple[Regularizer, ...]:
        """For `n` rows, the strongest first."""
        if self.regularizer is not None:
            return (self.regularizer,)
        decades = math.log10(LARGEST_ALPHA * n / FLOOR)
        exponents = -np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE
        return tuple(Tikhonov(float(LARGEST_ALPHA * 10.0**e), truncated=False) for e in exponents)

    @property
    def alone(self) -> bool:
        """Whether the Gaussian base without any kernel is one of them."""
        return self.regularizer is None and "gaussian" in self.bases


@dataclass(frozen=True)
class Rows:
    """Distinct rows, in a unit of each column.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Centred rows, in the units of the data.
    weights : ndarray of shape (n,)
        Repetitions of each.
    base_scale : ndarray of shape (d,)
        The length scales that factors multiply.
    unit : float
        Units of the loss in base scales, the same for all columns.
    folds : int
        The number of folds.
    home : Home
        Where fits are made that the host has not done at once.
    """

    values: np.ndarray
    weights: np.ndarray
    base_scale: np.ndarray
    unit: float
    folds: int
    home: Home = HOST

    def some(self, n: int) -> Rows:
        """At most `n` of them, at random and always the same."""
        if len(self.values) <= n:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self.values))[:n])
        return replace(self, values=self.values[chosen], weights=self.weights[chosen])

    @property
    def enough(self) -> bool:
        """Whether rows held out tell anything; if not, all losses are infinite and the strongest regulariser is taken."""
        return len(self.values) >= 2 * self.folds

    @property
    def parts(self) -> list[np.ndarray]:
        """Which are held out in turn."""
        return held_out_parts(len(self.values), self.folds)

    def losses(
        self,
        space: Space,
        factors: Sequence[float],
        bases: Sequence[str | None],
        regularizers: Sequence[Regularizer],
    ) -> np.ndarray:
        """Loss of each row by each fit, of shape (bases, factors, regularisers, rows)."""
        out = np.full((len(bases), len(factors), len(regularizers), len(self.values)), np.inf)
        if not self.enough:
            return out
        tasks = list(product(range(len(factors)), self.parts))
        home = solving_home(space, self.values, self.home)
        # A device, or a library with threads of its own, is kept busy by one fit.
        workers = min(effective_n_jobs(space.n_jobs), len(tasks)) if home == HOST else 1
        # Fits beside one another keep more processors busy than the small matrices of one fit do.
        alone = replace(space, n_jobs=1, memory_limit=space.memory_limit / workers)

        def work(task: tuple[int, np.ndarray]) -> None:
            f, part = task
            terms = held_out_terms(alone, self._framed(factors[f]), self.weights, part, bases, regularizers, home)
            out[:, f, :, part] = np.moveaxis(self._in_units(terms, factors[f]), -1, 0)

        map_threads(work, tasks, workers)
        return out

    def base_losses(self) -> np.ndarray:
        """Loss of each row by the Gaussian alone."""
        out = np.full(len(self.values), np.inf)
        if self.enough:
            z = self._framed(1.0)
            for part in self.parts:
                out[part] = self._in_units(base_terms(z, self.weights, part), 1.0)
        return out

    def _in_units(self, terms: np.ndarray, factor: float) -> np.ndarray:
        """Losses in units of the data, inf where they are beyond all numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.float64(self.unit / factor) ** 2 * terms
        return np.where(np.isfinite(out), out, np.inf)

    def _framed(self, factor: float) -> np.ndarray:
        with np.errstate(over="ignore"):
            return bounded(self.values / (factor * self.base_scale))

    def mean(self, losses: np.ndarray) -> np.ndarray:
        """Weighted means over the last axis."""
        return np.asarray(losses @ (self.weights / self.weights.sum()))

    def error(self, losses: np.ndarray) -> np.ndarray:
        """Standard error of :meth:`mean`, copies of a row being one observation."""
        n, share = len(self.weights), self.weights / self.weights.sum()
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite losses there is none
            apart = losses - self.mean(losses)[..., None]
            return np.asarray(np.sqrt(n / (n - 1) * (apart**2 @ share**2)))


def select(space: Space, rows: Rows, candidates: Candidates) -> SelectionPath:
    r"""Choose by the mean Hyvarinen loss of rows held out, in two rounds.

    First bases and scales, each with its best strength: the smallest loss wins. Then, with all rows, the strength: the largest
    alpha whose loss is within ALPHA_ERRORS standard errors of the smallest one. The error is that of the difference of the two,
    row by row. The Gaussian base alone is the strongest regulariser of all, whatever base the first round has chosen, and is
    taken if it is within ALONE_ERRORS.

    Parameters
    ----------
    space : Space
        Where scores are sought.
    rows : Rows
        What to fit.
    candidates : Candidates
        What to choose from.

    Returns
    -------
    SelectionPath
    """
    some = rows.some(COMPARED_ROWS)
    tried = candidates.regularizers(len(some.values))
    found = some.losses(space, candidates.factors, candidates.bases, tried)
    compared = some.mean(found).min(axis=-1)
    b, f = np.unravel_index(int(np.argmin(compared)), compared.shape)
    base, factor = candidates.bases[b], candidates.factors[f]
    if some is rows:
        regularizers, terms = tried, found[b, f]
    else:
        regularizers = candidates.regularizers(len(rows.values))
        terms = rows.losses(space, (factor,), (base,), regularizers)[0, 0]
    allowed = np.full(len(regularizers), ALPHA_ERRORS)
    if candidates.alone:
        regularizers = (Tikhonov(ALONE, truncated=False), *regularizers)
        terms = np.concatenate([rows.base_losses()[None], terms])
        allowed = np.concatenate([[ALONE_ERRORS], allowed])
    losses, errors, best = _strongest(rows, terms, allowed)
    return SelectionPath(
        bases=candidates.bases,
        factors=np.asarray(candidates.factors),
        losses=compared,
        n_compared=len(some.values),
        base="gaussian" if candidates.alone and best == 0 else base,
        length_scale=factor * rows.base_scale,
        regularizers=regularizers,
        path_losses=losses,
        path_errors=errors,
        best_index=best,
    )


def _strongest(rows: Rows, terms: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Losses, errors of their differences to the smallest, and the place of the first that is within the errors allowed."""
    losses = rows.mean(terms)
    smallest = int(np.argmin(losses))
    with np.errstate(invalid="ignore"):
        errors = rows.error(terms - terms[smallest])
        near = losses - losses[smallest] <= allowed * errors
    near[smallest] = True
    return losses, errors, int(np.argmax(near))
