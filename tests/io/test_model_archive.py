"""The archive of a model: a checksum covers every byte, and other content is refused before it is read."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.random import SeedSequence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from isopleth import SOSREP, InputError
from isopleth.io import load, save
from isopleth.io.input_files import read_array_header
from isopleth.io.models import is_whole, sealed

X = np.random.default_rng(0).normal(size=(8, 2))


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    save(SOSREP(length_scale=1.0, frame="scale").fit(X), path)
    return path.read_bytes()


def refusal(tmp_path, content) -> str:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1500
    return message


def resealed(content, change) -> bytes:
    """The archive after `change` of its members, as somebody would seal it who means it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sealed(buffer.getvalue())


@pytest.mark.parametrize(("part", "count"), [([], 2_000_000), ({}, 400_000), ("\\u005b\\u005d", 2_000_000)], ids=str)
def test_a_small_file_cannot_describe_more_objects_than_the_memory_limit_allows(content, tmp_path, part, count):
    def stuffed(members):
        text = members["schema.json"].decode()
        many = "[" + ",".join([json.dumps(part).replace("\\\\", "\\")] * count) + "]"
        members["schema.json"] = f'{text[:-1]}, "more": {many}}}'.encode()

    path = tmp_path / "model"
    path.write_bytes(resealed(content, stuffed))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="objects with") as caught:
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.parameter == "memory_limit"
    assert peak < 6 * path.stat().st_size


