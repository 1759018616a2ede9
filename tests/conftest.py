"""Settings and fixtures of all tests."""

from __future__ import annotations

import os

# Workers of pytest-xdist share the processors already: with threads of their own, in BLAS, OpenMP or by `n_jobs`, they would wait
# for each other, and those of Python code take a sixth more CPU seconds. So each of several workers has one processor.
# Libraries read the variables when they are loaded, and plugins of pytest have loaded NumPy before this.
if "PYTEST_XDIST_WORKER" in os.environ:
    from threadpoolctl import threadpool_limits

    if hasattr(os, "sched_setaffinity") and os.environ["PYTEST_XDIST_WORKER_COUNT"] != "1":
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[int(os.environ["PYTEST_XDIST_WORKER"][2:]) % len(processors)]})
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import array_backends
from isopleth.core import arrays
from isopleth.operators import tiles

hypothesis.settings.register_profile("isopleth", deadline=None, max_examples=25, derandomize=True)
hypothesis.settings.load_profile("isopleth")

# Shells start background jobs with interrupts ignored; tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("COLUMNS", None)  # without the width of a terminal, tables have one row a line


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and tests, which stay to the end: looking through them again takes CPU seconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference numbers and real data; tests that need it are skipped without it."""
    folder = os.environ.get("ISOPLETH_DATA")
    if not folder:
        pytest.skip("the environment variable ISOPLETH_DATA names no folder of reference data")
    return Path(folder)


@pytest.fixture
def space_for() -> Callable[[int], AbstractContextManager[None]]:
    """``with space_for(size)``: files can grow to `size` bytes; more fails, as on a full disk."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer simulated series without changes or drift: what is planted is beyond what chance does in any number of them."""
    monkeypatch.setattr("isopleth.tasks.drift.calibration.FEWEST", 50)
    monkeypatch.setattr("isopleth.tasks.drift.calibration.SIMULATED_ROWS", 1e4)
    for module in ("description_length", "described", "legs.location"):
        monkeypatch.setattr(f"isopleth.tasks.changes.{module}.RUNS", 49)


@pytest.fixture(params=array_backends.BACKENDS)
def send(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Function that gives an array to another library, or to another device."""
    if request.param == "torch as a device":
        for module in (arrays, tiles):
            monkeypatch.setattr(module, "on_processor", lambda x: isinstance(x, np.ndarray))
    return array_backends.BACKENDS[request.param]()


@pytest.fixture
def many_blas_threads() -> Iterator[None]:
    """More than one BLAS thread, whatever the machine and its environment say."""
    with ThreadpoolController().select(user_api="blas").limit(limits=3):
        if any(library["num_threads"] == 1 for library in threadpool_info() if library["user_api"] == "blas"):
            pytest.skip("needs a BLAS with threads")
        yield
