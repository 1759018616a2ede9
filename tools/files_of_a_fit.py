"""Count the files of the package that one fit runs through: what a reader of that fit has to open.

Run ``python tools/files_of_a_fit.py`` to print the table of CONTRIBUTING.md, with ``--list`` to name the files too.
Functions are traced in every thread, for numeric rows of NumPy.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import isopleth
from isopleth import LSDD, SOSREP, AnomalyDetector, KernelScore

PACKAGE = Path(isopleth.__file__).parent


def traced(fit: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the functions that `fit` calls, by file of the package."""
    found: dict[str, set[str]] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)) and not frame.f_code.co_name.startswith("<"):
            found.setdefault(Path(path).relative_to(PACKAGE).as_posix(), set()).add(frame.f_code.co_qualname)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def fits() -> dict[str, Callable[[], Any]]:
    """Return the fits that are counted, by what the table calls them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), rng.normal(0.3, 1.0, size=(200, 3))
    return {
        "SOSREP.fit": lambda: SOSREP().fit(X),
        "KernelScore.fit": lambda: KernelScore().fit(X),
        "LSDD.fit": lambda: LSDD().fit(X, Y),
        "AnomalyDetector.fit": lambda: AnomalyDetector(random_state=0).fit(X),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the files")
    asked = parser.parse_args()
    print(f"{'fit':<22}{'files':>7}{'functions':>11}")
    for name, fit in fits().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = traced(fit)
        print(f"{name:<22}{len(found):>7}{sum(map(len, found.values())):>11}")
        if asked.list:
            for path, functions in sorted(found.items()):
                print(f"    {path:<44}{len(functions):>4}")


if __name__ == "__main__":
    main()
