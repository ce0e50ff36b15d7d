"""The plan of a capture: its targets, times and limits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mldiagnostics.capture.model import Delivery, Recording, Tracers

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.targets import TRANSIENT
from mldiagnostics_api.formats import EPOCH
from mldiagnostics_api.names import SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """One profiler to contact; `host` is the pod's IP at the time of the plan."""

    pod: str
    namespace: str
    uid: str
    node: str
    rank: int
    slice: int | None
    local_rank: int | None
    host: str
    port: int
    stem: str
    """Name of the trace file, unique in the capture."""
    directory: Location
    """Log directory: the trace goes to `plugins/profile/<session>/` below it."""
    run_id: str | None
    server_ok: bool = False
    """Whether the host reports a server that a capture cannot freeze."""
    runs_command_buffers: bool = False
    """Whether a profile of its GPU can end its process."""
    ready: bool = True
    """Whether the pod is ready. One that is not is contacted only after the waiting time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTarget:
    """A chosen pod that is not contacted; one that does not exist has only a name."""

    pod: str
    uid: str = ""
    node: str = ""
    rank: int | None = None
    slice: int | None = None
    local_rank: int | None = None
    port: int | None = None
    reason: SkipReason
    message: str
    directory: Location | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """All decisions that are made before the first request to a profiler."""

    session: str
    attempt: int
    targets: tuple[PlannedTarget, ...]
    skipped: tuple[SkippedTarget, ...]
    needed: int
    """Targets that must be captured and stored for success."""
    uncounted: int = 0
    """Skipped pods that are not targets of the workload, as no controller confirms them."""
    duration_ms: int
    lead_ms: int
    planned_start: datetime
    deadline: datetime
    tracers: Tracers
    delivery: Delivery
    recording: Recording = Recording.NOW
    allow_old_server: bool
    dry_run: bool
    max_trace_bytes: int
    output: Location
    """The log directory; with several runs, the common parent of their directories."""

    @property
    def total(self) -> int:
        """All targets, skipped ones included; not the pods that are not counted."""
        return len(self.targets) + len(self.skipped) - self.uncounted

    @property
    def start_ns(self) -> int | None:
        """The common start in Unix nanoseconds; None to start at once."""
        return (self.planned_start - EPOCH) // timedelta(microseconds=1) * 1000 if self.lead_ms else None

    @property
    def directories(self) -> tuple[Location, ...]:
        """The log directories of the targets, one for each run."""
        return tuple(dict.fromkeys(target.directory for target in self.targets))

    @property
    def endangered(self) -> tuple[PlannedTarget, ...]:
        """The targets whose processes the profile can end: GPUs with command buffers."""
        starts_tracers = self.tracers.device and self.recording is Recording.NOW
        return tuple(each for each in self.targets if starts_tracers and each.runs_command_buffers)

    @property
    def may_grow(self) -> bool:
        """Whether waiting may make more targets available or ready."""
        return any(target.reason in TRANSIENT for target in self.skipped) or not all(t.ready for t in self.targets)
