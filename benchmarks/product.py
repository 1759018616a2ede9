"""What users wait for: commands and fits to large tables beside their peers, in processor seconds and peak memory.

    python -m benchmarks.product [--only NAME ...] [--turns 2] [--quick] [--peers PYTHON] [--out FILE]

Each program is a process of its own with one BLAS thread; the programs of a row take turns, and the smallest figure of each
counts. Seconds are those of all threads of the process, imports and reading included; lines that say "ms" are of the explanation
alone, by the processor: of the first row, for which the laws of the columns are fitted, and of a further row, 200 of which are
explained at once. PELT (ruptures) and SHAP run where they are installed, or with `--peers` by a Python that
has them.
"""

from __future__ import annotations

import argparse
import os
import re
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
NEIGHBOURS = OF_ARRAY + (
    "from sklearn.neighbors import NearestNeighbors\n"
    "NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X)[0][:, 1:].mean(axis=1)"
)
# The first rows are explained; a program that ends with a number on its own line has measured that, and not its whole cost.
OF_FILE = "import time\nimport numpy as np\nimport pandas as pd\nX = pd.read_csv({file!r}, nrows={n}){columns}\n"
EXPLAIN = (
    OF_FILE
    + """
from isopleth import AnomalyDetector
detector = AnomalyDetector(random_state=0, n_jobs=1).fit(X)
if {rows} > 1:
    detector.explain(X[-1:])
begin = time.process_time()
detector.explain(X[:{rows}])
print(1000.0 * (time.process_time() - begin) / {rows})
"""
)
SHAP = (
    OF_FILE
    + """
import shap
from sklearn.ensemble import IsolationForest
X = pd.get_dummies(X).astype(float)
forest = IsolationForest(random_state=0).fit(X)
begin = time.process_time()
shap.TreeExplainer(forest).shap_values(X[:{rows}])
print(1000.0 * (time.process_time() - begin) / {rows})
"""
)
PELT = """
import numpy as np
import pandas as pd
import ruptures
X = pd.read_csv({file!r}).drop(columns="time").to_numpy()
for column in X.T:
    noise = np.median(np.abs(np.diff(column))) / 0.954
    ruptures.Pelt(model="l2").fit(column).predict(pen=3.0 * noise**2 * np.log(len(column)))
"""
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


def write_series(folder: Path, n: int) -> None:
    """Write minutes of four columns with a daily season, noise of an autoregression, and five steps of two deviations."""
    import pandas as pd
    from scipy.signal import lfilter

    rng = np.random.default_rng(0)
    Z = lfilter([1.0], [1.0, -0.3], rng.normal(size=(n, 4)), axis=0)
    Z += np.sin(2.0 * np.pi * np.arange(n) / 1440.0)[:, None]
    for k in range(1, 6):
        Z[k * n // 6 :, k % 4] += 2.0 * (-1) ** k
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n), "min")
    pd.DataFrame(Z.round(3), columns=list("abcd")).assign(time=times).to_csv(folder / "series.csv", index=False)


