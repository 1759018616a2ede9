"""Number of threads, and how they end."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import isopleth
from isopleth import KDE, LSDD, SOSREP, DriftMonitor, InputError, NystromKEF, two_sample_test
from isopleth.core import threads
from isopleth.core.threads import (
    DEFAULT_N_JOBS,
    ONE_BLAS_THREAD,
    Stopped,
    check_stopped,
    effective_n_jobs,
    map_threads,
    processors_taken,
)
from isopleth.operators import tiles
from isopleth.score import KernelScore, ridge_selection
from isopleth.solvers import Spectrum, direct
from isopleth.tasks.changes import seasons_beside as change_description


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_minus_one_is_all_processors_unless_they_are_taken(many_blas_threads):
    everywhere, before = effective_n_jobs(-1), blas_threads()
    assert everywhere == len(os.sched_getaffinity(0))
    assert effective_n_jobs(-2) == max(1, everywhere - 1)
    assert effective_n_jobs(-everywhere - 5) == 1
    with processors_taken():
        assert effective_n_jobs(-1) == effective_n_jobs(-2) == 1
        assert effective_n_jobs(3) == 3
        assert blas_threads() == {1}
    assert effective_n_jobs(-1) == everywhere
    assert blas_threads() == before


def test_none_is_one_thread_or_the_number_of_joblib():
    assert effective_n_jobs(None) == 1
    for jobs in (2, 3):
        with joblib.parallel_config(n_jobs=jobs):
            assert effective_n_jobs(None) == jobs
            assert effective_n_jobs(5) == 5
    assert effective_n_jobs(None) == 1


def test_estimators_ask_joblib_for_none_and_take_all_processors_by_default(monkeypatch):
    counts = []
    monkeypatch.setattr(
        tiles, "map_threads", lambda work, items, workers: counts.append(workers) or map_threads(work, items, 1)
    )
    X = np.random.default_rng(0).normal(size=(1200, 5))
    assert (
        SOSREP(frame="scale").n_jobs
        == SOSREP(frame="scale").set_params().get_params()["n_jobs"]
        == DEFAULT_N_JOBS
        == -1
    )
    with joblib.parallel_config(n_jobs=2):
        KDE(n_jobs=None, frame="scale").fit(X).score_samples(X)
    assert set(counts) == {2}
    counts.clear()
    KDE(n_jobs=None, frame="scale").fit(X).score_samples(X)
    assert set(counts) == {1}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    counts.clear()
    KDE(frame="scale").fit(X).score_samples(X)
    assert set(counts) == {3}


def test_all_public_names_have_the_same_default():
    """Every function and estimator that takes `n_jobs` has the one default."""
    found = 0
    packages = ("density", "difference", "operators", "score", "tasks")
    modules = [getattr(isopleth, package) for package in packages]
    for name, public in ((name, getattr(module, name)) for module in modules for name in module.__all__):
        if not callable(public) or (isinstance(public, type) and issubclass(public, Exception)):
            continue
        parameters = inspect.signature(public).parameters
        if "n_jobs" in parameters:
            assert parameters["n_jobs"].default == DEFAULT_N_JOBS, name
            found += 1
    assert found > 12


def test_they_are_free_again_after_an_error():
    everywhere = effective_n_jobs(-1)
    with pytest.raises(ZeroDivisionError), processors_taken():
        1 / 0  # noqa: B018
    assert effective_n_jobs(-1) == everywhere


@pytest.mark.parametrize("workers", [1, 3])
def test_work_comes_back_in_order(workers):
    assert map_threads(lambda n: n * n, range(9), workers) == [n * n for n in range(9)]


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_numbers_that_are_none(n_jobs):
    with pytest.raises(InputError, match="n_jobs = "):
        effective_n_jobs(n_jobs)


def started(*work):
    threads = [threading.Thread(target=some, daemon=True) for some in work]
    for thread in threads:
        thread.start()
    return threads


def test_the_limit_is_lifted_by_whoever_ends_last(many_blas_threads):
    """The first of two threads ends first, and lives on."""
    before = blas_threads()
    first_in, second_in, first_out, over = (threading.Event() for _ in range(4))
    inside = []

    def first():
        with ONE_BLAS_THREAD:
            first_in.set()
            second_in.wait(20)
        first_out.set()
        over.wait(20)

    def second():
        first_in.wait(20)
        with ONE_BLAS_THREAD:
            second_in.set()
            first_out.wait(20)
            inside.append(blas_threads())

    one, other = started(first, second)
    other.join(20)
    after = blas_threads()
    over.set()
    one.join(20)
    assert inside == [{1}]
    assert after == before


def test_a_worker_sets_the_limit_though_another_thread_has_set_one_before(many_blas_threads):
    """Such a thread keeps the right to set limits of OpenBLAS, by some versions of threadpoolctl."""
    before, inside = blas_threads(), []
    limit = ThreadpoolController().limit(limits=2, user_api="blas")

    def work():
        with ONE_BLAS_THREAD:
            inside.append(blas_threads())
        inside.append(blas_threads())

    try:
        for thread in started(work):
            thread.join(20)
        assert inside == [{1}, {2}]
    finally:
        limit.restore_original_limits()
    assert blas_threads() == before


def test_the_limit_is_set_again_where_others_have_lifted_it(many_blas_threads):
    before = blas_threads()
    with ONE_BLAS_THREAD:
        for library in ThreadpoolController().select(user_api="blas").lib_controllers:
            library.set_num_threads(2)
        with ONE_BLAS_THREAD:
            assert blas_threads() == {1}
    assert blas_threads() == {2}
    assert before == {3}


@pytest.mark.parametrize("work", ["drift", "density", "difference"])
def test_the_same_bits_in_every_thread(work, many_blas_threads):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 4)), rng.normal(0.2, 1.0, size=(200, 4))
    answers = {
        "drift": lambda: DriftMonitor(window=10, expected_run_length=50, random_state=0).fit(X).threshold_,
        "density": lambda: SOSREP(frame="scale").fit(X).score_samples(Y).tobytes(),
        "difference": lambda: LSDD(length_scale=1.0, random_state=0).fit(X[:150], Y[:120]).difference(Y).tobytes(),
    }
    before, answer = blas_threads(), answers[work]
    expected = answer()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answer(), range(4)))
    assert found == [expected] * 4
    assert blas_threads() == before


def test_tests_in_a_pool_leave_blas_as_it_was(many_blas_threads):
    rng, before = np.random.default_rng(0), blas_threads()
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: two_sample_test(X, Y, n_resamples=49, random_state=seed), range(12)))
        assert blas_threads() == before


@pytest.mark.parametrize("model", [SOSREP(), SOSREP(frame="scale", length_scale=isopleth.Search()), KernelScore()])
def test_a_search_on_few_rows_starts_no_threads(model, monkeypatch):
    """Threads made it slower: they waited for one another's Python code."""
    monkeypatch.setattr(threads, "_threaded", lambda *_: pytest.fail("a thread was started"))
    model.set_params(n_jobs=2).fit(np.random.default_rng(0).normal(size=(60, 2)))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_search_of_a_ridge_takes_one_blas_thread(method, monkeypatch, many_blas_threads):
    seen = []
    search = ridge_selection._losses
    monkeypatch.setattr(ridge_selection, "_losses", lambda *args: seen.append(blas_threads()) or search(*args))
    model = NystromKEF(landmarks=5, frame="scale", base=None)
    getattr(model, method)(np.random.default_rng(0).normal(size=(40, 2))).grad_log_density([[0.0, 0.0]])
    assert seen == [{1}]


