"""The parts of a run, put together and shown as its properties."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.detection import detect
from mldiagnostics.configs.kinds import Framework
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.run.config_dict import ConfigDict
from mldiagnostics.run.fields import RunFields, constant_sections, kinds_section
from mldiagnostics.run.state import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.cloud import CloudEnvironment
    from mldiagnostics.control_plane.reporter import Reporter
    from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.pipeline.recorder import CloseSummary, RecordPipeline
    from mldiagnostics.run.arguments import RunArguments
    from mldiagnostics.run.exit_hooks import ExitHooks
    from mldiagnostics.spool.storage import RunStorage


class RunParts(RunFields):
    """Parts and properties of a run; `MLRun` adds its methods."""

    def __init__(
        self,
        fields: RunFields,
        *,
        arguments: RunArguments,
        identity: ResolvedIdentity,
        recording: RecordPipeline,
        recorder: ElasticGoodputRecorder,
        exit_hooks: ExitHooks,
        cloud: CloudEnvironment,
        leads: bool,
        heartbeat_s: float,
        unpickle: Callable[[str], object],
        start_threads: Callable[[Any], None],
        reporter: Reporter | None = None,
    ) -> None:
        vars(self).update(vars(fields))
        self.origin, self.recording, self.cloud = recording.origin, recording, cloud
        self.storage, self.directory = self.origin.storage, self.origin.directory
        self.sinks = arguments.sinks
        self.recorder = recorder
        self._storages: dict[int, RunStorage] = {}  # by process: a forked child has files of its own
        self._exit_hooks = exit_hooks
        self._unpickle = unpickle
        self._reporter = reporter
        self._start_threads = start_threads
        self._pid = os.getpid()
        self._records_steps = identity.process.leads
        self._records_job = leads
        """Whether start and end of the job are this process's; a subprocess of the leader only trains for it."""
        self._closing = threading.RLock()
        self._closed: CloseSummary | None = None
        self._ending = False
        self._is_settled = False
        """Whether the outcome is recorded; later changes are not."""
        self._step_callbacks: list[Callable[[int], object]] = []
        self._close_callbacks: list[Callable[[], object]] = []
        self._configs = ConfigDict(
            {"softwareConfigs": {}, "hardwareConfigs": {}, "userConfigs": arguments.configs},
            on_change=self._configs_changed,
        )
        self._state = RunState(
            origin=self.origin,
            recording=recording,
            leads=leads,
            heartbeat_s=heartbeat_s,
            facts=constant_sections(fields, arguments, identity),
            kinds=lambda: kinds_section(self),
            configs=lambda: self._configs,
            gather=self._gather,
            note_clock=recorder.note_clock,
            storage=lambda: self.files,
        )

    @property
    def run_id(self) -> str:
        """Id that all processes of the run share, 64 hexadecimal characters."""
        return self.origin.run_id

    @property  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
    def framework(self) -> Framework:
        """Framework that the program named, else the one that it has imported by now."""
        named: Framework = vars(self)["framework"]
        return detect() if named is Framework.DETECT else named

    @framework.setter
    def framework(self, framework: Framework) -> None:
        vars(self)["framework"] = framework

    @property
    def files(self) -> RunStorage:
        """Storage of this process's profiles and run.json, with a spool."""
        storage = self._storages.get(os.getpid())
        if storage is None:
            from mldiagnostics.spool.storage import RunStorage  # noqa: PLC0415 - loaded by the threads that store

            storage = self._storages.setdefault(
                os.getpid(), RunStorage(self.recording.origin)
            )  # of two threads, one wins
        return storage

    @property
    def configs(self) -> ConfigDict:
        """Configuration of the run.

        `userConfigs`, `softwareConfigs`, `hardwareConfigs` and keys of the program.

        Read and set by key and by attribute; every change is recorded.
        """
        return self._configs

    @configs.setter
    def configs(self, values: Mapping[str, Any]) -> None:
        self._configs.update({"userConfigs": values})

    @property
    def last_step(self) -> int | None:
        """Number of the last step that started, else of the last metric; None before."""
        return self._state.last_step

    @property
    def closed(self) -> bool:
        """Whether the run has ended for this process."""
        return self._closed is not None

    def _configs_changed(self) -> None:
        if self._is_settled:
            warn_once(
                "configs-closed",
                f"configs of run {self.display_name!r}: changed after close() and not recorded; change them earlier",
            )
        self._state.configs_changed()

    def _gather(self) -> None:
        if self._is_settled:
            return
        from mldiagnostics.configs import gather  # noqa: PLC0415 - on the run's thread, not with the first import

        if changes := gather(self.framework.value, self._configs):
            self._configs.update(changes)
