"""CPU seconds of the tests by folder, those of child processes included: a plugin for pytest.

    PYTHONPATH=tools .venv-test/bin/python -m pytest -q -n0 -p cpu_seconds -m "not slow"

Times are those of one process, so that what is loaded is counted once; with workers, each collects the tests anew.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest

_SLOWEST = 20


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class CpuSeconds:
    """Record of the CPU seconds of each test since the one before."""

    def __init__(self) -> None:
        self.collected = 0.0
        self.last = 0.0
        self.tests: dict[str, float] = {}

    def pytest_collection_finish(self) -> None:
        """Keep what imports and the collection took."""
        self.collected = self.last = _used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Run a test with its fixtures, and keep what it took."""
        found = yield
        now = _used()
        self.tests[item.nodeid], self.last = now - self.last, now
        return found

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the seconds of each folder and the slowest tests."""
        folders: dict[str, list[float]] = defaultdict(list)
        for name, seconds in self.tests.items():
            parts = PurePosixPath(name.partition("::")[0]).parts[:-1]
            folders["/".join(parts[1:3] if parts[0] == "tests" else parts[:1])].append(seconds)
        print_line = terminalreporter.write_line
        print_line("")
        print_line(f"{self.collected:8.1f} s         imports and collection")
        for folder, seconds in sorted(folders.items(), key=lambda one: -sum(one[1])):
            print_line(f"{sum(seconds):8.1f} s {len(seconds):6,}  {folder or 'tests'}")
        print_line(f"{self.last:8.1f} s {len(self.tests):6,}  all")
        for name, seconds in sorted(self.tests.items(), key=lambda one: -one[1])[:_SLOWEST]:
            print_line(f"{seconds:8.1f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Add the record."""
    config.pluginmanager.register(CpuSeconds(), "cpu seconds")
