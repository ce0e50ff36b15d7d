"""Activity of a host's main thread: its innermost events as phases. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.recording import HostEvent, Thread


class Activity(NamedTuple):
    """Time of a thread with one phase."""

    start_ps: int
    end_ps: int
    phase: Phase
    name: str
    """The event that decides the phase."""
    is_launch: bool = False
    """Whether the thread launches a program; on a GPU, it waits there until the program's inputs are on the device."""


CHECKPOINT_READS = 2
"""An annotation that reads so many arrays from the device saves them; one array is a loss to print."""
READS_IN_A_ROW = 3
"""After so many arrays without another event between them, and without an annotation, the host saves them."""

_READS = ("np.asarray(", "ArrayImpl._value")
"""Start of the names of JAX's events that read one array."""

_OWN: dict[Role, Phase] = {
    "input": "input",
    "callback": "callback",
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
    in_launch: bool = False
    children: list[_Node] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    dispatches: int = 0
    launches: int = 0
    """Dispatches of the programs that hosts execute together."""


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
        in_launch = node.in_launch or node.role == "dispatch"
        child = _Node(start, min(end, node.end), role, name, node, in_launch)
        node.children.append(child)
        _count(child, programs)
        node = child
    return list(_flat(root, None, BETWEEN))


def transfers(threads: Sequence[Thread]) -> list[Activity]:
    """Return the copies to the device by some threads, without overlap.

    They are in order. On a GPU, the runtime's workers copy arrays of the host into pinned memory first.
    """
    copies: list[Activity] = []
    last = 0
    events = [event for thread in threads for event in thread.events if event[2] == "to device"]
    for start, end, _, name in sorted(events):
        if end > last:
            copies.append(Activity(max(start, last), end, "transfer", name))
            last = end
    return copies


def _count(node: _Node, programs: frozenset[str]) -> None:
    """Count the events inside of the annotations around them."""
    outer = node.parent
    while outer is not None:
        if node.role == "to device" and not node.in_launch:
            outer.writes += 1
        elif _is_read(node):
            outer.reads += 1
        elif node.role == "dispatch":
            outer.dispatches += 1
            outer.launches += node.name in programs
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
    if node.role == "annotation" and not node.launches and not node.in_launch:
        if node.reads >= CHECKPOINT_READS:
            return "checkpoint"
        if node.writes:
            return "input"
    return None


def _flat(node: _Node, inherited: Phase | None, label: str) -> Iterable[Activity]:
    """Yield the instants of a node that no child explains better, and its children's."""
    own = _phase_of(node, inherited)
    shown = label if own == inherited and (inherited is not None or node.in_launch) else node.name
    at, fetched, reads = node.start, False, 0
    makers = _before_transfer(node) if node.role == "step" and own is None else 0
    for number, child in enumerate(node.children):
        if child.start > at:
            # Before a transfer that no annotation surrounds, the host makes the data that it transfers.
            makes_data = child.role == "to device" and node.role == "step" and own is None and not fetched
            phase = "input" if makes_data else _after_reads(own, reads)
            yield from _own_time(node, at, child.start, phase, shown)
        of_child: Phase | None = own
        if number < makers and _phase_of(child, own) is None:
            of_child = "input"
        yield from _flat(child, of_child, child.name if of_child != own else shown)
        at, fetched = max(at, child.end), fetched or _phase_of(child, own) == "input"
        reads = reads + _is_read(child) if child.role in _NEUTRAL else 0
    if node.end > at and node.parent is not None:
        yield from _own_time(node, at, node.end, _after_reads(own, reads), shown)


def _before_transfer(node: _Node) -> int:
    """Return how many annotations begin a step before its first transfer.

    A launch among them means that they do not make the transferred data.
    """
    for number, child in enumerate(node.children):
        if child.role == "to device":
            return number
        if child.role != "annotation" or child.dispatches or _phase_of(child, None) == "input":
            break
    return 0


def _after_reads(own: Phase | None, reads: int) -> Phase | None:
    """Return the phase of time without events.

    After several arrays were read, the host saves them.
    """
    return "checkpoint" if own is None and reads >= READS_IN_A_ROW else own


def _own_time(node: _Node, start: int, end: int, own: Phase | None, shown: str) -> Iterable[Activity]:
    if own is not None:
        yield Activity(start, end, own, shown)
    elif node.role == "to device":
        yield Activity(start, end, "transfer", node.name)
    elif node.parent is None:
        yield Activity(start, end, "host", BETWEEN)
    elif node.role not in _WAITS:
        yield Activity(start, end, "host", shown, is_launch=node.in_launch or node.role == "dispatch")
