"""Description of the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("isopleth", "numpy", "scipy", "scikit-learn", "torch", "pyod", "KDEpy", "pykeops")


def description() -> list[str]:
    """Return lines about the processor and the versions."""
    memory = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else float("nan")
    )
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = {package: _version(package) for package in PACKAGES}
    return [
        f"{_processor()}, {processors} processor{'s' * (processors > 1)}, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, float64",
        ", ".join(f"{package} {found}" for package, found in found.items()),
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()} ({platform.machine()})"
    return platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
