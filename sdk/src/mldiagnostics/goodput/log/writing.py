"""Opening a log for writing: the origin of its records, and their sink."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.goodput.location import CLOUD_LOGGING
from mldiagnostics.goodput.log.pointers import with_pointer
from mldiagnostics.identity.environment import detect
from mldiagnostics.identity.origin import Origin
from mldiagnostics.identity.resolve import locate
from mldiagnostics.pipeline.recorder import RecordPipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.pipeline.buffer import Buffer
    from mldiagnostics.pipeline.sink import SinkMaker

_LASTING = frozenset({"injected", "workload-id"})
"""Sources of run ids that survive a restart; with any other, the job's names identify the run."""


def open_pipeline(
    url: str, *, job_name: str, logger_name: str, run: CurrentRun | None, buffer: Buffer, env: Mapping[str, str]
) -> RecordPipeline:
    """Open a log for writing. Raises `ConfigurationError` and `MissingExtraError`."""
    maker = with_pointer(_maker(url), job_name, logger_name, url)
    return RecordPipeline(_origin(job_name, url, run, env), [maker], buffer=buffer, lasting=True)


def _maker(url: str) -> SinkMaker:
    if url.startswith(CLOUD_LOGGING):
        from mldiagnostics.goodput.log import cloud_logging  # noqa: PLC0415 - only such logs need it

        return cloud_logging.maker(url)
    from mldiagnostics.sinks import jsonl  # noqa: PLC0415 - the same

    return jsonl.log_maker(url)


def _origin(job_name: str, url: str, run: CurrentRun | None, env: Mapping[str, str]) -> Origin:
    resolved = locate(detect(env), name=job_name)
    identity = resolved.identity
    lasting_id = identity.run_id if identity is not None and identity.source in _LASTING else ""
    own = Origin.here(resolved, run_id=lasting_id, name=job_name, storage=url)
    if run is None:
        return own
    origin = run.origin
    run_id = origin.run_id if url == run.directory else own.run_id
    return replace(
        own, run_id=run_id, rank=origin.rank, attempt=origin.attempt, host=origin.host, project=origin.project
    )
