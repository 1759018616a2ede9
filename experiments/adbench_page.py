"""The page of results of the boards, made from the lines of their file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from experiments.adbench_boards import SETTINGS
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


def whole_seeds(tasks: dict[tuple[str, str], np.ndarray], tables: set[str]) -> tuple[str, ...]:
    """Seeds for which a method has all tables."""
    seeds = sorted({seed for seed, _ in tasks})
    return tuple(seed for seed in seeds if all((seed, table) in tasks for table in tables))


def ranks(auc: np.ndarray) -> np.ndarray:
    """Rank of each method (first axis) on each table, 1 for the highest, ties shared."""
    higher = (auc[None] > auc[:, None]).sum(axis=1)
    equal = (auc[None] == auc[:, None]).sum(axis=1)
    return higher + (equal + 1) / 2


def section(lines: Lines, board: str, setting: str) -> list[str]:
    """One board in one setting: methods that were run with the same seeds stand together, this library's with them."""
    found = by_task(lines, board, setting)
    tables = {table for tasks in found.values() for _, table in tasks}
    seeds = {name: whole_seeds(tasks, tables) for name, tasks in found.items()}
    out = []
    others = sorted({s for name, s in seeds.items() if s and name != OURS}, key=len, reverse=True)
    for of in others:
        if set(of) <= set(seeds.get(OURS, ())):
            names = [OURS, *(name for name, s in seeds.items() if s == of and name != OURS)]
            title = f"{board}, {SETTINGS[setting]}: {len(tables)} tables, seeds {' '.join(of)}"
            out += ["", title, *block({name: found[name] for name in names}, sorted(tables), of)]
    left_out = sorted(name for name, s in seeds.items() if not s)
    if left_out:
        out.append(f"not run on all tables: {', '.join(left_out)}")
    return out


def block(found: Found, tables: list[str], seeds: tuple[str, ...]) -> list[str]:
    """Means and quartiles over tables, the best mean AUC first, and this library's leads."""
    means = {n: np.array([np.mean([tasks[s, t] for s in seeds], axis=0) for t in tables]) for n, tasks in found.items()}
    names = sorted(means, key=lambda name: -means[name][:, 0].mean())
    auc, pr = (np.array([100 * means[name][:, k] for name in names]) for k in (0, 1))
    rank = ranks(auc).mean(axis=1)
    out = [f"{'':<30}{'AUC':>6}{'PR':>7}{'rank':>7}{'quartiles of AUC':>20}{'seconds':>9}"]
    for name, a, p, r in zip(names, auc, pr, rank, strict=True):
        low, middle, high = np.quantile(a, [0.25, 0.5, 0.75])
        seconds = means[name][:, 2].sum()
        out.append(
            f"{name:<30}{a.mean():>6.1f}{p.mean():>7.1f}{r:>7.2f}{low:>8.1f}{middle:>6.1f}{high:>6.1f}{seconds:>9.1f}"
        )
    ours = names.index(OURS)
    return out + [lead(auc[ours] - auc[k], pr[ours] - pr[k], name) for k, name in enumerate(names) if k != ours]


def lead(auc: np.ndarray, pr: np.ndarray, name: str) -> str:
    """Mean lead of this library over a method, with its standard error over tables, and that on each half of the board."""
    error = auc.std(ddof=1) / np.sqrt(len(auc))
    return (
        f"  lead over {name:<28} AUC {auc.mean():+.1f} (se {error:.1f}; every other table {auc[::2].mean():+.1f}, "
        f"the others {auc[1::2].mean():+.1f}), PR {pr.mean():+.1f}"
    )


def page(lines: Lines) -> str:
    """The page."""
    boards = sorted({line["board"] for line in lines})
    out = [
        "Mean area under the ROC curve (AUC) and mean average precision (PR) over tables, in percent; mean rank by AUC;",
        "seconds of processor time to fit and score all tables once. The methods of PyOD have their defaults.",
    ]
    for board in boards:
        for setting in SETTINGS:
            out += section(lines, board, setting)
    return "\n".join(out)
