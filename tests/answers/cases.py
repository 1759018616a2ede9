"""What the records hold: each case fits something at its defaults, and returns what it found by name."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, chdir
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from answers import tables
from cli.shell import run
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
from isopleth.difference import KDEDifference
from isopleth.difference.fitted import KINDS
from isopleth.frames import FRAMES
from isopleth.kernels import KERNELS, ProductLaplacian
from isopleth.sampling import sample
from isopleth.score import KEF, SSGE, Landweber, NuMethod, Stein
from isopleth.tasks import AnytimeDriftMonitor, make_rows, sliding_lsdd
from isopleth.tasks.made_rows.selection import Selection

# Functions that make what a case found, by its name.
CASES: dict[str, Callable[[], dict[str, Any]]] = {}
# Relative tolerances of cases whose iterations end before the answer has all digits.
LOOSE = {"score, KernelScore": 1e-4, "score, KernelScore iris": 1e-4}


def case(name: str, **how: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that adds a case to the list."""

    def added(function: Callable) -> Callable:
        CASES[name] = lambda: function(**how)
        return function

    return added


def picture(axes: Any) -> dict[str, Any]:
    """Return the places and sizes of what a picture of matplotlib shows."""
    out: dict[str, Any] = {"inches": axes.figure.get_size_inches()}
    for k, ax in enumerate(axes.figure.axes):
        drawn: dict[str, list] = {"limits": [*ax.get_xlim(), *ax.get_ylim()]}
        for line in ax.lines:
            drawn.setdefault("lines", []).extend(
                [line.get_linewidth(), *np.asarray(line.get_xydata(), dtype=float).ravel()]
            )
        for each in ax.collections:
            sizes = [*each.get_sizes(), *each.get_linewidths()] if hasattr(each, "get_sizes") else each.get_linewidths()
            drawn.setdefault("dots", []).extend([*sizes, *np.asarray(each.get_offsets(), dtype=float).ravel()])
        for bar in ax.patches:
            drawn.setdefault("bars", []).extend(bar.get_window_extent().bounds)
        for text in ax.texts:
            drawn.setdefault("texts", []).extend([text.get_fontsize(), *map(float, text.get_position())])
        out[str(k)] = {name: np.array(held, dtype=float) for name, held in drawn.items()}
    return out


def asked_of(model: Any, question: str, *given: Any, **how: Any) -> Any:
    """Return the answer of a method, or that the model has none."""
    try:
        return getattr(model, question)(*given, **how)
    except (InputError, AttributeError) as refusal:
        return type(refusal).__name__


def shown(result: Any) -> dict[str, Any]:
    """Return a result and its pictures."""
    return {"": result, **({"picture": picture(result.plot())} if result.content().charts else {})}


def with_far_rows(rows: np.ndarray) -> np.ndarray:
    """Return some rows, their mean, a row at their edge, and rows where sums of kernels underflow."""
    edge, spread = rows.max(axis=0), rows.std(axis=0) * np.arange(1, rows.shape[1] + 1)
    return np.vstack([rows[::20], rows.mean(axis=0), edge + spread, edge + 40.0 * spread, edge - 90.0 * spread])


# Densities

FLOWERS = {"iris": tables.iris, "bent": tables.bent}
DENSITIES = {
    "SOSREP iris": (SOSREP(), "iris"),
    "SOSREP bent": (SOSREP(), "bent"),
    "SOSREP scale": (SOSREP(frame="scale"), "iris"),
    "SOSREP product Laplacian": (SOSREP(kernel=ProductLaplacian(), frame="scale"), "bent"),
    "SOSREP landmarks": (SOSREP(kernel="sdo", landmarks=40, frame="whiten"), "iris"),
    "SOSREP bounds": (SOSREP(bounds=[(0.0, None)] * 4), "iris"),
    "KDE debiased": (KDE(debias=KernelScore()), "bent"),
    "KDE scale": (KDE(frame="scale", kernel="matern52"), "bent"),
    "random features": (RandomFeatureSOSREP(random_state=0), "bent"),
    "random features, whitened": (RandomFeatureSOSREP(random_state=0, frame="whiten"), "bent"),
    "SOSREP whitened": (SOSREP(frame="whiten", length_scale="leave_one_out"), "bent"),
    "SOSREP sdo": (SOSREP(kernel="sdo", length_scale=[0.4, 0.7], frame="scale"), "bent"),
    "SOSREP search": (SOSREP(length_scale=Search(grid=[0.5, 1.0, 2.0], cv=2), frame="scale"), "bent"),
    "KDE search in frames": (KDE(length_scale=Search("likelihood", grid=[0.5, 1.0, 2.0], cv=2)), "bent"),
    "KDE marginal": (KDE(frame="marginal"), "bent"),
}


