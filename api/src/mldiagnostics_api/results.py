"""The API for files on the operator's volume: paths, limits and owners; pure.

The API server authenticates the reader, checks the right in the namespace of the path, and passes the request on.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mldiagnostics import layout

from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.runs.artifacts import capture_is_of_namespace, record_names_run

RESULTS_GROUP: Final = "results.diagon.gke.io"
RESULTS_VERSION: Final = "v1alpha1"
FILES: Final = "files"
"""The resource: `list` lists the files of a directory, `get` of `files/content` reads a part of one."""
CONTENT: Final = "content"
API_SERVICE: Final = f"{RESULTS_VERSION}.{RESULTS_GROUP}"

PART_BYTES: Final = 1024 * 1024
"""Largest part of a file in one response: the API server gives each request 60 s."""
MAX_FILES: Final = 50_000
"""Files of a directory in one list, which has 100 bytes for each."""
SIZE_HEADER: Final = "Mldiag-File-Size"
VERSION_HEADER: Final = "Mldiag-File-Version"
"""Changes if another file takes the place of one that is read in parts; not if a file grows."""

RUN_RECORDS: Final = (
    layout.RUN_RECORD,
    f"{layout.REPORTED_DIR}/{layout.REPORTED_STATE}",
    f"{layout.REPORTED_DIR}/{layout.CLUSTER_RECORD}",
)
"""Records in the directory of a run that name its namespace."""
MAX_RECORD_BYTES: Final = 1024 * 1024
"""So much of a record is read: tenants may write it, and a hostile document takes many times its size in memory."""
_PROFILES: Final = tuple(layout.PROFILE_DIR.split("/"))
_STATE: Final = re.compile(
    rb'\{\s*"v":\s*\d+,\s*"mark":\s*"[^"\\]*",\s*"namespace":\s*"([a-z0-9-]+)",\s*"runId":\s*"([a-zA-Z0-9._-]+)"'
)
"""The first keys of the state of a journal, in the order in which they are written."""


def readable_directory(text: str) -> Location:
    """Return a directory of the operator's volume that a reader asks for.

    Raises:
        ValueError: It is not one.
    """
    location = Location.parse(text)
    if location.medium is not Medium.VOLUME or not location.segments:
        raise ValueError(f"'{text}' is not a directory of the operator's volume; use volume:///<directory>")
    return location


def readable_file(text: str) -> tuple[str, ...]:
    """Return the segments of a file's path below a directory.

    Raises:
        ValueError: The path leads elsewhere.
    """
    segments = tuple(text.split("/"))
    if any(segment in {"", ".", ".."} or "\0" in segment for segment in segments):
        raise ValueError(f"file: {text[:200]!r} is not a path below the directory; use a name of the list")
    return segments


def session_of(directory: Location) -> bool:
    """Return whether a directory is that of a session, of a capture or a program."""
    return len(directory.segments) > len(_PROFILES) and directory.segments[-3:-1] == _PROFILES


def run_directory_of(directory: Location) -> Location | None:
    """Return the directory of the run that has a session, or the directory itself."""
    segments = directory.segments[:-3] if session_of(directory) else directory.segments
    return Location(directory.medium, "", segments) if segments else None


def parsed_record(key: str, content: bytes) -> object:
    """Return a record, or as much of it as names its namespace; None if it names none.

    Args:
        key: Its path in the directory of the run or session.
        content: Its first `MAX_RECORD_BYTES`.
    """
    if key.endswith(layout.REPORTED_STATE):
        begins = _STATE.match(content)
        return begins and {"namespace": begins[1].decode(), "runId": begins[2].decode()}
    if len(content) >= MAX_RECORD_BYTES and key == layout.CAPTURE_RECORD:  # thousands of targets, which come last
        content = content[: content.find(b'"targets"')].rstrip().removesuffix(b",") + b"}"
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def session_is_of_namespace(capture_record: object, namespace: str) -> bool:
    """Return whether a session is of a capture in this namespace, of pods in it."""
    return capture_is_of_namespace(capture_record, namespace)


def run_is_of_namespace(directory: Location, records: Sequence[object], namespace: str) -> bool:
    """Return whether the records of a directory name its run, in this namespace.

    Args:
        directory: The directory of a run, whose last part is the run id.
        records: Those of `RUN_RECORDS` that exist.
        namespace: The namespace of the reader's right.
    """
    ids = {record.get("runId") for record in records if isinstance(record, Mapping)}
    run_id = str(next(iter(ids), ""))
    return (
        len(ids) == 1
        and layout.sanitize(run_id) == directory.segments[-1]
        and all(record_names_run(record, run_id, namespace, "") for record in records)
    )


def discovery() -> dict[str, Any]:
    """Return the resources of the group, as the API server asks for them."""
    resource = {"name": FILES, "singularName": "file", "namespaced": True, "kind": "FileList", "verbs": ["get", "list"]}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{RESULTS_GROUP}/{RESULTS_VERSION}",
        "resources": [resource],
    }
