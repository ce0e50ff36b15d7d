"""Start a run from its options and the environment.

Invalid values are reported once and replaced.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.bucket_urls import BucketUrl
from mldiagnostics.cloud import CloudEnvironment
from mldiagnostics.diagnostics import LOGGER, announce, detail, warn_once
from mldiagnostics.errors import ConfigurationError, MissingExtraError, MLDiagnosticsError, MLRunConfigurationError
from mldiagnostics.goodput.recording.compilation import Compilations
from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
from mldiagnostics.identity.environment import detect
from mldiagnostics.identity.origin import Origin
from mldiagnostics.identity.resolve import locate
from mldiagnostics.lifecycle import current_run
from mldiagnostics.locations import DEFAULT_STORAGE, absolute_location, is_bucket
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.profiling.step_marks import StepMarks
from mldiagnostics.run import ownership
from mldiagnostics.run.announcement import announcement
from mldiagnostics.run.arguments import DEFAULT_SINKS, RunArguments, read_arguments
from mldiagnostics.run.exit_hooks import process_exit_hooks
from mldiagnostics.run.fields import process_section, run_fields
from mldiagnostics.run.mlrun import MLRun
from mldiagnostics.run.settings import RunSettings, read_settings
from mldiagnostics.run.unrecorded import current_or_unrecorded_run
from mldiagnostics.sinks import sink_maker
from mldiagnostics.text.suggest import unknown_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mldiagnostics.control_plane.endpoint import Endpoint, Source
    from mldiagnostics.control_plane.reporter import Reporter
    from mldiagnostics.identity.resolve import ResolvedIdentity
    from mldiagnostics.sinks import SinkMaker


_start_lock = threading.RLock()  # two drains of one buffer would take each other's records


def start_run(options: Mapping[str, Any], requested_at: float) -> MLRun:
    """Start the run of one `machinelearning_run` call. May raise anything.

    Args:
        options: Arguments of the call; `unknown` has those that the function does not have.
        requested_at: Time of the call in Unix seconds; loading the modules belongs to the run's time.
    """
    with _start_lock:
        return _start(options, requested_at)


def _start(options: Mapping[str, Any], requested_at: float) -> MLRun:
    env = dict(os.environ)
    problems: dict[str, str] = {}
    if unknown := options["unknown"]:
        known = [name for name in options if name != "unknown"]
        problems["unknown"] = unknown_parameters("machinelearning_run", unknown, known)
    settings = read_settings(env, problems)
    arguments = read_arguments(options, settings=settings, platforms=env.get("JAX_PLATFORMS", ""), problems=problems)
    identity = locate(
        detect(env), name=arguments.name, workload_id=arguments.run_workload_id, cluster=arguments.cluster_id or ""
    )
    problems.update(identity.problems)
    endpoint = _endpoint(arguments, settings, problems)
    makers = _sink_makers(arguments.sinks, problems)
    if options["strict"] is True:
        _require_valid(arguments, problems)
    for key, problem in problems.items():
        warn_once(f"start-{key}", problem)
    if not arguments.storage and settings.in_kubernetes:
        warn_once(
            "storage-in-pod",
            "the files of this run end with the pod: set storage='gs://bucket/prefix' (or a mounted volume), or "
            "MLDIAG_STORAGE",
        )
    if (previous := current_run.current()) is not None:
        previous.close()
        requested_at = time.time()  # the previous run lasted until now
    origin = _origin(arguments, identity, storage=_absolute(arguments.storage or DEFAULT_STORAGE))
    leads = identity.process.leads and ownership.claim(origin.run_id, os.environ)
    if leads and identity.identity and identity.identity.source == "injected":
        _warn_of_shared_id(origin)
    reporter = None
    if endpoint is not None and leads == identity.process.leads:  # not a subprocess of the leader, with its rank
        from mldiagnostics.control_plane.reporter import Reporter  # noqa: PLC0415 - only where one is set

        reporter = Reporter(endpoint, origin, host=process_section(identity), leads=leads)
    pipeline = RecordPipeline(
        origin, makers, observers=[reporter.sink] if reporter else (), waits=arguments.on_full == "wait"
    )
    return _join(
        arguments, identity, pipeline, settings, env, leads=leads, reporter=reporter, requested_at=requested_at
    )


def _join(
    arguments: RunArguments,
    identity: ResolvedIdentity,
    pipeline: RecordPipeline,
    settings: RunSettings,
    env: Mapping[str, str],
    *,
    leads: bool,
    reporter: Reporter | None,
    requested_at: float,
) -> MLRun:
    origin = pipeline.origin
    run = MLRun(
        run_fields(arguments, identity, origin, control_plane=reporter.endpoint.url if reporter else None),
        arguments=arguments,
        identity=identity,
        recording=pipeline,
        recorder=ElasticGoodputRecorder(origin.name, origin.name, logging_enabled=True, log=origin.directory),
        exit_hooks=process_exit_hooks(),
        cloud=CloudEnvironment(project=arguments.project, region=arguments.region, env=env),
        leads=leads,
        heartbeat_s=settings.heartbeat_s,
        unpickle=current_or_unrecorded_run,
        start_threads=_start_threads,
        reporter=reporter,
    )
    run.start(requested_at)
    if leads:
        from importlib.util import find_spec  # noqa: PLC0415 - not on the other processes

        source = identity.identity.source if identity.identity else "fresh"
        has_view = all(find_spec(f"mldiagnostics_{part}") for part in ("view", "cli"))
        announce(announcement(origin, source=source, view_url=settings.view_url, has_view=has_view))
    if LOGGER.isEnabledFor(logging.DEBUG):
        from mldiagnostics.run.details import details  # noqa: PLC0415 - only at this level

        for line in details(
            origin,
            arguments=arguments,
            identity=identity,
            sinks=pipeline.sink_names,
            env=env,
            leads=leads,
            heartbeat_s=settings.heartbeat_s,
            control_plane=reporter.endpoint.url if reporter else None,
        ):
            detail(line)
    _start_parts(run, records_compilations=leads == identity.process.leads)
    return run


def _start_parts(run: MLRun, *, records_compilations: bool) -> None:
    """Start the optional parts of a run, each loaded only where it is used."""
    compilations = Compilations(run.recorder)
    if not records_compilations:  # a subprocess of the leader compiles beside the training
        compilations.close()
    run.on_close(compilations.close)
    marks = StepMarks()
    run.on_step(marks.begin if compilations.listen() else _when_jax_is_imported(compilations, marks))
    run.on_close(marks.end)
    _start_threads(run)


def _when_jax_is_imported(compilations: Compilations, marks: StepMarks) -> Callable[[int], None]:
    """Return a callback of steps that costs a look-up until JAX is imported."""
    modules = sys.modules

    def begin(step: int) -> None:
        if "jax" in modules and compilations.listen():
            marks.begin(step)

    return begin


def _start_threads(run: MLRun) -> None:
    """Start the optional parts that have threads, which a daemon has to start again."""
    if run.on_demand_xprof and not run.metric_only_run:
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof  # noqa: PLC0415 - see above

        start_on_demand_xprof()
    interval_s = run.metrics_record_interval_sec
    if run.log_system_metrics and interval_s > 0 and run.origin.local_rank == 0:
        from mldiagnostics.system.sampler import Sampler  # noqa: PLC0415 - see above

        sampler = Sampler(run.recording, interval_s=interval_s)
        try:
            sampler.start()
        except RuntimeError as error:  # no more threads for this process
            warn_once("system-start", f"system metrics are not recorded: {error}")
        else:
            run.on_close(sampler.stop)


def _endpoint(arguments: RunArguments, settings: RunSettings, problems: dict[str, str]) -> Endpoint | None:
    """Return the control plane to which this process reports, None without one."""
    urls: tuple[tuple[Source, str | None], ...] = (
        ("base_url", arguments.base_url),
        ("MLDIAG_CONTROL_PLANE_URL", settings.control_plane_url),
        ("DIAGON_BASE_URL", settings.peer_url),
    )
    source, url = next(((source, url) for source, url in urls if url), (None, None))
    if source is None or url is None:
        return None
    from mldiagnostics.control_plane.endpoint import endpoint  # noqa: PLC0415 - only where one is set

    try:
        return endpoint(url, source, token_file=settings.control_plane_token_file, ca_file=settings.control_plane_ca)
    except ConfigurationError as error:
        name = f"machinelearning_run({source}={url!r})" if source == "base_url" else f"{source}={url!r}"
        problems["control-plane-url"] = f"{name} {error}"
        return None


def _origin(arguments: RunArguments, identity: ResolvedIdentity, *, storage: str) -> Origin:
    return Origin.here(
        identity,
        run_id=identity.identity.run_id if identity.identity else os.urandom(32).hex(),
        name=arguments.name,
        storage=storage,
        project=arguments.project or "",
        region=arguments.region or "",
    )


def _absolute(location: str) -> str:
    try:
        return absolute_location(location)
    except FileNotFoundError:
        raise MLRunConfigurationError(
            f"storage {location!r} is a relative path and the working directory was deleted; set an absolute path or "
            "URL with storage= or MLDIAG_STORAGE"
        ) from None


def _warn_of_shared_id(origin: Origin) -> None:
    """Warn if the last run of this process has the same id under another name."""
    previous = current_run.last()
    if previous is not None and previous.origin.run_id == origin.run_id and previous.origin.name != origin.name:
        warn_once(
            "start-shared-id",
            f"machinelearning_run({origin.name!r}): has the injected run id of {previous.origin.name!r}, so both are "
            "one run and steps that start again count as lost; start each in a workload of its own, or set "
            "MLDIAG_RUN_ID to another id before each start",
        )


def _sink_makers(urls: Sequence[str], problems: dict[str, str]) -> list[SinkMaker]:
    makers = [maker for url in urls if (maker := _sink_maker(url, problems)) is not None]
    return makers or [sink_maker(url) for url in DEFAULT_SINKS]


def _sink_maker(url: str, problems: dict[str, str]) -> SinkMaker | None:
    try:
        return sink_maker(url)
    except MLDiagnosticsError as error:
        problem = str(error).removeprefix("sink ").removeprefix(f"{url!r}: ")
        problems[f"sink-{url.partition(':')[0]}"] = f"sink {url!r} is left out: {problem}"
        return None


def _require_valid(arguments: RunArguments, problems: Mapping[str, str]) -> None:
    if problems:
        raise MLRunConfigurationError("; ".join(problems.values()))
    locations = [arguments.storage, *(url.partition(":")[2] for url in arguments.sinks)]
    bucket = next(filter(is_bucket, locations), None)
    if bucket and not _is_installed((scheme := BucketUrl.parse(bucket).scheme).module):
        raise MissingExtraError(extra=scheme.extra, needed_for=bucket)


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only for strict starts

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _renew_lock() -> None:
    global _start_lock  # noqa: PLW0603 - a thread of the parent may hold the old lock, which no one would release
    _start_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
