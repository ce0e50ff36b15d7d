"""The directory of a run in the storage that the operator may use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.runs.storage import run_root

if TYPE_CHECKING:
    from mldiagnostics_api.captures.policy import Policy


def root_of_run(policy: Policy, namespace: str, location: str | None) -> str:
    """Return the root that the operator uses for the files of a run.

    Empty without one that the namespace may use. Arguments as for `run_directory`.
    """
    try:
        root = run_root(location, namespace, policy)
    except ValueError:
        return ""
    return "" if root.medium is Medium.POD else str(root)


def run_directory(policy: Policy, namespace: str, run_id: str, location: str | None) -> Location | None:
    """Return the directory of a run; None if it is in a pod.

    Args:
        policy: The default storage, and the storage that each namespace may use.
        namespace: Namespace of the run.
        run_id: Id of the run.
        location: `spec.storageLocation`; None for the operator's default.

    Raises:
        ValueError: The location is invalid or not allowed.
    """
    root = run_root(location, namespace, policy)
    if root.medium is Medium.POD:
        return None
    return Location.parse(layout.run_directory(str(root), run_id=run_id, namespace="", workload=""))
