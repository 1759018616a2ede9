"""Families of densities that a goodness-of-fit test fits to a sample: normal, Student's t, and density estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import chi2
from scipy.stats import f as f_law
from sklearn.base import BaseEstimator, clone

from isopleth.core.errors import InputError

# Smallest eigenvalue of correlations for which a covariance is taken as regular.
_REGULAR = 1e-10


class FittedFamily(Protocol):
    """Density of a family, fitted to rows: its score, and samples of it.

    Tests take rows in coordinates in which the density depends little on the parameters that were fitted, where there are some:
    the law of their statistics is that of samples of the fit, whose parameters are others than those of the rows.
    """

    @property
    def judges_distances(self) -> bool:
        """Tell whether the distances of rows from the centre are compared apart."""

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in the coordinates of tests."""

    def score(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the gradient of the log density at rows in these coordinates."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows of the density."""


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal density with the mean and the covariance of the rows."""

    mean: np.ndarray  # (d,)
    root: np.ndarray  # (d, d): lower Cholesky factor of the covariance

    @classmethod
    def fit(cls, rows: np.ndarray) -> Self:
        """Fit by maximum likelihood."""
        mean = rows.mean(axis=0)
        return cls(mean, _root((rows - mean).T @ (rows - mean) / len(rows)))

    judges_distances = True

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows: in the frame of the test neither mean nor covariance matters."""
        return rows

    def score(self, coordinates: np.ndarray) -> np.ndarray:
        """Return minus the precision times the deviation from the mean."""
        return -_precision_times(self.root, coordinates - self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows of the density."""
        return np.asarray(self.mean + rng.normal(size=(n, len(self.mean))) @ self.root.T)


# Below this reciprocal of the degrees of freedom a t density is normal.
_NORMAL = 1e-6
# Largest reciprocal of the degrees of freedom, and steps of expectation and maximisation for each value of it.
_MOST_INVERSE, _STEPS, _LAST_STEPS = 2.0, 5, 30


@dataclass(frozen=True, eq=False)
class StudentT:
    """Student's t density in d columns, with location, scatter matrix and degrees of freedom of the largest likelihood."""

    location: np.ndarray  # (d,)
    root: np.ndarray  # (d, d): lower Cholesky factor of the scatter matrix
    inverse: float  # reciprocal of the degrees of freedom; 0 for a normal density

    @classmethod
    def fit(cls, rows: np.ndarray) -> Self:
        """Fit by maximum likelihood: location and scatter by expectation and maximisation for each degree of freedom."""
        start = Normal.fit(rows)
        last = [cls(start.mean, start.root, 0.0)]

        def loss(inverse: float) -> float:
            last[0] = cls(last[0].location, last[0].root, inverse)._iterated(rows, _STEPS)
            return -last[0]._log_likelihood(rows)

        found = minimize_scalar(loss, bounds=(0.0, _MOST_INVERSE), method="bounded", options={"xatol": 1e-4})
        return cls(last[0].location, last[0].root, float(found.x))._iterated(rows, _LAST_STEPS)

    def _weights(self, rows: np.ndarray) -> np.ndarray:
        """Return the weight of each row, (1 + d / df) / (1 + distance / df)."""
        distance = (solve_triangular(self.root, (rows - self.location).T, lower=True) ** 2).sum(axis=0)
        return np.asarray((1.0 + rows.shape[1] * self.inverse) / (1.0 + distance * self.inverse))

    def _iterated(self, rows: np.ndarray, steps: int) -> Self:
        """Return location and scatter after some steps at these degrees of freedom."""
        found = self
        for _ in range(steps if self.inverse > 0.0 else 1):
            weights = found._weights(rows)
            location = weights @ rows / weights.sum()
            centred = rows - location
            # Divided by the sum of the weights and not by n: the same fixed point in fewer steps.
            root = np.linalg.cholesky((centred * weights[:, None]).T @ centred / weights.sum())
            found = type(self)(location, root, self.inverse)
        return found

    def _log_likelihood(self, rows: np.ndarray) -> float:
        """Return the mean log density of the rows."""
        d, nu = rows.shape[1], 1.0 / max(self.inverse, 1e-8)
        distance = (solve_triangular(self.root, (rows - self.location).T, lower=True) ** 2).sum(axis=0)
        constant = gammaln(0.5 * (nu + d)) - gammaln(0.5 * nu) - 0.5 * d * np.log(nu * np.pi)
        return float(constant - np.log(np.diag(self.root)).sum() - 0.5 * (nu + d) * np.log1p(distance / nu).mean())

    # The degrees of freedom are fitted by the distances, which tell nothing more.
    judges_distances = False

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """Return rows, standardised, at the distances that they would have if they were as far out in a standard normal density.

        A Stein test of the rows themselves has another law for each value of the degrees of freedom: at a true level of .05, it
        rejected .02 to .03 of samples of 100 rows.
        """
        d = rows.shape[1]
        z = solve_triangular(self.root, (rows - self.location).T, lower=True).T
        squares = (z * z).sum(axis=1)
        if self.inverse < _NORMAL:
            return np.asarray(z)
        # From the nearer end: neither share is rounded to 1.
        far = squares > d
        law = f_law(d, 1.0 / self.inverse)
        normal = np.empty(len(z))
        tiny = np.finfo(np.float64).tiny
        normal[far] = chi2.isf(np.maximum(law.sf(squares[far] / d), tiny), d)
        normal[~far] = chi2.ppf(law.cdf(squares[~far] / d), d)
        return np.asarray(z * np.sqrt(normal / np.maximum(squares, tiny))[:, None])

    def score(self, coordinates: np.ndarray) -> np.ndarray:
        """Return minus the coordinates, in which the density is standard normal."""
        return -coordinates

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows of the density."""
        z = rng.normal(size=(n, len(self.location)))
        if self.inverse > 0.0:
            z /= np.sqrt(rng.chisquare(1.0 / self.inverse, size=n) * self.inverse)[:, None]
        return np.asarray(self.location + z @ self.root.T)


@dataclass(frozen=True, eq=False)
class FittedDensity:
    """Density estimator fitted to the rows."""

    model: Any

    judges_distances = True

    def coordinates(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows."""
        return rows

    def score(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the gradient of the log density at rows."""
        return np.asarray(self.model.grad_log_density(coordinates))

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows of the density."""
        return np.asarray(self.model.sample(n, random_state=int(rng.integers(2**31))))


@dataclass(frozen=True, eq=False)
class DensityFamily:
    """Density estimator as a family: a clone of it is fitted to rows."""

    estimator: Any

    def fit(self, rows: np.ndarray) -> FittedDensity:
        """Fit a clone of the estimator."""
        return FittedDensity(clone(self.estimator).fit(rows))


_FAMILIES: dict[str, Any] = {"normal": Normal, "t": StudentT}


def is_family(score: Any) -> bool:
    """Tell whether a parameter names a family or is a density estimator, and is not a score itself."""
    return isinstance(score, (str, BaseEstimator))


def is_density(estimator: Any) -> bool:
    """Tell whether an estimator can be a family: it is fitted to rows, and has scores and draws."""
    return all(hasattr(estimator, name) for name in ("fit", "grad_log_density", "sample"))


def fitted_behind(score: Any) -> BaseEstimator | None:
    """Return the estimator whose method a score is; None for other functions and for arrays, whose origin is unknown."""
    owner = getattr(score, "__self__", None)
    return owner if isinstance(owner, BaseEstimator) and callable(score) else None


def family_of(score: Any) -> tuple[Any, str]:
    """Return a family with its name in sentences."""
    if isinstance(score, str):
        if score not in _FAMILIES:
            expected = "an array, a function, a density estimator, " + " or ".join(map(repr, _FAMILIES))
            raise InputError(f"score = {score!r}: expected {expected}.", parameter="score")
        return _FAMILIES[score], {"normal": "a normal density", "t": "Student's t"}[score]
    if not is_density(score):
        raise InputError(
            f"score = {type(score).__name__}: expected a density estimator with grad_log_density and sample, such as SOSREP().",
            parameter="score",
        )
    return DensityFamily(score), f"the density of {type(score).__name__}"


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor; refuse rows that lie in a plane, as all rows do that are no more than their columns."""
    size = np.sqrt(np.diag(covariance))
    if (size > 0.0).all() and np.linalg.eigvalsh(covariance / np.outer(size, size))[0] > _REGULAR:
        return np.asarray(np.linalg.cholesky(covariance))
    raise InputError(
        "the rows lie in a plane, on which no density can be fitted: a column is constant or a sum of others, or there are no "
        "more rows than columns; leave columns out.",
        parameter="X",
    )


def _precision_times(root: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return each row times the inverse of the matrix with this Cholesky factor."""
    half = solve_triangular(root, rows.T, lower=True)
    return np.asarray(solve_triangular(root, half, lower=True, trans=1).T)
