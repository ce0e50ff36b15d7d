"""Resolution of a profile session as a user writes it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.layout import PROFILE_DIR, RUN_RECORD
from mldiagnostics.locations import absolute_location, is_on_volume, local_path
from mldiagnostics.runs import RunRow, SessionRow, sessions

from mldiagnostics_cli.runs.opening import open_source
from mldiagnostics_cli.sources import find, is_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.runs.source import RunSource


_SHOWN = 5
"""Number of sessions that a message names."""


@contextmanager
def opened(choice: SourceChoice, references: Sequence[str]) -> Iterator[RunSource]:
    """Open the source of the runs of some references.

    Without a run among them it is not the cluster.

    Raises:
        ConfigurationError: There is neither a directory nor a cluster.
    """
    with open_source(choice, [_run_of(reference) for reference in references]) as source:
        yield source


def log_directory(source: RunSource, reference: str) -> str:
    """Return the log directory of a run, or the one that is given.

    Raises:
        ConfigurationError: The reference is neither.
    """
    meant = _meant(source, reference)
    return meant.directory if isinstance(meant, RunRow) else meant


def named_directory(choice: SourceChoice, reference: str) -> str:
    """Return the log directory that is given, or that of the run that is named.

    Raises:
        ConfigurationError: There is neither a directory nor a run of this name.
    """
    path = local_path(reference)
    if path is None or path.exists() or ("/" in reference and not is_workload(reference)):
        return reference
    try:
        with open_source(choice, [reference]) as source:
            run = source.find(reference)
    except MLDiagnosticsError as error:
        raise ConfigurationError(
            f"{reference}: no such directory; pass the log directory, or a run ({error})"
        ) from error
    if not run.directory:
        raise ConfigurationError(f"{reference}: the directory of this run is unknown; pass the log directory")
    return run.directory


def find_sessions(source: RunSource, reference: str) -> list[SessionRow]:
    """Return the sessions of a run or of a log directory, the oldest first."""
    meant = _meant(source, reference)
    if isinstance(meant, RunRow):
        return source.sessions(meant, with_files=True)
    if is_on_volume(meant):
        raise ConfigurationError(f"{meant}: the operator's volume cannot be listed; pass a run, or {meant}/SESSION")
    return sessions(meant)


def find_session(source: RunSource, reference: str) -> SessionRow:
    """Return the session that a user means; its files may be unknown.

    Args:
        source: Source of the runs.
        reference: `<run or log directory>/<session>`, or a run or log directory alone for its newest session.

    Raises:
        ConfigurationError: There is no such session.
        StoreError: The files cannot be listed.
    """
    before, slash, name = reference.rstrip("/").rpartition("/")
    if is_on_volume(reference):
        directory = before.removesuffix(f"/{PROFILE_DIR}")
        return SessionRow(name, "capture", url=f"{directory}/{PROFILE_DIR}/{name}")
    if slash and not _is_source(reference):
        rows = find_sessions(source, before)
        for row in rows:
            if row.name == name:
                return row
        if rows or local_path(reference) is not None:
            raise _missing(reference, f"has no session {name!r}", rows)
    rows = find_sessions(source, reference)
    if not rows:
        raise _missing(reference, "has no profile sessions", rows)
    return rows[-1]


def find_run(source: RunSource, reference: str) -> RunRow | None:
    """Return the run of a session that `find_session` finds.

    Sessions of a log directory have none.
    """
    if is_on_volume(reference):
        return None
    before, slash, _ = reference.rstrip("/").rpartition("/")
    meant = _meant(source, before if slash and not _is_source(reference) else reference)
    return meant if isinstance(meant, RunRow) else None


def _meant(source: RunSource, reference: str) -> RunRow | str:
    """Return the run or the log directory of a reference without a session."""
    location = reference.rstrip("/").removesuffix(f"/{PROFILE_DIR}")
    path = local_path(location)
    if path is None:
        return location
    if not path.is_dir():
        return source.find(location)
    return find(str(path.parent), str(path)).row if (path / RUN_RECORD).is_file() else absolute_location(location)


def _run_of(reference: str) -> str:
    """Return the run of a reference, or a path or URL."""
    path = local_path(reference)
    if path is None or path.is_dir():
        return absolute_location(reference)
    run, slash, _ = reference.rstrip("/").rpartition("/")
    if not slash:
        return reference
    return absolute_location(run) if Path(run).is_dir() else run


def _is_source(reference: str) -> bool:
    """Return whether a path is itself a log directory, not a session below one."""
    path = local_path(reference)
    return path is not None and path.is_dir() and path.parent.parts[-2:] != tuple(Path(PROFILE_DIR).parts)


def _missing(reference: str, problem: str, rows: Sequence[SessionRow]) -> ConfigurationError:
    if not rows:
        return ConfigurationError(f"{reference}: {problem}; `mldiag profiles list` shows the sessions of all runs")
    names = ", ".join(row.name for row in rows[-_SHOWN:])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ConfigurationError(f"{reference}: {problem}; its sessions are: {names}{more}")
