"""How far densities in frames are from equivariant under maps that they do not undo exactly.

    python -m experiments.density_equivariance > docs/densities_equivariance_results.txt

A density that is fitted to mapped rows is compared with the density of the rows themselves: root of the mean squared difference
of the log densities of 1,000 new rows, in the units of the rows. The rows, 500 with four columns, are lognormal and correlated.
"""

from __future__ import annotations

import warnings

import numpy as np

from isopleth import SOSREP

FRAMES = ["scale", "whiten", "marginal", "gp1", "gp2", "auto", "deep"]
ROWS, NEW_ROWS, SEEDS = 500, 1000, 3


def table(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return correlated lognormal rows."""
    mixing = np.linalg.cholesky(0.5 * np.eye(4) + 0.5)
    return np.exp(0.6 * rng.normal(size=(n, 4)) @ mixing.T)


def differences(frame: str, seed: int) -> list[float]:
    """Return the differences under other units, an affine map and logarithms."""
    rng = np.random.default_rng(seed)
    X, Q, A = table(rng, ROWS), table(rng, NEW_ROWS), rng.normal(size=(4, 4))
    plain = SOSREP(frame=frame, n_jobs=1).fit(X).score_samples(Q)
    units = 10.0 ** np.arange(-2, 2)
    found = []
    for mapped, asked, volume in (
        (X * units + 7.0, Q * units + 7.0, np.log(units).sum()),
        (X @ A, Q @ A, np.linalg.slogdet(A)[1]),
        (np.log(X), np.log(Q), -np.log(Q).sum(axis=1)),
    ):
        other = SOSREP(frame=frame, n_jobs=1).fit(mapped).score_samples(asked) + volume
        found.append(float(np.sqrt(np.mean((other - plain) ** 2))))
    return found


def main() -> None:
    """Print the table."""
    print(f"{'frame':<12}{'other units':>14}{'affine map':>14}{'logarithms':>14}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for frame in FRAMES:
            values = np.mean([differences(frame, seed) for seed in range(SEEDS)], axis=0)
            print(f"{frame:<12}" + "".join(f"{value:>14.2g}" for value in values))


if __name__ == "__main__":
    main()
