"""``isopleth doctor``: show versions, processors, memory, GPU and optional libraries."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import Any

from threadpoolctl import threadpool_info

import isopleth
from isopleth.cli.run import Run
from isopleth.results.text import aligned

# Optional libraries and what each one adds.
_OPTIONAL = {
    "matplotlib": "pictures (--plot)",
    "openpyxl": "workbooks (.xlsx)",
    "torch": "tensors, GPU, gradients",
    "dask": "clusters",
    "pandas": "data frames",
    "polars": "data frames",
    "pyspark": "clusters",
}


def doctor(run: Run) -> None:
    """Show what isopleth runs on."""
    found = findings()
    lines = [(name, str(value)) for name, value in _lines(found)]
    longest = max(len(name) for name, _ in lines)
    run.report_of(aligned([[name.ljust(longest), value] for name, value in lines]), "doctor", **found)


def findings() -> dict[str, Any]:
    """Return what isopleth runs on, for text and JSON."""
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory(),
        "blas": _blas(),
        "threads": {name: os.environ[name] for name in sorted(os.environ) if name.endswith("_NUM_THREADS")},
        "versions": {name: _version(name) for name in _needed()},
        "optional": {name: _version(name) for name in _OPTIONAL},
        "gpu": _gpus(),
    }


def _lines(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what was found as lines, each with its name."""
    memory = found["memory_bytes"]
    lines = [
        ("isopleth", isopleth.__version__),
        ("Python", f"{found['python']}  ({found['executable']})"),
        ("system", found["platform"]),
        ("processors", found["processors"]),
        ("memory", "unknown" if memory is None else f"{memory / 2**30:.1f} GiB"),
        ("BLAS", "  ".join(found["blas"]) or "unknown"),
        *found["threads"].items(),
        *((name, text or "missing: install it with pip") for name, text in found["versions"].items()),
        *((name, text or f"not installed: adds {_OPTIONAL[name]}") for name, text in found["optional"].items()),
    ]
    return [*lines, ("GPU", "  ".join(found["gpu"]) or "none that PyTorch sees")]


def _needed() -> list[str]:
    """Return the libraries that isopleth needs, by its own metadata."""
    given = [text for text in requires("isopleth") or () if "extra ==" not in text]
    return [match[0] for text in given if (match := re.match(r"[\w.-]+", text))]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # systems without these numbers
        return None


def _blas() -> list[str]:
    """Return the BLAS libraries that are loaded, with their threads."""
    import numpy as np

    np.ones((2, 2)) @ np.ones((2, 2))  # loads the library
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in pools]


def _gpus() -> list[str]:
    """Return the names of the GPUs that torch can use."""
    if find_spec("torch") is None:
        return []
    import torch

    return (
        [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )
