"""Saved models: loaded bit for bit, and files that could run code are refused."""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isopleth
from isopleth import SOSREP, AnomalyDetector, InputError, RandomFeatureSOSREP
from isopleth.io import load, save
from isopleth.io.models import FORMAT_VERSION, sealed
from isopleth.kernels import SDO, Gaussian, Laplacian

X = np.random.default_rng(0).normal(size=(40, 2))
NEW = np.random.default_rng(1).normal(size=(9, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.isopleth"


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def rewrite(path, member, change):
    """The archive with one member changed and every checksum right, as somebody would who means it."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content[member] = change(content[member])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    path.write_bytes(sealed(path.read_bytes()))


class Keeper(BaseEstimator):
    """A class outside the library, whose type a model file must not name."""

    def __init__(self, kept=None):
        self.kept = kept


def execute(*_):
    raise AssertionError("code of the file was run")


class Malicious:
    def __reduce__(self):
        return execute, ()


class TestRoundTrip:
    @pytest.mark.parametrize(
        "model",
        [
            SOSREP(frame="scale"),
            SOSREP(kernel=Laplacian(), length_scale=[0.5, 2.0], frame="scale"),
            SOSREP(kernel=Gaussian(dim=2), length_scale="median", frame="scale"),
            SOSREP(kernel=SDO(order=4), length_scale=1.5, frame="scale"),
            AnomalyDetector(random_state=0),
        ],
        ids=repr,
    )
    def test_scores_are_the_same_to_the_last_bit(self, path, model):
        model.fit(X)
        save(model, path)
        again = load(path)
        assert type(again) is type(model)
        assert repr(again.get_params()) == repr(model.get_params())
        np.testing.assert_array_equal(again.score_samples(NEW), model.score_samples(NEW))
        assert repr(clone(again).fit(X)) == repr(model)

    def test_every_attribute_of_a_detector_comes_back(self, path):
        model = AnomalyDetector(random_state=0).fit(X)
        save(model, path)
        again = load(path)
        assert vars(again).keys() == vars(model).keys()
        np.testing.assert_array_equal(again.p_values_, model.p_values_)
        np.testing.assert_array_equal(again.p_values(NEW), model.p_values(NEW))
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))

    @pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(dim=3), SDO(order=5), SDO(dim=2, order=4)], ids=repr)
    def test_kernels_are_equal(self, path, kernel):
        save(SOSREP(kernel=kernel, frame="scale"), path)
        assert load(path).kernel == kernel

    def test_names_of_columns(self, path):
        pd = pytest.importorskip("pandas")
        save(SOSREP(frame="scale").fit(pd.DataFrame(X, columns=["a", "b"])), path)
        assert load(path).feature_names_in_.tolist() == ["a", "b"]

    def test_a_pipeline_that_holds_one(self, path):
        model = make_pipeline(StandardScaler(), SOSREP(frame="scale")).fit(X)
        save(model, path)
        np.testing.assert_array_equal(load(path).score_samples(NEW), model.score_samples(NEW))

    @pytest.mark.parametrize(
        "state", [np.random.default_rng(3), np.random.RandomState(3)], ids=["Generator", "RandomState"]
    )
    def test_random_states_go_on_where_they_were(self, path, state):
        state.normal(size=5)
        save(make_pipeline(StandardScaler(), SOSREP(length_scale=state, frame="scale")), path)  # any parameter will do
        again = load(path)[-1].length_scale
        np.testing.assert_array_equal(again.normal(size=3), state.normal(size=3))

    def test_numbers_that_text_might_lose(self, path):
        values = [0.1 + 0.2, 5e-324, -0.0, float("inf"), 2**70, (1, (2.5, None)), {"a": np.float32(0.1)}]
        save(SOSREP(length_scale=values, frame="scale"), path)
        assert repr(load(path).length_scale) == repr(values)


class TestSaving:
    def test_what_needs_code_is_refused_by_name(self, path):
        with pytest.raises(InputError, match="execute"):
            save(SOSREP(kernel=execute, frame="scale"), path)
        with pytest.raises(InputError, match="Keeper"):
            save(Keeper(), path)
        assert not path.exists()

    def test_a_lambda_is_refused(self, path):
        with pytest.raises(InputError, match="cannot be"):
            save(SOSREP(length_scale=lambda X: 1.0, frame="scale"), path)

    def test_only_estimators_are_models(self, path):
        with pytest.raises(InputError, match="not a model"):
            save({"a": 1}, path)

    def test_a_failed_save_leaves_the_old_file(self, path):
        save(SOSREP(frame="scale"), path)
        before = path.read_bytes()
        with pytest.raises(InputError):
            save(Keeper(), path)
        assert path.read_bytes() == before
        assert len(list(path.parent.iterdir())) == 1

    def test_the_folder_must_exist(self, tmp_path):
        with pytest.raises(InputError, match="does not exist"):
            save(SOSREP(frame="scale"), tmp_path / "none" / "model")

    def test_the_file_says_who_wrote_it(self, path):
        save(SOSREP(frame="scale"), path)
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("isopleth.json"))
        assert header == {"format": FORMAT_VERSION, "isopleth": isopleth.__version__}


class TestRefusedFiles:
    def test_not_there_and_folder(self, tmp_path):
        assert "does not exist" in refusal(tmp_path / "none")
        assert "is a folder" in refusal(tmp_path)

    def test_what_may_never_end_is_not_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
        os.mkfifo(tmp_path / "pipe")
        assert "not a plain file" in refusal(tmp_path / "pipe")
        assert "not a plain file" in refusal("/dev/zero")

    @pytest.mark.parametrize("member", ["isopleth.json", "schema.json"])
    def test_nothing_is_inflated(self, path, member, monkeypatch):
        save(SOSREP(frame="scale"), path)
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        content[member] += b" " * 10**7
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data, zipfile.ZIP_DEFLATED if name == member else zipfile.ZIP_STORED)
        monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("a member was read"))
        assert "compressed inside" in refusal(path)

    def test_a_header_is_read_no_further_than_it_should_go(self, path):
        save(SOSREP(frame="scale"), path)
        rewrite(path, "isopleth.json", lambda header: b" " * 10**6 + header)
        assert "damaged" in refusal(path)

    @pytest.mark.parametrize(
        ("content", "words"), [(b"", "is empty"), (b"a,b\n1,2\n", "no model file"), (b"PK", "damaged")]
    )
    def test_other_content(self, path, content, words):
        path.write_bytes(content)
        assert words in refusal(path)

    @pytest.mark.parametrize("dump", [pickle.dump, joblib.dump])
    def test_a_pickle_is_not_run(self, path, dump):
        with open(path, "wb") as file:
            dump(Malicious(), file)
        assert "pickle" in refusal(path)

    def test_an_archive_of_something_else(self, path):
        with open(path, "wb") as file:
            np.savez(file, X=X)
        assert "without a model" in refusal(path)

    @pytest.mark.parametrize("schema", [b"", b"[]", b"{}", b'{"protocol": 2}', b"[" * 100_000])
    def test_a_broken_description_of_the_model(self, path, schema):
        save(SOSREP(frame="scale"), path)
        rewrite(path, "schema.json", lambda _: schema)
        assert "damaged" in refusal(path)

    @pytest.mark.parametrize("header", [b"", b"[]", b"{}", b'{"format": "one", "isopleth": 1}'])
    def test_a_broken_header(self, path, header):
        save(SOSREP(frame="scale"), path)
        rewrite(path, "isopleth.json", lambda _: header)
        assert "damaged" in refusal(path)

    def test_a_later_format(self, path):
        save(SOSREP(frame="scale"), path)
        rewrite(path, "isopleth.json", lambda _: b'{"format": 99, "isopleth": "9.0"}')
        message = refusal(path)
        assert all(word in message for word in ["isopleth 9.0", "format 99", "upgrade"])

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("os", "system"),
            ("builtins", "eval"),
            ("subprocess", "Popen"),
            ("isopleth.io.output_files", "os"),
            ("isopleth.io.output_files", "atomic_write"),
            ("isopleth.io.models", "ZipFile"),
            ("isopleth.cli", "main"),
            ("isopleth.__main__", "main"),
            ("isopleth.density", "SOSREP"),
            ("isopleth.core.errors", "Message"),
            ("isopleth.none", "Model"),
            ("isopleth..density", "SOSREP"),
        ],
    )
    def test_strange_types_are_named_and_nothing_is_imported(self, path, module, name, monkeypatch):
        def change(schema):
            tree = json.loads(schema)
            tree["__module__"], tree["__class__"] = module, name
            return json.dumps(tree).encode()

        save(SOSREP(frame="scale"), path)
        rewrite(path, "schema.json", change)
        monkeypatch.setattr(importlib, "import_module", lambda name, *_: pytest.fail(f"{name} was imported"))
        message = refusal(path)
        assert f"{module}.{name}" in message
        assert "not loaded" in message

    def test_what_is_no_model(self, path):
        content = io.BytesIO()
        from skops.io import dump

        dump([1, 2], content)
        with zipfile.ZipFile(content, "a") as archive:
            archive.writestr("isopleth.json", json.dumps({"format": FORMAT_VERSION, "isopleth": "0"}))
        path.write_bytes(sealed(content.getvalue()))
        assert "no model" in refusal(path)


def test_what_a_file_tells_of_the_training_rows(tmp_path):
    """A density holds its rows; the coefficients of random features do not."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    kinds = {"holds": SOSREP(frame="scale"), "does not": RandomFeatureSOSREP(random_state=0)}
    held = {}
    for name, kind in kinds.items():
        save(kind.fit(rows), tmp_path / name)
        content = (tmp_path / name).read_bytes()
        held[name] = sum(value.tobytes() in content for value in rows.ravel())
    assert held["holds"] == rows.size
    assert held["does not"] <= 2  # the middle of a column may be one of its values