def test_the_search_of_changes_takes_one_blas_thread(monkeypatch, many_blas_threads):
    """With two it took three times the processor's time."""
    seen, describe = [], change_description.segments_of

    def noted(*some, **more):
        seen.append(blas_threads())
        return describe(*some, **more)

    monkeypatch.setattr(change_description, "segments_of", noted)
    isopleth.ChangePointDetector(random_state=0).fit(np.random.default_rng(0).normal(size=40))
    assert seen
    assert set(map(frozenset, seen)) == {frozenset({1})}


def test_the_first_error_in_order_is_raised_and_nothing_is_begun_after_it():
    begun, second = [], threading.Event()

    def work(n):
        begun.append(n)
        if n == 0:
            second.wait(20)
            raise KeyError("first")
        second.set()
        raise ValueError("second")

    with pytest.raises(KeyError, match="first"):
        map_threads(work, range(50), 2)
    assert sorted(begun) == [0, 1]


def test_threads_have_the_context_of_their_caller():
    with processors_taken(), np.errstate(divide="raise"):
        found = map_threads(lambda _: (effective_n_jobs(-1), np.geterr()["divide"]), range(3), 2)
    assert found == [(1, "raise")] * 3


def interrupted(call, began):
    """Make a call that hangs, with an interrupt once it began."""

    def interrupt():
        began.wait(20)
        os.kill(os.getpid(), signal.SIGINT)

    started(interrupt)
    with pytest.raises(KeyboardInterrupt):
        call()


