"""Follow a capture until it is finished, and copy its files."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cluster.progress import ClusterError

from demo.command_line import mldiag
from demo.kubectl import Kubectl, eventually

RESOURCE = "mldiagnosticsconnections.diagon.gke.io"
VOLUME = "volume://"
VOLUME_ROOT = "/var/lib/mldiagnostics"  # mount path of the chart


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a condition of an object's status, or an empty dict."""
    conditions = resource.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def finished(capture: dict[str, Any]) -> bool:
    """Return whether a capture is finished."""
    return condition(capture, "Complete").get("status") == "True"


def is_recording(status: dict[str, Any]) -> bool:
    """Return whether the targets of a capture record: within a second of the start all calls have reached them."""
    start = status.get("plannedStartTime")
    if status.get("phase") != "Running" or start is None:
        return False
    return datetime.fromisoformat(start) + timedelta(seconds=1) < datetime.now(UTC)


def follow(kubectl: Kubectl, namespace: str, name: str, *, deadline_s: float) -> Iterator[dict[str, Any]]:
    """Yield the object at each change of phase, progress or message, until it is finished.

    Raises:
        ClusterError: the capture does not finish within the deadline.
    """
    end, shown = time.monotonic() + deadline_s, None
    while True:
        capture = kubectl.get(RESOURCE, name, f"--namespace={namespace}")
        status = capture.get("status", {})
        state = (status.get("phase"), status.get("progress"), status.get("message"), finished(capture))
        if state != shown:
            shown = state
            yield capture
        if finished(capture):
            return
        if time.monotonic() > end:
            raise ClusterError(f"capture {namespace}/{name} does not finish within {deadline_s:.0f} s: {status}")
        time.sleep(0.3)


def until_finished(kubectl: Kubectl, namespace: str, name: str, *, deadline_s: float = 60) -> dict[str, Any]:
    """Wait until the capture is finished and return the object."""
    *_, last = follow(kubectl, namespace, name, deadline_s=deadline_s)
    return last


def until_diagnosed(kubectl: Kubectl, namespace: str, name: str, *, deadline_s: float) -> dict[str, Any]:
    """Wait until a capture has a diagnosis, or none could be made; return the capture."""

    def poll() -> dict[str, Any] | None:
        item: dict[str, Any] = kubectl.get("mldc", name, f"--namespace={namespace}")
        return None if item["status"]["diagnosis"]["state"] == "Pending" else item

    diagnosed: dict[str, Any] = eventually(poll, f"the diagnosis of {name}", deadline_s=deadline_s)
    return diagnosed


def until(
    kubectl: Kubectl, namespace: str, name: str, wanted: Callable[[dict[str, Any]], bool], *, deadline_s: float = 60
) -> dict[str, Any]:
    """Wait until `wanted` accepts the object and return it.

    Raises:
        ClusterError: the capture finished or the deadline passed before.
    """
    for capture in follow(kubectl, namespace, name, deadline_s=deadline_s):
        if wanted(capture):
            return capture
    raise ClusterError(f"capture {namespace}/{name} finished before it reached the expected state: {capture['status']}")


def fetch(kubectl: Kubectl, capture: dict[str, Any], into: Path) -> Path:
    """Copy the session of a capture from the operator's volume; return the local log directory.

    Raises:
        ClusterError: it cannot be copied; the message is that of `mldiag`.
    """
    status = capture["status"]
    session = f"{status['captureResult']['outputLocation']}/{status['sessionId']}"
    where = f"--kubeconfig={kubectl.kubeconfig}"
    mldiag(["profiles", "download", session, "--to", str(into), where])
    return into
