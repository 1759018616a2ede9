"""Results of asking what to expect: columns where others are known, and missing cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from isopleth.conditional import ExpectedCells
from isopleth.results.charts import Chart
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.result import Result, ShownTable
from isopleth.results.text import cell_text, counted, in_words, shares_text


@dataclass(frozen=True, eq=False, repr=False)
class Expectation(Result):
    """Expected values of the columns of a table where some have given values.

    Parameters
    ----------
    laws : ExpectedCells
        The laws of the other columns.
    given : mapping
        The given values by name.
    n_rows : int
        Rows of the table.
    confidence_level : float, default=0.9
        Probability of the intervals.
    values : mapping of str to tuple of three, optional
        Median and ends of the interval of each column of numbers or times, as its table records them; those of the laws by
        default.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from isopleth.conditional import LawsGiven
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> given = {"x": 1.0}
    >>> laws = LawsGiven(given).fit(pd.DataFrame({"x": x, "y": 2.0 * x}))
    >>> row = Expectation(laws, given, 200).to_dict()["table"][0]
    >>> row["column"], row["low"] < row["expected"] < row["high"]
    ('y', True)
    """

    laws: ExpectedCells
    given: Mapping[str, Any]
    n_rows: int
    confidence_level: float = 0.9
    values: Mapping[str, tuple[Any, Any, Any]] | None = None

    kind = "expectation"
    title = "Values to expect"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each column: the median and interval of numbers and times, the likeliest word of others."""
        values, words = self.values, self.laws.probabilities()
        if values is None:
            ends = self.laws.interval(self.confidence_level)
            values = {str(name): (middle, *ends[name]) for name, middle in self.laws.median().items()}
        found: dict[str, list[Any]] = {name: [] for name in ("column", "expected", "low", "high", "probability")}
        for column in self.laws.columns.columns:
            if column.kind == "categorical":
                word, share = next(iter(words[column.name].items()))
                cells = [word, None, None, share]
            else:
                cells = [*values[str(column.name)], None]
            for name, cell in zip(found, [str(column.name), *cells], strict=True):
                found[name].append(cell)
        return {name: np.array(cells, dtype=object) for name, cells in found.items()}

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows of the table", lambda found: found.n_rows),
        "fitted_rows": Fact(
            "integer", "most rows that the law of a column was fitted to", lambda found: found.laws.n_fitted
        ),
        "given": Fact(
            "object", "the given values", lambda found: {str(name): value for name, value in found.given.items()}
        ),
        "beyond": Fact(
            "object",
            "given values that are beyond all rows, so that the answer extrapolates: least and largest value of the column",
            lambda found: {str(name): list(ends) for name, ends in found.laws.beyond.items()},
        ),
        "confidence_level": Fact("number", "confidence of each interval", lambda found: found.confidence_level),
        "probabilities": Fact(
            "object",
            "for each column of words, their probabilities",
            lambda found: {
                str(name): {str(word): p for word, p in law.items()} for name, law in found.laws.probabilities().items()
            },
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "column": Key("string", "name of the column"),
        "expected": Key("string, number or boolean", "median of numbers and times, likeliest word"),
        "low": Key("string, number or null", "lower limit of numbers and times"),
        "high": Key("string, number or null", "upper limit"),
        "probability": Key(NUMBER, "probability of the likeliest word"),
    }

    def _sentences(self) -> list[str]:
        said = in_words([f"{name} = {cell_text(value)}" for name, value in self.given.items()]) or "nothing"
        rows = counted(self.n_rows, "row")
        rows = rows if self.laws.n_fitted >= self.n_rows else f"{self.laws.n_fitted:,} of {rows}"
        return [f"Given {said}, by the laws of {rows}; each column by itself.", *self._beyond()]

    def _beyond(self) -> list[str]:
        """Return a sentence about each given value that no row comes up to."""
        given = {str(name): cell_text(value) for name, value in self.given.items()}
        return [
            f"{name} = {given[str(name)]} is beyond all rows, whose values are from {cell_text(low)} to {cell_text(high)}: the "
            "answer extrapolates."
            for name, (low, high) in self.laws.beyond.items()
        ]

    def _tables(self) -> list[ShownTable]:
        """Return the table with the next likely words of each column."""
        columns, words = self._columns(), self.laws.probabilities()
        others = [dict(list(words.get(column.name, {}).items())[1:]) for column in self.laws.columns.columns]
        columns["or"] = [shares_text(shares) for shares in others]
        computed = frozenset({"expected", "low", "high", "probability"})
        return [ShownTable("Columns", columns, len(columns["column"]), "", computed)]

    def _charts(self) -> list[Chart]:
        return self.laws.charts(self.confidence_level, self.values)

    def _notes(self) -> list[str]:
        level = f"{self.confidence_level:.0%}".replace("%", " %")
        return [
            f"expected: the median, and low to high an interval that holds {level} of such rows; of words the likeliest one, "
            "with its probability, and the next ones.",
            "Each column is judged by itself: a row with all of these values need not be likely.",
        ]


