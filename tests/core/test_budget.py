"""Budgets: memory, threads and progress of a computation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isopleth import KDE, AnomalyDetector, DensityImputer
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.threads import processors_taken


def test_a_budget_is_that_of_the_parameters_of_an_estimator():
    assert Budget.of(KDE(memory_limit=1e6, n_jobs=3, verbose=1)) == Budget(1e6, 3, 1)
    assert Budget.of(AnomalyDetector()) == Budget(AnomalyDetector().memory_limit, -1, False)
    assert Budget(1e6, 3).limits == {"memory_limit": 1e6, "n_jobs": 3}


def test_threads_are_counted_where_the_work_is_done():
    budget = Budget(n_jobs=-1)
    with processors_taken():
        assert budget.threads == 1
    assert Budget(n_jobs=3).threads == 3


@pytest.mark.parametrize("workers", [1, 4])
def test_computations_that_run_at_once_share_the_memory(workers):
    assert Budget(8e6, 4, True).shared(workers) == Budget(8e6 / workers, 1, True)


def test_a_part_of_a_computation_has_another_limit_or_one_thread():
    assert Budget(8e6, 4, True).within(1e6) == Budget(1e6, 4, True)
    assert Budget(8e6, 4, True).alone == Budget(8e6, 1, True)


def test_an_estimator_without_a_limit_of_memory_has_the_usual_one():
    assert Budget.of(DensityImputer(n_jobs=2)) == replace(DEFAULT_BUDGET, n_jobs=2)


def test_blocks_of_all_threads_fit_in_the_memory():
    parts = Budget(20_000.0, 2).blocks(1000, 100.0)
    assert max(part.stop - part.start for part in parts) * 100.0 * 2 <= 20_000.0
    assert sum(part.stop - part.start for part in parts) == 1000


def test_work_is_done_for_each_part_in_its_order():
    assert Budget(n_jobs=2).map("squares", lambda x: x * x, [3, 1, 2]) == [9, 1, 4]
