r"""Law of a number given other cells where some numbers are known as intervals: lines of several transforms, pooled.

For each transform T a line :math:`T(y) \sim N(m(x), s^2)` is fitted by EM. The transforms are the powers of Box and Cox (JRSS B
26, 1964) of numbers that can only be 0 or more, and the exponentials :math:`(e^{\lambda u} - 1)/\lambda` of Manly (The
Statistician 25, 1976) of the standardised number u: they make a line of its logarithm, square or exponential. What is beyond a
limit depends on the transform, and the known numbers rarely tell exactly which one is right. So the law is the mixture of all
lines, with weights by a power of their likelihood (Gruenwald and van Ommen, Bayesian Analysis 12, 2017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import svd
from scipy.special import logsumexp

from isopleth.core.interval_laws import (
    PowerNormal,
    has_few_numbers,
    log_mass,
    normal_moments,
    truncated_normal_quantile,
)
from isopleth.core.laws import interpolated
from isopleth.core.scales import centre_and_scale
from isopleth.core.threads import slices

# Parameters of the transforms: powers of positive numbers, and exponents of standardised ones.
_POWERS, _EXPONENTS = (0.0, 0.25, 0.5), (-1.0, -0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5, 1.0)
# Power of the likelihood in the weights: no transform is exactly right, and many rows would be too sure of the best one.
_TEMPER = 0.25
# Share of the known numbers, farthest from the limits, that count as intervals: a few giants must not choose the transform.
_FAR_TAIL = 0.05
# Steps of EM, and penalties of a step in numbers of rows.
_STEPS, _PENALTIES = 30, np.geomspace(1e-4, 30.0, 12)
# New rows count as at most so many deviations from the mean of an input.
_FARTHEST = 8.0
# Stands for the logarithm of no probability.
_NO_MASS = 1e300
# Lines of smaller weights are left out; quantiles that stand for each line within an interval; rows that are answered at once.
_NEGLIGIBLE, _WITHIN, _BATCH = 1e-9, (np.arange(64) + 0.5) / 64, 1024


@dataclass(frozen=True)
class Transform:
    """Increasing function of a number: a power of one that is 0 or more, or an exponential of a standardised one."""

    parameter: float
    centre: float
    unit: float
    is_power: bool

    def forward(self, y: np.ndarray) -> np.ndarray:
        """Return transformed numbers."""
        with np.errstate(divide="ignore", over="ignore"):
            u = np.log(np.maximum(y, 0.0) / self.unit) if self.is_power else (y - self.centre) / self.unit
            return np.asarray(np.expm1(self.parameter * u) / self.parameter if self.parameter else u)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return the numbers of transformed ones."""
        with np.errstate(divide="ignore", over="ignore"):
            u = np.log1p(np.maximum(self.parameter * z, -1.0)) / self.parameter if self.parameter else z
            return np.asarray(
                self.unit * np.exp(np.minimum(u, 700.0)) if self.is_power else self.centre + self.unit * u
            )

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithm of the derivative."""
        if self.is_power:
            return np.asarray((self.parameter - 1.0) * np.log(y / self.unit) - np.log(self.unit))
        return np.asarray(self.parameter * (y - self.centre) / self.unit - np.log(self.unit))


@dataclass(frozen=True)
class TransformedLine:
    """Line of a transformed number."""

    transform: Transform
    slopes: np.ndarray  # (p,): in units of the deviations of the inputs
    intercept: float
    deviation: float
    weight: float  # in the mixture

    def within(
        self, mean: np.ndarray, deviation: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the log probabilities of intervals, (n,), and quantiles within them, (n, K)."""
        a, b = ((self.transform.forward(end) - mean) / deviation for end in (low, high))
        ends, levels = (np.repeat(end, len(_WITHIN)) for end in (a, b)), np.tile(_WITHIN, len(a))
        z = truncated_normal_quantile(levels, *ends).reshape(len(a), -1)
        found = self.transform.inverse(mean[:, None] + deviation[:, None] * z)
        return log_mass(a, b), np.clip(found, low[:, None], high[:, None])


