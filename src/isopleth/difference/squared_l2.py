"""Estimates of the squared L2 distance between two densities, and its confidence interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.backend import namespace
from isopleth.difference.cross_validation import LEAST_ALPHA, fold_tables
from isopleth.difference.statistics import DifferenceSystem
from isopleth.errors import InputError
from isopleth.inference import normal_quantile

KINDS = ("cross_fitted", "lower_bound", "linear", "quadratic", "combined", "corrected", "inverse_corrected")


def in_sample(at: DifferenceSystem, alpha: float) -> dict[str, float]:
    """Compute the paper's estimates (9), (10), (11), (15), times the volume; NaN with one row or a singular H."""
    spectrum, h, counts = at.spectrum, at.h, at.counts
    theta = spectrum.solve(h[:, None], alpha)[:, 0]
    linear, quadratic = float(h @ theta), spectrum.squared_size(theta)
    combined = 2.0 * linear - quadratic
    out = dict.fromkeys(KINDS, math.nan)
    out.update(linear=linear, quadratic=quadratic, combined=combined)
    if (counts > 1.0).all():
        out["corrected"] = combined - float(spectrum.dual_weights(alpha) @ spectrum.diagonal(at.noise))
    if math.isfinite(spectrum.condition):
        xp = namespace(spectrum.gram)
        plain = sum(v / float(n) for v, n in zip(at.covariances, counts, strict=True))
        out["inverse_corrected"] = combined - float(xp.linalg.trace(xp.linalg.solve(spectrum.gram, plain)))
    return out


def checked(estimates: dict[str, float], kind: str) -> float:
    """Return one of the estimates."""
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}.")
    if not math.isnan(estimates[kind]):
        return estimates[kind]
    if kind == "inverse_corrected":
        raise InputError(
            "kind = 'inverse_corrected' needs the inverse of H, which is singular to working precision for these centers; use "
            "'corrected', which is unbiased for the regularised distance at fixed centers."
        )
    raise InputError(f"kind = {kind!r} needs at least two rows in each sample; use 'combined'.")


# Ridge of intervals over that of the fit: the bias of the best fit is as large as its error, too large for an interval.
UNDERSMOOTHING = 0.01

# Largest ridge of intervals over the volume: searches that find no difference end at large ridges.
MOST_ALPHA = 0.1

MOST_COLUMNS = 5
# Gaussians of one length scale resolve less of a difference in more columns. Simulated intervals lay below the distance in
# 9 % of samples in five columns without this share of the upper reach for each column beyond the first, and above it in 1 %.
_WIDENING = 0.08


@dataclass(frozen=True)
class SquaredL2Law:
    r"""Estimate of the squared L2 distance, with its variance as a function of the true distance.

    With h normal around :math:`\mu` with covariance :math:`\Sigma = V_p/n + V_q/n'`, the cross-fitted mean of
    :math:`h_t^\top M h_{-t}` over T folds has expectation :math:`\mu^\top M \mu` and variance

    .. math:: 4\, \mu^\top M \Sigma M \mu + \tfrac{2T}{T-1} \operatorname{tr} (M \Sigma)^2 .

    The first term goes to 0 with the distance D and the second does not: the law degenerates for equal densities. Therefore
    the variance is modelled as :math:`c D + b`, with
    :math:`c = 4\, h^\top M \Sigma M h / h^\top M h`, and the interval holds all :math:`D \ge 0` with
    :math:`(\hat D - D)^2 \le z^2 (c D + b)`.
    """

    # estimate, slope, floor: `\hat D` and c times the volume, and b times its square
    estimate: float
    slope: float
    floor: float
    log_volume: float  # logarithm of that volume

    @classmethod
    def of(cls, at: DifferenceSystem, alpha: float) -> Self | None:
        """Fit at a ridge far below that of a good fit, `alpha`, but not nearly singular; None if a sample has only one row."""
        if at.systems is None or not (at.counts > 1.0).all():
            return None
        alpha = max(min(UNDERSMOOTHING * alpha, MOST_ALPHA), min(alpha, LEAST_ALPHA))
        folds = at.systems.sums.folds
        estimate = fold_tables(at.systems, np.array([alpha]), nested=False).cross.mean()
        backend = at.spectrum.backend
        half = at.spectrum.vectors * backend.array(np.sqrt(at.spectrum.dual_weights(alpha)))
        noise, h = half.T @ at.noise @ half, half.T @ backend.array(at.h)
        dual = float(h @ h)
        slope = 4.0 * float(h @ noise @ h) / dual if dual > 0.0 else 0.0
        floor = 2.0 * folds / (folds - 1.0) * float(namespace(noise).sum(noise**2))
        return cls(float(estimate), slope, floor, at.log_volume)

    def interval(self, confidence_level: Any, columns: int = 1) -> tuple[float, float]:
        """Return both limits times the volume, for densities in this number of columns."""
        z = normal_quantile(confidence_level)
        if columns > MOST_COLUMNS:
            raise InputError(
                f"a squared L2 distance in {columns} columns cannot be bounded from above by samples of ordinary size; take at "
                f"most {MOST_COLUMNS} columns, or two_sample_test(X, Y).separation() for the accuracy of a classifier."
            )
        # A distance is not negative; an estimate far below 0 must not make the upper limit vanish.
        estimate = max(self.estimate, 0.0)
        shift = 0.5 * z**2 * self.slope
        reach = math.sqrt(shift**2 + z**2 * (self.slope * estimate + self.floor))
        return max(estimate + shift - reach, 0.0), estimate + shift + (1.0 + _WIDENING * (columns - 1)) * reach
