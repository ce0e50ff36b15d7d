"""Activity of a host's main thread: its innermost events as phases. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.recording import HostEvent

__all__ = ["Activity", "activities"]

Activity = tuple[int, int, "Phase", str]
"""Start and end in picoseconds, phase, and the name of the event that decides it."""

CHECKPOINT_READS = 2
"""An annotation that reads so many arrays from the device saves them; one array is a loss to print."""
READS_IN_A_ROW = 3
"""After so many arrays without another event between them, and without an annotation, the host saves them."""

_READS = ("np.asarray(", "ArrayImpl._value")
"""Start of the names of JAX's events that read one array."""

_OWN: dict[Role, Phase] = {
    "input": "input",
    "compilation": "compilation",
    "collection": "collection",
    "checkpoint": "checkpoint",
}
_WAITS: frozenset[Role] = frozenset({"wait", "from device"})
_NEUTRAL: frozenset[Role] = frozenset({"from device", "wait", "internal", "collection"})
"""Kinds of events that neither end nor begin what a host does."""
BETWEEN = "between the steps"
"""Name of the time of a thread outside of all its events."""


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    role: Role
    name: str
    parent: _Node | None
    children: list[_Node] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    launches: int = 0


def activities(events: Sequence[HostEvent], programs: frozenset[str]) -> list[Activity]:
    """Return the activities of a thread in order, without overlap.

    There is none while it waits.

    Names of annotations are the program's own, so the events inside decide: an annotation
    that puts data on the device without launching a program that hosts execute together fetches input, one that reads
    several arrays writes a checkpoint.

    Args:
        events: The events of the thread.
        programs: Names of the launches of the programs that hosts execute together.
    """
    ordered = sorted(events, key=lambda event: (event[0], -event[1]))
    first, last = min((event[0] for event in ordered), default=0), max((event[1] for event in ordered), default=0)
    root = _Node(first, last + 1, "internal", "", None)
    node = root
    for start, end, role, name in ordered:
        while node.parent is not None and start >= node.end:
            node = node.parent
        child = _Node(start, min(end, node.end), role, name, node)
        node.children.append(child)
        _count(child, programs)
        node = child
    return list(_flat(root, None, BETWEEN))


def _count(node: _Node, programs: frozenset[str]) -> None:
    """Count the events inside of the annotations around them."""
    in_launch = False
    outer = node.parent
    while outer is not None:
        if node.role == "to device" and not in_launch:
            outer.writes += 1
        elif _is_read(node):
            outer.reads += 1
        elif node.role == "dispatch" and node.name in programs:
            outer.launches += 1
        in_launch = in_launch or outer.role == "dispatch"
        outer = outer.parent


def _is_read(node: _Node) -> bool:
    """Return whether an event reads one array.

    The runtime copies one in several parts, and starts copies ahead.
    """
    return node.role == "from device" and node.name.startswith(_READS)


def _phase_of(node: _Node, inherited: Phase | None) -> Phase | None:
    if node.role in _OWN:
        return _OWN[node.role]
    if inherited is not None:
        return inherited
    if node.role == "annotation" and not node.launches:
        if node.reads >= CHECKPOINT_READS:
            return "checkpoint"
        if node.writes:
            return "input"
    return None


def _flat(node: _Node, inherited: Phase | None, label: str) -> Iterable[Activity]:
    """Yield the instants of a node that no child explains better, and its children's."""
    own = _phase_of(node, inherited)
    shown = label if inherited is not None and own == inherited else node.name
    at, fetched, reads = node.start, False, 0
    for child in node.children:
        if child.start > at:
            # Before a transfer that no annotation surrounds, the host makes the data that it transfers.
            makes_data = child.role == "to device" and node.role == "step" and own is None and not fetched
            phase = "input" if makes_data else _after_reads(own, reads)
            yield from _own_time(node, at, child.start, phase, shown)
        yield from _flat(child, own, shown)
        at, fetched = max(at, child.end), fetched or _phase_of(child, own) == "input"
        reads = reads + _is_read(child) if child.role in _NEUTRAL else 0
    if node.end > at and node.parent is not None:
        yield from _own_time(node, at, node.end, _after_reads(own, reads), shown)


def _after_reads(own: Phase | None, reads: int) -> Phase | None:
    """Return the phase of time without events.

    After several arrays were read, the host saves them.
    """
    return "checkpoint" if own is None and reads >= READS_IN_A_ROW else own


def _own_time(node: _Node, start: int, end: int, own: Phase | None, shown: str) -> Iterable[Activity]:
    if own is not None:
        yield start, end, own, shown
    elif node.role == "to device":
        yield start, end, "transfer", node.name
    elif node.parent is None:
        yield start, end, "host", BETWEEN
    elif node.role not in _WAITS:
        yield start, end, "host", shown
