"""Model files changed by somebody who seals them again: no code may run, whatever else they do."""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isopleth
from experiments.reliability import samples
from experiments.reliability.mutations import spoiled
from experiments.reliability.outcomes import SECONDS, HangError, Tally, is_sentence, progress, time_limit
from isopleth.core.errors import InputError, MissingExtraError
from isopleth.io.models import sealed

_TYPES = tuple(
    tuple(name.rsplit(".", 1))
    for name in [
        "os.system",
        "builtins.eval",
        "builtins.exec",
        "functools.partial",
        "subprocess.Popen",
        "operator.methodcaller",
        "joblib.load",
        "numpy.load",
        "numpy.fromfile",
        "shutil.rmtree",
        "isopleth.io.models.load",
        "isopleth.io.output_files.os",
        "isopleth.cli.main",
        "sklearn.svm.SVC",
        ".",
        "sklearn.tree._tree.Tree",
        "numpy.ndarray",
        "builtins.type",
        "pathlib.Path",
        "numpy.random.seed",
    ]
)
_LOADERS = [
    "PartialNode",
    "MethodNode",
    "OperatorFuncNode",
    "FunctionNode",
    "ConstructorFromReduceNode",
    "TypeNode",
    "CachedNode",
    "TreeNode",
    "LossNode",
    "SparseMatrixNode",
    "ObjectNode",
    "DictNode",
    "JsonNode",
    "DefaultDictNode",
    "NdArrayNode",
    "NoNode",
]
_VALUES = (
    None,
    -1,
    0,
    2**70,
    1e308,
    "",
    "x" * 10_000,
    [],
    {},
    [[]],
    True,
    "null",
    "[" * 3000,
    "NaN",
    "1e999",
    '"a"',
    "[1, 2]",
)
# What Python tells its auditors before it acts on the system.
_EVENTS = frozenset(
    [
        "os.system",
        "subprocess.Popen",
        "os.exec",
        "os.fork",
        "os.spawn",
        "os.remove",
        "os.rename",
        "os.mkdir",
        "socket.connect",
        "shutil.rmtree",
        "os.posix_spawn",
        "pty.spawn",
    ]
)

Members = dict[str, bytes]


class CodeRanError(Exception):
    """Something acted on the system while a file was loaded."""


def campaign(count: int, seed: int = 0) -> Tally:
    """Change files `count` times, load them, and ask what was loaded for an answer."""
    rng, tally = random.Random(seed), Tally()
    watch = _Watch()
    sys.addaudithook(watch)
    with tempfile.TemporaryDirectory() as folder:
        files = samples.model_files()
        path = Path(folder) / "tampered.isopleth"
        for _ in progress(range(count), count, tally):
            name, change = rng.choice(list(files)), rng.choice(CHANGES)
            path.write_bytes(changed(files[name], change, rng))
            with watch:
                _load(tally, path, f"{name}: {change.__name__}", change.__name__)
    return tally


def _load(tally: Tally, path: Path, case: str, kind: str) -> None:
    """A refusal is one sentence. Of what is loaded, any exception may come, but nothing else."""
    try:
        with time_limit(SECONDS):
            model = isopleth.load(path)
    except (InputError, MissingExtraError) as error:
        tally.add(kind, "refused", "" if is_sentence(str(error)) else f"{case}: no sentence: {str(error)[:300]!r}")
        return
    except BaseException as error:
        tally.add(kind, "", f"{case}: {type(error).__name__}: {str(error)[:300]}")
        return
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples.answer(model)
    except (CodeRanError, HangError, MemoryError) as error:
        tally.add(kind, "", f"{case}: the answer: {type(error).__name__}: {str(error)[:300]}")
    except Exception:
        tally.add(kind, "loaded, its answer an exception")
    else:
        tally.add(kind, "loaded, with an answer")


