"""The state in a journal, which a user may have written: it is refused, or it is as good as a report."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedSession
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ALIASES
from mldiagnostics_operator.control_plane.limits import (
    MAX_PROCESSES_OF_RUN,
    MAX_STATE_LINE_BYTES,
    PROCESSES_OF_SLICE,
)
from mldiagnostics_operator.control_plane.memory.journal_page import (
    JournalContent,
    process_lines,
    read_state,
    write_state,
)
from mldiagnostics_operator.control_plane.memory.process_memory import LeaderFacts, PeerFacts
from mldiagnostics_operator.control_plane.memory.saved_state import SavedHost, SavedLeader, SavedPeer, SavedProcess
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.control_plane.slices import finished

KEY = RunKey("ml", "4f6c")
HEAD: dict[str, Any] = {"v": 1, "namespace": KEY.namespace, "runId": KEY.run_id}
HOST = {"received": 5.0}
PROCESS: dict[str, Any] = {"sequence": 1, "firstReceived": 1.0, "host": HOST}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def text_of(facts: dict[str, Any], processes: object) -> bytes:
    """Return a state as the journal writes it."""
    head = orjson.dumps({**HEAD, **facts})[:-1]
    return head + b',"processes":{\n"00000001":' + orjson.dumps(processes) + b"\n}}"


def restored(text: bytes) -> ReportTable:
    """Return the reports of a new leader that reads the state."""
    table = ReportTable()
    finished(table.restore(KEY, JournalContent("", finished(read_state(text, KEY)), {})))
    return table


@pytest.mark.parametrize(
    ("saved", "kept"), [(SavedHost, ReportedHost), (SavedLeader, LeaderFacts), (SavedPeer, PeerFacts)]
)
def test_each_fact_that_is_kept_is_saved(saved: Any, kept: Any) -> None:
    assert set(saved.model_fields) == {field.name for field in fields(kept)}


def test_each_fact_of_a_session_is_saved() -> None:
    [session] = SavedProcess.model_validate(PROCESS | {"sessions": [{"id": "s"}]}).sessions
    assert set(dict(session)) == {field.name for field in fields(ReportedSession)}


@pytest.mark.parametrize(
    ("facts", "process"),
    [
        ({}, {}),
        ({}, []),
        ({}, PROCESS | {"host": {}}),
        ({}, PROCESS | {"host": {"received": "now"}}),
        ({}, PROCESS | {"host": {"received": 1e300}}),
        ({}, PROCESS | {"host": HOST | {"rank": -1}}),
        ({}, PROCESS | {"host": HOST | {"phase": "Unknown"}}),
        ({}, PROCESS | {"leader": {"started": -1e300}}),
        ({}, PROCESS | {"sessions": [{}]}),
        ({"owner": 1}, PROCESS),
        ({"firstReceived": []}, PROCESS),
        ({"peer": {"aliases": 1}}, PROCESS),
        ({"peer": {"aliases": ["a"] * (MAX_ALIASES + 1)}}, PROCESS),
        ({"configs": {"order": [], "value": {}}}, PROCESS),
        ({"configs": {"order": [0, 0, 0], "value": {"user": []}}}, PROCESS),
        ({"eventsUntil": ["a"]}, PROCESS),
    ],
)
def test_a_state_that_no_operator_writes_is_refused(facts: dict[str, Any], process: object) -> None:
    with pytest.raises(ValueError, match=r"^[\w.-]*: "):
        finished(read_state(text_of(facts, process), KEY))


def nested(depth: int) -> bytes:
    """Return a state whose configuration has lists in lists."""
    value = b'{"order":[0,0,0],"value":{"user":{"a":%b%b}}}' % (b"[" * depth, b"]" * depth)
    return text_of({}, PROCESS).replace(b',"processes"', b',"configs":%b,"processes"' % value)


def test_configurations_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(ValueError, match="depth limit exceeded"):
        finished(read_state(nested(5000), KEY))


def test_deep_configurations_are_refused_where_this_python_cannot_show_them() -> None:
    try:
        table = restored(nested(1000))
    except ValueError as error:
        assert "is nested too deeply" in str(error)  # noqa: PT017 - Python 3.12 and later nest further
    else:
        finished(table.page(KEY, "mark"))


@given(st.data())
def test_a_state_is_refused_or_can_be_shown(data: st.DataObject) -> None:
    fact = data.draw(st.sampled_from(["owner", "firstReceived", "peer", "configs", "eventsUntil", "x"]))
    part = data.draw(st.sampled_from([*SavedProcess.model_fields, *SavedHost.model_fields, *SavedLeader.model_fields]))
    value = data.draw(ANYTHING)
    place = data.draw(st.sampled_from(["process", "host", "leader"]))
    inner = {"process": {part: value}, "host": {"host": HOST | {part: value}}, "leader": {"leader": {part: value}}}
    facts = {fact: data.draw(ANYTHING)} if data.draw(st.booleans()) else {}
    try:
        table = restored(text_of(facts, PROCESS | inner[place]))
    except ValueError:
        return
    view = table.view(KEY)
    assert view is not None
    assert [host.lost_time is not None for host in view.hosts]
    finished(table.count_reporting(10.0))
    finished(table.page(KEY, "mark"))


@pytest.mark.parametrize("facts", [{}, {"x": [[]] * MAX_STATE_LINE_BYTES}], ids=["line", "head"])
def test_a_part_that_is_too_long_is_refused_before_it_is_parsed(facts: dict[str, Any]) -> None:
    processes = [b"x" * MAX_STATE_LINE_BYTES] if not facts else []
    with pytest.raises(ValueError, match=f"line of more than {MAX_STATE_LINE_BYTES} bytes"):
        finished(read_state(write_state(KEY, "mark", facts, processes), KEY))


def test_a_state_with_too_many_processes_is_refused() -> None:
    one = orjson.dumps(PROCESS)
    for names in (PROCESSES_OF_SLICE + 1,), (PROCESSES_OF_SLICE,) * (MAX_PROCESSES_OF_RUN // PROCESSES_OF_SLICE) + (1,):
        lines = [
            b",".join(b'"%08x":%b' % (PROCESSES_OF_SLICE * line + each, one) for each in range(number))
            for line, number in enumerate(names)
        ]
        with pytest.raises(ValueError, match=f"more than {MAX_PROCESSES_OF_RUN} processes"):
            finished(read_state(write_state(KEY, "mark", {}, lines), KEY))


def test_processes_beyond_the_limit_of_a_run_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mldiagnostics_operator.control_plane.memory.run_memory.MAX_PROCESSES_OF_RUN", 3)
    saved = {f"{each:08x}": PROCESS for each in range(5)}
    state = finished(read_state(write_state(KEY, "mark", {}, process_lines(saved)), KEY))
    table = ReportTable()
    finished(table.restore(KEY, JournalContent("", state, dict.fromkeys(saved, 7))))
    assert table.process_count == 3
    assert [table.known_events(KEY, name) for name in saved] == [7, 7, 7, 0, 0]
    assert restored(write_state(KEY, "mark", {}, process_lines(saved))).process_count == 3


def test_a_slice_of_large_processes_is_written_in_lines_that_can_be_read() -> None:
    sessions = [{"id": f"{each}", "directory": "d" * 2000} for each in range(4)]
    saved = {f"{each:08x}": PROCESS | {"sessions": sessions} for each in range(PROCESSES_OF_SLICE)}
    lines = process_lines(saved)
    assert all(len(line) < MAX_STATE_LINE_BYTES for line in lines)
    assert restored(write_state(KEY, "mark", {}, lines)).process_count == PROCESSES_OF_SLICE
