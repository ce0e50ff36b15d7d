"""The body of a report; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.identity.origin import Origin


VERSION = 1

MAX_METRICS = 64
"""Metrics of a report, those that were recorded last; control planes accept and show as many."""
MAX_SESSIONS = 32

MAX_CONFIG_BYTES = 128 * 1024
"""Most bytes of the configurations as JSON: twice the limit of `machinelearning_run(configs=…)`."""

_MAX_CONFIG_DEPTH = 12
"""A control plane accepts 16 levels of JSON in all."""

_MAX_URL = 2048
_MAX_TEXT = 253
_MAX_WORLD = 2**31 - 1


class Collected(NamedTuple):
    """The state of a process that its records show."""

    metrics: dict[str, float | None]
    sessions: list[dict[str, Any]]
    profiler: dict[str, Any]
    """Port, server and version; empty without a profiler server."""
    step: int | None
    """Step of the newest metric that had one."""
    first_event: int
    events: str
    """JSON items of the goodput events from that index on."""
    event_count: int


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The state of a run in its process, as RunState has it.

    Attributes:
        phase: Phase of the process.
        reason: Reason of the phase, one CamelCase word.
        message: Explanation of the reason.
        step: Number of the last step that started.
        step_time_s: Time of a step in seconds, if it is known.
        facts: Section `run` of a report, from the process that leads.
        configs: Configurations in the sections software, hardware and user.
    """

    phase: str
    reason: str = ""
    message: str = ""
    step: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    step_time_s: float | None = None


@dataclass(slots=True)
class Progress:
    """The last known step, when it was reached, and the time of a step."""

    step: int | None = None
    changed: float | None = None
    step_time_s: float | None = None

    def update(self, step: int | None, now: float, step_time_s: float | None = None) -> None:
        """Note the step and its time at a moment, in Unix seconds."""
        self.step_time_s = step_time_s
        if step is not None and step >= 0 and step != self.step:
            self.step, self.changed = step, now

    def document(self) -> dict[str, Any] | None:
        """Return the section `progress`; None before the first step."""
        if self.step is None:
            return None
        return {"step": self.step, "stepTimeSeconds": self.step_time_s, "changed": self.changed}


def encode(
    origin: Origin,
    view: RunSnapshot,
    collected: Collected,
    progress: Progress,
    *,
    sequence: int,
    sent: float,
    host: Mapping[str, Any],
    tensorflow: bool | None,
    leads: bool,
    configs: Mapping[str, Any] | None,
) -> bytes:
    """Return a report as JSON.

    Args:
        origin: Identity of the process.
        view: State of the run.
        collected: State that the records show.
        progress: Steps so far.
        sequence: Number of the report.
        sent: Now, in Unix seconds.
        host: Node and uid of the pod, where they are known.
        tensorflow: Whether TensorFlow can be imported.
        leads: Whether the process reports about the run.
        configs: Configurations to report; None for those that are persisted.
    """
    document: dict[str, Any] = {
        "v": VERSION,
        "incarnation": origin.incarnation,
        "sequence": sequence,
        "sent": sent,
        "attempt": origin.attempt,
        "rank": origin.rank,
        "worldSize": min(origin.world_size, _MAX_WORLD),
        "host": {"name": origin.host[:_MAX_TEXT], "slice": origin.slice, **host},
        "phase": view.phase,
        "reason": view.reason,
        "message": view.message,
        "progress": progress.document(),
        "metrics": collected.metrics,
        "sessions": collected.sessions,
    }
    if collected.profiler:
        document["profiler"] = _profiler(collected.profiler, tensorflow=tensorflow)
    if leads:
        storage = {"storage": origin.storage} if len(origin.storage) <= _MAX_URL else {}
        document["run"] = {"name": origin.name, **storage, **view.facts}
    if leads and configs is not None:
        document["configs"] = configs
    text = dumps(document)
    if leads:
        text = f'{text[:-1]},"events":{{"first":{collected.first_event},"items":[{collected.events}]}}}}'
    return text.encode()


def fitting_configs(configs: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the configurations within the limits, and whether all values fit."""
    cut = _cut(configs, _MAX_CONFIG_DEPTH)
    if len(dumps(cut)) <= MAX_CONFIG_BYTES:
        return cut, True
    return {**cut, "user": {}}, False


def _profiler(profiler: Mapping[str, Any], *, tensorflow: bool | None) -> dict[str, Any]:
    return {
        "ports": [profiler["port"]],
        "server": str(profiler["server"] or ""),
        "version": str(profiler["version"] or ""),
        "tensorflow": tensorflow,
    }


def _cut(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {str(key): _cut(item, depth - 1) for key, item in value.items()} if depth else "…"
    if isinstance(value, list | tuple):
        return [_cut(item, depth - 1) for item in value] if depth else "…"
    return value