def changed(content: bytes, change: Callable[[Members, random.Random], None], rng: random.Random) -> bytes:
    """The archive after a change, as somebody would seal it who means it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members, rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        for name, data in members.items():
            archive.writestr(name.removesuffix("#again"), data)
    return sealed(buffer.getvalue())


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if "__loader__" in tree:
            yield tree
        for part in tree.values():
            yield from _nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)


def _edit(
    members: Members, rng: random.Random, edit: Callable[[dict[str, Any], random.Random, list[dict[str, Any]]], None]
) -> None:
    """Edit one object of the description; all of its copies, half of the time."""
    tree = json.loads(members["schema.json"])
    nodes = list(_nodes(tree))
    originals = list(_nodes(copy.deepcopy(tree)))  # what an edit puts elsewhere must not grow by the edit before
    chosen = rng.choice(nodes)
    copies = [node for node in nodes if node.get("__id__") == chosen.get("__id__")] if rng.random() < 0.5 else [chosen]
    state = rng.getstate()
    for node in copies:
        rng.setstate(state)  # the same edit of each
        edit(node, rng, originals)
    members["schema.json"] = json.dumps(tree).encode()


def another_type(members: Members, rng: random.Random) -> None:
    """A type that runs code, or one of another kind."""

    def edit(node: dict[str, Any], rng: random.Random, nodes: list[dict[str, Any]]) -> None:
        other = rng.choice(nodes)
        module, name = rng.choice(_TYPES) if rng.random() < 0.7 else (other["__module__"], other["__class__"])
        node["__module__"], node["__class__"] = module, name

    _edit(members, rng, edit)


def another_loader(members: Members, rng: random.Random) -> None:
    """Another way to bring the object back, with what that wants."""

    def edit(node: dict[str, Any], rng: random.Random, nodes: list[dict[str, Any]]) -> None:
        node["__loader__"] = rng.choice(_LOADERS)
        if rng.random() < 0.5:
            module, name = rng.choice(_TYPES)
            function = {
                "__module__": module,
                "__class__": name,
                "__loader__": rng.choice(("FunctionNode", "TypeNode")),
                "__id__": 1,
            }
            arguments = {
                "__module__": "builtins",
                "__class__": "tuple",
                "__loader__": "TupleNode",
                "content": [],
                "__id__": 2,
            }
            node["content"] = {
                "func": function,
                "args": arguments,
                "kwds": arguments,
                "namespace": arguments,
                "obj": function,
            }
            node["attrs"] = arguments

    _edit(members, rng, edit)


def another_value(members: Members, rng: random.Random) -> None:
    """Some entry of the description is something else."""

    def edit(node: dict[str, Any], rng: random.Random, _: list[dict[str, Any]]) -> None:
        node[rng.choice(list(node))] = rng.choice(_VALUES)

    _edit(members, rng, edit)


def swapped(members: Members, rng: random.Random) -> None:
    """One object in the place of another."""

    def edit(node: dict[str, Any], rng: random.Random, nodes: list[dict[str, Any]]) -> None:
        other = copy.deepcopy(rng.choice(nodes))
        node.clear()
        node.update(other)

    _edit(members, rng, edit)


def left_out(members: Members, rng: random.Random) -> None:
    """An attribute or an entry is missing."""

    def edit(node: dict[str, Any], rng: random.Random, _: list[dict[str, Any]]) -> None:
        inner = node.get("content")
        place = inner if isinstance(inner, dict) and inner and rng.random() < 0.7 else node
        del place[rng.choice(list(place))]

    _edit(members, rng, edit)


def another_array(members: Members, rng: random.Random) -> None:
    """An array of another shape or type, or with other numbers, or a pickle."""
    arrays = [name for name in members if name.endswith(".npy")]
    if not arrays:
        return another_value(members, rng)
    name = rng.choice(arrays)
    members[name] = spoiled(members[rng.choice(arrays)], ".npy", rng, [members[n] for n in arrays])[0]
    return None


def reshaped_array(members: Members, rng: random.Random) -> None:
    """An array that is whole but has another shape, type or content than the model counts on."""
    arrays = [name for name in members if name.endswith(".npy")]
    if not arrays:
        return another_value(members, rng)
    name = rng.choice(arrays)
    array = np.atleast_1d(np.load(io.BytesIO(members[name])))
    other = rng.choice(
        (
            array.ravel(),
            array[:0],
            array[:1],
            array.T,
            array[..., None],
            array.astype("U5"),
            np.full(array.shape, np.nan),
            np.zeros_like(array),
        )
    )
    buffer = io.BytesIO()
    np.save(buffer, other)
    members[name] = buffer.getvalue()
    return None


def spoiled_description(members: Members, rng: random.Random) -> None:
    """Bytes of the description or the header are others."""
    name = rng.choice(("schema.json", "isopleth.json"))
    members[name] = spoiled(members[name], ".csv", rng, [members["schema.json"]])[0]


def other_members(members: Members, rng: random.Random) -> None:
    """Members twice, missing, renamed or more of them."""
    name = rng.choice(list(members))
    what = rng.randrange(4)
    if what == 0:
        members[f"{name}#again"] = members[rng.choice(list(members))]
    elif what == 1:
        del members[name]
    elif what == 2:
        members[rng.choice(("../../etc/cron.d/x", "/tmp/x", "a" * 60_000, "x\0y", "schema.json "))] = members.pop(name)
    else:
        members[rng.choice(("__main__.py", "x.pkl", "y.npz"))] = rng.randbytes(100)


def short_references(members: Members, rng: random.Random) -> None:
    """A description in which each object refers to the one before it twice: small, and endless to walk through."""
    tree = json.loads(members["schema.json"])
    node: dict[str, Any] = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [],
        "__id__": 1,
    }
    for i in range(2, rng.choice((10, 60, 400))):
        reference = {**node, "content": []}
        node = {**node, "content": [node, reference], "__id__": i}
    list(_nodes(tree))[-1].update(node)
    members["schema.json"] = json.dumps(tree).encode()


def many_of_one(members: Members, rng: random.Random) -> None:
    """One array of the file as thousands of objects: small in the file, and more than the memory holds."""
    tree = json.loads(members["schema.json"])
    nodes = list(_nodes(tree))
    arrays = [node for node in nodes if "file" in node]
    if not arrays:
        return another_value(members, rng)
    array = rng.choice(arrays)
    copies = [{**array, "__id__": rng.choice((0, None, 1000 + i))} for i in range(3000)]
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    rng.choice(nodes).update({**kind, "content": copies, "__id__": 999})
    members["schema.json"] = json.dumps(tree).encode()
    return None


CHANGES = (
    *(another_type, another_loader, another_value, swapped, left_out, another_array, reshaped_array),
    *(spoiled_description, other_members, short_references, many_of_one),
)


class _Watch:
    """Turns what acts on the system into an exception, while it is on."""

    def __init__(self) -> None:
        self._on = False

    def __enter__(self) -> None:
        self._on = True

    def __exit__(self, *_: object) -> None:
        self._on = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._on and event in _EVENTS:
            raise CodeRanError(f"{event} {arguments}")
