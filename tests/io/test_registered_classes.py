"""The classes that a model file may hold: exact names, which are created without running code of their own."""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from isopleth import KDE, InputError, MissingExtraError, save
from isopleth.io import registry
from isopleth.io.registry import REGISTERED, trusted_types


def defined(name: str) -> type:
    """Return the registered class of a name, and skip it if it is for a library that is not installed."""
    module, _, attribute = name.rpartition(".")
    try:
        return vars(importlib.import_module(module))[attribute]
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_a_registered_class_is_data(name):
    found = defined(name)
    assert f"{found.__module__}.{found.__qualname__}" == name
    assert issubclass(found, BaseEstimator) or dataclasses.is_dataclass(found)
    own = [base for base in found.__mro__ if base.__module__.startswith("isopleth")]
    assert not {"__new__", "__setstate__", "__del__"} & {method for base in own for method in vars(base)}


def test_trust_is_by_the_exact_name_of_a_definition():
    own = ["isopleth.density.sosrep.SOSREP", "isopleth.kernels.gaussian.Gaussian"]
    others = ["isopleth.SOSREP", "isopleth.core.errors.Message", "isopleth.files.source.Source", "numpy.ndarray"]
    assert trusted_types([*own, *others]) == (own, others)


def test_importing_the_module_of_the_command_runs_nothing():
    code = "import sys; sys.argv = ['x', '--no-such-option']; import isopleth.__main__; print('goes on')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "goes on\n"


def test_a_class_of_the_library_without_a_line_is_told_where_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED - {"isopleth.kernels.gaussian.Gaussian"})
    model = KDE("gaussian", frame="scale").fit(np.arange(12.0)[:, None])
    words = r"holds isopleth\.kernels\.gaussian\.Gaussian, of this library .*isopleth/io/registry\.py.*add a line there"
    with pytest.raises(InputError, match=words):
        save(model, tmp_path / "model.isopleth")
