"""Wire models of the control plane: the reports of SDKs, and the answers."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from mldiagnostics.lifecycle.description import MAX_NOTES, fitting_tags
from mldiagnostics.text.timestamps import END_OF_TIME_S
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from mldiagnostics_api.v1alpha1.shared import Model

INTERVAL_S: Final = 10
"""Seconds between two reports of a process."""
MAX_COMPRESSED_BYTES: Final = 2**20
MAX_BODY_BYTES: Final = 2**20
"""Of a body after gzip: SDKs send at most 512 KiB of events and 128 KiB of configurations."""
MAX_DEPTH: Final = 16
"""Deepest nesting of objects and arrays in a body."""
MAX_PORTS: Final = 64
"""One for each local rank of the largest hosts, with room."""
MAX_CONFIG_BYTES: Final = 256 * 2**10
"""All configurations of a run as JSON; their status has at most 32 KiB of them."""
MAX_EVENTS: Final = 100_000
"""Goodput events of one report: 512 KiB of JSON have fewer."""

RUN_ID_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
INCARNATION_PATTERN: Final = r"^[0-9a-f]{8}$"


def _cut(limit: int) -> BeforeValidator:
    """Cut a text for people; a long message must not lose the report."""
    return BeforeValidator(lambda text: text[:limit] if isinstance(text, str) else "" if text is None else text)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON can escape and UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode()


_Encodable = AfterValidator(_encodable)
Name = Annotated[str, Field(max_length=253), _Encodable]
"""A name of Kubernetes or of a host; longer ones do not exist."""
Label = Annotated[str, _cut(256), Field(max_length=256), _Encodable]
"""A name that people choose; the rest is cut off."""
Message = Annotated[str, _cut(1024), Field(max_length=1024), _Encodable]
"""A sentence for people; the rest is cut off."""
Notes = Annotated[str, _cut(MAX_NOTES), Field(max_length=MAX_NOTES), _Encodable]


def _fitting_tags(tags: object) -> object:
    """Leave out what is not a tag: it must not lose the report."""
    return fitting_tags(tags)[0] if isinstance(tags, list | tuple) else ()


ReportedTags = Annotated[tuple[Annotated[str, _Encodable], ...], BeforeValidator(_fitting_tags)]
Url = Annotated[str, Field(max_length=2048), _Encodable]
Seconds = Annotated[float, Field(ge=0, le=END_OF_TIME_S, allow_inf_nan=False)]
"""Unix time, or a duration."""
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
Step = Annotated[int, Field(ge=0, le=2**53)]
"""A step, or another number that grows with each report."""
MetricName = Annotated[str, Field(min_length=1, max_length=200), _Encodable]
Phase = Literal["Active", "Completed", "Failed"]


class HostReport(Model):
    """The host of a process."""

    name: Name = ""
    """Host name."""
    pod: Name = ""
    """Name of the pod. The control plane uses the pod of the token."""
    pod_uid: Name = ""
    """Uid of the pod. The control plane uses the pod of the token."""
    node: Name = ""
    """Name of the node."""
    slice: Number | None = None
    """Index of the slice."""


class ProfilerReport(Model):
    """The profiler server of a process."""

    ports: Annotated[list[Annotated[int, Field(ge=1, le=65535)]], Field(max_length=MAX_PORTS)] = Field(
        default_factory=list
    )
    """Ports of profiler servers on this host, by local rank."""
    server: Label = ""
    """Make of the server, such as `jax`."""
    version: Label = ""
    """Version of the server's package."""
    tensorflow: bool | None = None
    """Whether TensorFlow can be imported, which makes old servers safe."""


class ProgressReport(Model):
    """How far a process is."""

    step: Step | None = None
    """The last step that ended."""
    step_time_seconds: Seconds | None = None
    """Duration of recent steps, in seconds."""
    changed: Seconds | None = None
    """When the step changed, in Unix seconds by the clock of the process."""


class RunReport(Model):
    """Facts about the run, from the process that leads."""

    name: Label = ""
    """Name that the program gave its run."""
    group: Label = ""
    """Group of the run."""
    tags: ReportedTags = ()
    """Words to find the run by; those that are not valid are left out."""
    notes: Notes = ""
    """Remarks about the run, for people; the rest is cut off."""
    storage: Url = ""
    """Root of the run's files."""
    started: Seconds | None = None
    """Start of the run, in Unix seconds."""
    ended: Seconds | None = None
    """End of the run, in Unix seconds."""