def density(model: Any, rows: np.ndarray) -> dict[str, Any]:
    model.fit(rows)
    asked = with_far_rows(rows)
    gaps = np.where(np.arange(asked.size).reshape(asked.shape) % 3 == 0, np.nan, asked)
    out = {"fit": model, "log density": model.score_samples(asked), "gradient": model.grad_log_density(asked)}
    out["loss"] = asked_of(model, "hyvarinen_loss", asked[-7:-2] + 0.01)
    out["levels"] = asked_of(model, "level_set", [0.1, 0.5, 0.99])
    out["draws"] = asked_of(model, "sample", 5, random_state=0)
    out |= {how: asked_of(model, "impute", gaps[:3], how, random_state=0) for how in ("mean", "draw")}
    for name, given in (("marginal", [1]), ("conditional", {0: 1.0})):
        part = asked_of(model, name, given)
        out[name] = (
            part if isinstance(part, str) else part.score_samples(asked[:, [1]] if name == "marginal" else asked[:, 1:])
        )
    # Pictures of mixtures over frames take seconds.
    drawn = rows.shape[1] == 2 and getattr(model, "frame", "") == "scale" and hasattr(model, "plot")
    return out | ({"picture": picture(model.plot(rows=rows))} if drawn else {})


for _name, (_model, _table) in DENSITIES.items():
    case(f"density, {_name}", model=_model, rows=FLOWERS[_table]())(density)


@case("density, mixed table", model=SOSREP())
@case("density, mixed table, KDE", model=KDE())
@case("density, mixed table in scale", model=SOSREP(frame="scale", kernel=ProductLaplacian()))
def mixed(model: Any) -> dict[str, Any]:
    table = tables.people()
    model.fit(table)
    out = {"fit": model, "log density": model.score_samples(table[:20]), "draws": model.sample(5, random_state=0)}
    out["levels"] = asked_of(model, "level_set", [0.5, 0.9])
    out |= {how: model.impute(table[:20], how, random_state=0) for how in ("mean", "draw")}
    given = model.conditional({"city": "Oslo", "visits": 2})
    out["given"] = given.score_samples(table[["income", "height", "total", "member", "born"]][:20].dropna())
    return out


@case("density, imputer")
def imputer() -> dict[str, Any]:
    table = tables.people()
    model = DensityImputer().fit(table)
    low, high = model.impute_interval(table)
    return {"filled": model.transform(table), "low": low, "high": high}


def every_draw() -> AbstractContextManager[Any]:
    """Keep the first draws whatever trees say of them, whose splits depend on the version of scikit-learn."""
    return patch.object(Selection, "kept", lambda self, drawn, center, n, rng: np.arange(n))


@case("density, times")
def times() -> dict[str, Any]:
    table = tables.visits()
    with every_draw():
        return {"draws": make_rows(KDE().fit(table), 8, random_state=0)}


@case("density, recorded")
def recorded_draws() -> dict[str, Any]:
    rows = np.round(tables.bent(), 1)
    with every_draw():
        of_models = {str(k): one.fit(rows) for k, one in enumerate((SOSREP(), KDE(frame="scale")))}
        out = {k: make_rows(model, 8, random_state=0) for k, model in of_models.items()}
        gaps = tables.people()
        return out | {"gaps": make_rows(SOSREP().fit(gaps), 8, random_state=0)}


@case("density, grid")
def grid() -> dict[str, Any]:
    return {"grid": KDE(frame="scale").fit(tables.bent()).evaluate_on_grid()._asdict()}


# Kernels and frames


