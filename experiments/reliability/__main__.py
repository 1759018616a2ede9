"""Reliability: kills, malformed and tampered files, signals, full disks; counts of how each run ended.

    python -m experiments.reliability [--part PART] [--count COUNT] [--share SHARE] [--seed SEED] [--quick] [--out FILE]

Parts: kills, malformed, processes, tampered, signals, disk; all of them without `--part`. A run that ends with anything but a
result or one sentence is a defect, and is listed.
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

COUNTS = {"kills": 200, "malformed": 10_000, "processes": 200, "tampered": 3_000, "signals": 120, "disk": 1}
QUICK = {"kills": 4, "malformed": 20, "processes": 2, "tampered": 10, "signals": 2, "disk": 1}
TITLES = {
    "kills": "SIGKILL at random moments of fits, scores and saves",
    "malformed": "malformed files and arguments in one process",
    "processes": "malformed files and arguments as processes of their own, with 4 GB of address space",
    "tampered": "model files changed on purpose, and sealed again",
    "signals": "SIGINT, SIGTERM and closed pipes at random moments",
    "disk": "disks that are full, read-only or limited",
}


def main(arguments: list[str] | None = None) -> None:
    """Run the parts, print their counts, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=list(COUNTS), help="this part alone")
    parser.add_argument("--count", type=int, help="cases of each part")
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases of each part")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other cases")
    parser.add_argument("--quick", action="store_true", help="a few cases: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    lines: list[str] = []
    for part in [options.part] if options.part else list(COUNTS):
        count = options.count or (QUICK[part] if options.quick else max(1, round(options.share * COUNTS[part])))
        print(TITLES[part], flush=True)
        start = time.perf_counter()
        tally = importlib.import_module(f"experiments.reliability.{part}").campaign(count, options.seed)
        found = ["", *tally.lines()]
        print("\n".join([*found, f"  {time.perf_counter() - start:.0f} seconds", ""]), flush=True)
        lines += [*([""] if lines else []), TITLES[part], *found]
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
