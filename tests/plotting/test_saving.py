"""Saving pictures opens no window and changes no global state."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isopleth import SOSREP, DataWarning
from isopleth.errors import InputError, MissingExtraError
from isopleth.plotting import check_figure_target, plot_anomalies, plot_density, plot_explanation, save_figure
from isopleth.tasks.anomaly.explanation import Explanation

pytest.importorskip("matplotlib")

X = np.random.default_rng(0).normal(size=(50, 2))


def drawn():
    share = np.linspace(0.02, 1.0, len(X))
    return plot_anomalies(X, ["a", "b"], share, share, np.where(share < 0.05, -1, 1))


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".PDF", b"%PDF"), (".svg", b"<?xml")])
def test_the_suffix_decides_the_format(tmp_path, suffix, magic):
    save_figure(drawn(), tmp_path / f"picture{suffix}")
    assert (tmp_path / f"picture{suffix}").read_bytes().startswith(magic)
    assert len(list(tmp_path.iterdir())) == 1


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        check_figure_target(tmp_path / "picture.jpeg")


def test_dollars_are_letters_and_no_formulas(tmp_path):
    names = ["price ($)", "$x_{$"]
    share = np.linspace(0.02, 1.0, len(X))
    explanation = Explanation(names, X, np.abs(X), np.zeros_like(X), share)
    for figure in (
        plot_anomalies(X, names, share, share, np.ones(len(X))),
        plot_explanation(explanation).figure,
        plot_density(SOSREP(frame="scale").fit(pytest.importorskip("pandas").DataFrame(X, columns=names))).figure,
    ):
        save_figure(figure, tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        assert all(f"<!-- {name} -->" in text for name in names)


def test_letters_that_the_font_lacks_are_one_warning(tmp_path):
    figure = plot_anomalies(X, ["温度", "湿度\x1b"], X[:, 0], X[:, 0], np.ones(len(X)))
    with pytest.warns(DataWarning, match="drawn as boxes") as caught:
        save_figure(figure, tmp_path / "picture.png")
    assert len(caught) == 1


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"isopleth\[plot\]"):
        check_figure_target(tmp_path / "picture.png")
