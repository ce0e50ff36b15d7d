"""One conformance suite for every store, on the local disk and in a bucket."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import io
import itertools
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mldiagnostics.errors import AlreadyStored, ConfigurationError, NotStored, StoreNotFound, StoreUnreachable
from mldiagnostics.store import Stored, open_store
from mldiagnostics.store.model import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mldiagnostics.store import Data, Store
    from mldiagnostics.store.model import Condition

MIB = 1024 * 1024
_numbers = itertools.count(1)


@pytest.fixture
def store(store_url: str) -> Store:
    return open_store(store_url, timeout_s=150)


def content(store: Store, key: str) -> bytes:
    with store.open(key) as file:
        return file.read()


def keys(store: Store, prefix: str = "") -> list[str]:
    return [entry.key for entry in store.list(prefix)]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


FORMS: dict[str, Callable[[bytes], Data]] = {
    "bytes": lambda data: data,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "file": io.BytesIO,
    "list": lambda data: [data],
    "pieces": lambda data: pieces(data, 999_999),
}


@pytest.mark.parametrize("size", [0, 1, 4 * MIB, 4 * MIB + 1, 9 * MIB])
def test_what_is_put_is_read_and_listed_and_its_receipt_is_true(store: Store, size: int) -> None:
    before = dt.datetime.now(dt.timezone.utc) - dt.timedelta(seconds=2)
    forms = FORMS if size < MIB else ("bytes", "file", "pieces")
    for form in forms:
        data = (form.encode() + bytes(range(256)) * (size // 256 + 1))[:size]
        receipt = store.put(f"{form}/b.bin", FORMS[form](data))
        assert (receipt.key, receipt.bytes, receipt.url) == (f"{form}/b.bin", size, store.url(f"{form}/b.bin"))
        assert receipt.sha256 == hashlib.sha256(data).hexdigest()
        assert content(store, f"{form}/b.bin") == data
    entries = list(store.list())
    assert [(entry.key, entry.bytes) for entry in entries] == [(f"{form}/b.bin", size) for form in sorted(forms)]
    after = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=2)
    assert all(before <= entry.modified <= after for entry in entries)


SEGMENTS = st.text("aé .-_%#?+=&~", min_size=1, max_size=3).filter(lambda text: text not in {".", ".."})
KEYS = st.tuples(st.lists(SEGMENTS, max_size=2), SEGMENTS).map(lambda parts: "/".join((*parts[0], parts[1] + "!")))
CONTENTS = st.sampled_from([b"", b"one", b"two"])
REPLACE = st.booleans() | st.just(value=b"one".__eq__)
PUTS = st.tuples(st.just("put"), KEYS, CONTENTS, REPLACE)
DELETES = st.tuples(st.just("delete"), KEYS, st.just(b""), st.sampled_from([None, b"one".__eq__]))


def accepts(condition: bool | Condition | None, present: bytes) -> bool:
    return condition(present) if callable(condition) else bool(condition)


@given(operations=st.lists(PUTS | DELETES, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_store_is_a_dictionary_that_refuses_other_content(
    store_url: str, operations: list[tuple[str, str, bytes, Any]]
) -> None:
    store = open_store(f"{store_url}/{next(_numbers)}")
    model: dict[str, bytes] = {}
    for verb, key, data, replace in operations:
        if verb == "delete":
            is_deleted = key in model and (replace is None or accepts(replace, model[key]))
            assert store.delete(key, only_if=replace) == is_deleted
            if is_deleted:
                del model[key]
        elif key in model and model[key] != data and not accepts(replace, model[key]):
            with pytest.raises(AlreadyStored):
                store.put(key, data, replace=replace)
        else:
            store.put(key, data, replace=replace)
            model[key] = data
    assert keys(store) == sorted(model, key=str.encode)
    assert {key: content(store, key) for key in model} == model


def test_a_prefix_is_a_directory(store: Store) -> None:
    for key in ["s/a", "s/deep/b", "s-2/c", "s.txt", "t"]:
        store.put(key, key.encode())
    assert keys(store, "s") == keys(store, "s/") == ["s/a", "s/deep/b"]
    assert keys(store, "s/deep") == ["s/deep/b"]
    assert keys(store, "t") == keys(store, "none") == keys(store, "none/below") == []
    assert keys(store) == ["s-2/c", "s.txt", "s/a", "s/deep/b", "t"]


def test_folders_are_the_first_parts_of_longer_keys(store: Store) -> None:
    for key in ["s/a", "s/deep/b", "s-2/c", "s.txt", "deep/er/d"]:
        store.put(key, key.encode())
    assert sorted(store.folders()) == ["deep", "s", "s-2"]
    assert list(store.folders("s")) == list(store.folders("s/")) == ["deep"]
    assert list(store.folders("s-2")) == list(store.folders("none")) == list(store.folders("s.txt")) == []


def test_a_store_never_written_to_is_empty(store: Store) -> None:
    assert keys(store) == list(store.folders()) == []
    assert not store.delete("a/b")
    with pytest.raises(NotStored, match="a/b"):
        store.open("a/b")


def test_a_directory_of_keys_is_no_object(store: Store) -> None:
    store.put("a/b", b"x")
    assert not store.delete("a")
    with pytest.raises(NotStored):
        store.open("a")


def test_nothing_is_below_an_object(store: Store) -> None:
    store.put("a", b"x")
    assert keys(store, "a") == []
    assert not store.delete("a/b")
    with pytest.raises(NotStored):
        store.open("a/b")


def test_the_url_of_a_directory_opens_as_a_store(store: Store) -> None:
    store.put("log/plugins/x", b"x")
    inner = open_store(store.url("log"))
    assert content(inner, "plugins/x") == b"x"
    assert open_store(inner.url()).url("plugins") == store.url("log/plugins")


def test_other_content_is_rejected_and_the_stored_one_stays(store: Store) -> None:
    store.put("k", b"first")
    with pytest.raises(AlreadyStored) as raised:
        store.put("k", iter([b"sec", b"ond"]))
    assert store.url("k") in str(raised.value)
    assert content(store, "k") == b"first"


def test_a_put_can_be_repeated(store: Store) -> None:
    data = b"x" * (5 * MIB)
    assert store.put("k", data) == store.put("k", pieces(data, MIB)) == store.put("k", io.BytesIO(data))


@pytest.mark.parametrize("key", ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", ".", "a/./b", "a\0b"])
def test_a_key_never_leaves_the_store(store: Store, key: str) -> None:
    for verb in (lambda: store.put(key, b""), lambda: store.open(key), lambda: store.delete(key)):
        with pytest.raises(ConfigurationError):
            verb()
    if key not in {"", "a/"}:  # as directories these can be meant
        with pytest.raises(ConfigurationError):
            list(store.list(key))
        with pytest.raises(ConfigurationError):
            list(store.folders(key))
    if key:
        with pytest.raises(ConfigurationError):
            store.url(key)


def at_once(count: int, call: Callable[[int], object]) -> list[object]:
    """Run `call(0) … call(count - 1)` in as many threads, started together; errors come back as values."""
    barrier = threading.Barrier(count)

    def one(number: int) -> object:
        barrier.wait()
        try:
            return call(number)
        except AlreadyStored as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.parametrize(("writers", "mib"), [(16, 1), (4, 9)])  # in one request, and in parts
def test_of_many_writers_of_one_key_exactly_one_wins_and_its_file_is_whole(
    store: Store, writers: int, mib: int
) -> None:
    def contents(number: int) -> bytes:
        return bytes([number]) * (mib * MIB)

    results = at_once(writers, lambda number: store.put("k", pieces(contents(number), 100_000)))
    winners = [number for number, result in enumerate(results) if isinstance(result, Stored)]
    assert len(winners) == 1
    assert content(store, "k") == contents(winners[0])


def test_many_threads_put_many_keys(store: Store) -> None:
    results = at_once(16, lambda number: store.put(f"d/{number:02}", b"%d" % number))
    assert keys(store) == [result.key for result in results if isinstance(result, Stored)]
    assert len(results) == 16


def test_a_reader_sees_one_whole_version_while_others_replace(store: Store) -> None:
    versions = {bytes([number]) * 300_000 for number in range(6)}
    ordered = sorted(versions)
    store.put("k", ordered[0])

    def read_or_write(number: int) -> object:
        return store.put("k", ordered[number], replace=True) if number < 6 else content(store, "k")

    assert set(at_once(12, read_or_write)[6:]) <= versions


def test_what_one_claims_on_a_condition_no_other_changes(store: Store) -> None:
    """Several writers of one record: its owner keeps it until its own deletion."""

    def of(owner: bytes) -> Callable[[bytes], bool]:
        return lambda head: head.startswith(owner)

    def claim_and_delete(number: int) -> object:
        owner = b"alone" if number == 0 else b"many"  # those of `many` also delete each other's claims
        claims = 0
        while claims < 5:
            try:
                store.put("k", owner + b"%d" % number, replace=of(owner))
            except (AlreadyStored, StoreUnreachable):
                continue
            claims += 1
            if number == 0:
                assert content(store, "k") == b"alone0"
                assert store.delete("k", only_if=of(owner))
            else:
                with contextlib.suppress(StoreUnreachable):
                    store.delete("k", only_if=of(owner))
        return None

    assert set(at_once(4, claim_and_delete)) == {None}


def test_an_object_that_is_deleted_after_its_condition_is_put_anew(store: Store) -> None:
    store.put("k", b"old")

    def reject(_head: bytes) -> bool:
        store.delete("k")
        return False

    store.put("k", b"new", replace=reject)
    assert content(store, "k") == b"new"


def test_a_directory_is_deleted_except_what_is_kept_and_its_neighbours_stay(store: Store) -> None:
    inside = [*(f"run/records/{number}" for number in range(12)), "run/run.json", "run/a/b/c"]
    for key in (*inside, "run2/file", "runs", "other/run/file"):
        store.put(key, key.encode())
    assert store.delete_all("run", keep={"run/run.json", "run2/file"}) == len(inside) - 1
    assert keys(store) == ["other/run/file", "run/run.json", "run2/file", "runs"]
    assert (store.delete_all("run"), store.delete_all("run"), store.delete_all("no/such")) == (1, 0, 0)
    assert keys(store) == ["other/run/file", "run2/file", "runs"]
    for prefix in ("", "run2/../other", "/"):
        with pytest.raises(ConfigurationError):
            store.delete_all(prefix)


def test_a_condition_reads_a_large_object_in_part(store: Store) -> None:
    store.put("k", b"x" * MIB)
    heads: list[bytes] = []
    assert not store.delete("k", only_if=lambda head: bool(heads.append(head)))
    assert [len(head) for head in heads] == [HEAD_BYTES]


class PartError(OSError):
    """An error of a caller's data, of a kind that stores raise too."""