def rows(folder: Path, quick: bool) -> list[Row]:
    """Return the lines of the table for files in a folder."""
    k = 50 if quick else 1
    csv, parquet, out, series = (str(folder / name) for name in ("big.csv", "big.parquet", "out.parquet", "series.csv"))

    def shell(*arguments: str) -> str:
        return SHELL.format(arguments=["isopleth", *arguments])

    def of(text: str, n: int, d: int, **more: str) -> str:
        return text.format(n=n // k, d=d, **more)

    def explained(name: str, columns: str, count: int) -> Row:
        ours, beside = (t.format(file=csv, n=20_000 // k, rows=count, columns=columns) for t in (EXPLAIN, SHAP))
        return Row(
            f"explain, {name}, {'ms a further row' if count > 1 else 'first row, ms'}", ours, beside, "SHAP on IForest"
        )

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
        Row(
            "novelty 2,000 x 20",
            of(DETECTOR, 2000, 20, more=", novelty=True"),
            of(NEIGHBOURS, 2000, 20),
            "5-NN",
        ),
        *(
            explained(name, columns, count)
            for name, columns in (("8 numbers", ".iloc[:, :8]"), ("and 2 words", ""))
            for count in (1, 200 // min(k, 10))
        ),
        Row("SOSREP 1,000 x 8", of(DENSITY, 1000, 8, name="SOSREP"), of(MIXTURES, 1000, 8), "8 mixtures by BIC"),
        Row("KDE 30 x 300", DENSITY.format(n=30, d=300, name="KDE")),
        Row("KDE 30 x 1,000", DENSITY.format(n=30, d=1000 // min(k, 10), name="KDE")),
        Row("changes, 50,000 minutes x 4", shell("changes", series), PELT.format(file=series), "PELT of each column"),
    ]


def cost(program: str, python: str = sys.executable) -> tuple[float, int]:
    """Run a program; return its processor seconds, or the figure that it prints last, and its peak memory in MiB."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            [python, "-c", program], env=os.environ | one, stdout=printed, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"a program failed with {process.returncode}:\n{program}")
        printed.seek(0)
        last = (printed.read().splitlines() or [""])[-1]
    unit = 2**20 if sys.platform == "darwin" else 2**10
    seconds = float(last) if re.fullmatch(r"\d+\.\d+", last) else used.ru_utime + used.ru_stime
    return seconds, used.ru_maxrss // unit


def runs(program: str, python: str) -> bool:
    """Tell whether a Python has the modules that a program imports."""
    modules = re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE)
    test = "import importlib.util as u, sys\nsys.exit(any(u.find_spec(name) is None for name in sys.argv[1:]))"
    return subprocess.run([python, "-c", test, *modules], check=False).returncode == 0


def line(row: Row, turns: int, peers: str = sys.executable) -> str:
    """Measure a row and return its line: seconds and memory of ours, of the peer, and the ratio of the seconds."""
    beside = bool(row.beside) and runs(row.beside, peers)
    programs = {"ours": (row.ours, sys.executable)} | ({"beside": (row.beside, peers)} if beside else {})
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, program in programs.items():
            found[name].append(cost(*program))
    seconds = {name: min(each)[0] for name, each in found.items()}
    memory = {name: min(peak for _, peak in each) for name, each in found.items()}
    text = f"{row.name:36}{seconds['ours']:8.2f}{memory['ours']:7}"
    if beside:
        return (
            f"{text}{seconds['beside']:9.2f}{memory['beside']:7}{seconds['ours'] / seconds['beside']:7.1f}  {row.peer}"
        )
    return f"{text}{'':23}  {row.peer}: not installed" if row.beside else text


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="words of the names of rows")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows: a check that it runs")
    parser.add_argument(
        "--peers",
        default=os.environ.get("ISOPLETH_PEERS", sys.executable),
        metavar="PYTHON",
        help="Python that runs the peers; by default that in the environment variable ISOPLETH_PEERS, or this one",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [*description(), time.strftime("%Y-%m-%d"), ""]
    lines.append(f"{'':36}{'CPU s':>8}{'MiB':>7}{'beside':>9}{'MiB':>7}{'ratio':>7}")
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as name:
        folder, k = Path(name), 50 if options.quick else 1
        # In a process of its own: on Linux the peak memory of a program counts from that of the process which starts it.
        made = (
            f"from benchmarks.product import *; folder = Path({name!r}); write_series(folder, {50_000 // min(k, 10)})\n"
        )
        made += f"write_tables(folder, {200_000 // k}, {2_000_000 // k})"
        subprocess.run([sys.executable, "-c", made], check=True, cwd=Path(__file__).parents[1])
        for row in rows(folder, options.quick):
            if not options.only or any(words in row.name for words in options.only):
                lines.append(line(row, options.turns, options.peers))
                print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
