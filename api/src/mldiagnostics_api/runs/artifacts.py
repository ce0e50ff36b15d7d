"""Which files are deleted with a run, and when; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from mldiagnostics import layout

from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.names import ARTIFACTS_FINALIZER, MLRunPhase
from mldiagnostics_api.runs.storage import run_root

END_WAIT: Final = timedelta(seconds=60)
"""Time that a deleted run has to end: its workload may be deleted at the same time, as with their namespace."""
DELETION_LIMIT: Final = timedelta(minutes=10)
"""Time after the deletion of the object after which its files are given up: a namespace must not wait for a bucket."""
MAX_RECORD_BYTES: Final = 16 * 2**20
"""A larger record is not read, and names no run."""

_STATE: Final = f"{layout.REPORTED_DIR}/{layout.REPORTED_STATE}"
_CLUSTER: Final = f"{layout.REPORTED_DIR}/{layout.CLUSTER_RECORD}"


class ArtifactAction(StrEnum):
    """The next step towards the deletion of a run's files."""

    NONE = "None"
    HOLD = "Hold"
    """Add the finalizer."""
    RELEASE = "Release"
    """Remove the finalizer: the files are kept."""
    WAIT = "Wait"
    """Wait for the end of the run."""
    KEEP = "Keep"
    """Remove the finalizer and report that the files are kept: the run goes on."""
    GIVE_UP = "GiveUp"
    """Remove the finalizer and report that files are left."""
    DELETE = "Delete"
    """Delete the files, then remove the finalizer."""


def artifact_action(body: Mapping[str, Any], now: datetime) -> ArtifactAction:
    """Return the next step for an MLRun as the API returns it."""
    metadata = body["metadata"]
    retention = (body.get("spec") or {}).get("retention") or {}
    wanted, held = bool(retention.get("deleteArtifacts")), ARTIFACTS_FINALIZER in metadata.get("finalizers", ())
    deleted = optional_time(metadata.get("deletionTimestamp"))
    if not wanted:
        return ArtifactAction.RELEASE if held else ArtifactAction.NONE
    if deleted is None:
        return ArtifactAction.NONE if held else ArtifactAction.HOLD
    if not held:
        return ArtifactAction.NONE
    if now - deleted > DELETION_LIMIT:
        return ArtifactAction.GIVE_UP
    if (body.get("status") or {}).get("phase") != MLRunPhase.ACTIVE:
        return ArtifactAction.DELETE
    return ArtifactAction.WAIT if now - deleted < END_WAIT else ArtifactAction.KEEP


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A directory of a run's files, and the records in it that name the run."""

    location: Location
    records: tuple[str, ...]
    has_captures: bool = True
    """Whether captures are stored here; their records name the run too."""


def run_directories(
    run_id: str, namespace: str, storage_location: str | None, policy: Policy
) -> tuple[RunDirectory, ...]:
    """Return the directories that may hold files of a run.

    All are in storage that the namespace may use.

    Args:
        run_id: Id of the run.
        namespace: Namespace of the run.
        storage_location: `spec.storageLocation` of the run; None for the operator's default storage.
        policy: Limits of the administrator.

    Raises:
        ValueError: The location is invalid, not allowed, or in the pods.
    """
    default = policy.default_storage or Location(Medium.VOLUME, "")
    root = default if storage_location is None else run_root(storage_location, namespace, policy)
    if Medium.POD in (root.medium, default.medium):
        raise ValueError(f"storageLocation '{root}': is in the pods, which the operator cannot read; delete it there")
    roots = dict.fromkeys((root, default))
    directories = [RunDirectory(_below(each, run_id), (layout.RUN_RECORD, _STATE, _CLUSTER)) for each in roots]
    # The journal of a run that an account outside the cluster reports; the run's directory may be that of a workload.
    outside = default.child(layout.sanitize(namespace), layout.sanitize(run_id), layout.REPORTED_DIR)
    return (*directories, RunDirectory(outside, (layout.REPORTED_STATE,), has_captures=False))


def record_names_run(record: object, run_id: str, namespace: str, uid: str) -> bool:
    """Return whether run.json, or a record of the operator, is that of a run.

    Args:
        record: The parsed document.
        run_id: Id of the run.
        namespace: Namespace of the run.
        uid: Uid of its workload; empty if it is not known.
    """
    if not isinstance(record, Mapping) or (record.get("runId"), record.get("namespace")) != (run_id, namespace):
        return False
    other = _at(record, "identity", "workload", "uid")
    return not uid or not other or uid == other


def capture_names_run(record: object, run_id: str, namespace: str) -> bool:
    """Return whether a capture.json is of the run alone, from its namespace."""
    targets = _at(record, "targets")
    return (
        capture_is_of_namespace(record, namespace)
        and isinstance(targets, list)
        and bool(targets)
        and all(_at(target, "runId") == run_id for target in targets)
    )


def capture_is_of_namespace(record: object, namespace: str) -> bool:
    """Return whether a capture.json is of a capture and of pods in a namespace."""
    pod_namespace = _at(record, "requested", "triggerCapture", "podNamespace")
    return _at(record, "object", "namespace") == namespace and pod_namespace in (None, "", namespace)


def _at(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _below(root: Location, run_id: str) -> Location:
    return Location.parse(layout.run_directory(str(root), run_id=run_id, namespace="", workload=""))
