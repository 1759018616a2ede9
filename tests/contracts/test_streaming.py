"""Partial fits keep sums, which are solved when an answer is first asked for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from isopleth import LSDD, InputError, NystromKEF, load, save
from isopleth.difference.fitted import SquaredL2Law
from isopleth.difference.statistics import DifferenceStatistics
from isopleth.score import Tikhonov
from isopleth.score.statistics import NystromStatistics

RNG = np.random.default_rng(3)
X, Y, NEW = RNG.normal(size=(90, 2)) + [0.8, 0.0], RNG.normal(size=(70, 2)), RNG.normal(size=(5, 2))


class Difference:
    """Tests of a streamed density difference."""

    made = staticmethod(lambda **given: LSDD(centers=15, length_scale=0.9, alpha=0.3, random_state=0, **given))
    solved = ("dual_coef_", "alpha_", "length_scale_", "log_volume_", "squared_l2_", "search_path_")
    sums = DifferenceStatistics

    @staticmethod
    def add(model, place):
        return model.partial_fit(X[place::3], Y[place::3])

    @staticmethod
    def ask(model):
        return model.difference(NEW)


class Score:
    """Tests of a streamed score."""

    made = staticmethod(lambda **given: NystromKEF(landmarks=10, random_state=0, **given))
    solved = ("dual_coef_", "regularizer_", "search_path_")
    sums = NystromStatistics

    @staticmethod
    def add(model, place):
        return model.partial_fit(X[place::3])

    @staticmethod
    def ask(model):
        return model.grad_log_density(NEW)


BOTH = pytest.mark.parametrize("kind", [Difference, Score])


@pytest.fixture
def solves(monkeypatch):
    """Solves so far."""
    made = []
    for model in (LSDD, NystromKEF):
        monkeypatch.setattr(model, "_solve", lambda self, sums, own=model._solve: (made.append(1), own(self, sums)))
    return made


def streamed(kind, **given):
    model = kind.made(**given)
    for place in range(3):
        kind.add(model, place)
    return model


@BOTH
def test_calls_after_the_first_are_solved_once_and_when_asked(kind, solves):
    model = streamed(kind)
    assert len(solves) == 1
    first = kind.ask(model)
    assert len(solves) == 2
    np.testing.assert_array_equal(kind.ask(model), first)
    assert len(solves) == 2
    asked_each_time = kind.made()
    for place in range(3):
        kind.ask(kind.add(asked_each_time, place))
    np.testing.assert_array_equal(kind.ask(asked_each_time), first)


@BOTH
def test_each_attribute_of_the_solution_is_there_when_asked(kind, solves):
    whole = streamed(kind)
    kind.ask(whole)
    for name in kind.solved:
        model = streamed(kind)
        before = len(solves)
        assert hasattr(model, name)
        assert len(solves) == before + 1
        if name != "search_path_":
            np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    before = len(solves)
    for name in ("feature_names_in_", "transform", "_repr_png_"):
        assert not hasattr(streamed(kind), name)
    assert len(solves) == before + 3  # the first calls


def test_what_is_not_there_is_not_solved_for_again(solves):
    model = streamed(Score, regularizer=Tikhonov(alpha=0.1))
    for _ in range(3):
        assert not hasattr(model, "search_path_")
    assert len(solves) == 2


@BOTH
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_have_the_solution(kind, copied, solves):
    model = streamed(kind)
    again = copied(model)
    before = len(solves)
    np.testing.assert_array_equal(kind.ask(again), kind.ask(model))
    assert len(solves) == before


@BOTH
def test_files_have_the_solution(kind, solves, tmp_path):
    model = streamed(kind)
    save(model, tmp_path / "model.isopleth")
    again = load(tmp_path / "model.isopleth")
    before = len(solves)
    np.testing.assert_array_equal(kind.ask(again), kind.ask(model))
    assert len(solves) == before


@BOTH
def test_an_interrupted_call_is_reported(kind, monkeypatch, tmp_path):
    """Some of the rows may be in the sums; the first call leaves nothing behind, and may be made again."""
    model = kind.made()
    with monkeypatch.context() as patch:
        patch.setattr(kind.sums, "accumulate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            kind.add(model, 0)
        with pytest.raises(ValueError, match="not fitted"):
            kind.ask(model)
    kind.add(model, 0)
    with monkeypatch.context() as patch:
        patch.setattr(kind.sums, "accumulate", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            kind.add(model, 1)
    for question in (lambda: kind.ask(model), lambda: kind.add(model, 1), lambda: save(model, tmp_path / "broken")):
        with pytest.raises(InputError, match="was broken off while rows were being added"):
            question()
    whole = model.fit(X, Y) if kind is Difference else model.fit(X)
    assert np.isfinite(kind.ask(whole)).all()


def test_parameters_of_the_first_call_hold_until_a_fit():
    difference, score = streamed(Difference), streamed(Score, regularizer=Tikhonov(alpha=0.1))
    difference.set_params(penalty="rkhs", alpha=7.0)
    score.set_params(regularizer=None)
    np.testing.assert_array_equal(difference.dual_coef_, streamed(Difference).dual_coef_)
    assert score.regularizer_ == Tikhonov(alpha=0.1)


@pytest.mark.filterwarnings("ignore:fit keeps no sums")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_fit_that_is_broken_off_at_its_end_leaves_none(method, monkeypatch):
    model = Difference.made().fit(X[:40], Y)
    monkeypatch.setattr(SquaredL2Law, "of", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(X, Y)
    with pytest.raises(ValueError, match="not fitted"):
        Difference.ask(model)


@BOTH
def test_later_rows_need_not_count(kind):
    """A batch may have weight 0 in all its rows; the first may not."""
    plain, model = streamed(kind), streamed(kind)
    none = np.zeros(9)
    if kind is Difference:
        model.partial_fit(X[:9], Y[:9], none, none)
    else:
        model.partial_fit(X[:9], sample_weight=none)
    np.testing.assert_array_equal(kind.ask(model), kind.ask(plain))
    with pytest.raises(InputError, match="zero in every row"):
        kind.made().partial_fit(X[:9], *([Y[:9], none] if kind is Difference else [None, none]))
