"""Densities on a regular grid against the sums over all rows."""

import numpy as np
import pytest

from isopleth import KDE, InputError


def rows(d: int, n: int = 300) -> np.ndarray:
    x = np.random.default_rng(d).normal(size=(n, d)) @ np.diag([3.0, 0.2][:d]) + [50.0, -7.0][:d]
    x[0] += 40.0  # a far row has a wide grid
    return x


def exact(model: KDE, axes: tuple[np.ndarray, ...]) -> np.ndarray:
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return np.exp(model.score_samples(points.reshape(-1, len(axes)))).reshape(points.shape[:-1])


@pytest.mark.parametrize(
    ("d", "options"),
    [
        (1, {}),
        (1, {"n_points": 7, "limits": [(45.0, 46.0)]}),
        (1, {"n_points": 3}),
        (2, {"n_points": (17, 30)}),
        (2, {"limits": [(40.0, 60.0), (-7.1, -7.0)], "n_points": 25}),
    ],
)
def test_a_grid_differs_from_the_sum_by_less_than_its_bound(d, options):
    x = rows(d)
    model = KDE(frame="scale").fit(x, sample_weight=np.random.default_rng(0).random(len(x)))
    axes, density, error = model.evaluate_on_grid(**options)
    gap = np.abs(density - exact(model, axes)).max()
    assert gap <= error
    assert gap < 1e-5 * np.exp(-model.log_normalizer_)  # of the largest value of a kernel
    assert density.min() >= 0.0
    if "limits" in options:
        assert [(axis[0], axis[-1]) for axis in axes] == options["limits"]


def test_the_bound_is_of_fourth_order_and_is_reached_between_nodes():
    model = KDE(frame="scale", length_scale=1.0).fit([[0.0], [1000.0]])
    gaps, bounds = [], []
    for n_points in (9, 17):  # nodes an eighth and a sixteenth apart, with a row in the middle of two of them
        step = 1.0 / (n_points - 1)
        axes, density, error = model.evaluate_on_grid(n_points, [(-0.5 * step, 1.0 - 0.5 * step)])
        gaps.append(np.abs(density - exact(model, axes)).max())
        bounds.append(error)
    assert bounds[0] / bounds[1] == pytest.approx(16.0, rel=1e-6)
    assert gaps[0] / gaps[1] == pytest.approx(16.0, rel=0.1)
    assert 0.4 < gaps[0] / bounds[0] <= 1.0


@pytest.mark.parametrize(
    ("options", "d", "asked", "words"),
    [
        ({"frame": "auto"}, 1, {}, "frame='scale'"),
        ({"frame": "scale", "kernel": "laplacian"}, 1, {}, "Gaussian"),
        ({"frame": "scale", "bounds": {0: (0.0, None)}}, 1, {}, "bounds"),
        ({"frame": "scale"}, 3, {}, "one or two"),
        ({"frame": "scale"}, 2, {"n_points": (3, 1)}, "n_points"),
        ({"frame": "scale"}, 2, {"n_points": 2.5}, "n_points"),
        ({"frame": "scale"}, 2, {"limits": [(0.0, 1.0)]}, "limits"),
        ({"frame": "scale"}, 1, {"limits": [(1.0, 1.0)]}, "limits"),
        ({"frame": "scale", "length_scale": 1e-6, "memory_limit": 1e6}, 1, {}, "memory_limit"),
    ],
)
def test_what_has_no_grid_is_refused_by_name(options, d, asked, words):
    model = KDE(**options).fit(np.abs(np.random.default_rng(0).normal(size=(40, d))))
    with pytest.raises(InputError, match=words):
        model.evaluate_on_grid(**asked)