@dataclass(frozen=True)
class CensoredRegression:
    """Law of a number, of which some are known as intervals, given inputs: a mixture of lines of its transforms."""

    centre: np.ndarray  # (p,): mean of each input
    scale: np.ndarray  # (p,): its deviation
    lines: tuple[TransformedLine, ...]
    positive: bool  # whether the number can only be 0 or more
    doubt: tuple[float, np.ndarray]  # variances of the level and the slopes, in squared deviations of a line

    @classmethod
    def fit(cls, A: np.ndarray, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> Self:
        """Fit to rows A, (n, p), without gaps, and cells from `low` to `high`, which are equal for known numbers."""
        law = PowerNormal.unfitted(low, high)
        low, high = law.judged(low, high, weights, _FAR_TAIL)
        system = _RidgeSystem.of(A, weights)
        few = has_few_numbers(low, high)
        transforms = (
            [Transform(float(law.positive), 0.0, law.unit, law.positive)]
            if few
            else _transforms(law, low, high, weights)
        )
        start = (law.mean, law.deviation) if few else None
        fits = [_EM.run(each, system, low, high, weights, start) for each in transforms]
        evidence = _TEMPER * np.array([fit.evidence for fit in fits])
        evidence[np.isnan(evidence)] = -np.inf  # a transform that numbers far apart overflow
        shares = np.exp(evidence - logsumexp(evidence))
        lines = [replace(fit.line, weight=float(share)) for fit, share in zip(fits, shares, strict=True)]
        told = weights * (shares @ np.stack([fit.told for fit in fits]))
        penalty = float(shares @ [fit.penalty for fit in fits])
        Z = np.clip((A - system.centre) / system.scale, -_FARTHEST, _FARTHEST)
        slopes = np.linalg.inv((Z.T * told) @ Z + max(penalty, _PENALTIES[0]) * np.eye(Z.shape[1]))
        used = tuple(line for line in lines if line.weight > _NEGLIGIBLE)
        return cls(system.centre, system.scale, used, law.positive, (1.0 / max(float(told.sum()), 1.0), slopes))

    def between(self, A: np.ndarray, low: np.ndarray, high: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of the law within the intervals of rows, (n, k), at levels (k,) or (n, k)."""
        levels = np.broadcast_to(levels, (len(A), np.shape(levels)[-1]))
        least = np.maximum(low, 0.0) if self.positive else low
        out = np.empty(levels.shape)
        for part in slices(len(A), _BATCH):
            out[part] = self._between(A[part], least[part], high[part], levels[part])
        return out

    def _between(self, A: np.ndarray, low: np.ndarray, high: np.ndarray, levels: np.ndarray) -> np.ndarray:
        Z = np.clip((A - self.centre) / self.scale, -_FARTHEST, _FARTHEST)
        wider = np.sqrt(1.0 + self.doubt[0] + np.einsum("ij,jk,ik->i", Z, self.doubt[1], Z, optimize=True))
        found = [
            line.within(line.intercept + Z @ line.slopes, line.deviation * wider, low, high) for line in self.lines
        ]
        logs = np.stack([np.log(line.weight) + log for line, (log, _) in zip(self.lines, found, strict=True)], axis=1)
        logs = np.nan_to_num(logs, nan=-_NO_MASS, neginf=-_NO_MASS)  # of an interval without a width
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) / len(_WITHIN)
        places = np.concatenate([places for _, places in found], axis=1)
        mass = np.repeat(shares, len(_WITHIN), axis=1)
        order = np.argsort(places, axis=1, kind="stable")
        places, mass = np.take_along_axis(places, order, axis=1), np.take_along_axis(mass, order, axis=1)
        return interpolated(levels, np.cumsum(mass, axis=1) - 0.5 * mass, places)


def _transforms(law: PowerNormal, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> list[Transform]:
    """Return the transforms that are compared, around the known numbers."""
    known = low == high
    if not known.any():
        return []
    share = weights[known] / weights[known].sum()
    centre = float(share @ low[known])
    unit = law.unit * float(np.sqrt(share @ ((low[known] - centre) / law.unit) ** 2))  # squares may overflow
    powers = [Transform(power, 0.0, law.unit, True) for power in _POWERS] if law.positive else []
    return powers + [Transform(exponent, centre, unit, False) for exponent in _EXPONENTS]


@dataclass(frozen=True)
class _EM:
    """Line of one transform, fitted by EM (Tobin, Econometrica 26, 1958)."""

    line: TransformedLine
    evidence: float  # log likelihood less the criterion of Schwarz for the slopes that the penalty leaves
    told: np.ndarray  # (n,): how much of the information of a known number each cell has
    penalty: float

    @classmethod
    def run(
        cls,
        transform: Transform,
        system: _RidgeSystem,
        low: np.ndarray,
        high: np.ndarray,
        weights: np.ndarray,
        start: tuple[float, float] | None,
    ) -> Self:
        """Take the mean and variance of each interval under the line of the step before, and solve for the line."""
        known = low == high
        a, b = transform.forward(low), transform.forward(high)
        some, z, doubt = ~known, a.copy(), np.zeros(len(a))
        level, deviation = start or (float(a[known].mean()), float(a[known].std()))
        least, mean = 1e-9 * deviation, np.full(len(a), level)
        for _ in range(_STEPS):
            m, v = normal_moments((a[some] - mean[some]) / deviation, (b[some] - mean[some]) / deviation)
            z[some], doubt[some] = mean[some] + deviation * m, deviation**2 * v
            line = system.solve(z)
            mean = line.fitted
            spread = float(system.share @ ((z - mean) ** 2 + doubt)) / line.left
            deviation = max(float(np.sqrt(spread)), least)
        t, total = (a[known] - mean[known]) / deviation, weights.sum()
        logs = -0.5 * t * t - np.log(deviation) + transform.log_slope(low[known])
        ends = ((end[some] - mean[some]) / deviation for end in (a, b))
        likelihood = weights[known] @ logs + weights[some] @ np.maximum(log_mass(*ends), -1e6)
        evidence = float(likelihood - 0.5 * total * (1.0 - line.left) * np.log1p(total))
        told = np.clip(1.0 - doubt / deviation**2, 0.0, 1.0)
        return cls(
            TransformedLine(transform, line.slopes, line.intercept, deviation, 1.0), evidence, told, line.penalty
        )


@dataclass(frozen=True)
class _Solution:
    slopes: np.ndarray
    intercept: float
    fitted: np.ndarray
    left: float  # share of the degrees of freedom
    penalty: float


@dataclass(frozen=True)
class _RidgeSystem:
    """Singular values of standardised rows, by which many targets are solved."""

    centre: np.ndarray
    scale: np.ndarray
    share: np.ndarray  # (n,): weights of the rows, of sum 1
    U: np.ndarray
    s: np.ndarray
    Vt: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, weights: np.ndarray) -> Self:
        share = weights / weights.sum()
        centre, scale = centre_and_scale(A, share)
        rows = np.sqrt(share)[:, None] * ((A - centre) / scale)
        return cls(centre, scale, share, *svd(rows, full_matrices=False, lapack_driver="gesvd"))

    def solve(self, z: np.ndarray) -> _Solution:
        """Return the line of the penalty with the least generalised cross-validation."""
        n, root, intercept = len(z), np.sqrt(self.share), float(self.share @ z)
        target = root * (z - intercept)
        projected = self.U.T @ target
        rest = max(float(target @ target - projected @ projected), 0.0)
        shrunk = self.s**2 / (self.s**2 + _PENALTIES[:, None] / n)
        left = np.maximum(1.0 - (1.0 + shrunk.sum(axis=1)) / n, 0.1)
        best = int(np.argmin((rest + (((1.0 - shrunk) * projected) ** 2).sum(axis=1)) / left**2))
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(self.s > 0.0, shrunk[best] * projected / self.s, 0.0)
        fitted = intercept + self.U @ (shrunk[best] * projected) / root
        return _Solution(self.Vt.T @ inner, intercept, fitted, float(left[best]), float(_PENALTIES[best]))
