"""Targets of the study of scores in frames: their scores against differences of draws, and the command."""

import numpy as np
import pytest
from experiments import scores_in_frames
from experiments.scores_in_frames import TARGETS, main


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dim", [2, 5])
def test_scores_satisfy_the_identity_of_stein(name, dim):
    """E[s(x) f(x) + grad f(x)] = 0 for f = tanh of a column, within five standard errors."""
    target = TARGETS[name](dim)
    x = target.draw(100_000, np.random.default_rng(0))
    for j in (0, dim - 1):
        f = np.tanh(x[:, j])
        terms = target.score(x) * f[:, None]
        terms[:, j] += 1.0 - f**2
        assert (np.abs(terms.mean(axis=0)) < 5.0 * terms.std(axis=0) / 100_000**0.5).all()


def test_the_command_writes_its_table(capsys):
    given = ["--runs", "1", "--rows", "40", "--columns", "2", "--targets", "normal", "banana", "--methods"]
    main([*given, "fitted normal", "Stein whiten"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[1:3]] == ["normal", "banana"]
    assert lines[3].startswith("mean")
    target = TARGETS["normal"](2)
    error = scores_in_frames.error("fitted normal", target, 40, 0)[0]
    assert f"{error:.3f}" in lines[1]
