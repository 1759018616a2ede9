"""Estimates of the squared L2 distance between two densities, by name."""

from __future__ import annotations

import math

from isopleth.backend import namespace
from isopleth.difference.system import DifferenceSystem
from isopleth.errors import InputError

KINDS = ("cross_fitted", "lower_bound", "linear", "quadratic", "combined", "corrected", "inverse_corrected")


def in_sample(at: DifferenceSystem, alpha: float) -> dict[str, float]:
    """The paper's (9), (10), (11) and (15), the last with its own and with the stable correction, over the volume.

    Parameters
    ----------
    at : DifferenceSystem
        Of the samples at the length scale.
    alpha : float
        The ridge.

    Returns
    -------
    dict
        NaN for corrections that a sample of one row, or H, do not allow.
    """
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
    """One of the estimates.

    Raises
    ------
    InputError
        If there is no such estimate, or the data do not allow it.
    """
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
