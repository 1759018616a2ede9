"""The page of results of the boards, made from the lines of their file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from experiments.adbench_boards import SETTINGS
from experiments.adbench_methods import OURS

LEAD_OVER = "IForest"

Lines = list[dict[str, str]]


def by_table(lines: Lines, board: str, setting: str) -> dict[str, dict[str, np.ndarray]]:
    """AUC, average precision and seconds of each method and table, the mean over the seeds."""
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if (line["board"], line["setting"]) == (board, setting):
            found[line["method"]][line["table"]].append([float(line[name]) for name in ("auc", "pr", "seconds")])
    return {name: {table: np.mean(v, axis=0) for table, v in of.items()} for name, of in found.items()}


def ranks(auc: np.ndarray) -> np.ndarray:
    """Rank of each method (first axis) on each table, 1 for the highest, ties shared."""
    higher = (auc[None] > auc[:, None]).sum(axis=1)
    equal = (auc[None] == auc[:, None]).sum(axis=1)
    return higher + (equal + 1) / 2


def section(lines: Lines, board: str, setting: str) -> list[str]:
    """Means, quartiles over tables and leads of one board in one setting, the best mean AUC first."""
    found = by_table(lines, board, setting)
    most = max((len(of) for of in found.values()), default=0)
    whole = {name: of for name, of in found.items() if len(of) == most}
    if not most or OURS not in whole:
        return []
    names = sorted(whole, key=lambda name: -np.mean([v[0] for v in whole[name].values()]))
    order = sorted(whole[OURS])
    auc = 100 * np.array([[whole[name][table][0] for table in order] for name in names])
    pr = 100 * np.array([[whole[name][table][1] for table in order] for name in names])
    seconds = np.array([sum(whole[name][table][2] for table in order) for name in names])
    rank = ranks(auc).mean(axis=1)
    seeds = sorted({line["seed"] for line in lines if (line["board"], line["setting"]) == (board, setting)})
    out = ["", f"{board}, {SETTINGS[setting]}: {most} tables, seeds {' '.join(seeds)}"]
    out.append(f"{'':<30}{'AUC':>6}{'PR':>7}{'rank':>7}{'quartiles of AUC':>20}{'seconds':>9}")
    for name, a, p, r, s in zip(names, auc, pr, rank, seconds, strict=True):
        low, middle, high = np.quantile(a, [0.25, 0.5, 0.75])
        out.append(f"{name:<30}{a.mean():>6.1f}{p.mean():>7.1f}{r:>7.2f}{low:>8.1f}{middle:>6.1f}{high:>6.1f}{s:>9.1f}")
    for name in names:
        if name != OURS:
            out.append(
                lead(
                    auc[names.index(OURS)] - auc[names.index(name)], pr[names.index(OURS)] - pr[names.index(name)], name
                )
            )
    left_out = sorted(set(found) - set(whole))
    if left_out:
        out.append(f"not run on all tables: {', '.join(left_out)}")
    return out


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