@pytest.fixture
def hanging():
    """Work that hangs like a long call of compiled code, an event that it began, and a list of its ends."""
    began, released, ended = threading.Event(), threading.Event(), []

    def hang(*_, **__):
        began.set()
        released.wait(20)
        ended.append(True)

    yield hang, began, ended
    released.set()


def test_an_interrupt_leaves_hanging_work_behind(hanging, many_blas_threads):
    hang, began, ended = hanging
    before = blas_threads()
    interrupted(lambda: map_threads(hang, range(6), 2), began)
    assert ended == []
    assert blas_threads() == before


def test_an_interrupt_leaves_pools_of_pools_behind(hanging):
    hang, began, ended = hanging
    interrupted(lambda: map_threads(lambda _: map_threads(hang, range(3), 2), range(3), 2), began)
    assert ended == []


@pytest.mark.parametrize("library", ["scipy", "numpy"])
def test_an_interrupt_leaves_long_factorisations_behind(library, hanging, monkeypatch):
    hang, began, ended = hanging
    monkeypatch.setattr(direct, "cho_factor", hang)
    monkeypatch.setattr(np.linalg, "eigh", hang)
    matrix = np.broadcast_to(1.0, (1600, 1600))  # nothing of it is read
    call = (lambda: direct.factorised(matrix)) if library == "scipy" else (lambda: Spectrum.of(matrix))
    interrupted(call, began)
    assert ended == []


def test_workers_in_loops_end_with_their_caller():
    began, ended = threading.Event(), threading.Event()

    def loop(_):
        try:
            while True:
                began.set()
                check_stopped()
        except Stopped:
            ended.set()
            raise

    interrupted(lambda: map_threads(lambda _: map_threads(loop, [0], 1), range(2), 2), began)
    assert ended.wait(20)


def test_items_that_wait_are_never_begun_after_an_interrupt(hanging):
    hang, began, _ = hanging
    numbers = []
    interrupted(lambda: map_threads(lambda n: (numbers.append(n), hang()), range(50), 2), began)
    assert len(numbers) <= 2


FITS = {
    "score": "KernelScore().fit(rng.normal(size=(5000, 20)))",
    "explanation": "AnomalyDetector(random_state=0).fit(X := rng.normal(size=(3000, 100))).explain(X)",
    "detector": "AnomalyDetector(random_state=0).fit(rng.normal(size=(1_000_000, 20)))",
    "difference": "LSDD(random_state=0).fit(rng.normal(size=(300_000, 5)), rng.normal(0.1, size=(300_000, 5)))",
}


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.7, 4.0])
@pytest.mark.parametrize("fit", FITS)
def test_fits_stop_within_a_second(fit, after):
    code = f"""
import signal, time
import numpy as np
from isopleth import AnomalyDetector, KernelScore, LSDD
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
print("ready", flush=True)
try:
    while True:
        {FITS[fit]}
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        stopped = float(process.communicate(timeout=60)[0])
    assert process.returncode == 0
    assert stopped - sent < 1.0