@case("kernels")
def kernels() -> dict[str, Any]:
    s, out = np.array([0.01, 0.3, 1.0, 2.5, 9.0, 60.0]), {}
    for name, kernel in {**KERNELS, "product_laplacian": ProductLaplacian()}.items():
        bound, facts = kernel.bind(2), ("smoothness", "integrable", "square_integrable", "has_spectrum")
        out[name] = {fact: asked_of(bound, "__getattribute__", fact) for fact in facts}
        out[name] |= {order: asked_of(bound, "derivative", s, order) for order in range(1, 4)}
        out[name] |= {question: asked_of(bound, question) for question in ("second_at_zero", "log_integral")}
        out[name] |= {
            "laplacian": asked_of(bound, "laplacian", s),
            "value": asked_of(bound, "__call__", s),
            "log": asked_of(bound, "log", s),
        }
        out[name]["draws"] = asked_of(bound, "sample", 5, np.random.default_rng(0))
        out[name]["spectrum"] = asked_of(bound, "log_spectral_density", s[:, None] * [1.0, 0.5])
        out[name]["fit"] = asked_of(SOSREP(kernel=kernel, length_scale=1.5, frame="scale"), "fit", tables.bent()[::9])
    return out


@case("frames")
def frames() -> dict[str, Any]:
    rows, out = tables.bent(), {}
    weights = np.linspace(0.5, 1.5, len(rows))
    for name, frame in FRAMES.items():
        found = frame.fit(rows, weights / weights.sum())
        z = found.forward(rows[::20])
        out[name] = {"map": found, "forward": z, "inverse": found.inverse(z + 0.1), "at": found.at(rows[::20])}
    return out


# Scores and samplers

SCORES = {
    "KernelScore": (KernelScore(), "bent"),
    "KernelScore iris": (KernelScore(), "iris"),
    "Nystrom": (NystromKEF(random_state=0), "bent"),
    "Nystrom in little memory": (NystromKEF(random_state=0, memory_limit=2**18), "bent"),
    "Nystrom iris": (NystromKEF(random_state=0), "iris"),
    **{kind.__name__: (kind(), "iris") for kind in (Stein, SSGE, KEF, NuMethod, Landweber)},
}


def score(model: Any, rows: np.ndarray) -> dict[str, Any]:
    model.fit(rows)
    asked = with_far_rows(rows)
    out = {"fit": model, "gradient": model.grad_log_density(asked), "loss": model.hyvarinen_loss(rows[::7])}
    out |= {name: asked_of(model, name, asked) for name in ("divergence", "log_density")}
    return out | {"chosen": asked_of(model, "chosen")}


for _name, (_model, _table) in SCORES.items():
    case(f"score, {_name}", model=_model, rows=FLOWERS[_table]())(score)


@case("score, normaliser")
def normaliser() -> dict[str, Any]:
    model = KernelScore(frame="scale", base="gaussian").fit(tables.bent()[::2])
    return {"normaliser": model.log_normalizer(500, random_state=0)}


@case("sampling")
def chains() -> dict[str, Any]:
    found = sample(KDE(frame="scale").fit(tables.bent()), 64, chains=8, warm_up=60, random_state=0)
    facts = {"r_hat": found.r_hat, "ess": found.effective_sample_size, "tail": found.tail_effective_sample_size}
    return {"chains": found, "problems": len(found.problems()), **facts}


# Differences


@case("difference, LSDD", model=LSDD(random_state=0))
@case("difference, LSDD total variation", model=LSDD(random_state=0, penalty="rkhs"))
@case("difference, KDE", model=KDEDifference())
def difference(model: Any) -> dict[str, Any]:
    one, two = tables.bent()[:90], tables.normal(110, 2, 7) + [0.3, 1.0]
    model.fit(one, two)
    out = {"fit": model, "difference": model.difference(with_far_rows(one))}
    if isinstance(model, LSDD):
        out["std"] = model.difference_std(one[::10])
        out["classes"] = model.predict(one[::10])
        out["interval"] = model.squared_l2_interval()
        out["levels"] = model.level_set([0.5, 0.9])
        out["picture"] = picture(model.plot())
        out |= {kind: model.squared_l2(kind) for kind in KINDS}
    return out


# Tasks


@case("cells", rows=tables.bent)
@case("cells, mixed table", rows=tables.people)
def cells(rows: Callable[[], Any]) -> dict[str, Any]:
    table = rows()
    model = CellwiseDetector(random_state=0).fit(table)
    return {
        "rows": model.row_scores_,
        "p": model.p_values_[:12],
        "new": model.score_cells(table[:12]),
        "answer": model.cells(),
    }


