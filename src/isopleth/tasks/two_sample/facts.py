"""Facts of a comparison and the columns of its table, as --json and pages give them."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from isopleth.core.p_values import LEVEL
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.result import records
from isopleth.tasks.two_sample.shift_given import ShiftGiven
from isopleth.tasks.two_sample.shift_in_groups import ShiftsInGroups
from isopleth.tasks.two_sample.where import GroupsSought

_KIND_OF_COLUMN = "what the column holds there, or why it is left out; null where it is not there"

FACTS: dict[str, Fact] = {
    "schema_changes": Fact(
        "list of object",
        "columns that only one table has or whose kind changed: column, before, after",
        lambda found: [asdict(change) for change in found.schema.changes] if found.schema else [],
        {
            "column": Key("string", "name of the column"),
            "before": Key("string or null", _KIND_OF_COLUMN),
            "after": Key("string or null", _KIND_OF_COLUMN),
        },
    ),
    "set_aside": Fact("object", "columns that were not compared, and why", lambda found: found.set_aside),
    "shared_rows": Fact(
        "list of integer",
        "rows of A that are also in B, and of B that are also in A",
        lambda found: list(found.shared_rows),
    ),
    "telling_rows": Fact(
        "list of object",
        "up to twenty rows that tell the tables apart, with their values",
        lambda found: records(found.telling_rows()) if found.pvalue <= LEVEL else [],
    ),
    "pvalue": Fact("number", "p-value of the test", lambda found: found.pvalue),
    "statistic": Fact(NUMBER, "its statistic", lambda found: found.statistic),
    "rows": Fact("list of integer", "rows of A and B", lambda found: list(found.sizes)),
    "columns": Fact("list of string", "columns that were compared", lambda found: found.names),
    "n_resamples": Fact("integer", "number of permutations", lambda found: found.n_resamples),
    "rows_permuted_as_one": Fact("integer", "rows of a group", lambda found: found.group),
    "rows_permuted": Fact("integer", "rows that the permutations use", lambda found: len(found.problem.units.rows)),
    "kernel_scores": Fact("object", "the eleven scores by their names", lambda found: found.kernel_scores),
    "relations": Fact(
        "list of list",
        "pairs of columns whose relation differs, of which neither differs by itself",
        lambda found: [list(pair) for pair in found.witness.relations(LEVEL)] if found.pvalue <= LEVEL else [],
    ),
    "changed_groups": Fact(
        "list of object",
        "groups of rows in which columns changed more than elsewhere: column, group, pvalue, change, before, after, shown, "
        "elsewhere",
        lambda found: [asdict(group) for group in found.changed_groups],
    ),
    "limits": Fact(
        "object",
        "for each column with limits, from where to where its values count as equal; null for no end",
        lambda found: {
            name: [[end if np.isfinite(end) else None for end in pair] for pair in pairs]
            for name, pairs in found.limits.items()
        },
    ),
    "drawn_limits": Fact(
        "object",
        "for each column, how many limits hide more than half of it, and have other numbers inside them in their place",
        lambda found: dict(found.drawn_limits),
    ),
    "tolerance": Fact(NUMBER, "share of --tolerance; null without", lambda found: found.tolerance),
    "against_tolerance": Fact(
        "object",
        "with --tolerance: for each column more, less or open, as is shown of the share of its values that differ",
        lambda found: {} if found.tolerance is None else found.against_tolerance(),
    ),
    "shift": Fact(
        "object or null",
        "with --target: shift of its mean given other columns, in its units and as a ratio, with interval and p-value",
        lambda found: asdict(found.asked) if isinstance(found.asked, ShiftGiven) else None,
    ),
    "shifts_in_groups": Fact(
        "object or null",
        "with --target and --by: the same for each group, with p-values and intervals for all groups together, and groups "
        "that were left out",
        lambda found: asdict(found.asked) if isinstance(found.asked, ShiftsInGroups) else None,
    ),
    "groups_sought": Fact(
        "object or null",
        "with --by alone: for each column the group in which it changed most beyond the others, as in changed_groups",
        lambda found: asdict(found.asked) if isinstance(found.asked, GroupsSought) else None,
    ),
    "separation": Fact(
        "object or null",
        "accuracy of a classifier with its interval; null for too few rows",
        lambda found: None if found._separation is None else asdict(found._separation),
    ),
}

ROW_KEYS: dict[str, Key] = {
    "column": Key("string", "name of the column"),
    "share": Key(NUMBER, "share of the values that differ, about"),
    "share_low": Key(NUMBER, "lower limit of the share, of an interval of 95 %"),
    "share_high": Key(NUMBER, "upper limit"),
    "median_before": Key(NUMBER, "median in A"),
    "median_after": Key(NUMBER, "median in B"),
    "spread_before": Key(NUMBER, "quartile distance in A"),
    "spread_after": Key(NUMBER, "quartile distance in B"),
    "pvalue": Key("number", "p-value of the column alone, adjusted for the number of columns"),
    "pvalue_given_others": Key("number", "p-value of the column given the other columns, adjusted likewise"),
    "shift_given_others": Key(
        NUMBER, "move of the column from what the other columns let expect, in standard deviations around it"
    ),
    "given_others": Key("string", "the change given the other columns in words"),
    "others_without": Key(
        "string",
        "columns that are not among these others, since they moved clearer and would move the others' residuals",
    ),
    "statistic": Key(NUMBER, "score of the column alone"),
    "level": Key("string or null", "word whose share changed most, of a column of words", optional=True),
    "level_before": Key(NUMBER, "its share in A", optional=True),
    "level_after": Key(NUMBER, "its share in B", optional=True),
    "time_before": Key("string or null", "median time in A, of a column of times", optional=True),
    "time_after": Key("string or null", "median time in B", optional=True),
    "missing_before": Key("number", "share of missing cells in A", optional=True),
    "missing_after": Key("number", "share of missing cells in B", optional=True),
    "description": Key("string", "the change in words", optional=True),
}
