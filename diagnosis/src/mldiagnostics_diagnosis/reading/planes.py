"""Read the planes of a trace into a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.reading.names import host_role, is_loop, operation_phase
from mldiagnostics_diagnosis.reading.recording import Collective, Device, Recording, Thread
from mldiagnostics_diagnosis.reading.xspace import details, events, line_of, planes, statistics, totals

if TYPE_CHECKING:
    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.recording import Segment
    from mldiagnostics_diagnosis.reading.xspace import Event, Line, Plane, Statistics

__all__ = ["read"]

HOST = "/host:CPU"
JOINED_PS = 10_000_000
"""Operations of one phase with less than 10 us between them are one piece of work."""
SHORTEST_PS = 5_000_000
"""Shorter events of the host explain nothing, unless they mark a transfer or a launch."""
MARKS: frozenset[Role] = frozenset({"step", "to device", "from device", "dispatch"})
MOST_EVENTS = 300_000
"""Events that are kept of a thread; of a longer one, those over 100 us."""
LONG_PS = 100_000_000
_ALLOCATIONS = frozenset({"MemoryAllocation", "MemoryDeallocation"})
_WORKERS = "tf_"
"""Start of the names of the runtime's own threads."""
_NEVER = 2**100
_COLLECTOR = "PythonRefManager::CollectGarbage"
"""JAX marks the start and the end of each collection of Python's garbage with an event of this name."""
COLLECTION = "garbage collection"
_PRODUCER, _CONSUMER = "ThreadpoolListener::Record", "ThreadpoolListener::StartRegion"


@dataclass(slots=True)
class _Kind:
    """Properties of all events with one number."""

    name: str
    role: Role
    phase: Phase = "compute"
    is_operation: bool = False
    is_loop: bool = False
    has_step: bool = False
    has_run: bool = False
    is_allocation: bool = False
    is_collector: bool = False
    is_python: bool = False
    """Whether Python's tracer recorded it: a function, not an annotation."""
    link: str = ""
    flops: float = 0.0
    traffic: float = 0.0

    @property
    def is_ignored(self) -> bool:
        return self.role == "internal" and not self.is_operation and not self.link


@dataclass(slots=True)
class _Launches:
    """When and by whom executions were started, while the planes are read."""

    by_link: dict[int, int] = field(default_factory=dict)
    by_run: dict[int, int] = field(default_factory=dict)
    found: list[tuple[Device, int, int, int | None, int | None]] = field(default_factory=list)
    """Device, start, end, run and link of each collective."""

    def resolve(self) -> None:
        """Add the collectives to their devices."""
        for device, start, end, run, link in self.found:
            launched = self.by_link.get(link) if link is not None else None
            if launched is None and run is not None:
                launched = self.by_run.get(run)
            device.collectives.append(Collective(start, end, run, start if launched is None else min(launched, start)))


def read(trace: memoryview) -> Recording:
    """Return the contents of a trace.

    Raises:
        WireError: The bytes are not a trace.
    """
    recording, launches = Recording(first_ps=_NEVER), _Launches()
    host = Device("host")
    for plane in planes(trace):
        if plane.name == HOST:
            for data in plane.lines:
                _LineReader(plane, line_of(data), recording, launches, host, is_host=True).read()
        elif plane.name.startswith("/device:") and not plane.name.startswith("/device:CUSTOM"):
            _read_device(plane, recording, launches)
    launches.resolve()
    recording.devices = [device for device in recording.devices if device.work]
    if not recording.devices and host.work:
        recording.platform, recording.devices = "cpu", [host]
    recording.first_ps = min(recording.first_ps, recording.last_ps)
    return recording


def _read_device(plane: Plane, recording: Recording, launches: _Launches) -> None:
    device = Device(plane.name)
    values = totals(plane)
    recording.platform = "tpu" if "TPU" in plane.name else "gpu" if "GPU" in plane.name else recording.platform
    recording.device_kind = str(values.get("device_type_string") or values.get("device_type") or recording.device_kind)
    recording.peaks |= {name: float(value) for name, value in values.items() if _is_peak(name, value)}
    lines = [line_of(data) for data in plane.lines]
    of_operations = [line for line in lines if line.name == "XLA Ops"]
    streams = [line for line in lines if line.name.lower().startswith("stream")]
    for line in of_operations or streams:
        _LineReader(plane, line, recording, launches, device, is_host=False).read()
    recording.devices.append(device)


