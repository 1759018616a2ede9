"""Groups of rows that may take each other's place in a permutation test: as many rows of each, drawn at random.

The mean of a long block of rows varies less than that of a short one. If the groups of one sample are longer, labels of
whole groups are not exchangeable, even if all rows have one distribution. So a group only changes places with groups of as
many rows, and of longer ones some rows are drawn.
"""

from __future__ import annotations

import numpy as np

# Correlation of two rows of a group that is assumed to weigh rows left out against groups left out: k rows of a group say
# as much as k / (1 + (k - 1) r) independent ones. The level does not depend on it.
_CORRELATION = 0.2
# Least groups of each sample in a stratum of groups of similar length, if there are so many: enough assignments are left.
_FEWEST = 3
# A stratum is divided if this adds so much to its information.
_GAIN = 1.1


def strata_of_groups(
    first: np.ndarray, second: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return, for the groups of each sample in ascending order, the rows of each that are used, and strata.

    Groups change places within strata, whose groups all use the same number of rows, 0 for groups that are left out. The two
    parts of a group in both samples are a stratum. Only the numbers of rows in the groups decide.
    """
    found = [np.unique(labels, return_counts=True) for labels in (first, second)]
    (names, counts), (others, other_counts) = found
    paired, one, two = np.intersect1d(names, others, return_indices=True)
    lengths = [np.zeros(len(counts), dtype=np.intp), np.zeros(len(other_counts), dtype=np.intp)]
    strata = [np.full(len(each), -1, dtype=np.intp) for each in lengths]
    lengths[0][one] = lengths[1][two] = np.minimum(counts[one], other_counts[two])
    strata[0][one] = strata[1][two] = np.arange(len(paired))
    apart = [np.setdiff1d(np.arange(len(each)), used) for each, used in zip(lengths, (one, two), strict=True)]
    sizes = counts[apart[0]], other_counts[apart[1]]
    for number, (low, high) in enumerate(_ranges(*sizes)):
        for sample in (0, 1):
            inside = apart[sample][(sizes[sample] >= low) & (sizes[sample] <= high)]
            lengths[sample][inside], strata[sample][inside] = low, len(paired) + number
    return (lengths[0], lengths[1]), (strata[0], strata[1])


def _ranges(first: np.ndarray, second: np.ndarray, fewest: int | None = None) -> list[tuple[int, int]]:
    """Return the least and largest number of rows of the groups in each stratum, the shortest groups first."""
    if not len(first) or not len(second):
        return []
    fewest = min(_FEWEST, len(first), len(second)) if fewest is None else fewest
    sizes = np.unique(np.concatenate([first, second]))
    best, most = None, _GAIN * _information(first, second, fewest)
    for least in sizes[1:]:
        parts = [(first[first < least], second[second < least]), (first[first >= least], second[second >= least])]
        information = sum(_information(*part, fewest) for part in parts)
        if information > most:
            best, most = parts, information
    if best is None:
        return [(int(sizes[0]), int(sizes[-1]))]
    return [each for part in best for each in _ranges(*part, fewest)]


def _information(first: np.ndarray, second: np.ndarray, fewest: int) -> float:
    """Return about how many independent rows a stratum says as much as; 0 if one sample has too few groups in it."""
    if min(len(first), len(second)) < fewest:
        return 0.0
    least = float(min(first.min(), second.min()))
    return least / (1.0 + (least - 1.0) * _CORRELATION) * len(first) * len(second) / (len(first) + len(second))
