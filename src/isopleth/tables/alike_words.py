"""Words that look like each other, such as yes and Yes, or 12 and 12.0: perhaps one word that was written in two ways."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from isopleth.tables.cells import number_word, parsed_number

_MOST = 5  # pairs that a sentence names
_BETWEEN = re.compile(r"[\s_.\-]+")


def look(word: str) -> str:
    """Return what words that look like each other have in common: letters without case, accents of one form, the number."""
    text = unicodedata.normalize("NFKC", word).strip().casefold()
    number = parsed_number(text)
    return number_word(number) if number is not None else _BETWEEN.sub(" ", text).strip() or text


def alike_words(one: Iterable[str], two: Iterable[str] | None = None) -> list[tuple[str, str]]:
    """Return pairs of words that look like each other: of one column, or the first in one table only and the second in the other.

    Examples
    --------
    >>> alike_words(["yes", "no", "Yes"]), alike_words(["yes", "12"], ["Yes", "12.0", "no"])
    ([('Yes', 'yes')], [('yes', 'Yes'), ('12', '12.0')])
    """
    first = list(dict.fromkeys(one))
    looks: dict[str, list[str]] = defaultdict(list)
    if two is None:
        for word in sorted(first):
            looks[look(word)].append(word)
        return [(words[0], other) for words in looks.values() for other in words[1:]]
    second = set(two)
    for word in sorted(second - set(first)):
        looks[look(word)].append(word)
    return [(word, other) for word in first if word not in second for other in looks.get(look(word), ())]


def alike_in_words(name: str, pairs: list[tuple[str, str]], where: str) -> str:
    """Return the sentence about pairs of a column."""
    shown = ", ".join(f"{one!r} and {other!r}" for one, other in pairs[:_MOST])
    more = f" and {len(pairs) - _MOST} more" if len(pairs) > _MOST else ""
    return f"{name}: {shown}{more} look like one word{where}: write it in one way if it is one."
