"""Logs of each format, whole and corrupt, at any division into blocks."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_cli.trace import log_files
from mldiagnostics_cli.trace.entries import CorruptPart, LogEntry, MetricSample
from mldiagnostics_cli.trace.log_files import read_log

if TYPE_CHECKING:
    from mldiagnostics_cli.trace.log_files import LogItem

T = 1795255200_000_000


def entry(number: int, **changes: Any) -> dict[str, Any]:
    """An entry of Cloud Logging."""
    return {
        "timestamp": f"2026-11-21T10:00:{number:02}.5Z",
        "textPayload": f"message {number}",
        "severity": "WARNING",
        "resource": {"labels": {"pod_name": "trainer-0", "container_name": "main"}},
        "sourceLocation": {"file": "src/train.py", "line": "17"},
        **changes,
    }


def read(content: str | bytes) -> list[LogItem]:
    return list(read_log(io.BytesIO(content.encode() if isinstance(content, str) else content)))


EXPECTED = [
    LogEntry(T + number * 1_000_000 + 500_000, f"message {number}", "trainer-0", "main", "WARNING", "src/train.py:17")
    for number in range(3)
]
ROWS = "\n".join(f"2026-11-21T10:00:0{n}.5Z,message {n},WARNING,trainer-0,main,src/train.py,17" for n in range(3))
FORMATS = {
    "lines": "\n".join(json.dumps(entry(number)) for number in range(3)),
    "array": json.dumps([entry(number) for number in range(3)], indent=2),
    "compact array": json.dumps([entry(number) for number in range(3)]),
    "sequence": "\n".join(json.dumps(entry(number), indent=2) for number in range(3)),
    "csv": "timestamp,textPayload,severity,resource.labels.pod_name,resource.labels.container_name,"
    f"sourceLocation.file,sourceLocation.line\n{ROWS}\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_of_cloud_logging_is_read_in_each_format(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(FORMATS[name]) == EXPECTED
    assert read(gzip.compress(FORMATS[name].encode())) == EXPECTED
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 100)
    assert read(FORMATS[name]) == EXPECTED


@given(cut=st.integers(0, 600), junk=st.binary(max_size=30), indent=st.sampled_from([None, 2]))
def test_a_corrupt_part_never_stops_the_rest(cut: int, junk: bytes, indent: int | None) -> None:
    whole = json.dumps([entry(0), entry(1)], indent=indent).encode()
    items = read(whole[:cut] + junk + whole[cut:])
    assert all(isinstance(item, LogEntry | MetricSample | CorruptPart) for item in items)


def test_after_a_corrupt_entry_the_next_is_read() -> None:
    text = FORMATS["array"].replace('"textPayload": "message 1"', '"textPayload": brok{en')
    assert read(text) == [EXPECTED[0], CorruptPart("entry 2", "is not JSON"), EXPECTED[2]]
    lines = FORMATS["lines"].splitlines()
    assert read("\n".join([lines[0], "{torn", "[1", "", json.dumps({"a": 1}), lines[2]])) == [
        EXPECTED[0],
        CorruptPart("line 2", "is not JSON"),
        CorruptPart("line 3", "has no time"),
        CorruptPart("line 5", "has no time"),
        EXPECTED[2],
    ]
    [*_, last] = read(gzip.compress(FORMATS["lines"].encode())[:-20])
    assert isinstance(last, CorruptPart)
    assert last.place == "end of the file"


def test_a_line_that_is_too_long_is_skipped_without_keeping_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MAX_LINE", 1000)
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 300)
    lines = FORMATS["lines"].splitlines()
    assert read(f"{lines[0]}\n{'x' * 5000}\n{lines[2]}") == [
        EXPECTED[0],
        CorruptPart("line 2", "is too long"),
        EXPECTED[2],
    ]


def test_output_of_kubectl_logs_is_divided_by_container() -> None:
    text = """starting
[pod/trainer-0/main] 2026-11-21T10:00:00.5Z 2026-11-21 10:00:00,499 ERROR failed:
[pod/trainer-1/main] 2026-11-21T10:00:01.5Z I1121 10:00:01.400000   7 loop.cc:42] step 1
[pod/trainer-0/main] Traceback (most recent call last):
[pod/trainer-1/main] {"v":1,"kind":"metric","t":1795255202.5,"name":"loss","rank":3,"attempt":0,"value":0.5}
[pod/trainer-1/main] 2026-11-21T10:00:03.5Z {"level": "warn", "msg": "slow"}
"""
    assert sorted(map(repr, read(text))) == sorted(
        map(
            repr,
            [
                CorruptPart("line 1", "has no time"),
                LogEntry(
                    T + 500_000, "ERROR failed:\nTraceback (most recent call last):", "trainer-0", "main", "ERROR"
                ),
                LogEntry(T + 1_500_000, "step 1", "trainer-1", "main", "INFO", "loop.cc:42"),
                MetricSample(T + 2_500_000, "loss", 0.5, "trainer-1"),
                LogEntry(T + 3_500_000, "slow", "trainer-1", "main", "WARN"),
            ],
        )
    )


def test_an_empty_text_does_not_hide_the_message_of_a_structured_entry() -> None:
    structured = entry(0, textPayload="", jsonPayload={"message": "message 0"})
    assert read(json.dumps(structured)) == EXPECTED[:1]


def test_other_text_has_its_time_first() -> None:
    assert read("[2026-11-21 10:00:00,500] INFO started\n2026-11-21T11:00:00.5+01:00 again\n") == [
        LogEntry(T + 500_000, "INFO started", severity="INFO"),
        LogEntry(T + 500_000, "again"),
    ]