@case("anomalies", rows=tables.bent)
@case("anomalies, wine", rows=lambda: tables.wine()[0])
@case("anomalies, mixed table", rows=tables.people)
@case("anomalies, clean reference", rows=tables.bent, novelty=True)
@case("anomalies, clean reference, words and gaps", rows=tables.people, novelty=True)
@case("anomalies, fast", rows=tables.iris, novelty=True, fast=True)
@case("anomalies, contamination", rows=tables.iris, contamination=0.07)
def anomalies(rows: Callable[[], Any], **how: Any) -> dict[str, Any]:
    table = rows()
    model = AnomalyDetector(random_state=0, **how).fit(table)
    asked = table[:12].copy()
    if isinstance(asked, np.ndarray):
        asked[0] = table.max(axis=0) + table.std(axis=0)
    out = {
        "fit": model,
        "scores": model.score_samples(table),
        "p": model.p_values(asked),
        "explained": model.explain(asked),
    }
    out |= {"selected": model.select(asked), "probability": model.anomaly_probability(asked)}
    return out | shown(model.anomalies(table, explain=3))


@case("changes, steps", series=tables.steps)
@case("changes, season", series=tables.season, times=lambda: tables.days(24 * 8))
@case("changes, none", series=lambda: tables.normal(150, 1, 8)[:, 0])
@case("changes, two columns", series=lambda: np.column_stack([tables.steps(90), tables.normal(90, 1, 9)[:, 0]]))
@case("changes, line", series=lambda: np.round(tables.normal(150, 1, 10)[:, 0] + 0.03 * np.arange(150), 6))
@case("changes, gaps", series=lambda: tables.with_gaps(tables.steps()))
@case("changes, season with gaps", series=lambda: tables.with_gaps(tables.season()))
@case("changes, short", series=lambda: np.round(tables.steps(36), 1))
def changes(series: Callable[[], Any], times: Callable[[], Any] | None = None) -> dict[str, Any]:
    model = ChangePointDetector(random_state=0).fit(series(), times=times() if times else None)
    return {"fit": {k: v for k, v in vars(model).items() if k.endswith("_") and k != "result_"}} | shown(model.result_)


@case("changes, sliding difference")
def sliding() -> dict[str, Any]:
    return {"curve": sliding_lsdd(tables.season(), random_state=0)}


