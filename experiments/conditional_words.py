"""Laws of a word given the other cells of its row, for `python -m experiments.conditionals`: the library's and usual classifiers.

- ``law``: `ConditionalDensity()`.
- ``logistic ridge``: logistic regression on standardised columns, its penalty chosen by five folds.
- ``forest``: `RandomForestClassifier` of 300 trees with leaves of two rows; a twentieth of the frequencies is added to its
  shares, since a share of 0 would be an infinite loss.
- ``boosting``: `HistGradientBoostingClassifier` with its defaults. ``marginal``: frequencies of the words, each with half a row
  more.

``log loss`` is the mean of minus the log probability of the held-out words. A word that no row of the fit has counts as half a
row for every method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isopleth import ConditionalDensity

if TYPE_CHECKING:
    from experiments.conditionals import Split

WORD_FIGURES = ("log loss", "wrong", "fit", "answers")
TREES, SHARE_OF_FREQUENCIES = 300, 0.05


class Words(NamedTuple):
    """Probabilities of words of held-out rows, (n, K), and the words."""

    probabilities: np.ndarray
    classes: np.ndarray


WordAnswer = Callable[["Split"], Words]
WordFit = Callable[["Split"], WordAnswer]


def by_law(split: Split) -> WordAnswer:
    """Fit `ConditionalDensity`."""
    model = ConditionalDensity(n_jobs=1, random_state=0).fit(split.X, split.y)
    return lambda s: Words(model.probabilities(s.asked), np.array([str(word) for word in model.classes_], dtype=object))


def by_frequencies(split: Split) -> WordAnswer:
    """Count the words."""
    return lambda s: Words(np.tile(_frequencies(split)[1], (len(s.truth), 1)), _frequencies(split)[0])


def by_logistic_ridge(split: Split) -> WordAnswer:
    """Fit a logistic regression; a word of fewer rows than folds is in no fold for some of them, which the penalty survives."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, asked = split.encoded()
    _, counts = np.unique(split.y, return_counts=True)
    folds = 5 if counts.min() >= 5 else KFold(5, shuffle=True, random_state=0)
    model: object
    try:
        line = LogisticRegressionCV(Cs=np.geomspace(1e-3, 10.0, 9), cv=folds, scoring="neg_log_loss", max_iter=500)
        model = make_pipeline(StandardScaler(), line).fit(X, split.y)
    except ValueError:  # a fold without one of the words
        from sklearn.linear_model import LogisticRegression

        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500)).fit(X, split.y)
    return lambda s: _with_frequencies(Words(model.predict_proba(asked), model.classes_), split, 1e-3)  # type: ignore[attr-defined]


def by_forest(split: Split) -> WordAnswer:
    """Fit a random forest."""
    from sklearn.ensemble import RandomForestClassifier

    X, asked = split.encoded()
    model = RandomForestClassifier(TREES, min_samples_leaf=2, random_state=0, n_jobs=1).fit(X, split.y)
    return lambda s: _with_frequencies(Words(model.predict_proba(asked), model.classes_), split, SHARE_OF_FREQUENCIES)


def by_boosting(split: Split) -> WordAnswer:
    """Fit boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, asked = split.encoded()
    model = HistGradientBoostingClassifier(random_state=0).fit(X, split.y)
    return lambda s: _with_frequencies(Words(model.predict_proba(asked), model.classes_), split, 1e-3)


WORD_METHODS: dict[str, WordFit] = {
    "law": by_law,
    "logistic ridge": by_logistic_ridge,
    "forest": by_forest,
    "boosting": by_boosting,
    "marginal": by_frequencies,
}


def _frequencies(split: Split) -> tuple[np.ndarray, np.ndarray]:
    classes, counts = np.unique(split.y, return_counts=True)
    return classes, (counts + 0.5) / (counts + 0.5).sum()


def _with_frequencies(words: Words, split: Split, share: float) -> Words:
    """Return probabilities with a share of the frequencies: none is 0."""
    assert list(words.classes) == list(_frequencies(split)[0])
    return Words((1.0 - share) * words.probabilities + share * _frequencies(split)[1], words.classes)


def word_figures(words: Words, split: Split) -> tuple[float, float]:
    """Return the log loss, and the share of rows whose likeliest word is wrong."""
    n = len(split.y)
    place = {word: k for k, word in enumerate(words.classes)}
    codes = np.array([place.get(word, len(place)) for word in split.truth])
    new = 0.5 / (n + 0.5)
    P = np.column_stack([(1.0 - new) * words.probabilities, np.full(len(codes), new)])
    losses = -np.log(np.maximum(P[np.arange(len(codes)), codes], 1e-300))
    return float(losses.mean()), float(np.mean(words.probabilities.argmax(axis=1) != codes))
