"""Files of runs in a cluster.

Those of buckets are read as they are, those of the operator's volume as copies.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.layout import PROFILE_DIR, TRACE_SUFFIX
from mldiagnostics.locations import is_on_volume
from mldiagnostics.runs import sessions
from mldiagnostics.runs.session_rows import with_stored
from mldiagnostics.text.file_errors import file_problem
from mldiagnostics_kube.installation.operator_policy import records_location
from mldiagnostics_kube.installation.result_files import VolumeDirectory, copy_directory

from mldiagnostics_cli.output import note

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from mldiagnostics.runs import RunRow, SessionRow
    from mldiagnostics_kube.client.cluster import Cluster

    Wait = Callable[[Coroutine[Any, Any, Any]], Any]


def stored_sessions(row: RunRow, known: Sequence[SessionRow]) -> list[SessionRow]:
    """Return the sessions of a run, the oldest first.

    These are sessions with files, and those that only its MLRun names.

    Args:
        row: The run.
        known: Sessions of the MLRun, whose files are not known.
    """
    stored: list[SessionRow] = []
    if row.directory and not is_on_volume(row.directory):
        try:
            stored = sessions(row)
        except MLDiagnosticsError as error:
            note(f"{row.name or row.run_id}: only the sessions that the cluster knows are shown: {error}")
    return with_stored(known, stored, directory=row.directory)


@contextmanager
def fetched_run(cluster: Cluster, wait: Wait, row: RunRow) -> Iterator[RunRow]:
    """Return a run whose records can be read while the block runs.

    Raises:
        ConfigurationError: The files do not exist.
        ClusterFailure: The caller may not read the operator's volume.
    """
    location = str(wait(records_location(cluster.client, row)))
    if not is_on_volume(location):
        yield replace(row, directory=location)
        return
    wanted = VolumeDirectory(location=location, namespace=row.namespace)
    with _copied(cluster, wait, wanted) as folder:
        yield replace(row, directory=str(folder))


@contextmanager
def fetched_session(cluster: Cluster, wait: Wait, session: SessionRow, namespace: str) -> Iterator[SessionRow]:
    """Return a session whose traces can be read while the block runs.

    Raises:
        ConfigurationError: Its files do not exist.
        ClusterFailure: The caller may not read the operator's volume.
        StoreError: The files cannot be listed.
    """
    if session.files:
        yield session
    elif is_on_volume(session.url):
        wanted = VolumeDirectory(location=session.url, namespace=namespace, suffixes=(TRACE_SUFFIX, ".json"))
        with _copied(cluster, wait, wanted) as folder:
            yield _session_in(folder, session)
    else:
        yield _session_in(session.url.removesuffix(f"/{PROFILE_DIR}/{session.name}"), session)


def _session_in(log_directory: str | Path, wanted: SessionRow) -> SessionRow:
    for session in sessions(str(log_directory).removesuffix(f"/{PROFILE_DIR}/{wanted.name}")):
        if session.name == wanted.name:
            return session
    raise ConfigurationError(f"{wanted.url}: has no traces; they were deleted, or nothing was captured")


@contextmanager
def _copied(cluster: Cluster, wait: Wait, wanted: VolumeDirectory) -> Iterator[Path]:
    """Copy a directory of the volume, to the same path below a temporary one."""
    with tempfile.TemporaryDirectory(prefix="mldiag-volume-") as temporary:
        folder = Path(temporary, wanted.location.partition("://")[2].strip("/"))
        try:
            wait(copy_directory(cluster.client, wanted, folder, cluster=cluster.description))
        except OSError as error:
            problem = f"its copy cannot be written to {temporary}: {file_problem(error, 'set TMPDIR')}"
            raise ConfigurationError(f"{wanted.location}: {problem}") from error
        yield folder
