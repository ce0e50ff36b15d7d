"""Pages of the journal of a run, and its state; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from mldiagnostics_api.reports.run_key import RunKey

from mldiagnostics_operator.control_plane.limits import (
    MAX_PROCESSES_OF_RUN,
    MAX_STATE_LINE_BYTES,
    PROCESSES_OF_SLICE,
)
from mldiagnostics_operator.control_plane.memory.saved_state import SavedFacts, SavedProcess, SavedState, validated

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from mldiagnostics_operator.control_plane.memory.event_log import Segment

STATE_VERSION: Final = 1
_PROCESSES: Final = b',"processes":{\n'
"""Only the end of the facts has a line break."""
_MARK: Final = re.compile(rb'\{"v":\d+,"mark":"([^"]*)"')
_KEY: Final = re.compile(_MARK.pattern + rb',"namespace":"([^"]*)","runId":"([^"]*)"')


class EventsMoment(NamedTuple):
    """Moment of a report with which all goodput events are there.

    The newest report is the greatest. Its moment alone says nothing of the order, as the clock may have been set back.
    """

    attempt: int = 0
    first_received: float = 0.0
    """When the first report of its process arrived."""
    sequence: int = 0
    sent: float = 0.0
    """In Unix seconds by the clock of the process; 0 if there was no report."""


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Changes of a run that the journal has to write."""

    state: bytes
    """The whole state, as JSON."""
    segments: Mapping[str, Segment]
    """New events, by incarnation."""
    sequences: Mapping[str, int]
    """The newest sequence in `state`, by incarnation."""
    events_until: EventsMoment
    """Moment up to which `segments` and earlier pages have all goodput events."""


@dataclass(frozen=True, slots=True)
class JournalContent:
    """Content of the journal of a run."""

    owner: str
    state: SavedState
    events: Mapping[str, int]
    """Number of persisted events, by incarnation."""


def write_state(key: RunKey, mark: str, facts: Mapping[str, Any], processes: Iterable[bytes]) -> bytes:
    """Return the state of a run as JSON.

    Args:
        key: The run.
        mark: Different in each write; it stands at the start, so that `read_mark` needs no more.
        facts: The facts of the run, of types that orjson writes.
        processes: Members of the JSON object of processes, some in each text; each text becomes a line.
    """
    head = {"v": STATE_VERSION, "mark": mark, "namespace": key.namespace, "runId": key.run_id}
    return b'%b,"processes":{\n%b\n}}' % (orjson.dumps({**head, **facts})[:-1], b",\n".join(processes))


def process_lines(processes: Mapping[str, Any]) -> list[bytes]:
    """Return some processes as texts that `read_state` can read.

    Args:
        processes: At most `PROCESSES_OF_SLICE`, of types that orjson writes, by incarnation.
    """
    line = orjson.dumps(processes)
    if len(line) <= MAX_STATE_LINE_BYTES:
        return [line[1:-1]]
    return [orjson.dumps({name: process})[1:-1] for name, process in processes.items()]


def read_mark(head: bytes) -> str:
    """Return the mark of a state from its first bytes; empty for any other content."""
    match = _MARK.match(head)
    return match[1].decode("utf-8", "replace") if match else ""


def read_key(head: bytes) -> RunKey | None:
    """Return the run of a state from its first bytes; None for any other content."""
    match = _KEY.match(head)
    return RunKey(match[2].decode("utf-8", "replace"), match[3].decode("utf-8", "replace")) if match else None


def read_state(text: bytes, key: RunKey) -> Generator[None, None, SavedState]:
    """Return the facts of a run; yield after each slice of work.

    Raises:
        ValueError: The text is not a state of this run.
    """
    head, separator, rest = text.partition(_PROCESSES)
    state = _loads(head + b"}" if separator else text)
    if not isinstance(state, dict) or state.get("v") != STATE_VERSION:
        raise ValueError(f"not a state of version {STATE_VERSION}")
    if (state.get("namespace"), state.get("runId")) != key:
        raise ValueError(f"is of another run, in namespace {state.get('namespace')!r}")
    processes = dict[str, SavedProcess]()
    if separator:
        for line in islice(BytesIO(rest.removesuffix(b"\n}}")), MAX_PROCESSES_OF_RUN):
            saved = _loads(b"{%b}" % line.removesuffix(b"\n").removesuffix(b","))
            if len(saved) > PROCESSES_OF_SLICE or len(processes) + len(saved) > MAX_PROCESSES_OF_RUN:
                raise ValueError(f"has more than {MAX_PROCESSES_OF_RUN} processes, or {PROCESSES_OF_SLICE} in a line")
            processes |= {name: validated(SavedProcess, process) for name, process in saved.items()}
            yield
    return SavedState(validated(SavedFacts, state), processes)


def _loads(text: bytes) -> Any:
    """Return a part of a state.

    Raises:
        ValueError: It is not JSON, or too long to be parsed at once.
    """
    if len(text) > MAX_STATE_LINE_BYTES:
        raise ValueError(f"has a line of more than {MAX_STATE_LINE_BYTES} bytes")
    return orjson.loads(text)
