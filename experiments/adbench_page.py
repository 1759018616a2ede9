"""The page of results of the boards, made from the lines of their file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from textwrap import wrap

import numpy as np

from experiments.adbench_boards import SETTINGS
from experiments.adbench_kernels import KERNELS
from experiments.adbench_methods import OURS

Lines = list[dict[str, str]]
Found = dict[str, dict[tuple[str, str], np.ndarray]]


def by_task(lines: Lines, board: str, setting: str) -> Found:
    """AUC, average precision and seconds of each method, by seed and table."""
    found: Found = defaultdict(dict)
    for line in lines:
        if (line["board"], line["setting"]) == (board, setting):
            values = np.array([float(line[name]) for name in ("auc", "pr", "seconds")])
            found[line["method"]][line["seed"], line["table"]] = values
    return found


def detectors(lines: Lines) -> set[str]:
    """Methods that are not densities with one of the kernels."""
    return {line["method"] for line in lines} - set(KERNELS)


def whole_seeds(tasks: dict[tuple[str, str], np.ndarray], tables: set[str]) -> tuple[str, ...]:
    """Seeds for which a method has all tables."""
    seeds = sorted({seed for seed, _ in tasks})
    return tuple(seed for seed in seeds if all((seed, table) in tasks for table in tables))


def ranks(auc: np.ndarray) -> np.ndarray:
    """Rank of each method (first axis) on each table, 1 for the highest, ties shared."""
    higher = (auc[None] > auc[:, None]).sum(axis=1)
    equal = (auc[None] == auc[:, None]).sum(axis=1)
    return higher + (equal + 1) / 2


class Comparison:
    """Methods that were run on the same tables of a board with the same seeds.

    Attributes
    ----------
    tables : list of str
        The tables.
    names : list of str
        The methods, the best mean AUC first.
    values : dict of str to ndarray of shape (n_tables, 3)
        AUC and average precision in percent, and seconds: means over the seeds.
    """

    def __init__(self, found: Found, tables: list[str], seeds: tuple[str, ...]) -> None:
        unit = np.array([100.0, 100.0, 1.0])
        self.tables, self.seeds = tables, seeds
        self.values = {
            name: unit * np.array([np.mean([tasks[s, t] for s in seeds], axis=0) for t in tables])
            for name, tasks in found.items()
        }
        self.names = sorted(self.values, key=lambda name: -self.values[name][:, 0].mean())

    def seeds_in_words(self) -> str:
        """``seed 1`` or ``seeds 1 2 3``."""
        return f"seed{'s' * (len(self.seeds) > 1)} {' '.join(self.seeds)}"

    def auc(self) -> np.ndarray:
        """AUC of each method, in the order of `names`, on each table."""
        return np.array([self.values[name][:, 0] for name in self.names])


def comparisons(lines: Lines, board: str, setting: str, among: Collection[str]) -> list[Comparison]:
    """Return one comparison for each set of seeds that a method was run with, the most methods first.

    A method with more seeds is in the comparisons of fewer seeds as well, so that one of them has all methods.
    """
    found = by_task(lines, board, setting)
    tables = {table for tasks in found.values() for _, table in tasks}
    seeds = {name: whole_seeds(tasks, tables) for name, tasks in found.items() if name in among}
    out = []
    for of in sorted({s for s in seeds.values() if s}, key=len):
        chosen = {name: found[name] for name, s in seeds.items() if set(of) <= set(s)}
        if len(chosen) > 1:
            out.append(Comparison(chosen, sorted(tables), of))
    return out


HEADER = (
    f"{'':<32}{'AUC':>5}{'PR':>6}{'rank':>7}{'quartiles of AUC':>19}{'seconds':>9}"
    f"{'lead':>8}{'se':>5}{'halves':>13}{'in PR':>7}"
)


def block(compared: Comparison) -> list[str]:
    """Means and quartiles over tables, and the leads of this library's detector."""
    rank = ranks(compared.auc()).mean(axis=1)
    out = [HEADER]
    for name, r in zip(compared.names, rank, strict=True):
        a, p, seconds = compared.values[name].T
        low, middle, high = np.quantile(a, [0.25, 0.5, 0.75])
        line = f"{name:<32}{a.mean():>5.1f}{p.mean():>6.1f}{r:>7.2f}{low:>7.1f}{middle:>6.1f}{high:>6.1f}{seconds.sum():>9.1f}"
        out.append(line + (lead(compared, name) if name != OURS and OURS in compared.values else ""))
    return out


def lead(compared: Comparison, name: str) -> str:
    """Mean lead over a method, its standard error over tables, the leads on both halves of the board, and that in precision."""
    difference = compared.values[OURS] - compared.values[name]
    auc, pr = difference[:, 0], difference[:, 1]
    error = auc.std(ddof=1) / np.sqrt(len(auc))
    return f"{auc.mean():>+8.1f}{error:>5.1f}{auc[::2].mean():>+7.1f}{auc[1::2].mean():>+6.1f}{pr.mean():>+7.1f}"


def section(lines: Lines, board: str, setting: str) -> list[str]:
    """One board in one setting: detectors side by side, and densities by their kernels."""
    out = []
    for what, among in (("detectors", detectors(lines)), ("densities and their kernels", {OURS, *KERNELS})):
        for compared in comparisons(lines, board, setting, among):
            title = f"{board}, {SETTINGS[setting]}: {len(compared.tables)} tables, {compared.seeds_in_words()}; {what}"
            out += ["", title, *block(compared)]
    found = by_task(lines, board, setting)
    tables = {table for tasks in found.values() for _, table in tasks}
    left_out = sorted(name for name, tasks in found.items() if not whole_seeds(tasks, tables))
    if left_out:
        out += wrap(f"not run on all tables: {'; '.join(left_out)}", width=len(HEADER))
    return out


INTRODUCTION = """\
Mean area under the ROC curve (AUC) and mean average precision (PR) over tables, in percent; mean rank by AUC;
seconds of processor time to fit and score all tables once. The methods of PyOD have their defaults.
Lead: AUC of isopleth less that of the method, with its standard error over tables (se), on every other table and
on the others (halves), and in average precision."""


def page(lines: Lines) -> str:
    """The page."""
    out = [INTRODUCTION]
    for board in sorted({line["board"] for line in lines}):
        for setting in SETTINGS:
            out += section(lines, board, setting)
    return "\n".join(out)
