"""`mldiag profiles download` and `adopt`: copies of sessions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import AlreadyStored, ConfigurationError
from mldiagnostics.layout import (
    CAPTURE_RECORD,
    DIAGNOSIS_RECORD,
    PROFILE_DIR,
    SUMMARY_SUFFIX,
    TRACE_SUFFIX,
    retry_session,
    sanitize,
    session_prefix,
)
from mldiagnostics.locations import local_path
from mldiagnostics.runs import sessions
from mldiagnostics.store import open_store

from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.profiles.references import find_session, log_directory, opened
from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.store import Store

    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.commands.source_options import SourceChoice


PARALLEL_COPIES = 8
"""Traces that are copied at a time; one stream of a bucket is slower than the network."""

MAX_SESSIONS_OF_A_NAME = 1000


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A session to copy: its name and the keys of its files in a store."""

    name: str
    store: Store
    keys: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class _CopiedSession:
    name: str
    files: int
    bytes: int
    url: str


def download_sessions(choice: SourceChoice, references: Sequence[str], directory: str, output: OutputFormat) -> None:
    """Copy sessions into a local log directory, and print where they are.

    Files that are there already, with the same content, are kept: an interrupted download is repeated as a whole.
    Summaries and the diagnosis are replaced.
    Sessions on the operator's volume are read in its pod, with the rights of the user.

    Raises:
        ConfigurationError: A session does not exist.
        AlreadyStored: A file of the directory has other content.
        StoreError: A file cannot be read or written.
    """
    target = local_path(directory)
    if target is None:
        raise ConfigurationError(f"--to {directory}: not a directory of this machine; pass a local path")
    store, copied = open_store(str(target)), []
    with opened(choice, references) as source:
        for session in [find_session(source, reference) for reference in references]:
            with source.fetched_session(session) as row:
                copied.append(copy_session(files_of(row.url, row.name), store, row.name))
    _show(copied, output)
    note(f"Open them with `mldiag xprof create --on local {directory}`, or `xprof --logdir {directory}`.")


def adopt_sessions(
    choice: SourceChoice, sources: Sequence[str], run: str, output: OutputFormat, *, session: str | None
) -> None:
    """Copy sessions of other tools to a run, and print their names there.

    Args:
        choice: Source of the run.
        sources: Log directories, directories of sessions, or traces.
        run: The run, or a log directory.
        output: Format of the result.
        session: Name of the session in the run; by default its own name.

    Raises:
        ConfigurationError: A source has no traces.
        StoreError: A file cannot be read or written.
    """
    with opened(choice, [run]) as source:
        store = open_store(log_directory(source, run))
    found = [each for source in sources for each in _sessions_in(source)]
    if session is not None and len(found) > 1:
        raise ConfigurationError(f"--session {session}: {len(found)} sessions are adopted; pass the directory of one")
    _show([_adopted(each, store, sanitize(session or each.name)) for each in found], output)


def files_of(url: str, name: str) -> SourceSession:
    """Return the session in a directory: its files without the caches of XProf."""
    store = open_store(url)
    entries = [entry for entry in store.list() if _is_kept(entry.key)]
    return SourceSession(name, store, tuple(entry.key for entry in entries), sum(entry.bytes for entry in entries))


def copy_session(source: SourceSession, target: Store, name: str) -> _CopiedSession:
    """Copy the files of a session.

    Summaries and the diagnosis replace those of the same traces: they differ if one side was diagnosed again. The
    diagnosis has the name of its session, so it is not copied to another name. The record is the last file, as it
    says that the session is whole.
    """

    def copy(key: str) -> None:
        with source.store.open(key) as file:
            target.put(f"{session_prefix(name)}/{key}", file, replace=_is_derived(key))

    keys = [key for key in source.keys if key != DIAGNOSIS_RECORD or name == source.name]
    traces = [key for key in keys if key != CAPTURE_RECORD and not _is_derived(key)]
    with ThreadPoolExecutor(PARALLEL_COPIES) as workers:
        list(workers.map(copy, traces))
        list(workers.map(copy, filter(_is_derived, keys)))
    if CAPTURE_RECORD in keys:
        copy(CAPTURE_RECORD)
    return _CopiedSession(name, len(keys), source.bytes, target.url(session_prefix(name)))


def _adopted(source: SourceSession, target: Store, name: str) -> _CopiedSession:
    """Copy a session under its name, or the next free one if other files have it."""
    for number in range(1, MAX_SESSIONS_OF_A_NAME):
        try:
            return copy_session(source, target, retry_session(name, number))
        except AlreadyStored:
            continue
    raise ConfigurationError(
        f"{name}: the run has {MAX_SESSIONS_OF_A_NAME} sessions of this name; pass another name with --session"
    )


def _sessions_in(source: str) -> Iterator[SourceSession]:
    path = local_path(source)
    if path is not None and path.is_file():
        if not path.name.endswith(TRACE_SUFFIX):
            raise ConfigurationError(f"{source}: not a trace; its name ends in {TRACE_SUFFIX}")
        yield SourceSession(path.parent.name, open_store(str(path.parent)), (path.name,), path.stat().st_size)
        return
    rows = sessions(source)
    for row in rows:
        yield files_of(row.url, row.name)
    if rows:
        return
    alone = files_of(source, Path(source.rstrip("/")).name)
    if not any(key.endswith(TRACE_SUFFIX) for key in alone.keys):
        raise ConfigurationError(
            f"{source}: has no traces; pass a directory with {PROFILE_DIR}/<session>/<host>{TRACE_SUFFIX}, or a session"
        )
    yield alone


def _is_kept(key: str) -> bool:
    return "/" not in key and (key.endswith(TRACE_SUFFIX) or key == CAPTURE_RECORD or _is_derived(key))


def _is_derived(key: str) -> bool:
    """Return whether a file can be made again from the traces."""
    return key.endswith(SUMMARY_SUFFIX) or key == DIAGNOSIS_RECORD


def _show(copied: Sequence[_CopiedSession], output: OutputFormat) -> None:
    show_rows(copied, _COLUMNS, output, name=lambda each: each.url, document=_document)


def _document(copied: _CopiedSession) -> dict[str, object]:
    return {"session": copied.name, "files": copied.files, "bytes": copied.bytes, "url": copied.url}


_COLUMNS: list[TableColumn[_CopiedSession]] = [
    TableColumn("SESSION", lambda each: each.name),
    TableColumn("FILES", lambda each: str(each.files), is_number=True),
    TableColumn("SIZE", lambda each: size(each.bytes), is_number=True),
    TableColumn("URL", lambda each: each.url),
]
