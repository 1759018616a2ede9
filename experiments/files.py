"""Fits and scores of files in chunks: time and peak memory of the processes, at several numbers of rows.

    python -m experiments.files [--rows 200000 2000000] [--columns 10] [--size 100] [--quick] [--out FILE]

For each number of rows a table of normal numbers is written as .npy, .parquet and .csv; `isopleth fit` makes a density on
`--size` landmarks of each, and `isopleth score` answers for each of its rows, into a .csv file. Printed are the size of the
file, seconds of the wall clock and of the processor, and the largest resident memory of the process (VmHWM, which Linux tells),
libraries included: what a table of few rows takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

WRITER = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.random.default_rng(0).normal(size=(n, d))
names = [f"c{j}" for j in range(d)]
if path.endswith(".npy"):
    np.save(path, X)
elif path.endswith(".csv"):
    np.savetxt(path, X, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
else:
    pq.write_table(pa.table({name: X[:, j] for j, name in enumerate(names)}), path)
"""

RUNNER = """
import atexit, resource, sys
from isopleth.cli import main
report = sys.argv.pop(1)
def tell():
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    used = resource.getrusage(resource.RUSAGE_SELF)
    open(report, "w").write(f"{peak} {used.ru_utime + used.ru_stime}")
atexit.register(tell)
main()
"""

HEADS = ("command", "file", "rows", "MB", "wall s", "cpu s", "peak MiB")


def measured(folder: Path, *arguments: str) -> list[str]:
    """Return wall-clock seconds, processor seconds and peak memory of one run."""
    report, start = folder / "report", time.perf_counter()
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUNNER, str(report), *arguments], check=True, capture_output=True
    )
    wall = time.perf_counter() - start
    peak, processor = report.read_text().split()
    return [f"{wall:.0f}", f"{float(processor):.0f}", f"{int(peak) / 1024:.0f}"]


def study(folder: Path, suffix: str, rows: int, columns: int, size: int) -> list[list[str]]:
    """Return the lines for one file."""
    path, model = folder / f"table{suffix}", folder / "model"
    subprocess.run([sys.executable, "-c", WRITER, str(path), str(rows), str(columns)], check=True)
    case = [suffix, f"{rows:,}", f"{path.stat().st_size / 1e6:.0f}"]
    lines = [["fit", *case, *measured(folder, "fit", str(path), "--out", str(model), "--size", str(size))]]
    lines.append(["score", *case, *measured(folder, "score", str(model), str(path), "--out", str(folder / "r.csv"))])
    path.unlink()
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 2_000_000], help="numbers of rows")
    parser.add_argument("--columns", type=int, default=10, help="number of columns")
    parser.add_argument("--size", type=int, default=100, help="landmarks")
    parser.add_argument("--quick", action="store_true", help="500 rows of an array: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    asked = parser.parse_args(arguments)
    cases = [(s, n) for s in (".npy", ".parquet", ".csv") for n in asked.rows]
    lines = [_line(HEADS)]
    print(lines[0])
    with tempfile.TemporaryDirectory() as folder:
        for suffix, rows in [(".npy", 500)] if asked.quick else cases:
            for found in study(Path(folder), suffix, rows, asked.columns, asked.size):
                lines.append(_line(found))
                print(lines[-1], flush=True)
    if asked.out:
        asked.out.write_text("\n".join(lines) + "\n")


def _line(cells: Sequence[str]) -> str:
    return "".join(cell.rjust(11) for cell in cells)


if __name__ == "__main__":
    main()
