"""Names of files and directories: those that XProf expects, and unique ones.

A log directory holds `plugins/profile/<session>/<stem>.xplane.pb`, and `capture.json`, `<stem>.summary.json` and
`diagnosis.json` beside them. Names that go in
unchanged come out unchanged; a name that has to be altered carries a hash of the original, so that two names never
become one silently.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mldiagnostics.errors import ConfigurationError

PROFILE_DIR = "plugins/profile"
"""XProf and TensorBoard look for sessions here, below any log directory."""

TRACE_SUFFIX = ".xplane.pb"
CAPTURE_RECORD = "capture.json"
SUMMARY_SUFFIX = ".summary.json"
"""The summary of a host's trace, beside it."""
DIAGNOSIS_RECORD = "diagnosis.json"
"""The findings of a session, beside its traces."""
RUN_RECORD = "run.json"
EDITS_DIR = "edits"
"""Directory of the names, tags and notes that people gave runs, below the root of the runs."""
RECORDS_DIR = "records"
"""Directory of a run's records, below the run's directory."""
REPORTED_DIR = "reported"
"""Directory of the control plane's journal of a run, below the run's directory; it has records of its own."""
REPORTED_STATE = "state.json"
"""The newest reports of a run, in its journal."""
CLUSTER_RECORD = "cluster.json"
"""Start-up and causes of a run as the cluster shows them, beside the journal."""

MAX_NAME_BYTES = 200
"""Longest session or stem: with a suffix it stays below the 255 bytes of common file systems."""

MAX_SESSION_BYTES = 190  # leaves room for the number of a retry
_CLEAN = re.compile(r"[A-Za-z0-9._-]+")
_POD_LIKE = re.compile(r"[A-Za-z0-9.-]+")  # names of pods as Kubernetes allows them, and IPv4 addresses
_SEGMENT = re.compile(r"records/a(\d{1,18})-r(\d{1,18})-([A-Za-z0-9]+)-(\d{5,18})\.jsonl", re.ASCII)
_TRACE = re.compile(r"(?:.*/)?plugins/profile/[^/]+/[^/]+\.xplane\.pb", re.DOTALL)


class RecordSegment(NamedTuple):
    """The name of one file of records; sorts by process, then by number."""

    attempt: int
    rank: int
    incarnation: str
    """8 hex digits that no other process of the run has."""
    number: int
    """Counts the files of a process from 1."""


