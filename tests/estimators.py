"""All estimators of the library, for the tests: what is listed here is checked against scikit-learn's conventions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

from sklearn.base import BaseEstimator

import isopleth
from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    ConditionalDensity,
    DensityImputer,
    DriftMonitor,
    KernelScore,
    NystromKEF,
    RandomFeatureSOSREP,
)
from isopleth.difference import KDEDifference
from isopleth.kernels import ProductLaplacian
from isopleth.score import KEF, SSGE, Landweber, NuMethod, Stein, Tikhonov
from isopleth.tasks import AnytimeDriftMonitor

# Estimators that are fitted to one table, as scikit-learn's are: `check_estimator` runs on each, some 60 fits; so they are quick.
BASIC = [
    SOSREP(landmarks=15, frame="scale"),
    KDE(frame="scale"),
    DensityImputer(n_estimators=3),
    RandomFeatureSOSREP(n_frequencies=10),
    KernelScore(length_scale=1.5, regularizer=Tikhonov(0.1), frame="scale"),
    Stein(),
    NystromKEF(space="diagonal", landmarks=4, regularizer=Tikhonov(0.1), random_state=0, frame="scale"),
    ConditionalDensity(n_estimators=3),
    AnomalyDetector(n_estimators=10),
    CellwiseDetector(n_estimators=3),
    AnomalyDetector(novelty=True, fast=True),
    DriftMonitor(window=8, expected_run_length=20),
    ClassPriorEstimator(random_state=0),
]
# Classes that differ from a basic one in default parameters only, and values of parameters: they run the code of a basic one
# between `fit` and the mathematics, which the tests of each package compare.
VARIANTS = [
    AnomalyDetector(novelty=True),
    KDE(),
    KernelScore(length_scale=1.5, regularizer=Tikhonov(0.1)),
    SOSREP(),
    SOSREP(kernel="laplacian", length_scale="median", frame="scale"),
    KernelScore(cv=2),
    SOSREP(frame="deep"),
    SOSREP(kernel="sdo"),
    SOSREP(kernel=ProductLaplacian()),
    KDE(kernel="laplacian", length_scale="median", frame="scale"),
    KDE(debias=KernelScore()),
    SSGE(),
    SSGE(space="curl_free"),
    KEF(),
    KEF(truncated=False),
    KEF(base="gaussian"),
    NuMethod(),
    Landweber(),
    NystromKEF(random_state=0),
    NystromKEF(space="diagonal", landmarks=4, random_state=0),
]
OF_ONE_TABLE = BASIC + VARIANTS

# Some checks round the rows of estimators that take categories, and make classes of the first column. So some class has a single
# row, which ClassPriorEstimator refuses: a class needs one to learn from and one to judge by.
_OF_ONE_ROW = "a class of the check has a single row"
EXPECTED_FAILURES = {
    ClassPriorEstimator: dict.fromkeys(
        [
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_f_contiguous_array_estimator",
            "check_fit2d_predict1d",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
        ],
        _OF_ONE_ROW,
    ),
    # The rows of the irises are sorted by species, so they depend on each other, and 150 of them cannot calibrate windows.
    DriftMonitor: {
        "check_positive_only_tag_during_fit": "dependent rows of the check are too few to calibrate windows"
    },
    KernelScore: {"check_sample_weight_equivalence_on_dense_data": "it gives splits to cv, which is a number of folds"},
}

# Estimators of another shape, with the reason why `check_estimator` cannot run on them.
OF_ANOTHER_SHAPE = {
    LSDD: "is fitted to two tables",
    KDEDifference: "is fitted to two tables",
    ChangePointDetector: "is fitted to a series, whose rows are in order",
    Stein: "with out_of_sample='augmented', gives answers that depend on all rows that are asked together",
    AnytimeDriftMonitor: "needs more rows than the checks have; its own tests run them with fewer",
}

# Adapters to libraries that bring checks of their own, which run in tests/adapters.
ADAPTERS = [
    "isopleth.adapters.pyod",
    "isopleth.adapters.quapy",
    "isopleth.adapters.river",
    "isopleth.adapters.skchange",
    "isopleth.adapters.sktime",
]

# One of each class, and of each shape.
ALL = [
    *OF_ONE_TABLE,
    LSDD(),
    KDEDifference(),
    ChangePointDetector(),
    AnytimeDriftMonitor(),
    Stein(out_of_sample="augmented"),
]


def defined() -> set[type]:
    """Find the public classes in ``isopleth`` that have parameters and a ``fit`` and are not abstract."""
    found = set()
    for module in pkgutil.walk_packages(isopleth.__path__, "isopleth."):
        if module.name.endswith("__main__"):  # its import runs the command
            continue
        if module.name in ADAPTERS:
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # an extra that is not installed
            continue
        found.update(value for value in names.values() if inspect.isclass(value) and value.__module__ == module.name)
    return {
        cls
        for cls in found
        if issubclass(cls, BaseEstimator)
        and hasattr(cls, "fit")
        and not inspect.isabstract(cls)
        and not cls.__name__.startswith("_")
    }
