"""Logs with hostile parts: each gives entries or corrupt parts, never an exception."""

from __future__ import annotations

import gzip
import io
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.trace import log_files
from mldiagnostics_cli.trace.entries import CorruptPart, LogEntry, MetricSample
from mldiagnostics_cli.trace.events import TraceEvents
from mldiagnostics_cli.trace.log_files import read_log

if TYPE_CHECKING:
    from mldiagnostics_cli.trace.log_files import LogItem

AFTER = '{"t":5,"msg":"after"}'
NEXT = LogEntry(5_000_000, "after")
RECORD_FIELDS = ["v", "kind", "t", "name", "rank", "value", "payload", "labels", "attempt"]
CLOUD_FIELDS = ["timestamp", "textPayload", "jsonPayload", "resource", "labels", "pod_name", "sourceLocation", "file"]
OTHER_FIELDS = ["time", "message", "severity", "pod", "container", "line"]
FIELDS = [*RECORD_FIELDS, *CLOUD_FIELDS, *OTHER_FIELDS]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("metric")
huge = st.integers(300, 4200).map(lambda digits: 10**digits)
times = st.sampled_from(["2026-11-21T10:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", 5, 1e19])
documents = st.recursive(
    scalars | huge | times,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=6),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(FIELDS), documents, max_size=8)
records = st.fixed_dictionaries(
    {"v": documents, "kind": documents | st.just("metric"), "t": times | documents, "value": documents}
)


def read(content: str | bytes) -> list[LogItem]:
    return list(read_log(io.BytesIO(content.encode() if isinstance(content, str) else content)))


def written(item: LogItem) -> str:
    """Return an item as an event of a trace."""
    if isinstance(item, CorruptPart):
        return ""
    return TraceEvents().log(item, "a.log") if isinstance(item, LogEntry) else TraceEvents().sample(item)


@given(document=documents | objects | records)
def test_any_json_document_gives_an_entry_or_a_corrupt_part(document: Any) -> None:
    text = json.dumps(document)
    for log in (
        f"{AFTER}\n{text}\n{AFTER}\n",
        f"[{AFTER},\n{text},\n{AFTER}]",
        f"{AFTER}\n2026-11-21T10:00:00Z {text}\n{AFTER}\n",
    ):
        items = read(log)
        assert all(isinstance(item, LogEntry | MetricSample | CorruptPart) for item in items)
        assert "".join(map(written, items)).encode().isascii()
        assert items.count(NEXT) >= 2


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ('{"v":1,"kind":["x"],"t":1.0}', "has a kind that is not a string"),
        ('{"v":1,"kind":{"x":1},"t":1.0}', "has a kind that is not a string"),
        (f'{{"v":1,"kind":"metric","t":1.0,"name":"loss","value":{"9" * 400}}}', "has a value that is too large"),
        (f'{{"v":1,"kind":"metric","t":{"9" * 400},"name":"loss","value":1}}', "has no time"),
    ],
)
def test_a_record_with_hostile_fields_is_skipped(document: str, reason: str) -> None:
    assert read(f"{document}\n{AFTER}") == [CorruptPart("line 1", reason), NEXT]
    assert read(f"[{document},\n{AFTER}]") == [CorruptPart("entry 1", reason), NEXT]


def test_a_number_with_more_digits_than_python_reads_is_skipped() -> None:
    document = f'{{"t":5,"msg":"a","x":{"9" * 5000}}}'
    for log in (f"{document}\n{AFTER}", f"[{document},\n{AFTER}]"):
        corrupt, after = read(log)
        assert isinstance(corrupt, CorruptPart)
        assert after == NEXT


@pytest.mark.parametrize(
    "document",
    [
        '{"t":5,"x":DEEP}',
        '{"t":5,"jsonPayload":DEEP}',
        '{"t":5,"labels":{"pod_name":DEEP}}',
        '{"v":1,"kind":"event","t":5,"payload":DEEP}',
    ],
)
def test_deep_nesting_never_stops_the_rest(document: str) -> None:
    for depth in [*range(850, 1010), 100_000]:  # near Python's limit, the object can be read and not written
        deep = document.replace("DEEP", "[" * depth + "]" * depth)
        for log in (f"{deep}\n{AFTER}", f"[{deep},\n{AFTER}]"):
            assert NEXT in read(log)


def test_columns_of_deep_names_are_skipped() -> None:
    columns = "a." * 60_000 + "b"
    log = f"timestamp,textPayload,{columns}\n2026-11-21T10:00:00Z,,deep\n2026-11-21T10:00:00Z,message,\n"
    corrupt, entry = read(log)
    assert corrupt == CorruptPart("line 2", "is nested too deeply")
    assert isinstance(entry, LogEntry)


def test_a_gzip_file_is_read_up_to_its_damaged_bytes() -> None:
    lines = [f"2026-11-21T10:00:00Z INFO {number**5}" for number in range(50_000)]
    content = bytearray(gzip.compress("\n".join(lines).encode()))
    middle = len(content) // 2
    content[middle : middle + 64] = b"\xff" * 64
    *entries, last = read(bytes(content))
    assert isinstance(last, CorruptPart)
    assert last.place == "end of the file"
    assert len(lines) // 4 < len(entries) < len(lines)


@given(flip=st.integers(10, 400), mask=st.integers(1, 255))
def test_any_damage_of_a_gzip_file_is_a_corrupt_part(flip: int, mask: int) -> None:
    content = bytearray(gzip.compress("".join(f"2026-11-21T10:00:00Z {n**3}\n" for n in range(300)).encode()))
    content[flip] ^= mask
    assert any(isinstance(item, LogEntry | CorruptPart) for item in read(bytes(content)))


def test_a_pipe_that_returns_a_byte_at_a_time_is_read_in_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 1)
    assert read("timestamp,textPayload\n1970-01-01T00:00:05Z,after\n") == [NEXT]
    assert read(f"[\n{AFTER}]") == [NEXT]


def test_a_first_line_of_many_commas_is_read_at_once() -> None:
    start = time.process_time()
    assert read("," * 100_000 + f"\n{AFTER}") == [CorruptPart("line 1", "has no time"), NEXT]
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("now", "stamp", "expected"),
    [
        ("2027-01-01T08:00:00", "1231 23:59:59.000001", "2026-12-31T23:59:59.000001"),
        ("2026-12-31T20:00:00", "0101 02:00:00.000000", "2027-01-01T02:00:00"),  # of a zone that is ahead
        ("2026-11-21T10:00:00", "1121 09:00:00.000000", "2026-11-21T09:00:00"),
        ("2026-11-21T10:00:00", "1122 09:59:59.000000", "2026-11-22T09:59:59"),
        ("2026-11-21T10:00:00", "1122 10:00:01.000000", "2025-11-22T10:00:01"),
        ("2029-01-05T00:00:00", "0229 10:00:00.000000", "2028-02-29T10:00:00"),
    ],
)
def test_a_time_without_a_year_is_at_most_a_day_ahead(
    now: str, stamp: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    monkeypatch.setattr(time, "time_ns", lambda: round(moment.timestamp()) * 10**9)
    [entry] = read(f"I{stamp}   7 loop.cc:42] step 1\n")
    assert isinstance(entry, LogEntry)
    since = datetime.fromisoformat(expected).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert entry.t == since // timedelta(microseconds=1)
