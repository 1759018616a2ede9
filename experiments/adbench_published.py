"""AUC that papers report for ADBench's tables, beside what the boards' file has for the same methods.

The figures by table are those that the authors of DTE published: two CSV files with one line a table and one column a method, for
fits to all rows and for fits to half of the ordinary rows.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from experiments.adbench_methods import OURS
from experiments.adbench_page import Lines, by_task, whole_seeds

FILES = {"as they are": "DTE_unsup_aucroc_mean.csv", "clean reference": "DTE_semi_aucroc_mean.csv"}
# Collections of images and texts in these files, which are not among ADBench's 47 tables.
NOT_TABLES = ["amazon", "imdb", "yelp", "mnist-c", "fashionmnist", "cifar10", "svhn", "mvtec-ad", "20news", "agnews"]
PAPER_OF_SOSREP = 71.6  # mean AUC over 47 tables with every anomaly five times
PAPER_OF_SOSREP_LEAD = 4.0  # over the next best method there


def read(path: Path) -> dict[str, dict[str, float]]:
    """AUC in percent, by table (in small letters) and method."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {line.pop("Dataset").lower(): {name: float(value) for name, value in line.items()} for line in lines}


def seeds_of(lines: Lines, setting: str) -> dict[str, str]:
    """Seeds of each method that has all tables of ADBench's board, as the words that follow its name."""
    found = by_task(lines, "adbench", setting)
    tables = {table for tasks in found.values() for _, table in tasks}
    whole = {name: whole_seeds(tasks, tables) for name, tasks in found.items()}
    return {name: f"seed{'s' * (len(seeds) > 1)} {' '.join(seeds)}" for name, seeds in whole.items() if seeds}


def means(lines: Lines, setting: str) -> tuple[set[str], dict[str, float]]:
    """Tables of ADBench's board in small letters, and the mean AUC of each method that has them all, over its seeds."""
    found = by_task(lines, "adbench", setting)
    tables = {table for tasks in found.values() for _, table in tasks}
    out = {}
    for name, tasks in found.items():
        seeds = whole_seeds(tasks, tables)
        if seeds:
            out[name] = 100 * float(np.mean([tasks[seed, table][0] for seed in seeds for table in tables]))
    return {table.partition("_")[2].lower() for table in tables}, out


def published_means(published: dict[str, dict[str, float]], board: set[str]) -> dict[str, tuple[float, float]]:
    """Published means of each method over ADBench's tables, and over those of the board."""
    everywhere = [name for name in published if name not in NOT_TABLES]
    here = [name for name in everywhere if name in board]
    methods = next(iter(published.values()))
    return {m: (mean(published, m, everywhere), mean(published, m, here)) for m in methods}


def mean(published: dict[str, dict[str, float]], method: str, names: list[str]) -> float:
    """Mean of a method over tables."""
    return float(np.mean([published[name][method] for name in names]))


def cells(values: tuple[float, float] | None, here: float | None) -> str:
    """Three cells of a row; a dash where there is no figure."""
    return "".join(f"{'-' if v is None else format(v, '.1f'):>10}" for v in (*(values or (None, None)), here))


def by_method(lines: Lines, folder: Path) -> list[str]:
    """Methods with a published and a measured mean, and the best published mean of the others, in both settings."""
    settings = {setting: means(lines, setting) for setting in FILES}
    published = {name: published_means(read(folder / file), settings[name][0]) for name, file in FILES.items()}
    names = {name for setting, (_, ours) in settings.items() for name in ours if name in published[setting]}
    by_mean = sorted(names, key=lambda name: -published["as they are"][name][1])
    counts = [sum(name not in NOT_TABLES for name in read(folder / file)) for file in FILES.values()]
    tables = [len(board) for board, _ in settings.values()]
    heads = "".join(
        f"{f'paper, {count}':>10}{f'paper, {n}':>10}{'here':>10}" for count, n in zip(counts, tables, strict=True)
    )
    out = [f"{'':<34}{'fitted to all rows':>30}{'to half of the ordinary':>30}", f"{'':<34}{heads}"]
    for name in [*by_mean, OURS]:
        out.append(f"{name:<34}" + "".join(cells(published[s].get(name), settings[s][1].get(name)) for s in FILES))
    for setting, title in (("as they are", "all rows"), ("clean reference", "ordinary rows")):
        others = {name: values for name, values in published[setting].items() if name not in names}
        best = max(others, key=lambda name: others[name][1])
        blank = " " * 30 if setting == "clean reference" else ""
        out.append(f"{f'best of {len(others)} others, {title}: {best}':<34}{blank}{cells(others[best], None)}")
    return out


def with_copies(lines: Lines) -> list[str]:
    """The claim on copies beside what was measured."""
    _, copies = means(lines, "copies")
    kernels = sorted((name for name in copies if name.startswith("SOSREP")), key=lambda name: -copies[name])
    seeds = seeds_of(lines, "copies")
    named = {f"{name}; here, {seeds[name]}": copies[name] for name in [OURS, "IForest", *kernels] if name in copies}
    return [
        "Every anomaly five times, exact copies",
        f"{'SOSREP with the SDO kernel in its paper, 47 tables':<54}{PAPER_OF_SOSREP:>6.1f}",
        f"{'  its lead over the next best method there':<54}{PAPER_OF_SOSREP_LEAD:>+6.1f}",
        *(f"{name:<54}{value:>6.1f}" for name, value in named.items()),
    ]


def beside(lines: Lines, folder: Path) -> str:
    """Return the tables of published and measured means."""
    title = (
        "Mean AUC over ADBench's tables: in the paper over all of them and over those of the board, and measured here."
    )
    return "\n".join([title, *by_method(lines, folder), "", *with_copies(lines)])