@dataclass(frozen=True, eq=False, repr=False)
class FilledCells(Result):
    """Number of cells of a table that were filled.

    Parameters
    ----------
    names : list of str
        Columns that were used.
    filled : ndarray of shape (d,), int
        Cells that were filled in each.
    n_rows : int
        Rows of the table.
    left : list of str
        Columns with gaps that could not be filled, because they are not used.
    limits : dict of str to int
        Cells that say a limit and stay as they are, by column.
    within : int
        Number of those that were filled with a number inside their limit; they count in `filled`.
    fitted : int
        Most rows that the law of a column was fitted to; 0 where nothing was to be filled.
    reference : int, optional
        Rows of the table that the laws were fitted to, if it is another one.
    drawn : bool
        Whether the rows that laws were fitted to were drawn from more.

    Examples
    --------
    >>> print(FilledCells(["age", "town"], np.array([3, 0]), 20, []).text())
    3 missing cells of 20 rows were filled, in 1 of 2 columns.
    <BLANKLINE>
    column  filled  share
       age       3  0.15
      town       0  0
    <BLANKLINE>
    --filled FILE lists the filled cells, each with its interval or the probability of its word.
    """

    names: list[str]
    filled: np.ndarray
    n_rows: int
    left: list[str]
    limits: Mapping[str, int] = field(default_factory=dict)
    within: int = 0
    fitted: int = 0
    reference: int | None = None
    drawn: bool = False

    kind = "filled_cells"
    title = "Filled cells"

    def _columns(self) -> dict[str, Any]:
        return {"column": self.names, "filled": self.filled, "share": self.filled / max(self.n_rows, 1)}

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows of the table", lambda found: found.n_rows),
        "fitted_rows": Fact("integer", "most rows that the law of a column was fitted to", lambda found: found.fitted),
        "reference_rows": Fact(
            "integer or null", "rows of --reference, whose laws fill the cells", lambda found: found.reference
        ),
        "filled": Fact("integer", "cells that were filled", lambda found: int(found.filled.sum())),
        "left": Fact("list of string", "columns with gaps that are not used", lambda found: found.left),
        "limits_filled": Fact("integer", "cells with a limit that were filled inside it", lambda found: found.within),
        "limits_kept": Fact(
            "object", "cells that say a limit and stay as they are, by column", lambda found: dict(found.limits)
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "column": Key("string", "name of the column"),
        "filled": Key("integer", "cells that were filled"),
        "share": Key("number", "share of the rows"),
    }

    def _sentences(self) -> list[str]:
        cells = counted(int(self.filled.sum()) - self.within, "missing cell")
        cells += f" and {counted(self.within, 'cell')} with a limit" if self.within else ""
        cells += f" of {counted(self.n_rows, 'row')}"
        some = f"{np.count_nonzero(self.filled)} of {counted(len(self.names), 'column')}"
        verb = "was" if self.filled.sum() == 1 else "were"
        left = [f"Not filled, since they are not used: {in_words(self.left)}."] * bool(self.left)
        return [f"{cells} {verb} filled, in {some}.", *self._drawn(), *left, *self._limits(), *self._guessed()]

    def _drawn(self) -> list[str]:
        """Return a sentence about laws that are fitted to some of the rows."""
        if not self.drawn:
            return []
        return [
            f"The law of a column is fitted to {counted(self.fitted, 'row')} with a known cell, drawn by what they hold; --size "
            "sets how many."
        ]

    def _notes(self) -> list[str]:
        """Return what marks the filled cells, which look like the others in the table."""
        return ["--filled FILE lists the filled cells, each with its interval or the probability of its word."]

    def _guessed(self) -> list[str]:
        """Return a sentence about columns of which less was known than filled."""
        share = self.filled / max(self.n_rows, 1)
        names = [f"{self.names[j]} ({share[j]:.0%})".replace("%", " %") for j in np.flatnonzero(share > 0.5)]
        if not names or self.reference is not None:
            return []
        return [
            f"Most cells were missing in {in_words(names)}: rows without a cell may have none for a reason, and what is filled "
            "there is a guess; --exclude leaves the column out."
        ]

    def _limits(self) -> list[str]:
        """Return a sentence about cells that say a limit and stay as they are."""
        if not self.limits:
            return []
        total = sum(self.limits.values())
        say, stay = (
            ("say a limit and stay as they are", "them") if total > 1 else ("says a limit and stays as it is", "it")
        )
        return [
            f"{counted(total, 'cell')} of {in_words(list(self.limits))} {say}; --limits fill writes what to expect inside the "
            f"limit in the place of {stay}."
        ]
