"""Runs that record nothing: every method works, no thread and no file is used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from mldiagnostics.cloud import CloudEnvironment
from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
from mldiagnostics.identity.environment import detect
from mldiagnostics.identity.origin import Origin
from mldiagnostics.identity.resolve import locate
from mldiagnostics.lifecycle import current_run
from mldiagnostics.locations import DEFAULT_STORAGE
from mldiagnostics.pipeline.recorder import CloseSummary
from mldiagnostics.run.arguments import read_arguments
from mldiagnostics.run.exit_hooks import process_exit_hooks
from mldiagnostics.run.fields import run_fields
from mldiagnostics.run.mlrun import MLRun
from mldiagnostics.run.settings import read_settings

if TYPE_CHECKING:
    from mldiagnostics.pipeline.recorder import RecordPipeline


def unrecorded_run(name: str) -> MLRun:
    """Return a run whose records are discarded."""
    problems: dict[str, str] = {}
    settings = read_settings({}, problems)
    arguments = read_arguments({"name": name or "run"}, settings=settings, platforms="", problems=problems)
    identity = locate(detect({}), name=arguments.name)
    origin = Origin.here(identity, run_id=os.urandom(32).hex(), name=arguments.name, storage=DEFAULT_STORAGE)
    pipeline = cast("RecordPipeline", _DiscardingPipeline(origin))
    return MLRun(
        run_fields(arguments, identity, origin, control_plane=None),
        arguments=arguments,
        identity=identity,
        recording=pipeline,
        recorder=ElasticGoodputRecorder(arguments.name, arguments.name),
        exit_hooks=process_exit_hooks(),
        cloud=CloudEnvironment(env={}),
        leads=False,
        heartbeat_s=settings.heartbeat_s,
        unpickle=current_or_unrecorded_run,
        start_threads=lambda _: None,
    )


def current_or_unrecorded_run(name: str) -> MLRun:
    """Return the counterpart of a pickled run in this process.

    Its own run, else one that records nothing.
    """
    return cast("MLRun | None", current_run.current()) or unrecorded_run(name)


class _DiscardingPipeline:
    """A pipeline that drops every record."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.drops: dict[str, int] = {}
        self.last_step = None

    def append(self, *_: object, **__: object) -> None:
        """Drop the record."""

    def flush(self, _: float) -> bool:
        """Return at once: there is nothing to wait for."""
        return True

    def close(self, _: float = 0.0) -> CloseSummary:
        """Return an empty summary."""
        return CloseSummary()
