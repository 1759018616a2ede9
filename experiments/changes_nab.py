"""Changes that ``isopleth changes`` reports in series of the Numenta Anomaly Benchmark, beside the windows of its owners.

    python -m experiments.changes_nab --data DIR [--every 2] [--only NAME ...]

The command runs as a user would run it, ``isopleth changes FILE --json``, with every option at its default. It refuses a time
that occurs twice, so rows whose time is not later than all before are left out. A change is inside
if its first step lies in a window, an incident if any of its steps does, and outside otherwise; a window is missed if it has
no change. "share" is the share of the steps that lie in windows, about what a change at a random step would have inside.

``art_daily_nojump`` is made from ``art_daily_jumpsup``: the day with a higher rise gets none, the values of 12 hours before.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
from click.testing import CliRunner

from isopleth.cli.commands import program

RISE = ("2014-04-11 08:30", "2014-04-11 20:00")


class Counted(NamedTuple):
    """Changes and windows of a series."""

    steps: int
    share: float
    told: int
    inside: int
    windows: int
    missed: int


def reported(file: Path) -> list[dict]:
    """Return the changes of the command's JSON."""
    result = CliRunner().invoke(program, ["changes", str(file), "--json"], prog_name="isopleth")
    if result.exit_code:
        raise RuntimeError(f"isopleth changes {file.name} failed: {result.stderr}")
    return json.loads(result.stdout)["table"]


def counted(rows: pd.DataFrame, windows: list[list[str]]) -> Counted:
    """Return how many changes of a series are reported, and how many of them lie in windows."""
    rows = rows[~rows["timestamp"].cummax().duplicated()]
    times = rows["timestamp"].to_numpy()
    within = [(times >= np.datetime64(low)) & (times <= np.datetime64(high)) for low, high in windows]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        rows.to_csv(file, index=False)
        changes = reported(file)
    # Lines are counted from 1, and the first holds the names.
    stretches = [slice(each["line"] - 2, (each.get("until") or each["line"]) - 1) for each in changes]
    hits = np.array([[window[stretch].any() for window in within] for stretch in stretches], dtype=bool)
    hits = hits.reshape(len(changes), len(within))
    share = float(np.any(within, axis=0).mean()) if within else 0.0
    return Counted(
        len(rows), share, len(changes), int(hits.any(axis=1).sum()), len(within), int((~hits.any(axis=0)).sum())
    )


def without_rise(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a series of daily rises with one that is absent."""
    day = rows["timestamp"].between(*RISE).to_numpy()
    values = rows["value"].to_numpy().copy()
    values[day] = rows["value"].to_numpy()[np.flatnonzero(day) - 144]  # steps of five minutes
    return rows.assign(value=values)


def series(folder: Path) -> tuple[dict[str, pd.DataFrame], dict[str, list[list[str]]]]:
    """Return the series by name, and their windows."""
    windows = json.loads((folder / "windows.json").read_text(encoding="utf-8"))
    paths = folder.glob("*.csv.gz")
    found = {path.name.removesuffix(".csv.gz"): pd.read_csv(path, parse_dates=["timestamp"]) for path in paths}
    if "art_daily_jumpsup" in found:
        found["art_daily_nojump"] = without_rise(found["art_daily_jumpsup"])
        windows["art_daily_nojump"] = windows["art_daily_jumpsup"]
    return dict(sorted(found.items())), windows


def line(name: str, each: Counted) -> str:
    """Return a line of the table."""
    return (
        f"{name:36} {each.steps:6} {each.share:5.2f} {each.told:5} {each.inside:6} {each.told - each.inside:7} "
        f"{each.windows:7} {each.missed:6}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each series, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cpd/nab in it")
    parser.add_argument("--only", nargs="+", help="names of series")
    parser.add_argument("--every", type=int, default=1, help="take every second, third, ... series by name")
    given = parser.parse_args(arguments)
    many, windows = series(given.data / "cpd" / "nab")
    print(f"{'series':36} {'steps':>6} share  told inside outside windows missed", flush=True)
    found = []
    for name in list(many)[:: given.every]:
        if given.only is None or name in given.only:
            found.append(counted(many[name], windows[name]))
            print(line(name, found[-1]), flush=True)
    steps, share, *sums = np.array(found).T
    print(
        line("all", Counted(int(steps.sum()), float(steps @ share / steps.sum()), *(int(sum(each)) for each in sums)))
    )


if __name__ == "__main__":
    main()
