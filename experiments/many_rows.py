"""SOSREP with landmarks on rows that are made part by part by two worker processes, one of which is killed in the second pass.

    python -m experiments.many_rows [--rows 100000000] [--landmarks 200] [--part 500000] [--memory 500MB] [--out FILE]

Four correlated columns of normal and heavy-tailed numbers are drawn anew in every pass, so that no pass has more than one part of
them in memory. One fit runs undisturbed. In the other the worker that makes the middle part in the second pass ends as by
``kill -9``, with all sums that it holds. Both models are compared bit by bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np

from distributed import Client, LocalCluster
from isopleth import SOSREP, DataWarning, distributed

COLUMNS = 4
MIX = np.array([[1.0, 0.5, 0.0, 0.2], [0.0, 1.0, -0.6, 0.0], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 0.5]])


def made(number: int, rows: int, deadly: Path | None) -> np.ndarray:
    """Draw the rows of a part; with a file name, end this process the second time that the part is made."""
    if deadly is not None:
        if deadly.exists() and not deadly.with_suffix(".killed").exists():
            deadly.with_suffix(".killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        deadly.touch()
    rng = np.random.Generator(np.random.Philox(key=number))
    normal = rng.standard_normal((rows, COLUMNS))
    normal[:, 3] /= np.sqrt(rng.standard_exponential(rows) + 0.1)
    return normal @ MIX


def parts(rows: int, part: int, deadly: Path | None) -> da.Array:
    """Return the rows, of which nothing is computed yet."""
    sizes = [min(part, rows - start) for start in range(0, rows, part)]
    make = dask.delayed(made, pure=False)
    blocks = [make(i, size, deadly if i == len(sizes) // 2 else None) for i, size in enumerate(sizes)]
    shapes = [(size, COLUMNS) for size in sizes]
    return da.concatenate(
        [da.from_delayed(block, shape, dtype=np.float64) for block, shape in zip(blocks, shapes, strict=True)]
    )


def peak_mb() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def fit(options: argparse.Namespace, deadly: Path | None) -> tuple[dict[str, Any], str]:
    """Fit on two workers; return what it took, and a fingerprint of the model."""
    own, start = time.process_time(), time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=options.memory, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        model = SOSREP(frame="scale", landmarks=options.landmarks)
        distributed.fit(model, parts(options.rows, options.part, deadly))
        wall, workers = time.perf_counter() - start, client.run(peak_mb)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    bits = b"".join(np.ascontiguousarray(part).tobytes() for part in (model.centers_, model.weights_, model.dual_coef_))
    costs = {
        "seconds": wall,
        "CPU seconds of the workers": used,
        "CPU seconds of client and scheduler": time.process_time() - own,
        "peak MB of a worker": max(workers.values()),
        "peak MB of client and scheduler": peak_mb(),
    }
    return costs, hashlib.sha256(bits).hexdigest()[:16]


def main(arguments: list[str] | None = None) -> None:
    """Fit twice and write what it took."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.many_rows",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--landmarks", type=int, default=200)
    parser.add_argument("--part", type=int, default=500_000, help="rows of a part")
    parser.add_argument("--memory", default="500MB", help="memory limit of a worker")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", DataWarning)
    lines = [
        f"SOSREP(frame='scale', landmarks={options.landmarks}), {options.rows:,} rows, {COLUMNS} columns, parts of "
        f"{options.part:,}, two workers of one thread with a limit of {options.memory} each"
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        deadly = Path(folder) / "made"
        for name, file in (("undisturbed", None), ("a worker killed in the second pass", deadly)):
            costs, bits = fit(options, file)
            found.append(bits)
            lines += [f"{name}: model {bits}", *(f"    {what:<40}{value:>12,.1f}" for what, value in costs.items())]
            print("\n".join(lines), flush=True)
        lines.append(
            f"a worker was killed: {deadly.with_suffix('.killed').exists()}; same bits: {found[0] == found[1]}"
        )
    print(lines[-1])
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