@dataclass(slots=True)
class _LineReader:
    """Reads the events of one line: a device's operations, or a host's threads."""

    plane: Plane
    line: Line
    recording: Recording
    launches: _Launches
    device: Device
    is_host: bool
    thread: Thread = field(init=False)
    work: list[Segment] = field(default_factory=list)
    consumer: Event | None = None
    """The newest start of work that another thread launched."""
    collecting_since: int | None = None
    """Start of a collection of garbage, if no event came after it."""

    def __post_init__(self) -> None:
        self.thread = Thread(self.line.name)

    def read(self) -> None:
        """Add the events of the line to the recording."""
        kinds: dict[int, _Kind] = {}
        recording = self.recording
        for event in events(self.line):
            kind = kinds.get(event[0])
            if kind is None:
                kind = kinds[event[0]] = _kind(self.plane, self.line, event, recording, is_host=self.is_host)
            if kind.is_collector:
                self._add_collection(event)
            elif self.collecting_since is not None and not kind.is_python:
                self.collecting_since = None
            if kind.is_ignored:
                continue
            end = event[1] + event[2]
            if kind.is_operation:
                self._add_operation(kind, event, end)
            elif kind.link:
                self._add_link(kind, event)
            else:
                self._add_host_event(kind, event, end)
            recording.first_ps = min(recording.first_ps, event[1])
            recording.last_ps = max(recording.last_ps, end)
        self.device.work.extend(self.work)
        if self.thread.events:
            recording.threads.append(self.thread)

    def _add_operation(self, kind: _Kind, event: Event, end: int) -> None:
        start, work = event[1], self.work
        self.recording.flops += kind.flops
        self.recording.memory_traffic_bytes += kind.traffic
        if kind.is_loop:
            self.device.loops.append((start, end, "compute"))
            return
        total = self.device.totals.setdefault((kind.name, kind.phase), [0, 0])
        total[0] += end - start
        total[1] += 1
        if work and work[-1][2] == kind.phase and work[-1][0] <= start < work[-1][1] + JOINED_PS:
            work[-1] = (work[-1][0], max(work[-1][1], end), kind.phase)
        else:
            work.append((start, end, kind.phase))
        if kind.phase == "collective":
            run = _integer(statistics(self.line, event, self.plane), "run_id") if kind.has_run else None
            launched_by = self.consumer if run is not None else None
            link = _integer(statistics(self.line, launched_by, self.plane), "_c") if launched_by else None
            self.launches.found.append((self.device, start, end, run, link))

    def _add_link(self, kind: _Kind, event: Event) -> None:
        if kind.link == _CONSUMER:
            self.consumer = event
        elif not self.line.name.startswith(_WORKERS):
            link = _integer(statistics(self.line, event, self.plane), "_p")
            if link is not None:
                self.launches.by_link[link] = event[1]

    def _add_collection(self, event: Event) -> None:
        """Pair the start of a collection with its end.

        A thread that collects records nothing else.
        """
        start, self.collecting_since = self.collecting_since, event[1]
        if start is not None:
            self.thread.events.append((start, event[1] + event[2], "collection", COLLECTION))
            self.collecting_since = None

    def _add_host_event(self, kind: _Kind, event: Event, end: int) -> None:
        start, kept = event[1], self.thread.events
        has_room = len(kept) < MOST_EVENTS
        if end - start >= (SHORTEST_PS if has_room else LONG_PS) or (has_room and kind.role in MARKS):
            kept.append((start, end, kind.role, kind.name))
        if kind.has_step:
            step = _integer(statistics(self.line, event, self.plane), "step_num")
            if step is not None:
                self.thread.steps.append((start, end, step))
        elif kind.has_run:
            run = _integer(statistics(self.line, event, self.plane), "run_id")
            if run is not None:
                self.launches.by_run.setdefault(run, start)
        elif kind.is_allocation:
            self._add_allocation(statistics(self.line, event, self.plane))

    def _add_allocation(self, values: Statistics) -> None:
        """Keep the peak of the device's memory, in use and reserved, and its limit."""
        sizes = [_integer(values, name) or 0 for name in ("bytes_allocated", "bytes_reserved", "bytes_available")]
        peak, recording = _integer(values, "peak_bytes_in_use") or sizes[0] + sizes[1], self.recording
        recording.peak_memory_bytes = max(recording.peak_memory_bytes or 0, peak)
        recording.memory_limit_bytes = max(recording.memory_limit_bytes or 0, sum(sizes)) if sizes[2] else None


def _kind(plane: Plane, line: Line, event: Event, recording: Recording, *, is_host: bool) -> _Kind:
    """Return the kind of an event.

    It follows from the name, and the statistics of the first event of this kind.
    """
    name = plane.names.get(event[0], "")
    values = statistics(line, event, plane)
    if is_host and "hlo_op" not in values:
        if name.endswith((_PRODUCER, _CONSUMER)):
            return _Kind(name, "internal", link=name)
        if name == _COLLECTOR:
            return _Kind(name, "internal", is_collector=True)
        if name in _ALLOCATIONS:
            return _Kind(name, "annotation", is_allocation=True)
        role: Role = "step" if "step_num" in values else host_role(name)
        if role != "operation":
            is_launch = "run_id" in values and role == "dispatch"
            return _Kind(name, role, has_step="step_num" in values, has_run=is_launch, is_python=name.startswith("$"))
    known = details(plane, event[0]) | values
    category = str(known.get("hlo_category", ""))
    kind = _Kind(name, "operation", operation_phase(name, category), is_operation=True, is_loop=is_loop(name))
    kind.has_run = "run_id" in values
    kind.flops, kind.traffic = _amount(known.get("flops")), _amount(known.get("bytes_accessed"))
    if kind.phase == "collective" and (module := known.get("hlo_module")):
        recording.modules.add(str(module))
    return kind


def _integer(values: Statistics, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _is_peak(name: str, value: object) -> bool:
    return name.startswith("peak_") and isinstance(value, int | float)


def _amount(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