def test_data_that_fails_half_way_leaves_nothing_and_its_error_is_the_callers(store: Store) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * (9 * MIB)
        raise PartError(28, "no space left where it came from")

    with pytest.raises(PartError):
        store.put("a/k", failing())
    assert keys(store) == []
    store.put("a/k", b"whole")
    assert content(store, "a/k") == b"whole"


def test_pieces_are_never_joined(store: Store) -> None:
    count = 40
    store.put("warm-up", b"x" * MIB)  # imports and connections
    tracemalloc.start()
    try:
        stored = store.put("k", (bytes([number]) * MIB for number in range(count)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stored.bytes == count * MIB
    assert peak < count * MIB / 2


def test_reading_in_parts_gives_the_whole(store: Store) -> None:
    data = bytes(range(256)) * 20_000
    store.put("k", data)
    with store.open("k") as file:
        assert file.read(10) == data[:10]
        assert file.read(5 * MIB) == data[10:]
        assert file.read(1) == b""


@pytest.mark.parametrize(
    "location",
    [
        "",
        "gs://",
        "gs:///x",
        "gs://UPPER/x",
        "gs://a/../b",
        "s3://",
        "s3://a/x",
        "az://-container/x",
        "abfss://container/x",
        "abfss://container@account/x",
        "http://bucket/x",
        "file://host/x",
        "volume:///x",
        "pod:///x",
    ],
)
def test_an_invalid_location_is_rejected(location: str) -> None:
    with pytest.raises(ConfigurationError, match=r"(gs|s3)://bucket|(az|abfss)://container"):
        open_store(location)


def test_a_file_url_is_its_path(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/a%20b").put("k", b"x")
    assert (tmp_path / "a b" / "k").read_bytes() == b"x"


@pytest.mark.parametrize("place", ["bucket", "file in the way"])
def test_a_missing_location_raises_not_found(place: str, gcs_bucket: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = open_store(f"gs://{gcs_bucket}-missing" if place == "bucket" else str(tmp_path / "file"))
    verbs: list[Callable[[], object]] = [
        lambda: store.put("k", b"x"),
        lambda: store.put("k", iter([b"x"])),
        lambda: store.open("k"),
        lambda: store.delete("k"),
        lambda: keys(store),
    ]
    for verb in verbs:
        with pytest.raises(StoreNotFound) as raised:
            verb()
        assert store.url() in str(raised.value)
