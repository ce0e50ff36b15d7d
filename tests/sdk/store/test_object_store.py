"""Faults of S3 and Azure, killed and forked processes, and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import AlreadyStored, NotStored, StoreForbidden, StoreUnreachable
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.store import Store
    from support.servers.emulator_faults import Fault, FaultyBucket

MIB = 1024 * 1024
VERBS: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put("new", b"y"),
    "replace": lambda store: store.put("k", b"y", replace=True),
    "replace on a condition": lambda store: store.put("k", b"y", replace=b"x".__eq__),
    "open": lambda store: store.open("k").close(),
    "list": lambda store: list(store.list()),
    "folders": lambda store: list(store.folders()),
    "delete": lambda store: store.delete("k"),
    "delete all": lambda store: store.delete_all("d"),
}

pytestmark = pytest.mark.timeout(300)  # no test may wait for ever


def busy(scheme: str) -> Fault:
    """Return the response of a service with too many requests."""
    code = {"s3": "SlowDown", "az": "ServerBusy"}[scheme]
    return (
        503,
        {"Content-Type": "application/xml"},
        f"<Error><Code>{code}</Code><Message>wait</Message></Error>".encode(),
    )


@pytest.mark.parametrize("verb", VERBS)
def test_throttled_requests_are_repeated(faulty: FaultyBucket, verb: str) -> None:
    store = open_store(faulty.url, timeout_s=60)
    store.put("k", b"x")
    faulty.proxy.faults.extend([busy(faulty.scheme), busy(faulty.scheme)])
    VERBS[verb](store)
    assert not faulty.proxy.faults


@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_throttled_request_of_an_upload_in_parts_is_repeated(faulty: FaultyBucket, at: int) -> None:
    store = open_store(faulty.url, timeout_s=60)
    faulty.proxy.faults.extend(["pass"] * at + [busy(faulty.scheme)])
    assert store.put("k", iter([b"x" * (9 * MIB)])).bytes == 9 * MIB
    assert not faulty.proxy.faults
    assert [(entry.key, entry.bytes) for entry in store.list()] == [("k", 9 * MIB)]


@pytest.mark.parametrize("size", [1, 9 * MIB])
def test_a_put_whose_response_is_lost_can_be_repeated(faulty: FaultyBucket, size: int) -> None:
    store = open_store(faulty.url, timeout_s=30)
    while True:
        faulty.proxy.faults.append("lose")
        try:
            store.put("k", iter([b"x" * size]))
        except StoreUnreachable:
            faulty.proxy.faults.clear()
        else:
            break
    with store.open("k") as file:
        assert file.read() == b"x" * size
    with pytest.raises(AlreadyStored):
        store.put("k", b"other")


def test_a_slow_server_is_read_and_written_to(faulty: FaultyBucket) -> None:
    faulty.proxy.otherwise = "slow"
    store = open_store(faulty.url, timeout_s=150)
    store.put("k", iter([b"x" * (9 * MIB)]))
    with store.open("k") as file:
        assert file.read() == b"x" * (9 * MIB)
    assert [entry.key for entry in store.list()] == ["k"]


def test_an_expired_token_is_read_anew(faulty: FaultyBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(faulty.url, timeout_s=30)
    store.put("k", b"x" * (9 * MIB))
    with store.open("k") as file:
        assert file.read(1) == b"x"
        code, status = {"s3": ("ExpiredToken", 400), "az": ("AuthenticationFailed", 403)}[faulty.scheme]
        body = f"<Error><Code>{code}</Code><Message>Signed expiry time has passed</Message></Error>"
        faulty.proxy.faults.append((status, {"Content-Type": "application/xml"}, body.encode()))
        with pytest.raises(StoreForbidden, match="the token has expired"):
            store.put("other", b"x")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIARENEWED")
        assert file.read(6 * MIB) == b"x" * (6 * MIB)
    store.put("other", b"x")
    if faulty.scheme == "s3":
        assert "Credential=AKIARENEWED/" in faulty.proxy.headers["authorization"]


def child(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a Python program with the variables of this process."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


UPLOAD = """
import sys
from mldiagnostics.store import open_store

def pieces():
    for _ in range(24):
        yield b"x" * 2**20
    print("sent", flush=True)
    sys.stdin.read()

