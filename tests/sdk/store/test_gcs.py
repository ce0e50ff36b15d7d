"""Faults of a bucket: errors, timeouts, lost responses, missing credentials."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import (
    AlreadyStored,
    NoCredentials,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreUnreachable,
)
from mldiagnostics.store import open_store
from support.time_limits import with_enough_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics.store import Store
    from support.servers.emulator import Emulator
    from support.servers.emulator_faults import Fault, FaultyProxy

MIB = 1024 * 1024
SDK = Path(__file__).parents[3] / "sdk/src"
VERBS: dict[str, Callable[[Store], object]] = {
    "put": lambda store: store.put("k", b"x"),
    "put in pieces": lambda store: store.put("k", iter([b"x" * 5 * MIB])),
    "open": lambda store: store.open("k"),
    "list": lambda store: list(store.list()),
    "delete": lambda store: store.delete("k"),
}

pytestmark = pytest.mark.timeout(200)  # no test may wait for ever


def a_store(bucket: str, *, timeout_s: float = 1.2) -> Store:
    return open_store(f"gs://{bucket}/p", timeout_s=timeout_s)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, NoCredentials),
        (403, StoreForbidden),
        (429, StoreUnreachable),
        (500, StoreUnreachable),
        (503, StoreUnreachable),
        (507, StoreFull),
    ],
)
def test_each_http_error_has_its_own_exception(
    gcs_faults: FaultyProxy, gcs_bucket: str, verb: str, status: int, kind: type[StoreError]
) -> None:
    def error(timeout_s: float) -> StoreError:
        gcs_faults.requests.clear()
        with pytest.raises(StoreError) as raised:
            VERBS[verb](a_store(gcs_bucket, timeout_s=timeout_s))
        return raised.value

    gcs_faults.otherwise = status
    is_retried = kind is StoreUnreachable
    raised = with_enough_time(error, lambda error: type(error) is kind and (len(gcs_faults.requests) > 1) == is_retried)
    assert type(raised) is kind
    assert f"gs://{gcs_bucket}/p" in str(raised)
    assert (len(gcs_faults.requests) > 1) == is_retried


@pytest.mark.parametrize("verb", VERBS)
def test_a_silent_server_is_unreachable(gcs_faults: FaultyProxy, gcs_bucket: str, verb: str) -> None:
    gcs_faults.otherwise = "hang"
    with pytest.raises(StoreUnreachable, match="no valid response in time"):
        VERBS[verb](a_store(gcs_bucket))


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_connection_is_unreachable(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(StoreUnreachable, match="no valid response in time"):
            VERBS[verb](a_store("some-bucket"))


@pytest.mark.parametrize("fault", [429, 503, "lose"])
@pytest.mark.parametrize("verb", VERBS)
def test_one_fault_is_retried(gcs_faults: FaultyProxy, gcs_bucket: str, verb: str, fault: Fault) -> None:
    store = a_store(gcs_bucket, timeout_s=30)
    if not verb.startswith("put"):
        store.put("k", b"x")
    gcs_faults.faults.append(fault)
    gcs_faults.requests.clear()
    VERBS[verb](store)
    assert not gcs_faults.faults
    assert len(gcs_faults.requests) > 1


@pytest.mark.parametrize("size", [1, 5 * MIB])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_retried_put_succeeds_after_a_lost_response(
    gcs_faults: FaultyProxy, gcs_bucket: str, size: int, lost: int
) -> None:
    data = b"x" * size
    gcs_faults.faults.extend(["pass"] * lost + ["lose"])
    store = a_store(gcs_bucket, timeout_s=30)
    assert store.put("k", iter([data])).bytes == size
    with store.open("k") as file:
        assert file.read() == data


def test_a_retried_put_fails_if_the_object_has_other_content(
    gcs_emulator: Emulator, gcs_faults: FaultyProxy, gcs_bucket: str
) -> None:
    gcs_emulator.make_object(gcs_bucket, "p/k", b"other!")
    gcs_faults.faults.append("lose")
    with pytest.raises(AlreadyStored):
        a_store(gcs_bucket, timeout_s=30).put("k", b"ours!!")


def test_a_read_that_fails_later_raises_a_store_error(gcs_faults: FaultyProxy, gcs_bucket: str) -> None:
    store = a_store(gcs_bucket, timeout_s=30)
    store.put("k", b"x" * (9 * MIB))
    with store.open("k") as file:
        assert file.read(10) == b"x" * 10
        gcs_faults.otherwise = 403
        with pytest.raises(StoreForbidden):
            file.read()


def test_placeholders_of_folders_are_not_listed(gcs_emulator: Emulator, gcs_bucket: str) -> None:
    for name in ("p/", "p/d/", "p/d/k", "other/k", "p2"):
        gcs_emulator.make_object(gcs_bucket, name, b"")
    store = a_store(gcs_bucket, timeout_s=30)
    assert [entry.key for entry in store.list()] == [entry.key for entry in store.list("d")] == ["d/k"]


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """Accept connections and never respond."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in accepted:
            connection.close()


def test_missing_credentials_are_reported_even_if_the_metadata_server_hangs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with silent_server() as address:
        monkeypatch.setenv("GCE_METADATA_HOST", address)
        monkeypatch.setenv("GCE_METADATA_IP", address)
        with pytest.raises(StoreForbidden, match="no Google credentials"):  # after about 12 s, Google's own limit
            list(a_store("some-bucket").list())


def test_a_missing_credentials_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(StoreForbidden, match=r"key\.json"):
        list(a_store("some-bucket").list())


OPEN_A_BUCKET = """
from mldiagnostics.errors import MissingExtraError
from mldiagnostics.store import open_store
try:
    open_store("gs://bucket/prefix")
except MissingExtraError as error:
    print(error.extra, error)
"""


def test_without_googles_client_the_error_names_the_extra() -> None:
    command = [sys.executable, "-S", "-c", OPEN_A_BUCKET]
    environment = {**os.environ, "PYTHONPATH": str(SDK)}
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=True)
    assert result.stdout.startswith(
        "gcs gs://bucket/prefix needs the extra 'gcs': pip install './sdk[gcs]' in a checkout"
    )
