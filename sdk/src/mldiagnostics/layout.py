"""The names of files and directories, all of them: what XProf expects, and what keeps captures apart.

A log directory holds `plugins/profile/<session>/<stem>.xplane.pb` and `capture.json` beside them. Names that go in
unchanged come out unchanged; a name that has to be altered carries a hash of the original, so that two names never
become one silently.
"""

from __future__ import annotations

import re

from mldiagnostics.errors import ConfigurationError

PROFILE_DIR = "plugins/profile"
"""Where XProf and TensorBoard look for sessions, below any log directory."""

TRACE_SUFFIX = ".xplane.pb"
CAPTURE_RECORD = "capture.json"
RUN_RECORD = "run.json"
RECORDS_DIR = "records"
"""Where a run's records are, below the run's directory."""

MAX_NAME_BYTES = 200
"""Longest session or stem: with a suffix it stays below the 255 bytes of common file systems."""

_MAX_SESSION_BYTES = 190  # leaves room for the number of a retry
_CLEAN = re.compile(r"[A-Za-z0-9._-]+")
_POD_LIKE = re.compile(r"[A-Za-z0-9.-]+")  # what Kubernetes allows in a pod's name, and IPv4 addresses
_SEGMENT = re.compile(r"records/a\d+-r\d+-[A-Za-z0-9]+-\d{5,}\.jsonl")
_TRACE = re.compile(r"(?:.*/)?plugins/profile/[^/]+/[^/]+\.xplane\.pb", re.DOTALL)


def sanitize(text: str, *, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a file name of `[A-Za-z0-9._-]` for `text`: never empty, `.` or `..`, at most `max_bytes` long.

    A text that is such a name already stays as it is; any other gets `-<16 hex of its SHA-256>` at its end.
    """
    if _CLEAN.fullmatch(text) and text not in {".", ".."} and len(text) <= max_bytes:
        return text
    return _hashed(text, text, joint="-", max_bytes=max_bytes)


def file_stem(pod: str, local_rank: int | None = None) -> str:
    """Return the name by which XProf lists a host: `<pod>`, or `<pod>_<local rank>` with several ranks in a pod.

    At most 200 bytes; a longer or odd name is cut and ends in `_x<16 hex>`, which no name of a pod can.
    """
    stem = pod if local_rank is None else f"{pod}_{local_rank}"
    if _POD_LIKE.fullmatch(pod) and pod not in {".", ".."} and len(stem) <= MAX_NAME_BYTES:
        return stem
    return _hashed(stem, f"{pod}\0{local_rank}", joint="_x", max_bytes=MAX_NAME_BYTES)


def session_id(*, name: str, uid: str, requested: str | None = None) -> str:
    """Return the session of a capture: the one asked for, else the object's name and the start of its uid."""
    return sanitize(requested or f"{name}-{uid[:8]}", max_bytes=_MAX_SESSION_BYTES)


def retry_session(session: str, attempt: int) -> str:
    """Return the session of a later attempt, `<session>-<attempt>`; the first attempt (1) is the session itself.

    No other object's own session has this form. Someone may still ask for such an id by hand: the capture record of
    the session, written before anything else, says whose it is.
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


def is_trace(key: str) -> bool:
    """Tell whether a key is a host's trace of some session, and not one of the caches that XProf puts beside it."""
    return _TRACE.fullmatch(key) is not None


def record_segment_key(*, attempt: int, rank: int, incarnation: str, number: int) -> str:
    """Return the key of one file of records, below the run's directory; `number` counts a process's files from 1."""
    return f"{RECORDS_DIR}/a{attempt}-r{rank}-{incarnation}-{number:05}.jsonl"


def is_record_segment(key: str) -> bool:
    """Tell whether a key below a run's directory is a file of records."""
    return _SEGMENT.fullmatch(key) is not None


def run_directory(root: str, *, run_id: str | None, namespace: str, workload: str) -> str:
    """Return the log directory below a default root: `<root>/<run id>`, without a run `<root>/<namespace>/<workload>`.

    `workload` is the name of the workload, or of the pod where there is none; `root` is a path or a URL.
    """
    inner = sanitize(run_id) if run_id else f"{sanitize(namespace)}/{sanitize(workload)}"
    return f"{root}{inner}" if root.endswith("/") else f"{root}/{inner}"


def _hashed(text: str, original: str, *, joint: str, max_bytes: int) -> str:
    """Return `text` reduced to the alphabet and cut, ending in `joint` and a hash of `original`."""
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that most processes never need

    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    tail = f"{joint}{digest}"
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", text)[: max_bytes - len(tail)]
    return f"{readable}{tail}"