def sanitize(text: str, *, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a file name of `[A-Za-z0-9._-]` for `text`, at most `max_bytes` long.

    It is never empty, `.` or `..`. A text that is such a name already stays as it is; any other gets
    `-<16 hex of its SHA-256>` at its end.
    """
    if _CLEAN.fullmatch(text) and text not in {".", ".."} and len(text) <= max_bytes:
        return text
    return _hashed(text, text, joint="-", max_bytes=max_bytes)


def file_stem(pod: str, local_rank: int | None = None) -> str:
    """Return the name by which XProf lists a host.

    `<pod>`, or `<pod>_<local rank>` with several ranks in a pod. At most 200 bytes; a longer or odd name is cut and
    ends in `_x<16 hex>`, which no name of a pod can.
    """
    stem = pod if local_rank is None else f"{pod}_{local_rank}"
    if _POD_LIKE.fullmatch(pod) and pod not in {".", ".."} and len(stem) <= MAX_NAME_BYTES:
        return stem
    return _hashed(stem, f"{pod}\0{local_rank}", joint="_x", max_bytes=MAX_NAME_BYTES)


def session_id(*, name: str, uid: str, requested: str | None = None) -> str:
    """Return the session of a capture, as requested or named after its object.

    The name of the object is followed by the start of its uid.
    """
    return sanitize(requested or f"{name}-{uid[:8]}", max_bytes=MAX_SESSION_BYTES)


def retry_session(session: str, attempt: int) -> str:
    """Return the session of a later attempt, `<session>-<attempt>`.

    The first attempt (1) has the session itself. No other object's own session has this form. Someone may still ask for
    such an id by hand: the capture record of the session, written before anything else, says whose it is.
    """
    if attempt < 1:
        raise ConfigurationError(f"attempt {attempt} of session {session!r}: attempts count from 1")
    return session if attempt == 1 else f"{session}-{attempt}"


def session_prefix(session: str) -> str:
    """Return the directory of a session, as a key below the log directory."""
    return f"{PROFILE_DIR}/{sanitize(session)}"


def trace_key(session: str, stem: str) -> str:
    """Return the key of one host's trace."""
    return f"{session_prefix(session)}/{sanitize(stem)}{TRACE_SUFFIX}"


def capture_record_key(session: str) -> str:
    """Return the key of the session's `capture.json`."""
    return f"{session_prefix(session)}/{CAPTURE_RECORD}"


def summary_key(session: str, stem: str) -> str:
    """Return the key of the summary of one host's trace."""
    return f"{session_prefix(session)}/{sanitize(stem)}{SUMMARY_SUFFIX}"


def diagnosis_key(session: str) -> str:
    """Return the key of the session's `diagnosis.json`."""
    return f"{session_prefix(session)}/{DIAGNOSIS_RECORD}"


def edits_key(folder: str) -> str:
    """Return the key of the words that people gave a run, below the root.

    `folder` is the directory of the run.
    """
    return f"{EDITS_DIR}/{folder}.json"


def is_trace(key: str) -> bool:
    """Return whether a key is a host's trace of a session.

    The caches that XProf puts beside the traces are not.
    """
    return _TRACE.fullmatch(key) is not None


def trace_stem(file: str) -> str:
    """Return the host of a trace, by the path, key or URL of its file.

    >>> trace_stem("plugins/profile/a0-s100/trainer-0.xplane.pb")
    'trainer-0'
    """
    return file.rpartition("/")[2].removesuffix(TRACE_SUFFIX)


def session_of(key: str) -> str | None:
    """Return the session of a trace below its log directory; None for other keys.

    >>> session_of("plugins/profile/a0-s100/trainer-0.xplane.pb")
    'a0-s100'
    """
    prefix, name, rest = key.partition(f"{PROFILE_DIR}/")
    return rest.partition("/")[0] if name and not prefix and is_trace(key) else None


def xprof_page(session: str) -> str:
    """Return the page of a session below the address of XProf.

    >>> xprof_page("20261121-100000-ab12")
    'data/plugin/profile/overview_page?run=20261121-100000-ab12&tag=overview_page'
    """
    from urllib.parse import urlencode  # noqa: PLC0415 - training processes never need it

    return f"data/plugin/profile/overview_page?{urlencode({'run': session, 'tag': 'overview_page'})}"


def record_segment_key(*, attempt: int, rank: int, incarnation: str, number: int) -> str:
    """Return the key of one file of records, below the run's directory.

    `number` counts the files of a process from 1.
    """
    return f"{RECORDS_DIR}/a{attempt}-r{rank}-{incarnation}-{number:05}.jsonl"


def exit_status_key(incarnation: str) -> str:
    """Return the key of the exit status of a process, below the run's directory."""
    return f"{RECORDS_DIR}/{sanitize(incarnation)}.exit"


def record_segment(key: str) -> RecordSegment | None:
    """Parse the key of a file of records; None for any other key.

    >>> record_segment("records/a0-r3-0eab71e5-00001.jsonl")
    RecordSegment(attempt=0, rank=3, incarnation='0eab71e5', number=1)
    """
    match = _SEGMENT.fullmatch(key)
    return None if match is None else RecordSegment(int(match[1]), int(match[2]), match[3], int(match[4]))


def run_directory(root: str, *, run_id: str | None, namespace: str, workload: str) -> str:
    """Return the log directory of a run, or of a workload without one, below a root.

    It is `<root>/<run id>`, without a run `<root>/<namespace>/<workload>`. `workload` is the name of the workload, or
    of the pod where there is none; `root` is a path or a URL.
    """
    inner = sanitize(run_id) if run_id else f"{sanitize(namespace)}/{sanitize(workload)}"
    return f"{root}{inner}" if root.endswith("/") else f"{root}/{inner}"


def _hashed(text: str, original: str, *, joint: str, max_bytes: int) -> str:
    """Return `text` cut to the alphabet, with `joint` and a hash of `original`."""
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that most processes never need

    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    tail = f"{joint}{digest}"
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", text)[: max_bytes - len(tail)]
    return f"{readable}{tail}"
