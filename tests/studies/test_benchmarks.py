"""The benchmarks run, and their measuring tools are correct."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside an installed package")

from benchmarks import difference_tensor, memory, scores, timing
from benchmarks.__main__ import main, names
from benchmarks.comparison import Comparison, Program
from benchmarks.measure import measured
from benchmarks.nystrom import curl_free_block
from benchmarks.power_law import fitted
from benchmarks.report import section


def _double(x):
    return 2.0 * x


def _fails(x):
    raise RuntimeError("no such thing")


def _double_in(seconds, clock):
    """Return what doubles and moves the fake `clock` on by so many seconds."""

    def double(x):
        clock[0] += seconds
        return 2.0 * x

    return double


@pytest.fixture
def clock(monkeypatch):
    """The time that benchmarks read: moved on by who works, and by a millisecond at each look."""
    now = [0.0]

    def look():
        now[0] += 1e-3
        return now[0]

    monkeypatch.setattr(timing.time, "process_time", look)
    monkeypatch.setattr(memory, "available", lambda: False)
    return now


def _comparison(**programs):
    return Comparison(
        "sums",
        "n = {n:,}, d = {d}",
        lambda n, d: np.ones((n, d)),
        {"isopleth": Program(_double)} | programs,
        lambda problem, answer: float(np.max(np.abs(answer - 2.0 * problem))),
        "error",
        rows=(1000, 4800),
        columns=2,
        column_range=(1, 2),
        column_rows=1000,
    )


def test_a_power_law_is_found():
    growth = fitted({n: 3e-6 * n**1.7 for n in (1600, 100, 400)})
    assert growth.exponent == pytest.approx(1.7)
    assert (growth.low, growth.high) == (100, 1600)
    assert fitted({100: 1.0}) is None


def test_programs_take_turns_and_the_slow_ones_fewer(monkeypatch):
    order, now = [], [0.0]
    monkeypatch.setattr(timing.time, "process_time", lambda: now[0])

    def takes(name, seconds):
        def run():
            order.append(name)
            now[0] += seconds[order.count(name) - 1]

        return run

    runs = {"slow": takes("slow", [5.0, 2.0, 2.0, 2.0]), "fast": takes("fast", [9.0, 1.0, 3.0, 2.0])}
    assert timing.interleaved(runs, rounds=3) == {"slow": 2.0, "fast": 2.0}
    assert order == ["slow", "fast"] * 4
    order.clear()
    assert timing.interleaved({"slow": takes("slow", [5.0, 2.0, 2.0])}, rounds=3, budget=6.0) == {"slow": 2.0}
    assert order == ["slow"] * 2
    order.clear()
    assert timing.interleaved({"slow": takes("slow", [5.0])}, rounds=3, budget=1.0) == {"slow": 5.0}


@pytest.mark.skipif(not memory.available(), reason="this system does not tell the peak")
def test_memory_of_a_known_array():
    # products of the whole matrix: three arrays of n x n at the peak at most, one at least
    low, high = memory.peaks("benchmarks.products", "products", "SciPy distances, whole matrix", [(500, 4), (2000, 4)])
    assert 0.9 * 8 * 500**2 < low < 4 * 8 * 500**2
    assert 0.95 * 8 * 2000**2 < high < 4 * 8 * 2000**2


def test_missing_and_failing_programs_are_reported(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: False)
    task = _comparison(
        absent=Program(_double, needs="no_such_module"), broken=Program(_fails), narrow=Program(_double, dims=(1,))
    )
    figures = measured(task, "", quick=True)
    assert figures["absent"].note == "no_such_module is not installed: not measured"
    assert figures["broken"].note == "not measured: RuntimeError: no such thing"
    assert list(figures["narrow"].column_seconds) == [1]
    assert figures["isopleth"].accuracy == 0.0
    assert list(figures["isopleth"].seconds) == [120, 240]
    text = section(task, figures, quick=True).text()
    assert "absent: no_such_module is not installed: not measured" in text
    assert "n = 240, d = 2" in text


def test_a_program_that_is_ahead_is_named(clock):
    task = _comparison(slow=Program(_double_in(0.05, clock)))
    assert section(task, measured(task, "", quick=True), quick=True).notes == []
    ours = Program(lambda x: _double_in(0.05, clock)(x) + 1e-3)
    task = Comparison(**{**task.__dict__, "programs": {"isopleth": ours, "quick": Program(_double)}})
    in_time, in_accuracy = section(task, measured(task, "", quick=True), quick=True).notes
    assert in_time.startswith("Ahead of isopleth in time: quick (")
    assert in_accuracy == "Ahead of isopleth in error: quick."


def test_the_literal_curl_free_forms_are_the_product_with_the_matrix():
    p = scores.product_problem(21, 5)
    want = (curl_free_block(p.x, p.x) @ p.v.T.ravel()).reshape(5, 21).T
    for form in (difference_tensor.whole, difference_tensor.in_chunks, difference_tensor.row_by_row):
        np.testing.assert_allclose(form(p.x, p.v), want, rtol=1e-11, atol=1e-11)
    contracted = difference_tensor.Differences.of(p.x, p.x).contracted(p.v)
    np.testing.assert_allclose(contracted, want, rtol=1e-11, atol=1e-11)
    assert scores.product_error(p, want) < 1e-13
    assert scores.product_error(p, want + 1e-3) > 1e-5


def test_all_who_fit_a_score_reach_the_same_one():
    X = scores.rows(30, 6)
    task = next(one for one in scores.COMPARISONS if one.name == "kef-512")
    found = {name: program.run(program.setup(X)) for name, program in task.programs.items()}
    assert len(found) == 4
    exactly = found["SciPy, whole matrix, Cholesky"]
    assert task.accuracy(X, exactly) < 1e-12
    bound = scores.TOL / scores.ALPHA * np.linalg.norm(difference_tensor.zeta(X / exactly.length_scale))
    for one in found.values():
        assert task.accuracy(X, one) < scores.TOL
        assert np.linalg.norm(one.values - exactly.values) < bound
    wrong = scores.Score(exactly.length_scale, 1.001 * exactly.values)
    assert task.accuracy(X, wrong) > 1e-4


def test_the_command_writes_what_it_prints(tmp_path, capsys):
    rst, figures = tmp_path / "results.txt", tmp_path / "results.json"
    main(["--quick", "--only", "kernels", "--out", str(rst), str(figures)])
    printed = capsys.readouterr().out
    assert "isopleth sdo" in printed
    assert "   * - isopleth sdo" in rst.read_text(encoding="utf-8")
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["figures"]["kernels"]["isopleth gaussian"]["accuracy"] < 1e-14
    assert any(" processor" in line for line in found["machine"])


@pytest.mark.slow
def test_the_quick_run_has_a_table_for_each_name(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pykeops", None)  # which would compile for minutes
    main(["--quick"])
    printed = capsys.readouterr().out
    assert printed.count("time ~ n^") == len(names()) - 1
    assert "AUC by kind of anomaly" in printed
