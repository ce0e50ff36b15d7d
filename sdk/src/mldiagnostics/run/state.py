"""What a process tells of its run while it lasts: phase and signs of life as records, and run.json if it leads."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.jsonable import jsonable
from mldiagnostics.diagnostics import counts
from mldiagnostics.lifecycle.outcome import FINAL, RunOutcome
from mldiagnostics.run import preemption
from mldiagnostics.run.heartbeat import HeartbeatThread
from mldiagnostics.run.manifest import SCHEMA_VERSION, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.recorder import RecordPipeline
    from mldiagnostics.spool.storage import RunStorage

_SECTIONS = {"softwareConfigs": "software", "hardwareConfigs": "hardware"}


class RunState:
    """The state of a run as others see it: changed by any thread, told by a thread of its own.

    `facts` are the parts of run.json that never change; their `process` is in the first record of a phase too.
    `kinds` returns the sort of run and `configs` the configurations as they are now; `gather` is called on the thread
    with every sign of life, to complete them. Without `leads` there is no run.json; with it, it is kept in what
    `storage` returns.
    """

    def __init__(
        self,
        *,
        origin: Origin,
        recording: RecordPipeline,
        leads: bool,
        heartbeat_s: float,
        facts: Mapping[str, Any],
        kinds: Callable[[], Mapping[str, str]],
        configs: Callable[[], Mapping[str, Any]],
        gather: Callable[[], None],
        storage: Callable[[], RunStorage],
    ) -> None:
        self.verdict = RunOutcome("Active")
        self.preempted = False
        self.step: int | None = None
        self._origin = origin
        self._recording = recording
        self._heartbeat_s = heartbeat_s
        self._facts = dict(facts)
        self._kinds = kinds
        self._configs = configs
        self._told_configs: Mapping[str, Any] = {}
        self._published: dict[str, object] = {}
        self._versions: dict[str, str] = {}
        self._started = self._beaten = time.time()
        self._ended: float | None = None
        self._progress: dict[str, float] = {}
        self._recorded = False
        self._manifest = Manifest(storage, origin.run_id) if leads else None
        self._gather = gather
        self._reporter = HeartbeatThread(interval_s=heartbeat_s, beat=self._beat, write=self._write)

    def start(self) -> None:
        """Begin to tell."""
        beat = {"intervalSeconds": self._heartbeat_s}  # the process may be killed before it has shown a sign of life
        payload = {"host": self._origin.host, **beat, **self._facts["process"]}
        self._recording.append("phase", self.verdict.phase, payload=payload)
        self._reporter.start()

    def configured(self) -> None:
        """Have the configurations told soon."""
        self._reporter.wake()

    def publish(self, section: str, value: Mapping[str, object]) -> None:
        """Put a section of its own into run.json; a later one of that name replaces it."""
        self._published[section] = jsonable(value)
        self._reporter.wake()

    def settle(self, verdict: RunOutcome, *, last: bool) -> None:
        """Record how the run ended, or is about to; after the `last` word nothing is recorded any more."""
        if last:
            self._proceed(time.time())
            self._tell_configs()
            self._recorded = True
        if verdict != self.verdict:
            self.verdict = verdict
            if verdict.phase in FINAL:
                self._ended = time.time()
            payload = {"host": self._origin.host, "reason": verdict.reason, "message": verdict.message}
            self._recording.append("phase", verdict.phase, step=self.step, payload=payload)

    def sync(self, timeout_s: float, *, write: bool = True) -> bool:
        """Tell everything now (without `write`: in records only); false if that took longer than `timeout_s`."""
        return self._reporter.sync(timeout_s, write=write)

    def finish(self, timeout_s: float) -> bool:
        """Tell everything a last time; false if that took longer than `timeout_s`."""
        return self._reporter.finish(timeout_s)

    def _beat(self) -> None:
        self._beaten = time.time()
        self._proceed(self._beaten)
        if not self._recorded:
            payload = {"intervalSeconds": self._heartbeat_s}
            self._recording.append("heartbeat", "alive", step=self.step, payload=payload)
        self.preempted = self.preempted or preemption.was_announced()
        self._gather()

    def _proceed(self, now: float) -> None:
        step, before = self.step, self._progress
        if step is not None and step != before.get("step"):
            self._progress = {"step": step, "t": now}
            if before and step > before["step"]:
                self._progress["stepTimeSeconds"] = (now - before["t"]) / (step - before["step"])

    def _write(self) -> None:
        self._tell_configs()
        if self._manifest is not None:
            if not self._versions:
                from mldiagnostics.configs.software import UNKNOWN, installed_versions  # noqa: PLC0415 - as `gather`

                own = installed_versions().get("mldiagnostics", UNKNOWN)
                self._facts = {key: jsonable(value) for key, value in self._facts.items()}  # URLs may have credentials
                self._versions = {"mldiagnostics": own, "python": sys.version.partition(" ")[0]}
            self._manifest.write(self._document())

    def _tell_configs(self) -> None:
        configs = self._readable_configs()
        if configs != self._told_configs:
            self._told_configs = configs
            if not self._recorded:
                self._recording.append("config", "configs", payload=configs)

    def _readable_configs(self) -> Mapping[str, Any]:
        """Return the configurations as JSON, in three sections; what the program put beside those is the user's."""
        found = self._configs()
        user = {key: value for key, value in found.items() if key not in _SECTIONS and key != "userConfigs"}
        given = found.get("userConfigs")
        sections = {name: found.get(key) or {} for key, name in _SECTIONS.items()}
        readable = jsonable({**sections, "user": {**(given if isinstance(given, dict) else {}), **user}})
        return readable if isinstance(readable, dict) else {}

    def _document(self) -> dict[str, Any]:
        origin = self._origin
        return {
            "v": SCHEMA_VERSION,
            "runId": origin.run_id,
            "name": origin.name,
            "phase": self.verdict.phase,
            "reason": self.verdict.reason,
            "message": self.verdict.message,
            "created": self._started,
            "started": self._started,
            "ended": self._ended,
            "heartbeat": {"t": self._beaten, "intervalSeconds": self._heartbeat_s},
            "attempt": origin.attempt,
            "incarnation": origin.incarnation,
            "worldSize": origin.world_size,
            "host": origin.host,
            "namespace": origin.namespace,
            "storage": origin.storage,
            **self._facts,
            "kinds": self._kinds(),
            "progress": self._progress,
            "configs": self._told_configs,
            "drops": self._recording.drops,
            "complaints": counts(),
            "versions": self._versions,
            **self._published,
        }
