"""Words that may be wrong forms of others: one letter changed, or most letters and pairs of letters the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from scipy.sparse import csr_array

# Fewest letters of words that may differ by one changed letter, and of those that are compared by all their letters.
_CHANGED, _LONG = 3, 6
# Cosine of the counts of letters and pairs of letters from which words look alike; most words that are compared so.
_ALIKE, _MOST = 0.6, 2000
_DIGITS = re.compile("[0-9]")


def misspelt(words: Sequence[str], right: Collection[str]) -> np.ndarray:
    """Return a mask of the words that look like a wrong form of one of the `right` ones.

    A word that differs from a right one in digits only is another code.

    Examples
    --------
    >>> misspelt(["item 7", "itm 4", "1x018"], ["item 4", "10018"]).tolist()
    [False, True, True]
    >>> misspelt(["chiar", "chairr", "lamp"], ["chair", "table"]).tolist()
    [True, True, False]
    >>> misspelt(["yxs", "acute care hospxtaxs"], ["yes", "acute care hospitals"]).tolist()
    [True, True]
    """
    forms = {form for word in right for form in _shortened(word)}
    long_right, whole = [word for word in right if len(word) >= _LONG][:_MOST], set(right)
    longer = {word for word in right if len(word) >= _CHANGED}
    changed = {form for word in longer for form in _shortened(word)}
    found = np.array([_one_letter(word, whole, forms, changed) for word in words], dtype=bool)
    shapes = {_DIGITS.sub("0", word) for word in right}
    codes = np.array([_DIGITS.sub("0", word) in shapes for word in words], dtype=bool)
    found &= ~codes
    left = [i for i, word in enumerate(words) if not found[i] and not codes[i] and len(word) >= _LONG][:_MOST]
    if left and long_right:
        counts = _counts([words[i] for i in left] + long_right)
        found[left] = (counts[: len(left)] @ counts[len(left) :].T).max(axis=1).toarray().ravel() >= _ALIKE
    return found


def _shortened(word: str) -> set[str]:
    """Return the word without each of its letters."""
    return {word[:i] + word[i + 1 :] for i in range(len(word))} - {""}


def _one_letter(word: str, right: set[str], forms: set[str], changed: set[str]) -> bool:
    """Return whether a letter is lost, added or changed."""
    shorter = _shortened(word)
    return word in forms or bool(shorter & right) or (len(word) >= _CHANGED and bool(shorter & changed))


def _counts(words: Sequence[str]) -> csr_array:
    """Return the counts of letters and pairs of letters of words, each line of length 1."""
    places: dict[str, int] = {}
    rows, columns, values = [], [], []
    for i, word in enumerate(words):
        for part, count in Counter([*word, *(word[k : k + 2] for k in range(len(word) - 1))]).items():
            rows.append(i)
            columns.append(places.setdefault(part, len(places)))
            values.append(float(count))
    found = csr_array((values, (rows, columns)), shape=(len(words), len(places)))
    return csr_array(found.multiply(1.0 / np.sqrt(found.multiply(found).sum(axis=1))[:, None]))
