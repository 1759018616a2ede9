"""How many threads there are, and who has a say in that."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info

from isopleth import InputError
from isopleth.operators.threads import effective_n_jobs, map_threads, processors_taken


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_none_is_all_processors_unless_they_are_taken():
    everywhere, before = effective_n_jobs(None), blas_threads()
    with processors_taken():
        assert effective_n_jobs(None) == 1
        assert effective_n_jobs(3) == 3
        assert effective_n_jobs(-1) == everywhere
        assert blas_threads() == {1}
    assert effective_n_jobs(None) == everywhere
    assert blas_threads() == before


def test_they_are_free_again_after_an_error():
    everywhere = effective_n_jobs(None)
    with pytest.raises(ZeroDivisionError), processors_taken():
        1 / 0  # noqa: B018
    assert effective_n_jobs(None) == everywhere


@pytest.mark.parametrize("workers", [1, 3])
def test_work_comes_back_in_order(workers):
    assert map_threads(lambda n: n * n, range(9), workers) == [n * n for n in range(9)]


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_numbers_that_are_none(n_jobs):
    with pytest.raises(InputError, match="n_jobs = "):
        effective_n_jobs(n_jobs)
