"""Diagnosis of the session that a user means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import PROFILE_DIR, TRACE_SUFFIX
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.sessions import diagnose_session

from mldiagnostics_cli.profiles.references import find_session

if TYPE_CHECKING:
    from mldiagnostics.runs import SessionRow
    from mldiagnostics_diagnosis.sessions import SessionDiagnosis

    from mldiagnostics_cli.runs.source import RunSource


def diagnosed(source: RunSource, reference: str, *, write: bool = True) -> tuple[SessionRow, SessionDiagnosis]:
    """Return the session of a reference with its files, and its diagnosis.

    Args:
        source: Source of the runs.
        reference: As for `find_session`.
        write: Keep summaries of hosts and the diagnosis beside the traces, if they can be written there, so that the
            next call reads only them.

    Raises:
        ConfigurationError: There is no such session, or it has no trace.
        StoreError: The traces cannot be read.
    """
    session = find_session(source, reference)
    with source.fetched_session(session) as row:
        if not row.files:
            raise ConfigurationError(f"{session.url}: has no trace; choose another session")
        store = open_store(row.url.removesuffix(f"/{PROFILE_DIR}/{row.name}"))
        diagnosis = diagnose_session(store, row.name, write=write)
    if session.files:
        return session, diagnosis
    files = tuple(replace(file, url=f"{session.url}/{file.host}{TRACE_SUFFIX}") for file in row.files)
    return replace(row, url=session.url, files=files), diagnosis
