"""Files are written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
import time

import numpy as np
import pytest

from isopleth import InputError
from isopleth.io.output_files import atomic_write, check_target, remove_leftovers, sole_run
from isopleth.io.resume import Journal, partial_path


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "answer.txt"
    path.write_bytes(b"before")
    return path


def left(path):
    """The content of the target, and what else lies in its folder."""
    return path.read_bytes(), [other.name for other in path.parent.iterdir() if other != path]


def test_replaces_when_whole(target):
    with atomic_write(target) as file:
        file.write(b"after")
        assert target.read_bytes() == b"before"
    assert left(target) == (b"after", [])


def test_what_a_killed_writer_has_left_is_removed_after_a_minute_and_nothing_else(target):
    with atomic_write(target):
        (own,) = (path for path in target.parent.iterdir() if path != target)
        leftovers = [own.with_name(own.name.replace(own.name[-12:], f"{age:08}.tmp")) for age in (50, 70)]
        for path, age in zip(leftovers, (50.0, 70.0), strict=True):
            path.write_bytes(b"half")
            os.utime(path, (time.time() - age,) * 2)
        remove_leftovers(target)
        assert [path.exists() for path in (own, *leftovers)] == [True, True, False]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    with atomic_write(tmp_path / "new"):
        pass
    with sole_run(tmp_path / "held"):
        (lock,) = tmp_path.glob("*lock")
        modes = {path.stat().st_mode for path in (tmp_path / "new", tmp_path / "plain", lock)}
    assert len(modes) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_what_replaces_a_file_is_never_readable_by_others(target, mode):
    target.chmod(mode)
    old = os.umask(0o022)
    try:
        with atomic_write(target) as file:
            file.write(b"x")
            (temporary,) = target.parent.glob("*.tmp")
            assert stat.S_IMODE(temporary.stat().st_mode) & ~mode == 0
        assert stat.S_IMODE(target.stat().st_mode) == mode
        partial = partial_path(target)
        with Journal(partial, {"a": "b"}) as journal:
            assert stat.S_IMODE(partial.stat().st_mode) & ~(mode | 0o200) == 0
            journal.append("1", {"x": np.arange(3)})
    finally:
        os.umask(old)


def test_a_replaced_file_keeps_its_permissions(target):
    target.chmod(0o640)
    with atomic_write(target) as file:
        file.write(b"after")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_link_stays_a_link(target, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x"), SystemExit(1)])
def test_any_failure_leaves_everything_as_it_was(target, error):
    def write_half():
        with atomic_write(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert left(target) == (b"before", [])


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "no space"), (errno.EROFS, "not permitted")])
def test_a_full_or_read_only_disk_is_a_sentence(target, monkeypatch, step, code, words):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(InputError, match=words), atomic_write(target) as file:
        file.write(b"half")
    assert left(target) == (b"before", [])


def test_other_errors_of_the_system_pass_as_they_are(target):
    with pytest.raises(ConnectionError), atomic_write(target):
        raise ConnectionError(errno.ECONNRESET, "reset")
    assert left(target) == (b"before", [])


def test_refused_targets(tmp_path, target, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for path, words in [
        (tmp_path / "none" / "file", "does not exist"),
        (tmp_path, "is a folder"),
        (target / "file", "is not a folder"),
        (tmp_path / "pipe", "not a plain file"),
    ]:
        with pytest.raises(InputError, match=words):
            check_target(path)
        with pytest.raises(InputError, match=words), atomic_write(path):
            pass
    monkeypatch.setattr(os, "access", lambda *_: False)  # a superuser may write everywhere
    with pytest.raises(InputError, match="read-only"):
        check_target(tmp_path / "file")


def test_names_at_the_length_limit_can_be_written(tmp_path):
    with atomic_write(tmp_path / ("n" * 255)) as file:
        file.write(b"x")
    assert len(list(tmp_path.iterdir())) == 1
