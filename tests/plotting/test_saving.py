"""Pictures as files, without windows and without state."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isopleth.errors import InputError, MissingExtraError
from isopleth.plotting import check_figure_target, plot_anomalies, save_figure

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


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"isopleth\[plot\]"):
        check_figure_target(tmp_path / "picture.png")
