"""Law of a word given the other cells of its row: a pool of frequencies, shares of a forest and logistic regressions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from isopleth.conditional.forest import Forest, Growth
from isopleth.conditional.inputs import Inputs, Sample
from isopleth.conditional.pools import pool_weights
from isopleth.conditional.word_means import codes_of_target, held_weights
from isopleth.core.scales import centre_and_scale
from isopleth.core.threads import check_stopped

# Share of the frequencies of all rows that is added to the shares of the forest.
_PRIOR = 0.05
# Words that trees and lines tell apart; others are split by their frequencies.
_MOST_WORDS = 30
# Penalties of the logistic regressions, as the parameter C of scikit-learn.
_PENALTIES = (0.03, 1.0)
_STEPS = 80


@dataclass(frozen=True)
class Logistic:
    """Linear function of the columns whose softmax is the law of a word."""

    center: np.ndarray
    scale: np.ndarray
    slopes: np.ndarray  # (p, K)
    intercepts: np.ndarray  # (K,): minus infinity for words that no row has

    @classmethod
    def fit(cls, A: np.ndarray, codes: np.ndarray, size: int, weights: np.ndarray, C: float) -> Self:
        """Fit the penalised regression on standardised columns."""
        share = weights / weights.sum()
        center, scale = centre_and_scale(A, share)
        slopes, intercepts = np.zeros((A.shape[1], size)), np.full(size, -np.inf)
        present = np.unique(codes)
        intercepts[present] = 0.0
        if len(present) > 1:
            model = LogisticRegression(C=C, tol=1e-5, max_iter=200)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit((A - center) / scale, codes, sample_weight=weights)
            if len(present) == 2:  # scikit-learn keeps one function for two classes
                slopes[:, present[1]], intercepts[present[1]] = model.coef_[0], model.intercept_[0]
            else:
                slopes[:, present], intercepts[present] = model.coef_.T, model.intercept_
        return cls(center, scale, slopes, intercepts)

    def predict(self, A: np.ndarray) -> np.ndarray:
        """Return the probabilities of the words, (n, K)."""
        logs = np.clip((A - self.center) / self.scale, -8.0, 8.0) @ self.slopes + self.intercepts
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class WordLaw:
    """Fitted pool of the laws of a word."""

    inputs: Inputs
    forest: Forest
    logistic: tuple[Logistic, ...]
    frequencies: np.ndarray  # (K,): shrunken
    group: np.ndarray  # (K,): which of the words that are told apart a word belongs to
    onehot: np.ndarray  # (n, groups): of the rows of the fit
    within: np.ndarray  # (K,): share of a word in its group
    weights: np.ndarray  # of the pool
    known: np.ndarray  # (n, groups): laws of the rows of the fit that do not know them

    @classmethod
    def fit(
        cls,
        sample: Sample,
        n_numeric: int,
        size: int,
        growth: Growth,
    ) -> Self:
        """Fit to distinct rows whose targets are codes below `size`."""
        w = sample.weights
        codes = sample.target.astype(np.intp)
        counts = np.bincount(codes, w, size)
        frequencies = (counts + 0.5 / size) / (counts.sum() + 0.5)
        group, within = _groups(frequencies)
        place, groups = group[codes], int(group.max()) + 1
        onehot = np.eye(groups)[place]
        told = onehot @ codes_of_target(w @ onehot)
        inputs, X, A = sample.inputs(n_numeric, told, shrunk_by=1.0)
        forest = Forest.fit(X, onehot, w, growth, sample.copies)
        common = np.bincount(group, frequencies, groups)
        laws = [
            _without_own(counts, group, place, w / sample.copies),
            _with_prior(forest.out_of_bag() @ onehot, common),
        ]
        fitted: list[Logistic] = []
        held = held_weights(w, sample.copies)
        for C in _PENALTIES:
            check_stopped()
            laws.append(_out_of_fold(A, place, groups, w, C, held, common))
            fitted.append(Logistic.fit(A, place, groups, w, C))
        laws.append(np.full(onehot.shape, 1.0 / groups))
        own = np.stack([law[np.arange(len(codes)), place] for law in laws], axis=1)
        weights = pool_weights(own, w, _STEPS)
        known = sum(weight * law for weight, law in zip(weights, laws, strict=True))
        return cls(inputs, forest, tuple(fitted), frequencies, group, onehot, within, weights, np.asarray(known))

    def of_fit(self, places: np.ndarray) -> np.ndarray:
        """Return the probabilities of the words at rows of the fit, by laws that do not know them."""
        return self._spread(self.known[places])

    def at(self, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of the words at rows, (n, K)."""
        check_stopped()
        X, A = self.inputs.of_trees(rows), self.inputs.of_lines(rows)
        common: np.ndarray = np.bincount(self.group, self.frequencies)
        laws = [
            np.tile(common, (len(rows), 1)),
            _with_prior(self.forest.weights_at(X) @ self.onehot, common),
            *(_mixed(line.predict(A), common) for line in self.logistic),
            np.full((len(rows), len(common)), 1.0 / len(common)),
        ]
        return self._spread(np.asarray(sum(weight * law for weight, law in zip(self.weights, laws, strict=True))))

    def _spread(self, P: np.ndarray) -> np.ndarray:
        """Return the probabilities of all words from those of the words that are told apart and of the rest."""
        out = P[:, self.group] * self.within
        return np.asarray(out / out.sum(axis=1, keepdims=True))


def _groups(frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the group of each word, one for each frequent word and one for the others, and its share in the group."""
    order = np.argsort(-frequencies, kind="stable")
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.minimum(np.arange(len(order)), _MOST_WORDS)
    return group, frequencies / np.bincount(group, frequencies)[group]


def _without_own(counts: np.ndarray, group: np.ndarray, place: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Return the shrunken frequencies at each row without one of the equal rows that it stands for."""
    total = np.bincount(group, counts)
    out: np.ndarray = np.tile(total, (len(place), 1))
    out[np.arange(len(place)), place] -= one
    out = np.maximum(out, 0.0) + 0.5 / len(total)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _with_prior(shares: np.ndarray, common: np.ndarray) -> np.ndarray:
    return np.asarray((shares + _PRIOR * common) / (1.0 + _PRIOR))


def _mixed(P: np.ndarray, common: np.ndarray) -> np.ndarray:
    """Return probabilities none of which is 0: a fold may lack a rare word."""
    return np.asarray((1.0 - 1e-3) * P + 1e-3 * common)


def _out_of_fold(
    A: np.ndarray, place: np.ndarray, groups: int, w: np.ndarray, C: float, held: np.ndarray, common: np.ndarray
) -> np.ndarray:
    """Return the logistic law of each row by the rows of the other folds; of a row in several folds, their mean."""
    out = np.zeros((len(place), len(common)))
    for part in held.T:
        check_stopped()
        left, asked = w - part, part > 0.0
        known = left > 1e-9 * w
        if not asked.any():  # fewer rows than folds
            continue
        if known.any():
            law = _mixed(Logistic.fit(A[known], place[known], groups, left[known], C).predict(A[asked]), common)
        else:
            law = np.tile(common, (int(asked.sum()), 1))
        out[asked] += (part / w)[asked, None] * law
    return out
