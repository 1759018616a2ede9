"""Progress bars: silent by default, lines in a log, one line on a terminal, and never the end of a computation."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DensityImputer,
    DriftMonitor,
    InputError,
    KernelScore,
    NystromKEF,
    RandomFeatureSOSREP,
    Search,
    load,
    save,
    stein_test,
    two_sample_test,
)
from isopleth.core.progress import AtMost, Progress
from isopleth.core.threads import map_threads
from isopleth.kernels import ProductLaplacian
from isopleth.score import SSGE, NuMethod
from isopleth.tasks import AnytimeDriftMonitor, make_rows


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr("isopleth.core.progress.PATIENCE", 0.0)
    monkeypatch.setattr("isopleth.core.progress.IN_LOG", 0.0)
    monkeypatch.setattr("isopleth.core.progress.ON_TERMINAL", 0.0)


def run(verbose=True, total=4):
    with Progress("fits", total, verbose) as step:
        for _ in range(total):
            step()


def test_short_computations_are_silent(capsys):
    run()
    assert capsys.readouterr().err == ""


def test_a_log_gets_lines(at_once, capsys):
    run(verbose=False)
    assert capsys.readouterr().err == ""
    run()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("]")[1].split(",")[0].strip() for line in lines[:4]] == ["25%", "50%", "75%", "100%"]
    assert lines[0].startswith("fits [######------------------]")
    assert lines[4].startswith("fits: done in ")


def test_a_terminal_gets_one_line_that_disappears(at_once, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    run()
    text = sys.stderr.getvalue()
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")


def test_a_closed_stream_does_not_end_the_computation(at_once, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    run()


def test_an_error_leaves_no_message_of_success(at_once, capsys):
    def broken(step):
        step()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), Progress("fits", 2, True) as step:
        broken(step)
    assert "done" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (SOSREP(length_scale=Search(cv=0.3), frame="scale"), "search of a length scale"),
        (KDE(length_scale=Search(cv=0.3), frame="scale"), "search of a length scale"),
        (KernelScore(), "search of a length scale and base"),
        (SOSREP(length_scale=Search(cv=0.3), n_jobs=3, frame="scale"), "search of a length scale"),
        (SOSREP(frame="scale"), "equations of the coefficients"),
        (SOSREP(), "choice of weights"),
        (KDE(), "fits in frames"),
    ],
)
def test_searches_report_when_asked(at_once, capsys, model, label):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    model.fit(rows)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=True).fit(rows)
    assert label in capsys.readouterr().err


@pytest.mark.parametrize("taken", [0, 2, 9])
def test_an_unknown_number_of_steps_is_counted_up_to_the_total_and_filled_at_the_end(taken):
    counted: list[int] = []
    steps = AtMost(5, counted.append)
    for _ in range(taken):
        steps(1)
    assert sum(counted) == min(taken, 5)
    steps.end()
    assert sum(counted) == 5


def test_computations_inside_one_that_reports_are_silent(at_once, capsys):
    def work(item):
        run()
        step()

    with Progress("search", 2, True) as step:
        map_threads(work, range(2), 2)
    assert "fits" not in capsys.readouterr().err
    run()
    assert "fits" in capsys.readouterr().err


def test_computations_inside_a_silent_one_report(at_once, capsys):
    with Progress("search", 1, False):
        run()
    assert "fits" in capsys.readouterr().err


def test_computations_inside_a_part_say_how_much_of_it_is_done(at_once, capsys):
    with Progress("search", 10, True) as step:
        with step.part(4):
            with Progress("fits", 2, True) as fit:
                fit()
            assert step._done == 2.0
        assert step._done == 4.0
        with step.part(6), Progress("fits", 1, False) as outer, outer.part(1), Progress("sums", 4, False) as inner:
            inner()
            assert step._done == 5.5
    assert step._done == 10.0
    assert "fits" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 2)), rng.normal(0.5, size=(90, 2))


def with_gaps(rows):
    rows = rows.copy()
    rows[::7, 1] = np.nan
    return rows


def labels(rows):
    return (np.arange(len(rows)) % 2).astype(int)


def in_batches(X, Y, v):
    model = LSDD(random_state=0, verbose=v).partial_fit(X[:60], Y[:60])
    return model.partial_fit(X[60:], Y[60:]).difference(X)


# Each computation, for its two samples and `verbose`, with the names of what it reports.
LONG = {
    "LSDD": (
        lambda X, Y, v: LSDD(random_state=0, verbose=v).fit(X, Y).difference(X),
        ["cross-validation", "moments at the length scale"],
    ),
    "LSDD in batches": (in_batches, ["cross-validation"]),
    "RandomFeatureSOSREP": (
        lambda X, Y, v: RandomFeatureSOSREP(n_frequencies=50, random_state=0, verbose=v).fit(X).score_samples(X),
        ["pass over the rows"],
    ),
    "RandomFeatureSOSREP with a Search": (
        lambda X, Y, v: (
            RandomFeatureSOSREP(
                length_scale=Search(cv=0.3, criterion="likelihood"), n_frequencies=50, random_state=0, verbose=v
            )
            .fit(X)
            .score_samples(X)
        ),
        ["search of a length scale", "pass over the rows"],
    ),
    "NystromKEF": (
        lambda X, Y, v: NystromKEF(landmarks=10, random_state=0, verbose=v).fit(X).grad_log_density(X),
        ["sums over the rows", "search of a ridge"],
    ),
    **{
        cls.__name__: (
            lambda X, Y, v, cls=cls: cls(base="auto", verbose=v).fit(X).grad_log_density(X),
            ["search of a length scale and base"],
        )
        for cls in (SSGE, NuMethod)
    },
    "AnomalyDetector": (
        lambda X, Y, v: AnomalyDetector(n_estimators=10, random_state=0, verbose=v).fit(X).score_samples(Y),
        ["densities of samples"],
    ),
    "AnomalyDetector of a reference": (
        lambda X, Y, v: AnomalyDetector(novelty=True, random_state=0, verbose=v).fit(X).score_samples(Y),
        ["nearest rows", "densities of all rows"],
    ),
    "explanation of anomalies": (
        lambda X, Y, v: AnomalyDetector(n_estimators=10, random_state=0, verbose=v).fit(X).explain(Y[:5]).excess,
        ["laws of columns"],
    ),
    "two_sample_test": (
        lambda X, Y, v: [
            two_sample_test(X, Y, n_resamples=50, random_state=0, verbose=v).statistic,
            *two_sample_test(X, Y, n_resamples=50, random_state=0, verbose=v).witness.p_values,
        ],
        ["test", "columns and pairs"],
    ),
    "stein_test": (
        lambda X, Y, v: stein_test(X, lambda rows: -rows, n_resamples=50, random_state=0, verbose=v).kernel_scores,
        ["sums over pairs of rows"],
    ),
    "DriftMonitor": (
        lambda X, Y, v: (
            DriftMonitor(window=8, expected_run_length=40, centers=20, random_state=0, verbose=v).fit(X).threshold_
        ),
        ["simulation of references", "simulation of streams", "simulation of false alarms"],
    ),
    "rows of a DriftMonitor": (
        lambda X, Y, v: (
            DriftMonitor(window=8, expected_run_length=40, centers=20, random_state=0, verbose=v)
            .fit(X)
            .update(Y)
            .statistic
        ),
        ["rows of the stream"],
    ),
    "rows of an AnytimeDriftMonitor": (
        lambda X, Y, v: AnytimeDriftMonitor(random_state=0, verbose=v).fit(X).update(Y).statistic,
        ["rows of the stream"],
    ),
    "ChangePointDetector": (
        lambda X, Y, v: ChangePointDetector(random_state=0, verbose=v).fit(np.vstack([X[:30], Y[:30]])).p_values_,
        ["search of seasons", "search of changes"],
    ),
    "ClassPriorEstimator": (
        lambda X, Y, v: ClassPriorEstimator(random_state=0, verbose=v).fit(X, labels(X)).estimate(Y).priors,
        ["scores that separate the classes"],
    ),
    "DensityImputer": (
        lambda X, Y, v: DensityImputer(verbose=v, n_jobs=1).fit_transform(with_gaps(X)),
        ["laws of columns", "filling of gaps"],
    ),
    "draws of a DensityImputer": (
        lambda X, Y, v: DensityImputer(strategy="draw", random_state=0, verbose=v).fit_transform(with_gaps(X)),
        ["laws of columns", "filling of gaps"],
    ),
    "draws that look like rows of the fit": (
        lambda X, Y, v: make_rows(KDE("gaussian", 0.5, frame="scale").fit(X), 9, None, 0, verbose=v),
        ["samples"],
    ),
    "Search in a table": (
        lambda X, Y, v: (
            SOSREP(ProductLaplacian(), length_scale=Search(grid=[0.5, 1.0, 2.0], cv=0.3), verbose=v, frame="scale")
            .fit(with_gaps(X))
            .score_samples(X)
        ),
        ["search of a length scale"],
    ),
    "cells of rows beyond the sample": (
        lambda X, Y, v: (
            CellwiseDetector(n_estimators=3, max_samples=40, random_state=0, verbose=v)
            .fit(np.random.default_rng(0).normal(size=(5000, 2)))
            .row_scores_
        ),
        ["laws of columns"],
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", LONG)
def test_verbose_reports_and_changes_no_result(at_once, capsys, samples, name, monkeypatch):
    compute, reports = LONG[name]
    steps, call = {}, Progress.__call__

    def counted(self, done=1):
        steps[self] = steps.get(self, 0) + done
        call(self, done)

    monkeypatch.setattr(Progress, "__call__", counted)
    silent = compute(*samples, False)
    assert capsys.readouterr().err == ""
    shown = compute(*samples, True)
    err = capsys.readouterr().err
    for label in reports:
        assert any(line.startswith(f"{label} [") and "100%" in line for line in err.splitlines()), err
    assert {each._label: done - each._total for each, done in steps.items() if abs(done - each._total) > 1e-9} == {}
    np.testing.assert_array_equal(shown, silent)


@pytest.mark.parametrize(
    "compute",
    [
        lambda X, Y: two_sample_test(X, Y, verbose="yes"),
        lambda X, Y: stein_test(X, lambda rows: -rows, verbose=-1),
        lambda X, Y: ChangePointDetector(verbose=None).fit(X),
    ],
)
def test_a_wrong_verbose_is_refused(samples, compute):
    with pytest.raises(InputError, match="verbose"):
        compute(*samples)


class Noted:
    """Callback of scikit-learn that notes what it is told, and is passed on to estimators inside others."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.ended, self.calls, self.fitted = [], [], [], None

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((type(estimator).__name__, context.task_name))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append((type(estimator).__name__, context.task_name))
        if context.parent is None:
            self.fitted = fitted_estimator


