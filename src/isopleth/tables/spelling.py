"""Words that may be wrong forms of others: one letter changed, or most letters and pairs of letters the same."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from isopleth.tables.alike_words import look
from isopleth.tables.cells import parsed_number

# Fewest letters of words that may differ by one changed letter, and of those that are compared by all their letters.
_CHANGED, _LONG = 3, 6
# Cosine of the counts of letters and pairs of letters from which words look alike; most words that are compared so.
_ALIKE, _MOST = 0.6, 2000
# Letters that a long word may lack at its end, as in northe.
_CUT = 2
_DIGITS = re.compile("[0-9]")
# How many times the rows of a word a far more frequent one has; most rows of a word that may be another with a typo.
_FAR, _FEW_ROWS = 10, 5


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


def case_forms(words: Sequence[str], counts: np.ndarray) -> dict[int, int]:
    """Return the words that differ from a far more frequent one in case or spaces only, and that one, by their places.

    Where two frequent words differ so, case says something in the column. Numbers are left out, as codes have zeros in front.

    Examples
    --------
    >>> case_forms(["B", "b", "A", "AA", "aa"], np.array([60, 1, 70, 80, 20]))
    {1: 0}
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for i in np.flatnonzero(counts).tolist():
        text = unicodedata.normalize("NFKC", words[i]).casefold()
        if parsed_number(text.strip()) is None:
            groups["".join(text.split())].append(i)
    return _rare_forms(groups, counts)


def _rare_forms(groups: Mapping[str, list[int]], counts: np.ndarray) -> dict[int, int]:
    """Return the words of groups in which one is far more frequent than all others, and that one."""
    found: dict[int, int] = {}
    for group in groups.values():
        most = max(group, key=lambda i: counts[i])
        others = [i for i in group if i != most]
        if all(counts[most] >= _FAR * counts[i] for i in others):
            found.update(dict.fromkeys(others, most))
    return found


def meant_words(words: Sequence[str], counts: np.ndarray) -> dict[int, list[int]]:
    """Return for words that may be wrong forms of far more frequent ones the places of those, the most frequent first.

    They look like it, or, words of few rows without digits, are one lost, added or changed letter or one swap away, or lack the
    last two letters of a long word.

    Examples
    --------
    >>> meant_words(["north", "Soth", "south", "A1", "A2"], np.array([90, 1, 60, 1, 80]))
    {1: [2]}
    >>> meant_words(["northe", "northern", "southern"], np.array([1, 60, 60]))
    {0: [1]}
    """
    looks = {i: look(words[i]) for i in np.flatnonzero(counts).tolist()}
    same: dict[str, list[int]] = defaultdict(list)
    near: dict[str, set[int]] = defaultdict(set)
    for i, text in looks.items():
        same[text].append(i)
        if counts[i] >= _FAR and len(text) >= _CHANGED:
            for form in _shortened(text) | {text}:
                near[form].add(i)
            if len(text) >= _LONG + _CUT and text[-_CUT:].isalpha():
                near[text[:-_CUT]].add(i)
    found = {i: [right] for i, right in _rare_forms(same, counts).items()}
    for i, text in looks.items():
        if counts[i] <= _FEW_ROWS and not _DIGITS.search(text) and i not in found:
            close = {k for form in _shortened(text) | {text} for k in near.get(form, ())}
            close = {k for k in close if counts[k] >= _FAR * counts[i] and _is_wrong_form(text, looks[k])}
            if close:
                found[i] = sorted(close, key=lambda k: (-counts[k], words[k]))
    return found


def _is_wrong_form(text: str, right: str) -> bool:
    """Return whether a text is one edit away from a right one, or that one without its last letters."""
    return one_edit(text, right) or (len(text) >= _LONG and right[:-_CUT] == text)


def one_edit(one: str, two: str) -> bool:
    """Return whether one letter is lost, added or changed, or two letters that stand together are swapped.

    Examples
    --------
    >>> one_edit("soth", "south"), one_edit("nroth", "north"), one_edit("west", "east")
    (True, True, False)
    """
    if len(one) != len(two):
        short, long = sorted((one, two), key=len)
        return short in _shortened(long)
    at = [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    if len(at) == 2:
        i, k = at
        return k == i + 1 and one[i] == two[k] and one[k] == two[i]
    return len(at) == 1


def _shortened(word: str) -> set[str]:
    """Return the word without each of its letters."""
    return {word[:i] + word[i + 1 :] for i in range(len(word))} - {""}


def _one_letter(word: str, right: set[str], forms: set[str], changed: set[str]) -> bool:
    """Return whether a letter is lost, added or changed."""
    shorter = _shortened(word)
    near = word in forms or bool(shorter & right) or (len(word) >= _CHANGED and bool(shorter & changed))
    return near or (len(word) >= _CHANGED and bool(_swapped(word) & right))


def _swapped(word: str) -> set[str]:
    """Return the word with each two letters that stand together swapped."""
    return {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)} - {word}


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
