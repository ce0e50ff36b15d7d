"""Faults of the local disk: no permission, no space, no links, killed processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    NotStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store import open_store
from mldiagnostics.store.local import LocalStore
from mldiagnostics.store.tree import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534
SDK = Path(__file__).parents[3] / "sdk/src"


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def run_python(script: str, *arguments: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-S", "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SDK)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Apply permission bits, also when the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_denied_access_raises_store_forbidden(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    store.put("d/k", b"x")
    (tmp_path / "store/d").chmod(0)
    verbs: list[Callable[[], object]] = [
        lambda: store.put("d/k2", b"x"),
        lambda: store.open("d/k"),
        lambda: store.delete("d/k"),
        lambda: list(store.list("d")),
    ]
    with without_privileges():
        for verb in verbs:
            with pytest.raises(StoreForbidden, match="grant this user access"):
                verb()
    (tmp_path / "store/d").chmod(0o700)
    assert files(tmp_path) == ["store/d/k"]


@pytest.mark.parametrize("place", ["below a file", "dangling link", "not creatable"])
def test_a_directory_that_cannot_be_created_raises_store_not_found(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    roots = {
        "below a file": tmp_path / "file" / "store",
        "dangling link": tmp_path / "link",
        "not creatable": Path("/proc/volume"),
    }
    with pytest.raises(StoreNotFound, match=re.escape(str(roots[place]))):
        open_store(str(roots[place])).put("k", b"x")
    assert files(tmp_path) == ["file", "link"]


def test_a_file_over_the_size_limit_raises_store_full_and_leaves_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreFull, match="limit on file sizes"):
            store.put("k", b"x" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


ON_A_TINY_DISK = """
import json, subprocess, sys
from mldiagnostics.errors import StoreError
from mldiagnostics.store import open_store

