"""The page of an engineer on call: a week of minutes of one service, from the file to the answer.

    python -m experiments.on_call [--picture on_call.png] [--file service.csv]

The week: requests with the same load on all days, latency that rises with the load and has noise with memory, and a share of
errors. Planted: an incident of 40 minutes on Wednesday at 10:20, in which errors are twelve times and latency 2.2 times the
usual; a deploy on Friday at 15:00, after which latency is 15 % higher; and an error rate that doubles on Saturday at 09:00.
Prints what the commands of the page print.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from click.testing import CliRunner
from scipy.signal import lfilter

from isopleth.cli.commands import program

SEED = 11
INCIDENT = ("2026-03-04 10:20", "2026-03-04 11:00")
DEPLOY, DOUBLED = "2026-03-06 15:00", "2026-03-07 09:00"
COMMANDS = ("--column latency", "--column error_rate", "--column requests")


def week() -> pd.DataFrame:
    """Return a week of minutes of a service."""
    rng = np.random.default_rng(SEED)
    times = pd.date_range("2026-03-02", periods=7 * 1440, freq="min")
    hours = times.hour + times.minute / 60.0
    load = 0.3 + np.exp(-0.5 * ((hours - 14.0) / 4.0) ** 2)
    wander = lfilter([1.0], [1.0, -0.7], 0.05 * rng.normal(size=len(times)))
    requests = rng.poisson(3000.0 * load * np.exp(wander))
    incident = (times >= INCIDENT[0]) & (times < INCIDENT[1])
    latency = (80.0 + 40.0 * load) * np.exp(0.04 * rng.normal(size=len(times)) + 0.3 * wander)
    latency = latency * np.where(incident, 2.2, 1.0) * np.where(times >= DEPLOY, 1.15, 1.0)
    share = 0.004 * np.where(incident, 12.0, 1.0) * np.where(times >= DOUBLED, 2.0, 1.0)
    errors = rng.binomial(requests, share) / np.maximum(requests, 1)
    columns = {"time": times, "latency": latency.round(1), "error_rate": errors.round(5), "requests": requests}
    return pd.DataFrame(columns)


def answers(file: Path, picture: Path) -> str:
    """Return what the commands print; the picture is of the first one."""
    out = []
    for number, options in enumerate(COMMANDS):
        shown = f"isopleth changes service.csv {options}"
        plot = ["--plot", str(picture)] if number == 0 else []
        result = CliRunner().invoke(program, ["changes", str(file), *options.split(), *plot], prog_name="isopleth")
        if result.exit_code:
            raise RuntimeError(f"{shown} failed: {result.stderr}")
        table, _, _ = result.stdout.partition(f"\n\n{'line'}:")
        out.append(f"$ {shown}{' --plot on_call.png' * (number == 0)}\n{table.rstrip()}\n")
    return "\n".join(out)


def main() -> None:
    """Write the week, and print what the commands answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, default=Path("on_call.png"))
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        file = given.file or Path(folder) / "service.csv"
        week().to_csv(file, index=False)
        text = answers(file, given.picture)
    print(text, end="")


if __name__ == "__main__":
    main()