def test_the_memory_limit_of_a_model_can_be_lowered_and_raised(content, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(InputError, match="raise memory_limit"):
        load(path, memory_limit=1e5)
    assert load(path, memory_limit=1e6).length_scale == 1.0
    with pytest.raises(InputError, match="expected a number of bytes"):
        load(path, memory_limit=0)


def edited(content, edit) -> bytes:
    """The archive after `edit` of the description of the model."""

    def change(members):
        tree = json.loads(members["schema.json"])
        edit(tree)
        members["schema.json"] = json.dumps(tree).encode()

    return resealed(content, change)


def test_a_sealed_archive_is_whole_and_still_an_archive(content):
    assert is_whole(content)
    assert zipfile.ZipFile(io.BytesIO(content)).testzip() is None
    assert is_whole(resealed(content, lambda members: None))


def test_every_changed_byte_shows(content):
    for place in range(len(content)):
        assert not is_whole(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def test_changed_bytes_are_refused_wherever_they_are(tmp_path, content):
    for place in range(0, len(content), max(1, len(content) // 60)):
        refusal(tmp_path, content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])


def test_every_length_but_the_right_one_is_refused(tmp_path, content):
    for length in (3, 30, len(content) // 2, len(content) - 65, len(content) - 1):
        refusal(tmp_path, content[:length])
    assert "damaged" in refusal(tmp_path, content + b"\0")


def test_an_archive_without_a_seal_is_refused(tmp_path, content):
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b""
    assert "damaged" in refusal(tmp_path, buffer.getvalue())


@pytest.mark.parametrize("loader", ["PartialNode", "OperatorFuncNode", "MethodNode", "SparseMatrixNode", "CachedNode"])
def test_parts_of_skops_that_no_model_needs(tmp_path, content, loader):
    def edit(tree):
        tree["content"]["__loader__"] = loader

    message = refusal(tmp_path, edited(content, edit))
    assert loader in message
    assert "not loaded" in message


def test_an_older_protocol(tmp_path, content):
    assert "damaged" in refusal(tmp_path, edited(content, lambda tree: tree.update(protocol=0)))


def test_short_references_do_not_stand_for_an_endless_tree(tmp_path, content):
    def edit(tree):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [], "__id__": 1}
        for i in range(2, 80):
            node = {**node, "content": [node, {**node, "content": []}], "__id__": i}
        tree["content"]["content"]["length_scale"] = node

    assert "damaged" in refusal(tmp_path, edited(content, edit))


LENGTHS = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": "0.npy"}


@pytest.mark.parametrize("addresses", [range(1000, 1050), [0] * 50, [None] * 50])
def test_one_array_does_not_become_many(tmp_path, content, addresses):
    def edit(tree):
        arrays = [{**LENGTHS, "__id__": address} for address in addresses]
        tree["content"]["content"]["length_scale"] = {
            **{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"},
            **{"content": arrays, "__id__": 999},
        }

    assert "damaged" in refusal(tmp_path, edited(content, edit))


def test_members_that_are_larger_than_the_file(tmp_path, content):
    header = io.BytesIO()
    shape = (10**9,)
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("99.npy", header.getvalue())
        archive.getinfo("99.npy").file_size = len(header.getvalue()) + 8 * 10**9  # what its directory will say
    assert "damaged" in refusal(tmp_path, sealed(buffer.getvalue()))


def test_a_seed_that_would_be_stirred_for_years(tmp_path):
    with pytest.raises(InputError, match="pool"):
        save(
            SOSREP(length_scale=np.random.Generator(np.random.PCG64(SeedSequence(1, pool_size=8))), frame="scale"),
            tmp_path / "model",
        )
    save(SOSREP(length_scale=np.random.default_rng(1), frame="scale"), tmp_path / "model")

    def edit(tree):
        seed = tree["content"]["content"]["length_scale"]["content"]["seed_seq"]
        seed["content"]["pool_size"]["content"] = "1000000"

    assert "damaged" in refusal(tmp_path, edited((tmp_path / "model").read_bytes(), edit))


def test_long_and_crooked_names_of_types_are_cut(tmp_path, content):
    def edit(tree):
        tree["__class__"] = "a\nb" * 5000

    assert "a\\nb" in refusal(tmp_path, edited(content, edit))


@pytest.mark.parametrize("shape", [(10**9, 10**3), (7, 2), (9, 2), (-1, -16)])
def test_an_array_that_is_not_as_long_as_its_header_says(tmp_path, content, shape):
    def change(members):
        name = next(name for name in members if name.endswith(".npy"))
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
        members[name] = header.getvalue() + bytes(8 * 16)

    assert "damaged" in refusal(tmp_path, resealed(content, change))


@pytest.mark.parametrize("name", ["x.dat", "0", "a/b.NPY", "data.npy.txt"])
def test_a_member_of_any_name_is_an_array_as_long_as_its_header_says(tmp_path, content, name):
    def change(members):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**51,)})
        members[name] = header.getvalue() + bytes(80)

    assert "damaged" in refusal(tmp_path, resealed(content, change))
    assert "damaged" in refusal(tmp_path, resealed(content, lambda members: members.update({name: b"no array"})))


def test_invented_names_are_refused_before_they_are_looked_up(tmp_path, content, monkeypatch):
    def edit(tree):
        node = {"__module__": "numpy", "__loader__": "TypeNode"}
        tree["content"]["content"]["length_scale"] = {
            **{"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": 999},
            "content": [{**node, "__class__": f"T{i}", "__id__": 1000 + i} for i in range(1000)],
        }

    monkeypatch.setattr("skops.io.get_untrusted_types", lambda **_: pytest.fail("names were looked up"))
    assert "damaged" in refusal(tmp_path, edited(content, edit))


@pytest.mark.parametrize("loader", ["ListNode", "ConstructorFromReduceNode", "TypeNode", "NdArrayNode"])
def test_no_class_of_the_library_is_called(tmp_path, content, loader):
    """Loaders of containers and of reduced objects call the class that the file names, with arguments of the file."""

    def edit(tree):
        node = {"__class__": "SOSREP", "__module__": "isopleth.density.sosrep", "__loader__": loader, "__id__": 999}
        tree["content"]["content"]["length_scale"] = {**node, "content": []}

    assert "damaged" in refusal(tmp_path, edited(content, edit))


def test_a_member_that_is_there_twice(tmp_path, content):
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", b"{}")
    assert "damaged" in refusal(tmp_path, sealed(buffer.getvalue()))


def test_functions_of_numpy_in_a_pipeline_are_data_enough(tmp_path):
    model = make_pipeline(FunctionTransformer(np.tanh), SOSREP(length_scale=1.0, frame="scale")).fit(X)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").score_samples(X), model.score_samples(X))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(InputError, match="BytesNode"):
        save(SOSREP(length_scale=b"1", frame="scale"), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_header_of_an_array():
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(X))
    buffer.seek(0)
    header = read_array_header(buffer)
    assert (header.shape, header.dtype, header.fortran_order) == (X.shape, X.dtype, True)
    assert header.end == len(buffer.getvalue())
    for wrong, words in (
        (b"", "EOF"),
        (b"\x93NUMPY\x03\x00", "names"),
        (b"\x93NUMPY\x01\x00\x10\x00{'shape': (1,)}   ", "keys"),
    ):
        with pytest.raises(ValueError, match=words):
            read_array_header(io.BytesIO(wrong))
