"""A process with little address space says so, where linear algebra would wait for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isopleth import InputError
from isopleth.core import address_space as module
from isopleth.core.address_space import COMMAND_BYTES, THREAD_BYTES, address_space, affordable_threads
from isopleth.core.threads import map_threads

resource = pytest.importorskip("resource")


def with_left(monkeypatch, left):
    monkeypatch.setattr(module, "address_space", lambda: (8e8, left))


def test_without_a_limit_there_are_as_many_threads_as_wanted():
    assert address_space() == (float("inf"), float("inf"))
    assert affordable_threads(64) == 64


def test_threads_are_as_many_as_the_address_space_holds(monkeypatch):
    with_left(monkeypatch, 3.5 * THREAD_BYTES)
    assert (affordable_threads(2), affordable_threads(64)) == (2, 3)


@pytest.mark.parametrize("workers", [1, 4])
def test_work_is_refused_where_no_thread_fits(monkeypatch, workers):
    with_left(monkeypatch, THREAD_BYTES - 1.0)
    with pytest.raises(InputError, match=r"limited to 800 MB.*ulimit -v"):
        map_threads(abs, [1, 2], workers)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.99])
def test_the_command_says_so_before_it_imports_anything(share):
    limit = int(share * COMMAND_BYTES)
    code = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); import isopleth_command as c; c.main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"limited to {limit / 1e6:,.0f} MB" in run.stderr
    assert run.stderr.count("\n") == 1


def test_what_is_left_is_the_limit_less_what_is_used(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**12, 10**12))
    limit, left = address_space()
    assert limit == 10**12
    assert 1e7 < limit - left < 1e12