@case("two samples", X=tables.bent, Y=lambda: tables.normal(110, 2, 7) + [0.3, 1.0])
@case("two samples, equal", X=lambda: tables.normal(80, 3, 11), Y=lambda: tables.normal(80, 3, 12))
@case("two samples, mixed", X=tables.people, Y=lambda: tables.people(120, 30, 0.2))
@case("two samples, gaps alike", X=tables.people, Y=lambda: tables.people(120, 30), compare_missing=False)
@case("two samples, groups", X=lambda: tables.normal(80, 2, 11), Y=lambda: tables.normal(80, 2, 12) + 0.4, groups=4)
def two_samples(
    X: Callable[[], Any], Y: Callable[[], Any], groups: int | None = None, **options: Any
) -> dict[str, Any]:
    one, two = X(), Y()
    how = {"groups": (np.arange(len(one)) // groups, 1000 + np.arange(len(two)) // groups)} if groups else {}
    return shown(two_sample_test(one, two, random_state=0, **how, **options))


@case("class priors", mixed=False)
@case("class priors, mixed table", mixed=True)
def class_priors(mixed: bool) -> dict[str, Any]:
    table, classes = tables.wine()
    asked = table[12:55]
    if mixed:
        table, asked = tables.people(), tables.people(90, 31, 0.3)
        classes = np.where(np.exp(7.0) < table.income, "rich", "poor")
        table, asked = table.drop(columns=["income", "total"]), asked.drop(columns=["income", "total"])
    model = ClassPriorEstimator(random_state=0).fit(table, classes)
    found = model.estimate(asked)
    out = {"fit": model, "probabilities": model.predict_proba(asked, found), "classes": model.predict(asked)}
    return out | {"population": model.estimate(asked, population=True)} | shown(found)


@case("drift", reference=lambda: tables.normal(300, 3, 13), stream=lambda: tables.normal(160, 3, 14))
@case("drift, mixed table", reference=lambda: tables.people(400, 40), stream=lambda: tables.people(160, 41))
def drift(reference: Callable[[], Any], stream: Callable[[], Any]) -> dict[str, Any]:
    rows, later = reference(), stream()
    moved = (
        later[-80:] + [0.0, 2.0, 0.0]
        if isinstance(later, np.ndarray)
        else later[-80:].assign(visits=lambda t: 9 - t.visits)
    )
    out = {}
    for name, monitor in (
        ("windows", DriftMonitor(window=20, expected_run_length=300, random_state=0)),
        ("without gaps", DriftMonitor(window=20, expected_run_length=300, compare_missing=False, random_state=0)),
        ("anytime", AnytimeDriftMonitor(random_state=0)),
    ):
        monitor.fit(rows)
        out |= {name: monitor, f"{name} before": monitor.update(later[:80])}
        out |= {f"{name} after{key}": held for key, held in shown(monitor.update(moved)).items()}
    return out


@case("Stein test", mean=0.0)
@case("Stein test of another density", mean=0.5)
def goodness_of_fit(mean: float) -> dict[str, Any]:
    return shown(stein_test(tables.normal(100, 2, 15), lambda X: mean - X, random_state=0))


# Commands

COMMANDS = {
    "anomalies": "anomalies people.csv --explain --top 6 --out out.csv",
    "anomalies by a reference": "anomalies stream.csv --reference numbers.csv --columns a,b --out out.csv",
    "changes": "changes season.csv --out out.csv",
    "compare": "compare people.csv other.csv --resamples 199 --out out.csv",
    "describe": "describe people.csv",
    "expect": "expect people.csv --given visits=3,city=Oslo --size 100",
    "fill": "fill people.csv --interval --out out.csv",
    "fit": "fit numbers.csv --out model --size 20",
    "monitor": "monitor --reference numbers.csv --window 20 --run-length 300 --columns a,b",
    "prior": "prior people.csv other.csv --target member --exclude total --out out.csv",
    "sample": "sample people.csv -n 40 --size 100 --out out.csv",
    "score": "score kept numbers.csv --out out.csv",
}


def _stream() -> pd.DataFrame:
    moved = tables.normal(200, 2, 17) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 100, axis=0)
    return pd.DataFrame(moved, columns=["a", "b"])


@cache
def _folder() -> tempfile.TemporaryDirectory:
    folder = tempfile.TemporaryDirectory(prefix="answers-")
    root = Path(folder.name)
    tables.people().to_csv(root / "people.csv", index=False)
    tables.people(120, 30, 0.3).to_csv(root / "other.csv", index=False)
    numbers = pd.DataFrame(tables.normal(300, 3, 16), columns=["a", "b", "c"])
    numbers.to_csv(root / "numbers.csv", index=False)
    pd.DataFrame({"hour": tables.days(24 * 8), "load": tables.season()}).to_csv(root / "season.csv", index=False)
    _stream().to_csv(root / "stream.csv", index=False)
    save(SOSREP(landmarks=15, frame="scale").fit(numbers), root / "kept")
    return folder


def command(line: str, as_json: bool) -> dict[str, Any]:
    """Run a command for its text, and again for its JSON if no other case has its result, and read the file that it wrote."""
    typed = _stream().to_csv(index=False) if line.startswith("monitor") else None
    with chdir(_folder().name), every_draw():
        text = run(*line.split(), rows=typed)
        assert text.exit_code in (0, 3), text.output
        out: dict[str, Any] = {"text": text.stdout, "said": text.stderr}
        if as_json:
            out["json"] = json.loads(run(*line.split(), "--json").stdout)
        if os.path.exists("out.csv"):
            out["file"] = pd.read_csv("out.csv")
            os.remove("out.csv")
        if os.path.exists("model"):
            out["model"] = load("model")
            os.remove("model")
    return out


for _name, _line in COMMANDS.items():
    case(f"command, {_name}", line=_line, as_json=_name in ("describe", "expect", "fill", "fit", "sample", "score"))(
        command
    )


# Functions of tensors


@case("torch")
def tensors() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    from isopleth import torch as functions

    x = torch.tensor(tables.normal(30, 2, 18), requires_grad=True)
    y = torch.tensor(tables.normal(25, 2, 19) + 0.5)
    out = {}
    for name, value in {
        "mmd": functions.mmd(x, y),
        "ksd": functions.ksd(x, lambda z: -z),
        "squared_l2": functions.squared_l2(x, y),
        "entropy": functions.entropy_surrogate(x),
        "information": functions.mutual_information_surrogate(x, x[:, :1] ** 2),
    }.items():
        (gradient,) = torch.autograd.grad(value, x)
        out[name] = {"value": value.item(), "gradient": gradient.numpy()}
    return out | {"svgd": functions.svgd_direction(x, lambda z: -z).detach().numpy()}
