"""Plots of a density pass their parameters on."""

import numpy as np

from isopleth import KDE


def test_plots_pass_their_parameters_on(monkeypatch):
    import isopleth.density.figures

    model, asked = KDE(frame="scale").fit(np.random.default_rng(0).normal(size=(20, 2))), {}
    drawn = isopleth.density.figures
    monkeypatch.setattr(drawn, "plot_density", lambda density, **kwargs: asked.update(kwargs) or density)
    assert model.plot(columns=[0, 1], masses=[0.5]) is model
    assert asked == {"columns": [0, 1], "masses": [0.5], "rows": None, "ax": None}
