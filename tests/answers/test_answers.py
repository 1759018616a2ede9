"""Answers at the defaults are those in the records, so that any changed constant of a rule is noticed."""

from __future__ import annotations

import pytest

from answers import recorded
from answers.cases import CASES, LOOSE

RECORDS = recorded.read()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_in_the_records(name):
    found = dict(recorded.flat(CASES[name]()))
    assert recorded.differences(found, RECORDS.get(name, {}), LOOSE.get(name, recorded.TOLERANCE)) == []


def test_there_is_a_case_for_every_record():
    assert set(RECORDS) == set(CASES)


def test_a_change_of_any_number_and_of_nothing_else_is_a_difference():
    found = dict(
        recorded.flat({"many": list(range(20)), "few": [1.0, 2.0], "word": "uniform", "said": "3 of 1,000 rows"})
    )
    assert found["said"] == [3.0, 1000.0]
    again = dict(
        recorded.flat({"many": list(range(20)), "few": [1.0, 2.0 + 1e-9], "word": "uniform", "said": "1 of 1000"})
    )
    assert [line.partition(":")[0] for line in recorded.differences(again, found, 1e-6)] == ["said"]
    for k in range(20):
        moved = [i + 1e-3 * (i == k) for i in range(20)]
        assert len(recorded.differences({**found, **dict(recorded.flat({"many": moved}))}, found, 1e-6)) == 1
    assert recorded.differences({}, {"few": 1}, 1e-6) == ["few is gone"]
