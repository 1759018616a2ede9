"""One picture for each question of the README, from made tables of which the answers are known.

    python -m experiments.questions [--out FOLDER] [--files FOLDER]

Draws cells.png, anomalies.png, expect.png, compare.png, changes.png, monitor.png and prior.png into the folder, and prints what
was planted and what was found. `--files` also writes the tables, so that the commands of the README can be tried on them.

The tables: 1,400 orders of a shop (article, category, units, price, sum, days until delivery, region), in which twelve cells
are wrong: a price of another article, a sum that is not price times units, a category of another article; the next month's
orders, in which deliveries to one region take two days longer; five weeks of an error rate by the hour, with days, weekends, one
incident of two hours and a step; and customers of two kinds, whose shares differ between two towns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context

from isopleth import (
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    ConditionalDensity,
    DriftMonitor,
    two_sample_test,
)
from isopleth.results.figures import new_figure, save_figure

ARTICLES = {
    "table": ("furniture", 400.0),
    "chair": ("furniture", 90.0),
    "lamp": ("light", 35.0),
    "bulb": ("light", 4.0),
}
REGIONS = ("north", "south", "east")
SEED = 7


def orders(rows: int, seed: int, slower: float = 0.0) -> pd.DataFrame:
    """Return the orders of a month; deliveries to the east take `slower` days longer."""
    rng = np.random.default_rng(seed)
    article = rng.choice(list(ARTICLES), size=rows, p=[0.05, 0.25, 0.4, 0.3])
    units = rng.integers(1, 9, size=rows)
    price = np.round([ARTICLES[name][1] for name in article] * np.exp(0.04 * rng.normal(size=rows)), 2)
    region = rng.choice(REGIONS, size=rows)
    days = np.round(rng.gamma(4.0, 0.6, size=rows) + slower * (region == "east"), 1)
    kinds = [ARTICLES[name][0] for name in article]
    columns = {"article": article, "category": kinds, "units": units, "price": price, "sum": np.round(price * units, 2)}
    return pd.DataFrame(columns | {"days": days, "region": region})


def with_errors(table: pd.DataFrame, each: int = 4) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    """Return the table with wrong cells of three kinds, `each` of them, and where they are."""
    table, rng = table.copy(), np.random.default_rng(SEED)
    lamps, all_rows = np.flatnonzero(table["article"] == "lamp"), np.arange(len(table))
    places = []
    for i in rng.choice(lamps, size=each, replace=False):
        table.loc[i, "price"] = np.round(90.0 * np.exp(0.04 * rng.normal()), 2)  # the price of a chair
        table.loc[i, "sum"] = np.round(table.loc[i, "price"] * table.loc[i, "units"], 2)
        places.append((int(i), "price"))
    others = np.setdiff1d(all_rows, [i for i, _ in places])
    for k, i in enumerate(rng.choice(others, size=2 * each, replace=False)):
        if k < each:
            table.loc[i, "sum"] = np.round(1.1 * table.loc[i, "sum"], 2)
        else:
            table.loc[i, "category"] = "light" if table.loc[i, "category"] == "furniture" else "furniture"
        places.append((int(i), "sum" if k < each else "category"))
    return table, places


def hours() -> pd.DataFrame:
    """Return five weeks of an error rate: an incident in the third week, a step from the fifth week on."""
    rng, weeks = np.random.default_rng(SEED), 5
    hour = np.arange(weeks * 7 * 24)
    day, weekend = np.sin(2.0 * np.pi * (hour % 24 - 6) / 24.0), hour // 24 % 7 >= 5
    rate = (2.0 + day) * np.where(weekend, 0.5, 1.0) * np.exp(0.08 * rng.normal(size=len(hour)))
    rate[400:402] += 9.0
    rate[680:] *= 1.5
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(hour, unit="h")
    return pd.DataFrame({"time": times, "errors": np.round(rate, 3)})


def customers(rows: int, share: float, seed: int) -> pd.DataFrame:
    """Return customers of which a share returns, with what is known of them."""
    rng = np.random.default_rng(seed)
    returned = rng.random(rows) < share
    visits = rng.poisson(np.where(returned, 6.0, 3.0))
    spent = np.round(np.exp(3.0 + 0.8 * returned + 0.6 * rng.normal(size=rows)), 2)
    return pd.DataFrame({"visits": visits, "spent": spent, "returned": np.where(returned, "yes", "no")})


def write_tables(folder: Path) -> None:
    """Write the tables on which the README and the pages try the commands."""
    tables = {"orders": with_errors(orders(1400, SEED))[0], "later": orders(900, SEED + 1, 2.0), "errors": hours()}
    tables |= {"usual": hours()[:336], "stream": hours()[336:]}
    tables |= {"known": customers(400, 0.5, 1), "new": customers(600, 0.2, 2).drop(columns="returned")}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)


def answers() -> dict[str, tuple[Any, str]]:
    """Return for each question a result that can be drawn, and a sentence on what was planted and found."""
    table, places = with_errors(orders(1400, SEED))
    later, rate = orders(900, SEED + 1, slower=2.0), hours()
    cells = CellwiseDetector(random_state=0).fit(table).cells()
    flagged = {(int(i), cells.names[j]) for i, j in zip(*np.nonzero(cells.flagged), strict=True)}
    rows = AnomalyDetector(random_state=0).fit(table).anomalies(table, explain=10)
    law = ConditionalDensity(random_state=0).fit(table.drop(columns=["sum", "price"]), table["price"])
    asked = pd.DataFrame({"article": list(ARTICLES), "category": [c for c, _ in ARTICLES.values()], "units": 2})
    asked = asked.assign(days=2.4, region="north")
    expected = np.column_stack(law.predict_interval(asked, 0.9))
    test = two_sample_test(table, later, random_state=0)
    changes = ChangePointDetector(random_state=0).fit(rate).result_
    pages = DriftMonitor(context=["time"], random_state=0).fit(rate[:336]).update(rate[336:])
    known, new = customers(400, 0.5, 1), customers(600, 0.2, 2)
    X = ["visits", "spent"]
    shares = ClassPriorEstimator(random_state=0).fit(known[X], known["returned"]).estimate(new[X])
    right = len(flagged & set(places))
    return {
        "cells": (cells, f"{right} of {len(places)} wrong cells are flagged, and {len(flagged) - right} others"),
        "anomalies": (rows, f"{int(rows.flagged.sum())} of {len(table)} rows are flagged"),
        "expect": (
            (asked["article"], law.predict(asked), expected),
            "price of two units of each article: "
            + ", ".join(
                f"{a} {low:.0f} to {high:.0f}" for a, (low, high) in zip(asked["article"], expected, strict=True)
            ),
        ),
        "compare": (test, f"p = {test.pvalue:.3g}, first column {test.table()['column'].iloc[0]}"),
        "changes": (changes, f"planted: incident at 400, step at 680; {changes!r}"),
        "monitor": (pages, f"planted: incident at 400, step at 680; {pages.text()}"),
        "prior": (shares, f"share of those who return: {np.mean(new['returned'] == 'yes'):.3f}; {shares}"),
    }


def draw(result: Any) -> Any:
    """Draw one result on a small figure."""
    with rc_context({"font.size": 7.0, "axes.titlesize": 7.5}):
        figure = new_figure(4.4, 2.6)
        axes = figure.subplots()
        if isinstance(result, tuple):
            names, middle, ends = result
            at = np.arange(len(names))
            axes.errorbar(middle, at, xerr=np.abs(ends.T - middle), fmt="o", capsize=3)
            axes.set_yticks(at, names)
            axes.set(title="Usual prices, given the article", xlabel="price", xscale="log")
        else:
            result.plot(axes)
        return figure


def main() -> None:
    """Draw the pictures and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images/questions"))
    parser.add_argument("--files", type=Path)
    options = parser.parse_args()
    if options.files:
        options.files.mkdir(parents=True, exist_ok=True)
        write_tables(options.files)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, (result, said) in answers().items():
        save_figure(draw(result), options.out / f"{name}.png")
        print(f"{name}: {said}")


if __name__ == "__main__":
    main()
