"""States that come back, in made-up series: do segments that are alike have the same label?

    python -m experiments.states [--runs 5] [--first 0]

Ten kinds of series of three states, in five to seven segments of 200 to 400 steps in an order that is drawn. Printed are the
adjusted mutual information of true labels and `states_`, both one a step, at the true changes and at those that were found; 1 is
right, 0 chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter, sawtooth, square
from sklearn.metrics import adjusted_mutual_info_score

from isopleth import ChangePointDetector
from isopleth.tasks.changes.states import states_of

Rng = np.random.Generator


def _waves(steps: np.ndarray, period: float) -> np.ndarray:
    return 2.0 * np.pi * steps / period


def _noise(rng: Rng, n: int, size: float = 0.2) -> np.ndarray:
    return size * rng.normal(size=n)


def _relation(rng: Rng, n: int, state: int) -> np.ndarray:
    along, noise = [0.0, 0.8, -0.8][state], rng.normal(size=(n, 2))
    return np.column_stack([noise[:, 0], along * noise[:, 0] + np.sqrt(1.0 - along**2) * noise[:, 1]])


KINDS: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "period": lambda rng, n, s: np.sin(_waves(np.arange(n), [25, 12, 17][s])) + _noise(rng, n),
    "shape": lambda rng, n, s: [np.sin, square, sawtooth][s](_waves(np.arange(n), 20)) + _noise(rng, n),
    "harmonics": lambda rng, n, s: (
        np.sin(_waves(np.arange(n), 24)) + [0.0, 0.8, -0.8][s] * np.cos(2.0 * _waves(np.arange(n), 24)) + _noise(rng, n)
    ),
    "size of waves": lambda rng, n, s: [1.0, 2.5, 0.4][s] * np.sin(_waves(np.arange(n), 20)) + _noise(rng, n),
    "level": lambda rng, n, s: 1.5 * s + rng.normal(size=n),
    "scatter": lambda rng, n, s: [1.0, 2.5, 0.4][s] * rng.normal(size=n),
    "autocorrelation": lambda rng, n, s: lfilter([1.0], [1.0, -[0.0, 0.8, -0.7][s]], rng.normal(size=n)),
    "pulses": lambda rng, n, s: 4.0 * (np.arange(n) % [30, 15, 20][s] < 3) + _noise(rng, n),
    "relation of two columns": _relation,
    "skewness": lambda rng, n, s: [rng.normal(size=n), rng.exponential(size=n) - 1.0, 1.0 - rng.exponential(size=n)][s],
}


def made(kind: str, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Return a series, and the state of each step."""
    order = [int(rng.integers(3))]
    while len(order) < 5 or (len(set(order)) < 3 and len(order) < 7):
        order.append(int((order[-1] + rng.integers(1, 3)) % 3))
    lengths = rng.integers(200, 401, len(order))
    parts = [KINDS[kind](rng, int(n), state).reshape(int(n), -1) for n, state in zip(lengths, order, strict=True)]
    return np.concatenate(parts), np.repeat(order, lengths)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    print(f"{'kind':<24} {'true changes':>12} {'found':>6} {'right of true':>14} {'told':>5}")
    rows = []
    for number, kind in enumerate(KINDS):
        found = [one(kind, number, given.first + run) for run in range(given.runs)]
        at_true, at_found, right, true, told = np.array(found).T
        rows.append((at_true.mean(), at_found.mean()))
        print(
            f"{kind:<24} {at_true.mean():12.2f} {at_found.mean():6.2f} {right.sum():7.0f} of {true.sum():3.0f} {told.sum():5.0f}"
        )
    print(f"{'mean':<24} {np.mean(rows, axis=0)[0]:12.2f} {np.mean(rows, axis=0)[1]:6.2f}")


def one(kind: str, number: int, run: int) -> tuple[float, float, int, int, int]:
    """Return both informations of a series, and how many of its changes were found, there are, and were told."""
    series, states = made(kind, np.random.default_rng([number, run]))
    true = np.flatnonzero(np.diff(states)) + 1
    detector = ChangePointDetector(random_state=0).fit(series)
    cycle = float(detector.periods_[0]) if len(detector.periods_) else None
    places = np.asarray(detector.change_points_)
    at_true = np.repeat(
        states_of(series, true, cycle, np.random.default_rng(0)), np.diff(np.concatenate([[0], true, [len(series)]]))
    )
    at_found = np.repeat(detector.states_, np.diff(np.concatenate([[0], places, [len(series)]])))
    right = sum(bool(len(places)) and np.abs(places - place).min() <= 20 for place in true)
    return (
        float(adjusted_mutual_info_score(states, at_true)),
        float(adjusted_mutual_info_score(states, at_found)),
        int(right),
        len(true),
        len(places),
    )


if __name__ == "__main__":
    main()
