"""Read the planes of a trace into a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics_diagnosis.reading.kinds import CONSUMER, Kind, kind_of
from mldiagnostics_diagnosis.reading.launches import Executions, FoundCollective, Launches
from mldiagnostics_diagnosis.reading.recording import AllocatorMemory, Device, RecordedTrace, Thread
from mldiagnostics_diagnosis.reading.shapes import FINGERPRINT, PROGRAMS, Program
from mldiagnostics_diagnosis.reading.xspace import events, line_of, planes, statistics, totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.recording import Segment
    from mldiagnostics_diagnosis.reading.xspace import Event, Line, Plane, Statistics


HOST = "/host:CPU"
JOINED_PS = 10_000_000
"""Operations of one phase with less than 10 us between them are one piece of work."""
SHORTEST_PS = 5_000_000
"""Shorter events of the host explain nothing, unless they mark a transfer or a launch."""
MARKS: frozenset[Role] = frozenset({"step", "to device", "from device", "dispatch"})
MOST_EVENTS = 300_000
"""Events that are kept of a thread; of a longer one, those over 100 us."""
LONG_PS = 100_000_000
_WORKERS = "tf_"
"""Start of the names of the runtime's own threads."""
_HOST_MEMORY = "host"
"""Part of the name of an allocator of pinned host memory, such as `xla_gpu_host_bfc`."""
_NEVER = 2**100
COLLECTION = "garbage collection"


def read(trace: memoryview) -> RecordedTrace:
    """Return the contents of a trace.

    Raises:
        WireError: The bytes are not a trace.
    """
    recording, launches = RecordedTrace(first_ps=_NEVER), Launches()
    host = Device("host")
    for plane in sorted(planes(trace), key=lambda plane: plane.name == HOST):  # a launch counts if a device names it
        if plane.name == HOST:
            for data in plane.lines:
                _LineReader(plane, line_of(data), recording, launches, host, is_host=True).read()
        elif plane.name.startswith("/device:") and not plane.name.startswith("/device:CUSTOM"):
            _read_device(plane, recording, launches)
        elif plane.name == PROGRAMS:
            recording.programs += [Program(name, plane.details[number]) for number, name in plane.names.items()]
    launches.resolve()
    recording.devices = [device for device in recording.devices if device.work]
    if not recording.devices and host.work:
        recording.platform, recording.devices = "cpu", [host]
    recording.first_ps = min(recording.first_ps, recording.last_ps)
    return recording


def _read_device(plane: Plane, recording: RecordedTrace, launches: Launches) -> None:
    device = Device(plane.name)
    values = totals(plane)
    recording.platform = "tpu" if "TPU" in plane.name else "gpu" if "GPU" in plane.name else recording.platform
    recording.device_kind = _device_kind(values) or recording.device_kind
    recording.peaks |= {name: float(value) for name, value in values.items() if _is_peak(name, value)}
    lines = [line_of(data) for data in plane.lines]
    of_operations = [line for line in lines if line.name == "XLA Ops"]
    streams = [line for line in lines if line.name.lower().startswith("stream")]
    of_modules = [line for line in lines if line.name == "XLA Modules"]
    executions = _executions(plane, of_modules)
    recording.executed |= {plane.names.get(event[0], "") for line in of_modules for event in events(line)}
    for line in of_operations or streams:
        _LineReader(plane, line, recording, launches, device, executions).read()
    recording.devices.append(device)


def _executions(plane: Plane, lines: Sequence[Line]) -> Executions:
    return Executions(
        (
            event[1],
            event[1] + event[2],
            _integer(statistics(line, event, plane), "run_id"),
            FINGERPRINT.sub("", plane.names.get(event[0], "")),
        )
        for line in lines
        for event in events(line)
    )


@dataclass(slots=True)
class _LineReader:
    """Reads the events of one line: a device's operations, or a host's threads."""

    plane: Plane
    line: Line
    recording: RecordedTrace
    launches: Launches
    device: Device
    executions: Executions = field(default_factory=Executions)
    is_host: bool = False
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
        kinds: dict[int, Kind] = {}
        recording = self.recording
        for event in events(self.line):
            kind = kinds.get(event[0])
            if kind is None:
                kind = kinds[event[0]] = kind_of(self.plane, self.line, event, recording.modules, is_host=self.is_host)
                if kind.program:
                    recording.executed.add(kind.program)
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

    def _add_operation(self, kind: Kind, event: Event, end: int) -> None:
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
            self._add_collective(event, end)

    def _add_collective(self, event: Event, end: int) -> None:
        values, link = statistics(self.line, event, self.plane), None
        run, correlation = _integer(values, "run_id"), _integer(values, "correlation_id")
        if run is None:
            run, module = self.executions.at(event[1])
            if module:
                self.recording.modules.add(module)
        elif self.consumer:
            link = _integer(statistics(self.line, self.consumer, self.plane), "_c")
        self.launches.add(FoundCollective(self.device, event[1], end, run, link, correlation))

    def _add_link(self, kind: Kind, event: Event) -> None:
        if kind.link == CONSUMER:
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

    def _add_host_event(self, kind: Kind, event: Event, end: int) -> None:
        start, kept = event[1], self.thread.events
        has_room = len(kept) < MOST_EVENTS
        is_long = end - start >= (SHORTEST_PS if has_room else LONG_PS)
        if kind.role != "internal" and (is_long or (has_room and kind.role in MARKS)):
            kept.append((start, end, kind.role, kind.name))
        if kind.has_step:
            step = _integer(statistics(self.line, event, self.plane), "step_num")
            if step is not None:
                self.thread.steps.append((start, end, step))
        elif kind.has_run:
            run = _integer(statistics(self.line, event, self.plane), "run_id")
            if run is not None:
                self.launches.add_run(run, start)
        elif kind.has_correlation and self.launches.wanted:
            correlation = _integer(statistics(self.line, event, self.plane), "correlation_id")
            if correlation in self.launches.wanted:
                self.launches.by_correlation[correlation] = start
        elif kind.is_allocation:
            self._add_allocation(statistics(self.line, event, self.plane))

    def _add_allocation(self, values: Statistics) -> None:
        """Keep the peak of each allocator of a device, in use and reserved, and its limit."""
        name = str(values.get("allocator_name", ""))
        if _HOST_MEMORY in name.lower():
            return
        sizes = [_integer(values, size) or 0 for size in ("bytes_allocated", "bytes_reserved", "bytes_available")]
        memory = self.recording.allocators.setdefault(name, AllocatorMemory())
        memory.peak_bytes = max(memory.peak_bytes, _integer(values, "peak_bytes_in_use") or sizes[0] + sizes[1])
        if sizes[2]:  # a full allocator has none, and neither has one without a limit
            memory.limit_bytes = max(memory.limit_bytes or 0, sum(sizes))


def _device_kind(values: Statistics) -> str:
    """Return the kind of a device; of a GPU, vendor and compute capability."""
    if named := values.get("device_type_string") or values.get("device_type"):
        return str(named)
    numbers = [values.get("compute_cap_major"), values.get("compute_cap_minor")]
    capability = "" if None in numbers else f" {numbers[0]}.{numbers[1]}"
    return f"{values.get('device_vendor', '')}{capability}".strip()


def _integer(values: Statistics, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _is_peak(name: str, value: object) -> bool:
    return name.startswith("peak_") and isinstance(value, int | float)
