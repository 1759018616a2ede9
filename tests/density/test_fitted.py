"""The value that a fit returns, and the attributes of estimators that are read from it."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, SOSREP, InputError, load, save
from isopleth.kernels import ProductLaplacian
from isopleth.sampling import sample

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 2)) @ [[1.0, 0.7], [0.0, 0.5]] + [3.0, -1.0]
TABLE = pd.DataFrame(ROWS, columns=["a", "b"]).assign(w=RNG.choice(["x", "y"], 60))
MODELS = {
    "scale": (KDE(frame="scale"), ROWS),
    "product": (SOSREP(ProductLaplacian(), frame="scale"), ROWS),
    "one frame": (SOSREP(frame="whiten"), ROWS),
    "mixture": (SOSREP(), ROWS),
    "words": (KDE(), TABLE),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model, table = MODELS[request.param]
    return model.fit(table)._fitted


def test_the_same_rows_fitted_again_have_the_same_density(fitted):
    again = fitted.refit(fitted.points, fitted.weights)
    np.testing.assert_allclose(again.log_density(fitted.points), fitted.density.log_density(fitted.points), rtol=1e-8)


def test_gaps_and_parts_are_answered_by_one_density(fitted):
    """The density of a column, the density of a row with the other cells missing, and the two factors of a joint density."""
    rows = fitted.rows[:5]
    gappy = np.where(np.arange(rows.shape[1]) == 0, rows, np.nan)
    first, others = np.array([0]), np.arange(1, rows.shape[1])
    part = fitted.take(first, first, first)
    np.testing.assert_allclose(part.log_density(rows[:, :1]), fitted.log_density(gappy), rtol=1e-8)
    point = fitted.coordinates.enter(rows)
    rest = fitted.given({0: float(point[0, 0])}, others, others[others < 2], others)
    joint = part.log_density(rows[:1, :1]) + rest.log_density(rows[:1, 1:])
    np.testing.assert_allclose(joint, fitted.log_density(rows[:1]), rtol=1e-7)


def test_draws_are_points_of_the_density(fitted):
    drawn = fitted.leave(fitted.draw(2000, np.random.default_rng(0)))
    share = fitted.weights / fitted.weights.sum()
    spread = np.sqrt(share @ (fitted.rows - share @ fitted.rows) ** 2)
    assert (np.abs(drawn.mean(axis=0) - share @ fitted.rows) < 0.3 * spread).all()


def test_wider_densities_are_flatter_and_words_have_none():
    for name in ("scale", "one frame", "mixture"):
        fitted = MODELS[name][0].fit(ROWS)._fitted
        peaks = [
            one.evaluate(fitted.points)[0].max() - one.density.log_normalizer for one in (fitted, fitted.wider(3.0))
        ]
        assert peaks[1] < peaks[0] - 0.5, name
    with pytest.raises(InputError, match="chains"):
        KDE().fit(TABLE)._fitted.evaluate(np.zeros((1, 3)))
    with pytest.raises(InputError, match="chains"):
        sample(KDE().fit(TABLE), 10, method="annealed")


def test_scaled_columns_are_one_component_in_units_of_the_length_scale():
    model = SOSREP(frame="scale").fit(ROWS)
    assert [name for name, _, _ in model._fitted.recipe.members] == ["scale"]
    assert model._fitted.components is None
    scaled = (model.centers_ - np.median(model.centers_, axis=0)) / model.length_scale_
    np.testing.assert_allclose(model._fitted.points, scaled, atol=1e-12)


def test_attributes_are_those_of_the_value_and_go_with_it(tmp_path):
    model = SOSREP(frame="scale").fit(ROWS)
    expected = model.score_samples(ROWS)
    save(model, tmp_path / "m")
    for other in (load(tmp_path / "m"), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.score_samples(ROWS), expected)
        np.testing.assert_array_equal(other.centers_, model.centers_)
    assert not hasattr(model, "search_path_")
    assert not hasattr(KDE(), "centers_")
    model.set_params(n_jobs=1, memory_limit=1e6)  # of the next fit
    np.testing.assert_array_equal(model.score_samples(ROWS), expected)


def test_an_answer_leaves_nothing_in_a_model_file(tmp_path):
    table = TABLE.mask(RNG.uniform(size=TABLE.shape) < 0.1)
    model = KDE().fit(table)
    save(model, tmp_path / "before")
    model.impute(table)
    model.score_samples(table)
    save(model, tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_components_are_shown_by_what_tells_them_apart():
    density = SOSREP().fit(np.random.default_rng(2).normal(size=(300, 2)))
    first = density.components_[0]
    assert repr(first) == f"Component(frame={first.frame!r}, factor={first.factor!r}, weight={first.weight!r})"
