"""What 0.3 keeps: names, options and keys of JSON as they were recorded, and model files that it wrote."""

from __future__ import annotations

import json
import lzma
import warnings
from collections.abc import Iterator

import pytest

from isopleth import InputError, load
from isopleth.tables.rules import rules_of_json
from stability import promises, saved_models

KEPT = json.loads((promises.FOLDER / "kept.json").read_text())
ANSWERS = json.loads((promises.FOLDER / "answers_of_models.json").read_text())
REMAKE = "kept from 0.3 on; only before its release: python tests/stability/remake.py, and a line in CHANGELOG.md"


def broken(kept: dict[str, list[str]], there: dict[str, list[str]]) -> Iterator[str]:
    """Yield what is kept and not there, and parameters in another order; what is new is allowed."""
    for name, words in kept.items():
        if name == "attributes":
            yield from sorted(set(words) - set(there.get(name, ())))
        elif [word for word in there.get(name, ()) if word in words] != words:
            yield f"{name}: {', '.join(words)}"


@pytest.mark.parametrize("name", sorted(KEPT["names"]))
def test_a_public_name_keeps_its_parameters_methods_and_attributes(name, names):
    package = name.rpartition(".")[0]
    if name not in names and package in ("torch", "distributed"):
        pytest.importorskip({"torch": "torch", "distributed": "dask"}[package])
    assert name in names, REMAKE
    assert not list(broken(KEPT["names"][name], names[name])), REMAKE


@pytest.fixture(scope="module")
def names():
    return promises.names()


def test_commands_keep_their_options():
    there = promises.options()
    assert not {name: gone for name, words in KEPT["options"].items() if (gone := set(words) - set(there[name]))}, (
        REMAKE
    )


def test_json_keeps_its_keys_and_their_types():
    there = promises.json_keys()
    gone = {name: kept.items() - there[name].items() for name, kept in KEPT["json"].items()}
    assert not {name: keys for name, keys in gone.items() if keys}, REMAKE


def test_what_is_gone_and_what_stands_elsewhere_is_seen_and_what_is_new_is_not():
    kept = {"parameters": ["a", "b"], "fit()": ["X"], "attributes": ["c_"]}
    assert not list(
        broken(kept, {"parameters": ["a", "new", "b"], "fit()": ["X"], "attributes": ["c_", "d_"], "e()": []})
    )
    for change in ({"parameters": ["b", "a"]}, {"fit()": ["Z"]}, {"attributes": []}):
        assert len(list(broken(kept, kept | change))) == 1
    assert len(list(broken(kept, {}))) == 3


@pytest.mark.parametrize("name", sorted(saved_models.MODELS))
def test_a_model_file_of_0_3_answers_the_same(name, tmp_path):
    path = tmp_path / "model.isopleth"
    path.write_bytes(lzma.decompress((promises.FOLDER / "models" / f"{name}.isopleth.xz").read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = saved_models.answers(name, load(path))
    numbers = [value for value in ANSWERS[name] if isinstance(value, float)]
    assert [value for value in found if isinstance(value, float)] == pytest.approx(numbers, rel=1e-6, abs=1e-9), REMAKE
    assert [None if isinstance(value, float) else value for value in found] == [
        None if isinstance(value, float) else value for value in ANSWERS[name]
    ], REMAKE


def test_rules_of_0_3_are_read():
    text = (promises.FOLDER / "rules.json").read_text()
    kinds = {entry["rule"] for entry in json.loads(text)["rules"]}
    assert kinds == {"equation", "determines", "not negative", "whole", "one of"}
    for rule, kept in zip(rules_of_json(text, "rules.json"), json.loads(text)["rules"], strict=True):
        there = json.loads(json.dumps(rule.to_dict()))
        assert there | {key: kept[key] for key in kept.keys() - {"rows", "broken"}} == there, REMAKE


@pytest.mark.parametrize("name", ["density", "anomalies"])
def test_a_model_file_of_0_2_is_refused_with_a_sentence(name, tmp_path):
    path = tmp_path / "old.isopleth"
    path.write_bytes(lzma.decompress((promises.FOLDER / "models_of_0_2" / f"{name}.isopleth.xz").read_bytes()))
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path} was written by isopleth 0.2.0, whose model files this version does not read; fit the model again and save it."
    )
