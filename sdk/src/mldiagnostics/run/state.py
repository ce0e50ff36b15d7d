"""Record phase and heartbeats of a run, and write run.json."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.jsonable import jsonable
from mldiagnostics.diagnostics import counts, warn_once
from mldiagnostics.lifecycle.outcome import FINAL, RunOutcome
from mldiagnostics.pipeline.buffer import MAX_PAYLOAD_BYTES
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.run import preemption
from mldiagnostics.run.config_fitting import fitting_configs
from mldiagnostics.run.heartbeat import HeartbeatThread
from mldiagnostics.run.manifest import SCHEMA_VERSION, Manifest
from mldiagnostics.run.step_times import StepStarts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.control_plane.report import RunSnapshot
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.recorder import RecordPipeline
    from mldiagnostics.spool.storage import RunStorage

_SECTIONS = {"softwareConfigs": "software", "hardwareConfigs": "hardware"}


class RunState:
    """State of a run as others see it.

    Changed by any thread, recorded and written by one.

    Args:
        origin: Identity of the process in its records.
        recording: Pipeline of the run.
        leads: Whether this process writes run.json.
        heartbeat_s: Seconds between heartbeats.
        facts: Constant parts of run.json; `process` is also part of the first phase record.
        kinds: Returns the section `kinds` of run.json.
        configs: Returns the configurations.
        gather: Called on the thread with every heartbeat, to complete the configurations.
        note_clock: Called before every heartbeat, to record by how much the clock of the host was set.
        storage: Returns the storage of run.json.
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
        note_clock: Callable[[], None],
        storage: Callable[[], RunStorage],
    ) -> None:
        self.outcome = RunOutcome("Active")
        self.preempted = False
        self.step: int | None = None
        self.starts = StepStarts()
        self._origin = origin
        self._recording = recording
        self._heartbeat_s = heartbeat_s
        self._facts = dict(facts)
        self._kinds = kinds
        self._configs = configs
        self._recorded_configs: Mapping[str, Any] = {}
        self._published: dict[str, object] = {}
        self._versions: dict[str, str] = {}
        self.started = self._last_beat = time.time()
        """Start of the run in Unix seconds."""
        self._ended: float | None = None
        self._progress: dict[str, float] = {}
        self._configs_before: Mapping[str, Any] = {}
        self._is_closed = False
        self._storage = storage
        self._manifest = Manifest(storage, origin.run_id) if leads else None
        self._gather = gather
        self._note_clock = note_clock
        self._thread = HeartbeatThread(interval_s=heartbeat_s, beat=self._beat, write=self._write)

    def start(self, started: float) -> None:
        """Begin at the start of the run."""
        self.started = started
        self.begin(started)

    def begin(self, moment: float) -> None:
        """Record the first phase of this process, as of a moment, and start the thread."""
        beat = {"intervalSeconds": self._heartbeat_s}  # the process may be killed before its first heartbeat
        payload = {"host": self._origin.host, **beat, **self._facts["process"]}
        self._recording.append("phase", self.outcome.phase, t=moment, payload=payload)
        self._thread.start()

    def lead_in_child(self, origin: Origin, parent: str) -> None:
        """Become the state of a forked child that leads the run instead of its parent.

        Args:
            origin: Identity of the child in its records.
            parent: Incarnation of the parent, whose attempt the child continues.
        """
        self._origin, self._facts = origin, {**self._facts, "forkedFrom": parent}
        if self._manifest is not None:
            self._manifest = Manifest(self._storage, origin.run_id)
        self._thread = HeartbeatThread(interval_s=self._heartbeat_s, beat=self._beat, write=self._write)

    def configs_changed(self) -> None:
        """Schedule a record of the changed configurations."""
        self._thread.wake()

    def publish(self, section: str, value: Mapping[str, object]) -> None:
        """Add a section to run.json, or replace the one of this name."""
        self._published[section] = jsonable(value)
        self._thread.wake()

    def settle(self, outcome: RunOutcome, *, last: bool, at: float | None = None) -> None:
        """Record a phase, as of `at` or now; after the `last` one nothing is recorded."""
        moment = time.time() if at is None else at
        if last:
            self._update_progress(moment)
            self._record_configs()
            self._is_closed = True
        if outcome != self.outcome:
            self.outcome = outcome
            if outcome.phase in FINAL:
                self._ended = moment
            reason = {"host": self._origin.host, "reason": outcome.reason, "message": outcome.message}
            drops = {"drops": self._recording.drops} if last and self._recording.drops else {}
            payload = {**reason, **self._step_time(), **drops}
            self._recording.append("phase", outcome.phase, step=self.last_step, t=moment, payload=payload)

    def sync(self, timeout_s: float, *, write: bool = True) -> bool:
        """Record a heartbeat, and `write` run.json.

        Return whether that was done within `timeout_s`.
        """
        return self._thread.sync(timeout_s, write=write)

    def finish(self, timeout_s: float) -> bool:
        """Write run.json a last time; return whether that was done within `timeout_s`."""
        return self._thread.finish(timeout_s)

    def view(self) -> RunSnapshot:
        """Return the state that is reported to a control plane."""
        from mldiagnostics.control_plane.report import RunSnapshot  # noqa: PLC0415 - only where one is set

        outcome = self.outcome
        times = {"started": self.started, "ended": self._ended}
        words = {key: self._facts[key] for key in ("tags", "notes") if self._facts[key]}
        facts = {"group": self._facts["runGroup"], **words, **times, "kinds": dict(self._kinds())}
        return RunSnapshot(
            outcome.phase,
            outcome.reason,
            outcome.message,
            self.step,
            facts,
            self._recorded_configs,
            self.starts.median_s(),
        )

    @property
    def last_step(self) -> int | None:
        """Number of the last step: of the program's own count, else of the last metric."""
        return self._recording.last_step if self.step is None else self.step

    def _beat(self) -> None:
        self._note_clock()
        self._last_beat = time.time()
        self._update_progress(self._last_beat)
        if not self._is_closed:
            payload = {"intervalSeconds": self._heartbeat_s, **self._step_time()}
            self._recording.append("heartbeat", "alive", step=self.last_step, payload=payload)
        self.preempted = self.preempted or preemption.was_announced()
        self._gather()

    def _update_progress(self, now: float) -> None:
        step, before = self.last_step, self._progress
        if step is not None:
            moment = before["t"] if step == before.get("step") else now
            self._progress = {"step": step, "t": moment, **self._step_time()}

    def _step_time(self) -> dict[str, float]:
        step_time_s = self.starts.median_s()
        return {} if step_time_s is None else {"stepTimeSeconds": step_time_s}

    def _write(self) -> None:
        self._record_configs()
        if self._manifest is not None:
            if not self._versions:
                from mldiagnostics.configs.software import UNKNOWN, installed_versions  # noqa: PLC0415 - as `gather`

                own = installed_versions().get("mldiagnostics", UNKNOWN)
                self._facts = {key: jsonable(value) for key, value in self._facts.items()}  # URLs may have credentials
                self._versions = {"mldiagnostics": own, "python": sys.version.partition(" ")[0]}
            self._manifest.write(self._document())

    def _record_configs(self) -> None:
        if self._is_closed:  # run.json has the configurations that were recorded last
            return
        try:
            configs = self._readable_configs()
            if configs == self._configs_before:
                return
            fitting, left_out = fitting_configs(configs, max_bytes=MAX_PAYLOAD_BYTES)
        except Exception as error:  # noqa: BLE001 - the end of the run is recorded without them
            warn_once("configs-unrecordable", f"configs: cannot be recorded: {error!r}")
            return
        self._configs_before = configs
        if left_out:
            warn_once(
                "configs-too-large",
                f"configs: more than {MAX_PAYLOAD_BYTES >> 10} KiB, {', '.join(map(shown, left_out[:5]))} left out; "
                "store large values as files and record their paths",
            )
        self._recorded_configs = fitting
        self._recording.append("config", "configs", payload=fitting)

    def _readable_configs(self) -> Mapping[str, Any]:
        """Return the configurations as JSON in three sections.

        Other keys belong to `user`.
        """
        configs = self._configs()
        user = {key: value for key, value in list(configs.items()) if key not in _SECTIONS and key != "userConfigs"}
        given = configs.get("userConfigs")
        sections = {name: configs.get(key) or {} for key, name in _SECTIONS.items()}
        readable = jsonable({**sections, "user": {**(given if isinstance(given, dict) else {}), **user}})
        return readable if isinstance(readable, dict) else {}

    def _document(self) -> dict[str, Any]:
        origin = self._origin
        return {
            "v": SCHEMA_VERSION,
            "runId": origin.run_id,
            "name": origin.name,
            "phase": self.outcome.phase,
            "reason": self.outcome.reason,
            "message": self.outcome.message,
            "created": self.started,
            "started": self.started,
            "ended": self._ended,
            "heartbeat": {"t": self._last_beat, "intervalSeconds": self._heartbeat_s},
            "attempt": origin.attempt,
            "incarnation": origin.incarnation,
            "worldSize": origin.world_size,
            "host": origin.host,
            "namespace": origin.namespace,
            "storage": origin.storage,
            **self._facts,
            "kinds": self._kinds(),
            "progress": self._progress,
            "configs": self._recorded_configs,
            "drops": self._recording.drops,
            "complaints": counts(),
            "versions": self._versions,
            **self._published,
        }
