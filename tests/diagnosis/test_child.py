"""The process that reads a trace: strict output, and an end at its limits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.capture.wire import integer, message
from mldiagnostics_diagnosis.child import TraceUnreadable, summarize
from mldiagnostics_diagnosis.limits import Limits
from support.traces import TracedEvent, xspace

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [TracedEvent("s", n * 10.0, 9.0, {"step_num": n}) for n in range(20)]
MIB = 2**20


def test_a_trace_is_summarized_under_the_name_of_its_file(tmp_path: Path) -> None:
    trace = tmp_path / "trainer-3.xplane.pb"
    trace.write_bytes(xspace({"/host:CPU": {"python": EVENTS}}))
    summary = summarize(trace)
    assert summary.steps
    assert (summary.host, summary.trace_bytes, summary.steps.total) == ("trainer-3", trace.stat().st_size, 19)
    assert [*tmp_path.iterdir()] == [trace]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty; capture the host again"),
        (os.urandom(1000) + b"\xff" * 20, "is not a trace, or is cut; capture the host again"),
        (b"<html>not found</html>", "is not a trace, or is cut; capture the host again"),
        (xspace({"/host:CPU": {"python": EVENTS}})[:-100], "is not a trace, or is cut; capture the host again"),
    ],
    ids=["empty", "random", "other file", "cut"],
)
def test_a_file_that_is_no_trace_is_named(content: bytes, problem: str, tmp_path: Path) -> None:
    trace = tmp_path / "h.xplane.pb"
    trace.write_bytes(content)
    with pytest.raises(TraceUnreadable) as raised:
        summarize(trace)
    assert str(raised.value) == f"{trace}: {problem}"


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceUnreadable, match=r"h\.xplane\.pb: cannot be read: No such file"):
        summarize(tmp_path / "h.xplane.pb")


def test_a_trace_that_needs_too_much_memory_ends_the_reader_alone(tmp_path: Path) -> None:
    trace = tmp_path / "h.xplane.pb"
    names = (message(4, integer(1, key) + message(2, b"")) for key in range(1, 400_000))
    trace.write_bytes(message(1, b"".join(names)))
    with pytest.raises(TraceUnreadable, match="needs more memory than the limit allows"):
        summarize(trace, limits=Limits(memory_bytes=100 * MIB))


def test_a_trace_that_is_larger_than_the_memory_ends_the_reader_alone(tmp_path: Path) -> None:
    trace = tmp_path / "h.xplane.pb"
    with trace.open("wb") as file:
        file.truncate(1024 * MIB)
    with pytest.raises(TraceUnreadable, match="needs more memory than the limit allows"):
        summarize(trace, limits=Limits(memory_bytes=256 * MIB))


def test_a_trace_that_takes_too_long_ends_the_reader_alone(tmp_path: Path) -> None:
    trace = tmp_path / "h.xplane.pb"
    line = message(4, integer(1, 1) + integer(2, 5) + integer(3, 7)) * 3_000_000
    trace.write_bytes(message(1, b"\x12\x09/host:CPU" + message(3, line)))
    with pytest.raises(TraceUnreadable, match="took over 1 s of processor time"):
        summarize(trace, limits=Limits(cpu_s=1))
    with pytest.raises(TraceUnreadable, match=r"took over 0\.05 s; capture for a shorter time"):
        summarize(trace, limits=Limits(deadline_s=0.05))
