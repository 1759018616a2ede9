"""What users wait for: commands and fits to large tables beside their peers, in processor seconds and peak memory.

    python -m benchmarks.product [--only NAME ...] [--turns 2] [--quick] [--out FILE]

Each program is a process of its own with one BLAS thread; the programs of a row take turns, and the smallest figure of each
counts. Seconds are those of all threads of the process, imports and reading included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.machine import description

FOREST = """
import pandas as pd, numpy as np
from sklearn.ensemble import IsolationForest
table = pd.read_{kind}({file!r})
X = pd.get_dummies(table).to_numpy(dtype=float)
np.argsort(IsolationForest(random_state=0).fit(X).score_samples(X))[:10]
"""
OF_ARRAY = "import numpy as np\nX = np.random.default_rng(0).normal(size=({n}, {d}))\n"
ARRAY_FOREST = (
    OF_ARRAY + "from sklearn.ensemble import IsolationForest\nIsolationForest(random_state=0).fit(X).score_samples(X)"
)
DETECTOR = OF_ARRAY + "from isopleth import AnomalyDetector\nAnomalyDetector(random_state=0{more}).fit(X)"
SHELL = "import sys\nfrom isopleth_command import main\nsys.argv = {arguments!r}\nmain()"
DENSITY = OF_ARRAY + "from isopleth import {name}\n{name}().fit(X)"
MIXTURES = OF_ARRAY + (
    "from sklearn.mixture import GaussianMixture\n"
    "min((GaussianMixture(k, random_state=0).fit(X) for k in range(1, 9)), key=lambda model: model.bic(X))"
)


@dataclass(frozen=True)
class Row:
    """One line of the table: a name, our program, and the one beside it."""

    name: str
    ours: str
    beside: str = ""
    peer: str = ""


def write_tables(folder: Path, n: int, large: int) -> None:
    """Write a CSV file of 8 numbers and 2 words, and a Parquet file of 9 numbers, with a few anomalies."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8)).round(3)
    X[: n // 200] *= 5.0
    words = {
        name: rng.choice([f"{name}{k}" for k in range(6)], n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01]) for name in "uv"
    }
    pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]).assign(**words).to_csv(folder / "big.csv", index=False)
    Y = rng.normal(size=(large, 9))
    Y[: large // 200] *= 5.0
    pd.DataFrame(Y, columns=[f"x{j}" for j in range(9)]).to_parquet(folder / "big.parquet", row_group_size=2**17)


def rows(folder: Path, quick: bool) -> list[Row]:
    """Return the lines of the table for files in a folder."""
    k = 50 if quick else 1
    csv, parquet, out = (str(folder / name) for name in ("big.csv", "big.parquet", "out.parquet"))

    def shell(*arguments: str) -> str:
        return SHELL.format(arguments=["isopleth", *arguments])

    def of(text: str, n: int, d: int, **more: str) -> str:
        return text.format(n=n // k, d=d, **more)

    by_csv, by_parquet = FOREST.format(kind="csv", file=csv), FOREST.format(kind="parquet", file=parquet)
    return [
        Row("anomalies, CSV", shell("anomalies", csv), by_csv, "IForest"),
        Row("anomalies --explain --out, CSV", shell("anomalies", csv, "--explain", "--out", out), by_csv, "IForest"),
        Row(
            "anomalies --explain --out, Parquet",
            shell("anomalies", parquet, "--explain", "--out", out),
            by_parquet,
            "IForest",
        ),
        Row("detector 200,000 x 10", of(DETECTOR, 200_000, 10, more=""), of(ARRAY_FOREST, 200_000, 10), "IForest"),
        Row("detector 10,000 x 500", of(DETECTOR, 10_000, 500, more=""), of(ARRAY_FOREST, 10_000, 500), "IForest"),
        Row("novelty 2,000 x 20", of(DETECTOR, 2000, 20, more=", novelty=True")),
        Row("SOSREP 1,000 x 8", of(DENSITY, 1000, 8, name="SOSREP"), of(MIXTURES, 1000, 8), "8 mixtures by BIC"),
        Row("KDE 30 x 300", DENSITY.format(n=30, d=300, name="KDE")),
    ]


def cost(program: str) -> tuple[float, int]:
    """Run a program; return its processor seconds and its peak memory in MiB."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    silent = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ | one, stdout=silent, stderr=silent)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a program failed with {process.returncode}:\n{program}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return used.ru_utime + used.ru_stime, used.ru_maxrss // unit


def line(row: Row, turns: int) -> str:
    """Measure a row and return its line: seconds and memory of ours, of the peer, and the ratio of the seconds."""
    programs = {"ours": row.ours} | ({"beside": row.beside} if row.beside else {})
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            found[name].append(cost(program))
    seconds = {name: min(each)[0] for name, each in found.items()}
    memory = {name: min(peak for _, peak in each) for name, each in found.items()}
    text = f"{row.name:36}{seconds['ours']:8.2f}{memory['ours']:7}"
    if row.beside:
        text += f"{seconds['beside']:9.2f}{memory['beside']:7}{seconds['ours'] / seconds['beside']:7.1f}  {row.peer}"
    return text


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="words of the names of rows")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows: a check that it runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [*description(), time.strftime("%Y-%m-%d"), ""]
    lines.append(f"{'':36}{'CPU s':>8}{'MiB':>7}{'beside':>9}{'MiB':>7}{'ratio':>7}")
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as name:
        folder, k = Path(name), 50 if options.quick else 1
        # In a process of its own: on Linux the peak memory of a program counts from that of the process which starts it.
        made = f"from benchmarks.product import *; write_tables(Path({name!r}), {200_000 // k}, {2_000_000 // k})"
        subprocess.run([sys.executable, "-c", made], check=True, cwd=Path(__file__).parents[1])
        for row in rows(folder, options.quick):
            if not options.only or any(words in row.name for words in options.only):
                lines.append(line(row, options.turns))
                print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