class ConfigsReport(Model):
    """Configurations of the run, from the process that leads."""

    software: dict[str, Any] = Field(default_factory=dict)
    """Versions of packages, and flags."""
    hardware: dict[str, Any] = Field(default_factory=dict)
    """Accelerators and hosts."""
    user: dict[str, Any] = Field(default_factory=dict)
    """Values that the program gave."""


class SessionReport(Model):
    """A programmatic profile."""

    id: Annotated[str, Field(min_length=1, max_length=200), _Encodable]
    """Session id."""
    directory: Url = ""
    """Log directory of the session."""
    start: Seconds | None = None
    """Start, in Unix seconds."""
    stop: Seconds | None = None
    """End, in Unix seconds; null while it records."""
    state: Label = ""
    """State of the session in one word."""


class EventsReport(Model):
    """Goodput events of one process, packed; from the process that leads."""

    first: Step = 0
    """Index of the first item in the events of this incarnation."""
    items: Annotated[list[Any], Field(max_length=MAX_EVENTS)] = Field(default_factory=list)
    """Events as `mldiagnostics.goodput.events.packing` packs them."""


class Report(Model):
    """State of one process of a run; absolute values, so a repeat changes nothing."""

    v: Literal[1]
    """Version of this format."""
    incarnation: Annotated[str, Field(pattern=INCARNATION_PATTERN)]
    """8 hex digits that no other process of the run has."""
    sequence: Annotated[int, Field(ge=1, le=2**53)]
    """Number of the report in its incarnation, from 1."""
    sent: Seconds
    """When the report was made, in Unix seconds by the clock of the process."""
    attempt: Number = 0
    """Number of the attempt, from 0."""
    rank: Number | None = None
    """Rank of the process."""
    world_size: Number | None = None
    """Number of processes."""
    host: HostReport = Field(default_factory=HostReport)
    """The host of the process."""
    profiler: ProfilerReport | None = None
    """Its profiler server; null without one."""
    phase: Phase = "Active"
    """Phase of the process."""
    reason: Label = ""
    """Reason of the phase in one word."""
    message: Message = ""
    """Explanation for people."""
    progress: ProgressReport | None = None
    """How far the process is."""
    metrics: Annotated[
        dict[MetricName, Annotated[float, Field(allow_inf_nan=False)] | None], Field(max_length=MAX_METRICS)
    ] = Field(default_factory=dict)
    """The newest value of each metric; null for a number that JSON does not have."""
    run: RunReport | None = None
    """Facts about the run, from the process that leads."""
    configs: ConfigsReport | None = None
    """Configurations, from the process that leads, until they are persisted."""
    sessions: Annotated[list[SessionReport], Field(max_length=MAX_SESSIONS)] = Field(default_factory=list)
    """The newest programmatic profiles."""
    events: EventsReport | None = None
    """Goodput events, from the process that leads."""


class Answer(Model):
    """The answer to a report."""

    persisted_sequence: Annotated[int, Field(ge=0)]
    """Reports of the incarnation up to this number are persisted."""
    persisted_events: Annotated[int, Field(ge=0)]
    """Number of persisted goodput events of the incarnation; send the following ones."""
    interval_seconds: Annotated[int, Field(ge=1)] = INTERVAL_S
    """When to send the next report."""
    accepts_events: bool = True
    """False: the run has as many goodput events as are kept; send no more."""


class Problem(Model):
    """The body of an answer of status 400 or above."""

    error: str
    """The problem with the request, and the action to take."""


class InvalidReport(ValueError):
    """A report that does not match the models; the message names the fields."""


def read_report(document: object) -> Report:
    """Parse a report; unknown keys are ignored.

    Raises:
        InvalidReport: Fields are invalid; the message names the first ones.
    """
    if isinstance(document, Mapping):
        # "unknown values: null or absent" holds for every key with a default.
        document = {key: value for key, value in document.items() if value is not None}
    try:
        return Report.model_validate(document)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        named = "; ".join(f"{'.'.join(map(str, fault['loc']))[:200] or 'body'}: {fault['msg']}" for fault in faults[:5])
        raise InvalidReport(f"report: {named}; send a report of version 1") from error
