"""Shares of classes with their intervals, in words, tables and charts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from isopleth.results.charts import Chart, Series
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.results.text import counted, in_words

_MOST_BARS = 40
# Width of an interval that says next to nothing, of at most 1.
_NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class ClassPriors(Result):
    """Shares of the classes among unlabelled rows.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The classes.
    priors : ndarray of shape (K,)
        Their shares, of sum 1.
    lower, upper : ndarray of shape (K,)
        Limits of an interval for each share, within [0, 1].
    covariance : ndarray of shape (K, K)
        Covariance of the shares without constraint or second term, by the delta method.
    confidence_level : float
        Confidence level of each interval.
    n_rows : int
        Number of unlabelled rows.
    population : bool
        Whether the intervals are for the shares in the population from which the rows were drawn, and not for those among the
        rows themselves.
    by : str, optional
        Name of the column of the groups, or "group".
    groups : dict of str to ClassPriors
        Shares among the rows of each group, by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import ClassPriorEstimator
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)) + np.repeat([[0.0], [3.0]], 30, axis=0), np.repeat(["a", "b"], 30)
    >>> ClassPriorEstimator(random_state=0).fit(X, y).estimate(X[:35]).to_dict()["classes"]
    ['a', 'b']
    """

    classes: np.ndarray
    priors: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    covariance: np.ndarray
    confidence_level: float
    n_rows: int
    population: bool = False
    by: str | None = None
    groups: dict[str, ClassPriors] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ClassPriors({', '.join(self._lines(', '))}; {100.0 * self.confidence_level:.6g}% intervals)"

    def __str__(self) -> str:
        of_groups = [f"{name}: {', '.join(found._lines(' '))}" for name, found in self.groups.items()]
        return "\n".join([*self._lines(" "), *of_groups, *self._doubt()])

    def _doubt(self) -> list[str]:
        """Return a sentence if intervals are so wide that the rows say next to nothing, of which classes if not of all."""
        vague = self.classes[self.upper - self.lower >= _NEARLY_ALL].tolist()
        if not vague:
            return []
        which = "" if len(vague) == len(self.classes) else f" of {in_words([str(name) for name in vague])}"
        advice = "label more rows, or add columns in which the classes differ"
        return [f"These rows say next to nothing about the shares{which}: {advice}."]

    def _lines(self, gap: str) -> list[str]:
        cells = zip(self.classes.tolist(), self.priors, self.lower, self.upper, strict=True)
        return [f"{name}: {share:.3f} [{low:.3f}{gap}{high:.3f}]" for name, share, low, high in cells]

    kind = "class_priors"
    title = "Shares of classes"

    def _columns(self) -> dict[str, Any]:
        """Return the columns class, prior, lower and upper, of groups with their names before."""
        if not self.groups:
            return {"class": self.classes, "prior": self.priors, "lower": self.lower, "upper": self.upper}
        each = [found._columns() for found in self.groups.values()]
        together = {name: np.concatenate([columns[name] for columns in each]) for name in each[0]}
        return {"group": np.repeat(list(self.groups), len(self.classes))} | together

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows without labels", lambda found: found.n_rows),
        "classes": Fact("list", "classes, as they are in the file", lambda found: found.classes.tolist()),
        "confidence_level": Fact("number", "confidence of each interval", lambda found: found.confidence_level),
        "population": Fact(
            "boolean",
            "whether the intervals are for the population that the rows were drawn from",
            lambda found: found.population,
        ),
        "by": Fact("string or null", "column of the groups; null without --by", lambda found: found.by),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "group": Key("string", "the group of rows, with --by", optional=True),
        "class": Key("string, number or boolean", "the class"),
        "prior": Key("number", "its share"),
        "lower": Key("number", "lower limit"),
        "upper": Key("number", "upper limit"),
    }

    def _sentences(self) -> list[str]:
        largest = int(np.argmax(self.priors))
        interval = f"{self.lower[largest]:.1%} to {self.upper[largest]:.1%}"
        return [
            *self._doubt(),
            f"Of {counted(self.n_rows, 'row')} without labels, about {self.priors[largest]:.1%} ({interval}) belong to the most "
            f"frequent class, {self.classes[largest]}.",
            *self._of_groups(largest),
            f"Intervals of the shares {self._scope} hold with {self._level} confidence if rows of a class are alike "
            "in both tables and every class is among the labels.",
        ]

    def _of_groups(self, k: int) -> list[str]:
        """Return a sentence on the groups in which the share of a class is largest and smallest; none without two groups."""
        if len(self.groups) < 2:
            return []
        ranked = sorted(self.groups, key=lambda name: -self.groups[name].priors[k])
        first, last = (self.groups[name] for name in (ranked[0], ranked[-1]))
        ends = [f"{found.priors[k]:.1%} ({found.lower[k]:.1%} to {found.upper[k]:.1%})" for found in (first, last)]
        apart = first.lower[k] > last.upper[k]
        return [
            f"Of the {len(self.groups)} groups of {self.by}, {ranked[0]} has the largest share of {self.classes[k]}, {ends[0]}, "
            f"and {ranked[-1]} the smallest, {ends[1]}" + ("." if apart else "; their intervals overlap.")
        ]

    @property
    def _scope(self) -> str:
        return "in the population of these rows" if self.population else "among these rows"

    def _tables(self) -> list[ShownTable]:
        return [shown("Groups and classes" if self.groups else "Classes", self._columns())]

    def _charts(self) -> list[Chart]:
        return [self._chart_of_classes(), *([self._chart_of_groups()] if self.groups else [])]

    def _chart_of_groups(self) -> Chart:
        """Draw the share of the most frequent class in each group."""
        k = int(np.argmax(self.priors))
        ranked = sorted(self.groups, key=lambda name: -self.groups[name].priors[k])[:_MOST_BARS]
        share, lower, upper = (
            np.array([getattr(self.groups[g], of)[k] for g in ranked]) for of in ("priors", "lower", "upper")
        )
        title = f"{ranked[0]} has the largest share of {self.classes[k]}: {share[0]:.1%}"
        return self._dots(ranked, share, lower, upper, title)

    def _chart_of_classes(self) -> Chart:
        first = np.argsort(-self.priors, kind="stable")[:_MOST_BARS]
        classes = [str(self.classes[k]) for k in first]
        share, lower, upper = self.priors[first], self.lower[first], self.upper[first]
        return self._dots(classes, share, lower, upper, f"{classes[0]} is the most frequent class: {share[0]:.1%}")

    def _dots(self, names: list[str], share: np.ndarray, lower: np.ndarray, upper: np.ndarray, title: str) -> Chart:
        """Draw shares with their intervals, one line for each name."""
        notes = [
            f"{name}: {one:.2%} ({low:.2%} to {high:.2%})"
            for name, one, low, high in zip(names, share, lower, upper, strict=True)
        ]
        series = [
            Series(f"{self._level} interval", [], upper, "ranges", "blue", notes, low=lower),
            Series("share", [], share, "dots", "blue", notes, strong=True),
        ]
        about = "Dots are the estimates, bars their intervals."
        return Chart(title, "share of the rows", "", series, about, names=names)

    def _notes(self) -> list[str]:
        return [
            "prior: the share of the rows without labels that belong to the class.",
            f"lower and upper: limits of an interval with a confidence of {self._level} for each class by itself, for the share "
            + ("in the population that the rows were drawn from." if self.population else "among these rows."),
        ]

    @property
    def _level(self) -> str:
        return f"{100.0 * self.confidence_level:.6g} %"
