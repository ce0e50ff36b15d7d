"""Diagnosis of a stored session: summaries and `diagnosis.json`."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError, StoreError
from mldiagnostics.layout import (
    SUMMARY_SUFFIX,
    TRACE_SUFFIX,
    diagnosis_key,
    is_trace,
    session_prefix,
    summary_key,
    trace_stem,
)
from mldiagnostics.locations import local_path

from mldiagnostics_diagnosis.capture_record import read_record
from mldiagnostics_diagnosis.child import TraceUnreadable, summarize
from mldiagnostics_diagnosis.diagnosis import diagnose
from mldiagnostics_diagnosis.limits import Resources
from mldiagnostics_diagnosis.summary import MAX_SUMMARY_BYTES, parse_summary

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mldiagnostics.findings import Diagnosis
    from mldiagnostics.store import Entry, Store

    from mldiagnostics_diagnosis.limits import Limits
    from mldiagnostics_diagnosis.summary import HostSummary


_PARALLEL_READS = 32


@dataclass(frozen=True, slots=True)
class SessionDiagnosis:
    """A diagnosis with the summaries that it comes from."""

    diagnosis: Diagnosis
    summaries: tuple[HostSummary, ...]
    unreadable: tuple[str, ...]
    """One message for each trace without a summary."""
    unstored: str
    """Why `diagnosis.json` is not stored, although it was to be; else empty."""


def diagnose_session(
    store: Store, session: str, *, limits: Limits | None = None, write: bool = True
) -> SessionDiagnosis:
    """Return the diagnosis of a session; read each trace that has no summary yet.

    Of hosts whose trace was deleted, as after a pulse, the summary counts.

    Args:
        store: Store of the log directory.
        session: Name of the session.
        limits: Limits of the process that reads one trace.
        write: Store the summaries and `diagnosis.json` beside the traces, if the store can be written.

    Raises:
        ConfigurationError: The session has neither traces nor summaries.
        StoreError: The files cannot be listed.
    """
    entries = list(store.list(session_prefix(session)))
    traces = [entry for entry in entries if is_trace(entry.key)]
    stored = {entry.key: entry for entry in entries}
    kept = _without_traces(store, stored)
    if not traces and not kept:
        raise ConfigurationError(f"{store.url(session_prefix(session))}: has no trace; choose another session")
    parallel, usual = Resources.here(os.environ).readers([entry.bytes for entry in traces])
    limits = limits or usual
    with ThreadPoolExecutor(parallel, thread_name_prefix="mldiagnostics-diagnosis") as workers:
        results = list(workers.map(lambda entry: _of_trace(store, session, entry, stored, limits, write=write), traces))
    summaries = (*(result for result in results if not isinstance(result, str)), *kept)
    unreadable = tuple(result for result in results if isinstance(result, str))
    traced = [*(trace_stem(entry.key) for entry in traces), *(summary.host for summary in kept)]
    record = read_record(store, session, traced=traced)
    missing = (*unreadable, *record.missing)
    diagnosis = diagnose(
        summaries, session=session, hosts=record.hosts, missing=missing, narrowed_by=record.narrowed_by
    )
    content = json.dumps(diagnosis.to_json()).encode()
    unstored = _put(store, diagnosis_key(session), content) if write else ""
    return SessionDiagnosis(diagnosis, summaries, unreadable, unstored)


def read_summaries(store: Store, session: str) -> list[HostSummary]:
    """Return the summaries that a session has, without reading traces.

    Raises:
        StoreError: The files cannot be listed.
    """
    keys = [entry.key for entry in store.list(session_prefix(session)) if entry.key.endswith(SUMMARY_SUFFIX)]
    return _read_all(store, keys)


def _without_traces(store: Store, stored: Collection[str]) -> list[HostSummary]:
    keys = {key.rpartition("/")[2].removesuffix(SUMMARY_SUFFIX): key for key in stored if key.endswith(SUMMARY_SUFFIX)}
    lone = {
        stem: key for stem, key in keys.items() if f"{key.removesuffix(SUMMARY_SUFFIX)}{TRACE_SUFFIX}" not in stored
    }
    return [summary for summary in _read_all(store, [*lone.values()]) if summary.host in lone]


def _read_all(store: Store, keys: Sequence[str]) -> list[HostSummary]:
    with ThreadPoolExecutor(_PARALLEL_READS, thread_name_prefix="mldiagnostics-summaries") as readers:
        return [summary for summary in readers.map(lambda key: _read(store, key), keys) if summary is not None]


def _of_trace(
    store: Store, session: str, trace: Entry, stored: dict[str, Entry], limits: Limits | None, *, write: bool
) -> HostSummary | str:
    """Return the summary of a trace, or the problem with it."""
    host = trace_stem(trace.key)
    key = summary_key(session, host)
    if key in stored and (known := _read(store, key)) and (known.trace_bytes, known.host) == (trace.bytes, host):
        return known
    try:
        summary = _summarized(store, trace, host, limits)
    except TraceUnreadable as error:
        return str(error)
    except (StoreError, OSError) as error:
        return f"{store.url(trace.key)}: cannot be read: {error}; diagnose again"
    if write:
        _put(store, key, summary.encode())
    return summary


def _summarized(store: Store, trace: Entry, host: str, limits: Limits | None) -> HostSummary:
    url = store.url(trace.key)
    if (path := local_path(url)) is not None and path.is_file():
        return summarize(path, limits=limits, host=host)
    with tempfile.TemporaryDirectory(prefix="mldiag-diagnosis-") as folder:
        copy = Path(folder, f"{host}{TRACE_SUFFIX}")
        with store.open(trace.key) as file, copy.open("wb") as target:
            shutil.copyfileobj(file, target)
        try:
            return summarize(copy, limits=limits, host=host)
        except TraceUnreadable as error:
            raise TraceUnreadable(str(error).replace(str(copy), url)) from None


def _read(store: Store, key: str) -> HostSummary | None:
    """Return a stored summary; None if it is of another version, or not readable."""
    try:
        with store.open(key) as file:
            return parse_summary(file.read(MAX_SUMMARY_BYTES + 1), source=store.url(key))
    except (MLDiagnosticsError, OSError):
        return None


def _put(store: Store, key: str, content: bytes) -> str:
    """Store a file whole; return why it cannot be stored, else empty."""
    try:
        store.put(key, content, replace=True)
    except (StoreError, OSError) as error:
        return str(error)
    return ""