open_store(sys.argv[1], timeout_s=150).put("a/k", pieces(), replace=sys.argv[2] == "replace")
"""


@pytest.mark.parametrize("verb", ["create", "replace"])
def test_a_process_killed_in_an_upload_leaves_the_key_as_it_was(store_url: str, verb: str) -> None:
    store = open_store(store_url, timeout_s=150)
    if verb == "replace":
        store.put("a/k", b"old")
    with child(UPLOAD, store_url, verb) as process:
        assert process.stdout
        assert process.stdout.readline() == "sent\n"
        process.kill()
    if verb == "create":
        assert list(store.list()) == list(store.folders("a")) == []
        with pytest.raises(NotStored):
            store.open("a/k")
    else:
        with store.open("a/k") as file:
            assert file.read() == b"old"
    assert store.put("a/k", b"new", replace=verb == "replace").bytes == 3
    assert [(entry.key, entry.bytes) for entry in store.list()] == [("a/k", 3)]


IMPORTS = """
import sys
from mldiagnostics.store import open_store
for url in sys.argv[1:]:
    open_store(url)
    print("obstore" in sys.modules)
"""


def test_the_client_is_imported_when_a_bucket_of_its_scheme_is_opened(tmp_path: Path) -> None:
    with child(IMPORTS, str(tmp_path), "gs://bucket/p", "s3://bucket/p") as process:
        output, _ = process.communicate(timeout=200)
    assert output.split() == ["False", "False", "True"]


FORK = """
import os, sys
from mldiagnostics.errors import StoreUnreachable
from mldiagnostics.store import open_store
used, unused = open_store(sys.argv[1], timeout_s=60), open_store(sys.argv[1], timeout_s=60)
used.put("k", b"x")
if (pid := os.fork()) == 0:
    for store in (used, unused):
        try:
            print([entry.key for entry in store.list()], flush=True)
        except StoreUnreachable as error:
            print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print([entry.key for entry in used.list()])
"""


def test_a_forked_process_uses_the_store_or_says_that_it_cannot(store_url: str) -> None:
    with child(FORK, store_url) as process:
        output, _ = process.communicate(timeout=200)
    *of_child, of_parent = output.splitlines()
    assert of_parent == "['k']"
    if store_url.startswith(("s3:", "az:")):
        assert len(of_child) == 2
        words = f"{store_url}: a bucket of S3 or Azure was used before this process was forked; start"
        assert all(line.startswith(words) for line in of_child)
    else:
        assert of_child == ["['k']"] * 2


READ_AFTER_FORK = """
import os, sys
from mldiagnostics.errors import StoreError
from mldiagnostics.store import open_store
store = open_store(sys.argv[1])
store.put("k", b"x" * 2**21)
file = store.open("k")
if (pid := os.fork()) == 0:
    try:
        print(len(file.read()), flush=True)
    except StoreError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(len(store.open("k").read()))
"""


def test_a_file_that_was_open_at_a_fork_is_read_or_the_reader_says_that_it_cannot(store_url: str) -> None:
    with child(READ_AFTER_FORK, store_url) as process:
        output, _ = process.communicate(timeout=60)
    of_child, of_parent = output.splitlines()
    assert of_parent == str(2**21)
    if store_url.startswith(("s3:", "az:")):
        assert "was used before this process was forked" in of_child
    else:
        assert of_child == of_parent


LARGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from mldiagnostics.store import open_store
store = open_store(sys.argv[1], timeout_s=150)
store.put("warm-up", b"x" * 2**23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store.put("large", (bytes([number]) * 2**20 for number in range(int(sys.argv[2]))))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(("faulty", "mib"), [("az", 96), ("s3", 48)], indirect=["faulty"])
def test_a_large_stream_is_stored_in_little_memory(
    faulty: FaultyBucket, mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in faulty.server.environment().items():  # without the proxy, which has each body in memory
        monkeypatch.setenv(variable, value)
    with child(LARGE, faulty.url, str(mib)) as process:
        output, _ = process.communicate(timeout=280)
    assert process.returncode == 0
    assert int(output) < 32
    store = open_store(faulty.url, timeout_s=150)
    assert {entry.key: entry.bytes for entry in store.list()}["large"] == mib * MIB
    store.delete_all("large")
    assert store.delete("large")


def test_a_list_of_several_pages_is_whole_and_sorted(faulty: FaultyBucket) -> None:
    store = open_store(faulty.url, timeout_s=60)
    keys = [f"{folder}/{number:02}" for folder in "abcdefgh" for number in range(4)]
    for key in keys:
        store.put(key, b"x")
    faulty.proxy.requests.clear()
    assert [entry.key for entry in store.list()] == keys
    assert sorted(store.folders()) == list("abcdefgh")
    assert len(faulty.proxy.requests) > 4 or faulty.scheme == "az"  # whose pages have 5000 objects
    assert store.delete_all("c") == 4
    assert len(list(store.list())) == len(keys) - 4