root = sys.argv[1]
def mount(*options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "none", root], check=True)
def outcome(key, size):
    try:
        return open_store(root).put(key, iter([bytes(100_000)] * (size // 100_000))).bytes
    except StoreError as error:
        return type(error).__name__

mount("size=1m")
outcomes = [outcome("big", 2_000_000), outcome("small", 500_000)]
mount("remount", "ro")
outcomes += [outcome("other", 100_000), [entry.key for entry in open_store(root).list()]]
print(json.dumps(outcomes))
"""


@pytest.mark.root
def test_a_full_disk_and_a_read_only_disk(tmp_path: Path) -> None:
    isolated = ("unshare", "--mount")
    if not shutil.which("unshare") or subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted in a namespace of its own")
    result = run_python(ON_A_TINY_DISK, tmp_path, before=isolated)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == ["StoreFull", 500_000, "StoreForbidden", ["small"]]


WRITE_HALF = """
import sys, time
from mldiagnostics.store import open_store

def pieces():
    yield bytes(1_000_000)
    print("half way", flush=True)
    time.sleep(600)

open_store(sys.argv[1]).put("d/k", pieces())
"""


def test_a_killed_writer_leaves_no_visible_file(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", WRITE_HALF, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": str(SDK)}) as process:
        assert process.stdout
        assert process.stdout.readline() == b"half way\n"
        process.send_signal(signal.SIGKILL)
    store = open_store(str(tmp_path))
    [leftover] = files(tmp_path)
    assert re.fullmatch(r"d/\.mldiag-[0-9a-f]{16}\.partial", leftover)
    assert list(store.list()) == []
    with pytest.raises(NotStored):
        store.open("d/k")
    with pytest.raises(ConfigurationError, match="files being written"):
        store.put(leftover, b"x")
    assert store.put("d/k", b"x").bytes == 1


def test_no_partial_files_stay_after_puts_and_failures(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("k", b"x")
    store.put("k", b"x")
    store.put("k", b"y", replace=True)
    with pytest.raises(AlreadyStored):
        store.put("k", b"x")
    assert files(tmp_path) == ["k"]


WITHOUT_LINKS = """
import errno, json, sys, threading
from mldiagnostics.errors import AlreadyStored
from mldiagnostics.store import open_store

def no_links(event, _):
    if event == "os.link":
        raise PermissionError(errno.EPERM, "this file system has no hard links")

sys.addaudithook(no_links)
store = open_store(sys.argv[1])
barrier = threading.Barrier(8)
winners = []
def write(number):
    barrier.wait()
    try:
        store.put("k", iter([bytes([number]) * 100_000] * 10))
        winners.append(number)
    except AlreadyStored:
        pass
threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(winners))
"""


def test_one_writer_wins_on_a_file_system_without_hard_links(tmp_path: Path) -> None:
    result = run_python(WITHOUT_LINKS, tmp_path)
    assert result.returncode == 0, result.stderr
    [winner] = json.loads(result.stdout)
    assert files(tmp_path) == ["k"]
    assert (tmp_path / "k").read_bytes() == bytes([winner]) * 1_000_000


@pytest.mark.parametrize("place", ["outside", "store/other"])
def test_links_below_the_root_are_not_followed(tmp_path: Path, place: str) -> None:
    target = tmp_path / place
    target.mkdir(parents=True)
    (target / "secret").write_bytes(b"s")
    store = open_store(str(tmp_path / "store"))
    store.put("own/k", b"x")
    (tmp_path / "store/own/d").symlink_to(target)
    (tmp_path / "store/own/f").symlink_to(target / "secret")
    verbs: list[Callable[[], object]] = [
        lambda: store.put("own/d/new", b"x"),
        lambda: store.put("own/d/deep/new", b"x"),
        lambda: store.open("own/d/secret"),
        lambda: store.open("own/f"),
        lambda: store.delete("own/d/secret"),
        lambda: list(store.list("own/d")),
        lambda: list(store.folders("own/d")),
    ]
    for verb in verbs:
        with pytest.raises(StoreForbidden, match="is a symbolic link"):
            verb()
    assert files(target) == ["secret"]
    assert [entry.key for entry in store.list("own")] == ["own/k"]


def test_a_link_that_appears_while_a_file_is_opened_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    (tmp_path / "d").symlink_to(".")
    (tmp_path / "f").symlink_to("secret")
    monkeypatch.setattr(os.path, "islink", lambda _: False)  # the check came before the link
    for key in ("d/secret", "f"):
        with pytest.raises(StoreError):
            open_store(str(tmp_path)).open(key)


CHANGED_MEANWHILE = """
import json, os, sys
from pathlib import Path
from mldiagnostics.errors import StoreError
from mldiagnostics.store import open_store

VERBS = {
    "put": lambda store: store.put("own/run/d/victim", b"mine").key,
    "replace": lambda store: store.put("own/run/d/secret", b"mine", replace=True).key,
    "replace if": lambda store: store.put("own/run/d/secret", b"mine", replace=lambda head: True).key,
    "open": lambda store: store.open("own/run/d/secret").read().decode(),
    "list": lambda store: [entry.key for entry in store.list("own")],
    "folders": lambda store: list(store.folders("own/run/d")),
    "delete": lambda store: store.delete("own/run/d/secret"),
    "delete if": lambda store: store.delete("own/run/d/secret", only_if=lambda head: True),
    "delete all": lambda store: store.delete_all("own/run"),
}
left = -1

def count(event, _):
    global left
    if event in ("open", "os.listdir", "os.scandir", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir"):
        left -= 1
        if left == 0:
            own = root / "own"
            (own / "run").rename(own / "real")
            (own / "run").symlink_to("../other/run")

sys.addaudithook(count)
faults = []
for name, verb in VERBS.items():
    for at in range(1, 40):
        root = Path(sys.argv[1]) / f"{name}-{at}"
        for file in ("own/run/d/own", "own/run/d/e/own", "other/run/d/secret", "other/run/d/private/secret"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text("of another")
        left = at
        try:
            result = verb(open_store(str(root)))
        except StoreError as error:
            result = None
        reached, left = left <= 0, -1
        there = sorted(str(path.relative_to(root / "other")) for path in (root / "other").rglob("*"))
        secret = root / "other/run/d/secret"
        if there != ["run", "run/d", "run/d/private", "run/d/private/secret", "run/d/secret"]:
            faults.append([name, at, there])
        elif secret.read_text() != "of another" or any(word in str(result) for word in ("of another", "private")):
            faults.append([name, at, str(result)])
        elif "list" in name and "own/run/d/secret" in result:
            faults.append([name, at, result])
        if not reached:
            break
    else:
        faults.append([name, "does not end"])
print(json.dumps(faults))
"""


def test_a_directory_that_becomes_a_link_at_any_moment_leads_nowhere(tmp_path: Path) -> None:
    """A tenant may replace its directory between any two calls of the system."""
    result = run_python(CHANGED_MEANWHILE, tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []


def test_directories_that_are_nested_too_deeply_are_not_listed(tmp_path: Path) -> None:
    store, inner = open_store(str(tmp_path)), tmp_path
    store.put("k", b"x")
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(MAX_DEPTH + 2):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)
    with pytest.raises(StoreError, match="directories inside each other"):
        list(store.list())
    assert list(store.folders()) == ["d"]


def test_a_root_that_is_itself_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = open_store(str(tmp_path / "link"))
    store.put("d/k", b"x")
    assert files(tmp_path / "real") == ["d/k"]
    with store.open("d/k") as file:
        assert file.read() == b"x"


def test_file_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        open_store(str(tmp_path)).put("k", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o640


def test_a_relative_path_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("profiles")
    monkeypatch.chdir("/")
    store.put("k", b"x")
    assert store.url("k") == str(tmp_path / "profiles/k")
    assert files(tmp_path) == ["profiles/k"]


def test_a_key_that_is_a_directory_raises_store_error_and_keeps_the_directory(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("a/b", b"x")
    for replace in (False, True):
        with pytest.raises(StoreError, match="directory"):
            store.put("a", b"x", replace=replace)
    assert files(tmp_path) == ["a/b"]


def test_a_delete_removes_the_directories_that_it_leaves_empty(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    for key in ("a/b/c/k", "a/b/c/l", "a/m"):
        store.put(key, b"x")
    assert store.delete("a/b/c/k")
    assert (tmp_path / "store/a/b/c").is_dir()
    assert store.delete("a/b/c/l")
    assert [path.name for path in (tmp_path / "store/a").iterdir()] == ["m"]
    assert store.delete("a/m")
    assert list((tmp_path / "store").iterdir()) == []


def test_a_put_and_a_delete_beside_it_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))

    def put_and_delete(number: int) -> bool:
        return all(store.put(f"a/b/{number}", b"x") and store.delete(f"a/b/{number}") for _ in range(100))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(put_and_delete, range(4)))
    assert list(tmp_path.iterdir()) == []


def test_messages_show_the_name_of_the_root_in_place_of_its_path(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store", shown_as="volume://")
    store.put("a/k", b"x")
    (tmp_path / "store/link").symlink_to("/etc")
    os.mkfifo(tmp_path / "store/pipe")
    (tmp_path / "store/file").touch()
    verbs: list[Callable[[], object]] = [
        lambda: store.put("a/k", b"y"),
        lambda: store.put("a", b"y"),
        lambda: store.put("file/k", b"y"),
        lambda: store.put("link/k", b"y"),
        lambda: store.open("a/none"),
        lambda: store.open("link/passwd"),
        lambda: list(store.list("link")),
        lambda: store.delete("link/k", only_if=lambda _: True),
        lambda: LocalStore(tmp_path / "store/file", shown_as="volume://").open("k"),
    ]
    for verb in verbs:
        with pytest.raises(StoreError, match=r"^volume:///") as raised:
            verb()
        assert str(tmp_path) not in str(raised.value)
        assert "/etc" not in str(raised.value)


def test_a_pipe_a_link_and_a_directory_are_never_accepted_and_never_block(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put("d/k", b"x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("d/k")
    for key in ("pipe", "link", "d"):
        assert not store.delete(key, only_if=lambda _: True)
    for key in ("pipe", "link"):
        with pytest.raises(AlreadyStored):
            store.put(key, b"y", replace=lambda _: True)
    with store.open("pipe") as pipe:
        assert pipe.read() == b""
    assert files(tmp_path) == ["d/k", "link", "pipe"]


def test_a_record_that_another_process_keeps_locked_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldiagnostics.store.conditional._LOCK_TIMEOUT_S", 0.1)
    store = open_store(str(tmp_path))
    store.put("k", b"x")
    with (tmp_path / "k").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StoreUnreachable, match="keeps its lock"):
            store.delete("k", only_if=lambda _: True)
    assert store.delete("k", only_if=lambda _: True)


def test_a_deleted_directory_never_reaches_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "store"
    for path in (outside / "secret", root / "run/sub/file", root / "other/file", root / "real/run/file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
    for name, target in {"out": outside, "in": root / "other", "link": outside / "secret", "gone": root / "no"}.items():
        (root / "run/sub" / name).symlink_to(target)
    os.mkfifo(root / "run/pipe")
    (root / "run-link").symlink_to(root / "other")
    (root / "parent").symlink_to(root / "real")
    store = LocalStore(root)
    assert store.delete_all("run") == 4  # the file, the pipe, and the links to a file and to nothing
    for prefix in ("run-link", "parent/run", "other/file"):
        with pytest.raises(StoreForbidden, match="nothing was deleted"):
            store.delete_all(prefix)
    assert files(root) == ["other/file", "real/run/file"]
    assert (outside / "secret").read_text() == "content"


@pytest.mark.parametrize("modified", [10**10, 10**12, -(10**12)])
def test_a_file_time_that_no_calendar_has_is_listed(modified: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # other file systems have no such times
        store = open_store(folder)
        store.put("k", b"x")
        os.utime(f"{folder}/k", (0, modified))
        assert [entry.key for entry in store.list()] == ["k"]
