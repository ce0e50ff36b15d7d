"""Profile sessions of a run: captures from outside, profiles by the program."""

from __future__ import annotations

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError, StoreError, StoreNotFound
from mldiagnostics.layout import CAPTURE_RECORD, DIAGNOSIS_RECORD, PROFILE_DIR, is_trace, trace_stem
from mldiagnostics.runs.row import directory_of
from mldiagnostics.runs.row_values import FieldReader
from mldiagnostics.store import open_store
from mldiagnostics.store.model import PARTIAL, checked_key
from mldiagnostics.text.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.runs.row import RunRow
    from mldiagnostics.store import Entry, Store


_PARALLEL_READS = 32
_OF_ATTEMPT = re.compile(r"a([0-9]{1,9})-(?:s([0-9]{1,18})|n[0-9]+)(?:-[0-9]+)?")
"""Names by which the SDK calls profiles that the program has not named."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The trace of one host."""

    host: str
    """The pod, or the host where there is none; `<pod>_<local rank>` with several ranks in a pod."""
    bytes: int
    url: str
    """Path or URL."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One profile session. None stands for values that are not known."""

    name: str
    kind: Literal["capture", "profile"]
    """`capture` for one that was taken from outside, through an object in the cluster, `profile` by the program."""
    files: tuple[SessionFile, ...] = ()
    """The traces, by host."""
    bytes: int = 0
    """Size of all traces."""
    t: float | None = None
    """When the first trace was stored, in Unix seconds."""
    attempt: int | None = None
    """Attempt of the run in which the program took the profile."""
    step: int | None = None
    """Step at which the profile starts."""
    object: str | None = None
    """`<namespace>/<name>` of the object that asked for the capture."""
    targets: dict[str, int] | None = None
    """Number of targets of the capture in each state, such as `Captured`."""
    url: str = ""
    """Directory of the session: a path or URL."""
    skew_ms: float | None = None
    """Milliseconds between the first and the last start of a recording."""
    is_diagnosed: bool | None = False
    """Whether there is a diagnosis beside the traces; None if the files are not known."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with a trace."""
        return tuple(file.host for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return the session as JSON; its time is RFC 3339, unknown values are null."""
        return {
            "session": self.name,
            "kind": self.kind,
            "hosts": list(self.hosts),
            "files": [{"host": file.host, "bytes": file.bytes, "url": file.url} for file in self.files],
            "bytes": self.bytes,
            "time": timestamp(self.t),
            "attempt": self.attempt,
            "step": self.step,
            "object": self.object,
            "targets": self.targets,
            "skewMilliseconds": self.skew_ms,
            "diagnosed": self.is_diagnosed,
            "url": self.url,
        }


def sessions(run: RunRow | str) -> list[SessionRow]:
    """Return the profile sessions in the directory of a run.

    The files are listed; of captures their capture.json is read. Captures with an explicit storage location are
    elsewhere. Caches that XProf writes beside the traces do not count. Sessions that cannot be listed are left out with
    a warning.

    Args:
        run: A row, or the directory of a run: a path or URL.

    Returns:
        The sessions, by time.

    Raises:
        ConfigurationError: The directory is not a path or URL that can be read.
        StoreError: The directory of the run cannot be read.

    Example:
        for session in sessions(run):
            print(session.name, session.hosts, session.bytes)
    """
    store = open_store(directory_of(run))
    traces: dict[str, list[Entry]] = {}
    captures: set[str] = set()
    diagnosed: set[str] = set()
    try:
        for entry in store.list(PROFILE_DIR):
            if not _is_valid(entry.key):
                continue
            name, _, file = entry.key.removeprefix(f"{PROFILE_DIR}/").partition("/")
            if is_trace(entry.key):
                traces.setdefault(name, []).append(entry)
            elif file == CAPTURE_RECORD:
                captures.add(name)
            elif file == DIAGNOSIS_RECORD:
                diagnosed.add(name)
    except StoreNotFound:
        return []
    except StoreError as error:
        next(store.folders(), None)  # raises if the directory of the run cannot be read
        warn_once("unreadable-sessions", f"{store.url()}: sessions that cannot be listed are left out: {error}")
    with ThreadPoolExecutor(_PARALLEL_READS, thread_name_prefix="mldiagnostics-sessions") as readers:
        names = sorted(traces.keys() | captures)
        documents = readers.map(lambda name: _document(store, name) if name in captures else None, names)
        rows = [
            _row(store, name, traces.get(name, []), document, is_diagnosed=name in diagnosed)
            for name, document in zip(names, documents, strict=True)
        ]
    return sorted(rows, key=lambda row: (row.t or 0.0, row.name))


def with_stored(known: Iterable[SessionRow], stored: Iterable[SessionRow], *, directory: str) -> list[SessionRow]:
    """Return sessions that an MLRun names, and those with files, the oldest first.

    Args:
        known: Sessions of the MLRun; one whose files are listed too is left out.
        stored: Sessions with files, of the directory or a copy of it.
        directory: Directory of the run, as the MLRun names it; sessions elsewhere are others, also with the same name.
    """
    listed = tuple(stored)
    names = {row.name for row in listed}
    others = [row for row in known if row.name not in names or not row.url.startswith(f"{directory.rstrip('/')}/")]
    return sorted((*others, *listed), key=lambda row: (row.t or 0.0, row.name))


def _is_valid(key: str) -> bool:
    """Return whether a store can open a key: others may create files with any name."""
    try:
        checked_key(key)
    except ConfigurationError:
        return False
    return not any(map(PARTIAL.fullmatch, key.split("/")))


def _row(
    store: Store, name: str, entries: list[Entry], document: FieldReader | None, *, is_diagnosed: bool
) -> SessionRow:
    files = tuple(
        SessionFile(trace_stem(entry.key), entry.bytes, store.url(entry.key))
        for entry in sorted(entries, key=lambda entry: entry.key)
    )
    own = _OF_ATTEMPT.fullmatch(name) if document is None else None
    stored = min((entry.modified.timestamp() for entry in entries), default=None)
    return SessionRow(
        name=name,
        kind="profile" if document is None else "capture",
        files=files,
        bytes=sum(file.bytes for file in files),
        t=stored,
        attempt=int(own[1]) if own else None,
        step=int(own[2]) if own and own[2] else None,
        object=None if document is None else _object(document.part("object")),
        targets=None if document is None else _targets(document),
        url=store.url(f"{PROFILE_DIR}/{name}"),
        skew_ms=None if document is None else document.number("skewMilliseconds"),
        is_diagnosed=is_diagnosed,
    )


def _document(store: Store, name: str) -> FieldReader:
    try:
        with store.open(f"{PROFILE_DIR}/{name}/{CAPTURE_RECORD}") as file:
            return FieldReader(json.load(file))
    except (ValueError, RecursionError, MLDiagnosticsError) as error:
        warn_once(
            "unreadable-capture", f"{store.url(f'{PROFILE_DIR}/{name}')}: its {CAPTURE_RECORD} cannot be read: {error}"
        )
        return FieldReader({})


def _object(fields: FieldReader) -> str | None:
    namespace, name = fields.text("namespace"), fields.text("name")
    return f"{namespace}/{name}" if namespace and name else None


def _targets(document: FieldReader) -> dict[str, int]:
    return dict(Counter(state for target in document.parts("targets") if (state := target.text("state"))))
