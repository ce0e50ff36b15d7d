"""How a run begins: arguments and environment in, a run out; what cannot be meant is told once and replaced."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from mldiagnostics.cloud import CloudEnvironment
from mldiagnostics.diagnostics import LOGGER, announce, detail, warn_once
from mldiagnostics.errors import MissingExtraError, MLDiagnosticsError, MLRunConfigurationError
from mldiagnostics.goodput.elastic_recorder import ElasticGoodputRecorder
from mldiagnostics.goodput.sources.compilation import Compilations
from mldiagnostics.identity.environment import detect
from mldiagnostics.identity.origin import Origin
from mldiagnostics.identity.resolve import locate
from mldiagnostics.lifecycle import current_run
from mldiagnostics.locations import absolute_location
from mldiagnostics.pipeline.recorder import CloseSummary, RecordPipeline
from mldiagnostics.run import ownership
from mldiagnostics.run.announcement import announcement
from mldiagnostics.run.arguments import DEFAULT_SINKS, DEFAULT_STORAGE, RunArguments, read_arguments
from mldiagnostics.run.exit_hooks import process_endings
from mldiagnostics.run.fields import run_fields
from mldiagnostics.run.mlrun import MLRun
from mldiagnostics.run.settings import RunSettings, read_settings
from mldiagnostics.run.without_effect import without_effect
from mldiagnostics.sinks import sink_maker
from mldiagnostics.text.suggest import unknown_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.sinks import SinkMaker


_one_at_a_time = threading.RLock()  # two drains of one buffer would take each other's records


def start_run(said: Mapping[str, Any], asked: float) -> MLRun:
    """Begin the run that was asked for by the parameters of `machinelearning_run`; see there. May raise anything.

    `asked` is when, in Unix seconds: what is loaded for it is the run's time too.
    """
    with _one_at_a_time:
        return _begin(said, asked)


def _begin(said: Mapping[str, Any], asked: float) -> MLRun:
    env = dict(os.environ)
    problems: dict[str, str] = {}
    if said["unknown"]:
        known = [name for name in said if name != "unknown"]
        problems["unknown"] = unknown_parameters("machinelearning_run", said["unknown"], known)
    settings = read_settings(env, problems)
    arguments = read_arguments(said, settings=settings, platforms=env.get("JAX_PLATFORMS", ""), problems=problems)
    whereabouts = locate(detect(env), name=arguments.name, workload_id=arguments.run_workload_id)
    problems.update(whereabouts.problems)
    makers = _sink_makers(arguments.sinks, problems)
    if said["strict"] is True:
        _require_all_meant(arguments, problems)
    for key, problem in (problems | without_effect(said, env)).items():
        warn_once(f"start-{key}", problem)
    if not arguments.storage and settings.in_kubernetes:
        warn_once(
            "storage-in-pod",
            "the files of this run end with the pod: set storage='gs://bucket/prefix' (or a mounted volume), or "
            "MLDIAG_STORAGE",
        )
    if (before := current_run.current()) is not None:
        before.close()
        asked = time.time()  # until now that one lasted
    origin = _origin(arguments, whereabouts, storage=_rooted(arguments.storage or DEFAULT_STORAGE))
    return _join(
        arguments,
        whereabouts,
        RecordPipeline(origin, makers, waits=arguments.on_full == "wait"),
        settings,
        env,
        asked=asked,
    )


def _join(
    arguments: RunArguments,
    whereabouts: ResolvedIdentity,
    recording: RecordPipeline,
    settings: RunSettings,
    env: Mapping[str, str],
    *,
    asked: float,
) -> MLRun:
    origin = recording.origin
    leads = whereabouts.place.leads and ownership.claim(origin.run_id, os.environ)
    run = MLRun(
        run_fields(arguments, whereabouts, origin),
        arguments=arguments,
        whereabouts=whereabouts,
        recording=recording,
        recorder=ElasticGoodputRecorder(origin.name, origin.name, logging_enabled=True, log=origin.directory),
        endings=process_endings(),
        cloud=CloudEnvironment(project=arguments.project, region=arguments.region, env=env),
        leads=leads,
        heartbeat_s=settings.heartbeat_s,
    )
    run.begin(asked)
    if leads:
        source = whereabouts.identity.source if whereabouts.identity else "fresh"
        announce(announcement(origin, source=source, view_url=settings.view_url))
    if LOGGER.isEnabledFor(logging.DEBUG):
        from mldiagnostics.run.details import details  # noqa: PLC0415 - for people who look for them

        for line in details(
            origin,
            arguments=arguments,
            whereabouts=whereabouts,
            sinks=recording.sink_names,
            env=env,
            leads=leads,
            heartbeat_s=settings.heartbeat_s,
        ):
            detail(line)
    _begin_parts(run)
    return run


def _begin_parts(run: MLRun) -> None:
    """Begin what a run has beside itself, each loaded only where it is wanted."""
    compilations = Compilations(run.recorder)
    run.on_close(compilations.close)
    if not compilations.listen():  # JAX may be imported later
        run.on_step(lambda _: compilations.listen())
    if run.on_demand_xprof and not run.metric_only_run:
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof  # noqa: PLC0415

        start_on_demand_xprof()
    interval_s = run.metrics_record_interval_sec
    if run.log_system_metrics and interval_s > 0 and run.origin.local_rank == 0:
        from mldiagnostics.system.sampler import Sampler  # noqa: PLC0415

        sampler = Sampler(run.recording, interval_s=interval_s)
        try:
            sampler.start()
        except RuntimeError as error:  # no more threads for this process
            warn_once("system-start", f"there are no system metrics: {error}")
        else:
            run.on_close(sampler.stop)


def _origin(arguments: RunArguments, whereabouts: ResolvedIdentity, *, storage: str) -> Origin:
    return Origin.here(
        whereabouts,
        run_id=whereabouts.identity.run_id if whereabouts.identity else os.urandom(32).hex(),
        name=arguments.name,
        storage=storage,
        project=arguments.project or "",
        region=arguments.region or "",
    )


def _rooted(location: str) -> str:
    """Return a location that does not depend on the working directory."""
    try:
        return absolute_location(location)
    except FileNotFoundError:
        raise MLRunConfigurationError(
            f"the working directory was deleted, so {location!r} is no place for files: give a whole path or URL with "
            "storage= or MLDIAG_STORAGE"
        ) from None


def _sink_makers(urls: Sequence[str], problems: dict[str, str]) -> list[SinkMaker]:
    makers = [maker for url in urls if (maker := _sink_maker(url, problems)) is not None]
    return makers or [sink_maker(url) for url in DEFAULT_SINKS]


def _sink_maker(url: str, problems: dict[str, str]) -> SinkMaker | None:
    try:
        return sink_maker(url)
    except MLDiagnosticsError as error:
        problems[f"sink-{url.partition(':')[0]}"] = f"sink {url!r} is left out: {error}"
        return None


def _require_all_meant(arguments: RunArguments, problems: Mapping[str, str]) -> None:
    if problems:
        raise MLRunConfigurationError("; ".join(problems.values()))
    places = [arguments.storage, *(url.partition(":")[2] for url in arguments.sinks)]
    bucket = next((place for place in places if place.startswith("gs://")), None)
    if bucket and not _is_installed("google.cloud.storage"):
        raise MissingExtraError(extra="gcs", needed_for=bucket)


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only for strict starts

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def unrecorded(name: str) -> MLRun:
    """Return a run that this process is not in: every method works, and nothing is kept."""
    problems: dict[str, str] = {}
    settings = read_settings({}, problems)
    arguments = read_arguments({"name": name or "run"}, settings=settings, platforms="", problems=problems)
    whereabouts = locate(detect({}), name=arguments.name)
    recording = cast("RecordPipeline", _DiscardingPipeline(_origin(arguments, whereabouts, storage=DEFAULT_STORAGE)))
    return MLRun(
        run_fields(arguments, whereabouts, recording.origin),
        arguments=arguments,
        whereabouts=whereabouts,
        recording=recording,
        recorder=ElasticGoodputRecorder(arguments.name, arguments.name),
        endings=process_endings(),
        cloud=CloudEnvironment(env={}),
        leads=False,
        heartbeat_s=settings.heartbeat_s,
    )


class _DiscardingPipeline:
    """Stands where a recording would, and needs nothing of the system: no thread, no file."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.drops: dict[str, int] = {}

    def append(self, *_: object, **__: object) -> None:
        """Forget it."""

    def flush(self, _: float) -> bool:
        """Have nothing to wait for."""
        return True

    def close(self, _: float = 0.0) -> CloseSummary:
        """Have nothing to close."""
        return CloseSummary()


def _renew_lock() -> None:
    global _one_at_a_time  # noqa: PLW0603 - another thread of the parent may hold the old one, for ever
    _one_at_a_time = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