@pytest.mark.parametrize(
    ("model", "label", "data"),
    [
        (SOSREP(length_scale=Search(cv=0.3), frame="scale", n_jobs=2), "search of a length scale", 1),
        (KernelScore(cv=2), "search of a length scale and base", 1),
        (LSDD(), "cross-validation", 2),
        (ClassPriorEstimator(random_state=0), "scores that separate the classes", 1),
        (DriftMonitor(window=10, expected_run_length=50, random_state=0), "simulation of false alarms", 1),
        (ChangePointDetector(random_state=0), "search of changes", 1),
        (AnomalyDetector(n_estimators=5, random_state=0), None, 1),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_callbacks_of_scikit_learn_see_the_tasks_of_a_fit(model, label, data, samples, capsys):
    pytest.importorskip("sklearn.callback")
    noted = Noted()
    rows = (samples[0], np.arange(120) % 2) if isinstance(model, ClassPriorEstimator) else samples[:data]
    plain = clone(model).fit(*rows)
    model.set_callbacks(noted).fit(*rows)
    name = type(model).__name__
    assert noted.calls == ["setup", "teardown"]
    assert noted.begun[0] == noted.ended[-1] == (name, "fit")
    assert sorted(noted.begun) == sorted(noted.ended)
    assert {told for told, _ in noted.begun} == {name}  # fits inside it belong to its task
    if label is not None:
        parts = noted.ended.count((name, f"part of {label}"))
        assert 0 < parts <= 100
        assert (name, label) in noted.ended
    assert noted.fitted.get_params().keys() == plain.get_params().keys()
    assert not {"_callback_fit_ctx", "_parent_callback_ctx"} & set(vars(model))
    assert capsys.readouterr().err == ""


def test_a_fit_that_fails_ends_its_callbacks():
    pytest.importorskip("sklearn.callback")
    noted = Noted()
    with pytest.raises(InputError):
        SOSREP().set_callbacks(noted).fit([[np.inf], [0.0]])
    assert noted.calls == ["setup", "teardown"]
    noted = Noted()
    SOSREP().set_callbacks(noted).fit([[0.0], [1.0], [3.0]])  # what failed left nothing behind
    assert noted.calls == ["setup", "teardown"]


def test_a_grid_search_passes_callbacks_on(samples):
    pytest.importorskip("sklearn.callback")
    noted = Noted()
    search = GridSearchCV(KDE(frame="scale"), {"length_scale": [0.3, 1.0]}, cv=2).set_callbacks(noted)
    search.fit(samples[0])
    assert noted.calls == ["setup", "teardown"]
    assert len([1 for name, task in noted.ended if name == "KDE"]) >= 5  # four fits of folds and the last


def test_callbacks_are_no_part_of_a_model_file(samples, tmp_path):
    pytest.importorskip("sklearn.callback")
    model = KDE(frame="scale").set_callbacks(Noted()).fit(samples[0])
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").score_samples(samples[1]), model.score_samples(samples[1]))
