"""Contents of a trace that a summary needs: devices and threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics_diagnosis.phases import Phase
    from mldiagnostics_diagnosis.reading.names import Role
    from mldiagnostics_diagnosis.reading.shapes import Program


Segment = tuple[int, int, "Phase"]
"""Start and end in picoseconds of some work, and its phase."""
HostEvent = tuple[int, int, "Role", str]
"""Start and end in picoseconds of an event of a thread, its kind and its name."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective operation as one device saw it."""

    start_ps: int
    end_ps: int
    run: int | None
    """Number of the execution that it belongs to, the same on all hosts; None if the trace does not say."""
    launched_ps: int
    """When the host launched the execution; its own start if the trace does not say."""


@dataclass(slots=True)
class Device:
    """The work of one device."""

    name: str
    work: list[Segment] = field(default_factory=list)
    """Operations; neighbours of one phase are joined."""
    loops: list[Segment] = field(default_factory=list)
    """Operations that contain others; their own time is computation."""
    collectives: list[Collective] = field(default_factory=list)
    totals: dict[tuple[str, Phase], list[int]] = field(default_factory=dict)
    """Picoseconds and number of each operation."""


@dataclass(slots=True)
class Thread:
    """The events of one thread that explain what the host does."""

    name: str
    events: list[HostEvent] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    """Start and end in picoseconds, and number of the program's annotations of steps."""


@dataclass(slots=True)
class AllocatorMemory:
    """The memory of one allocator of a device."""

    peak_bytes: int = 0
    """In use and reserved."""
    limit_bytes: int | None = None
    """None if no event says how much is available."""

    @property
    def share(self) -> float:
        """Share of the limit at the peak; 0 without a limit."""
        return self.peak_bytes / self.limit_bytes if self.limit_bytes else 0.0


@dataclass(slots=True)
class RecordedTrace:
    """The contents of a trace."""

    platform: str = "unknown"
    device_kind: str = ""
    first_ps: int = 0
    last_ps: int = 0
    devices: list[Device] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)
    """Programs that hosts execute together."""
    programs: list[Program] = field(default_factory=list)
    """All programs that the trace has."""
    executed: set[str] = field(default_factory=set)
    """Names of those that ran, with their numbers where the trace has them."""
    allocators: dict[str, AllocatorMemory] = field(default_factory=dict)
    """Allocators of devices by name; a GPU's allocator of pinned host memory is not one of them."""
    peaks: dict[str, float] = field(default_factory=dict)
    """Peak rates of the device, as the trace names them."""
    flops: float = 0.0
    memory_traffic_bytes: float = 0.0

    @property
    def fullest_allocator(self) -> AllocatorMemory | None:
        """The allocator with the largest share of its limit; None without allocators."""
        return max(self.allocators.values(), key=lambda each: (each.share, each.peak_bytes), default=None)
