"""Follow a capture until it is finished, and copy its files."""

import io
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cluster.progress import ClusterError

from demo.installation import NAMESPACE
from demo.kubectl import Kubectl

RESOURCE = "mldiagnosticsconnections.diagon.gke.io"
VOLUME = "volume://"
ARCHIVE = """
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    archive.add(sys.argv[1], sys.argv[2])
"""
VOLUME_ROOT = "/var/lib/mldiagnostics"  # mount path of the chart


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a condition of an object's status, or an empty dict."""
    conditions = resource.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


def finished(capture: dict[str, Any]) -> bool:
    """Return whether a capture is finished."""
    return condition(capture, "Complete").get("status") == "True"


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

    Read from the operator's pod that ran the capture: without a claim every pod has its own volume.
    """
    status = capture["status"]
    pod = status["holder"].partition("/")[0]
    inside = (f"--namespace={NAMESPACE}", pod, "--")
    location: str = status["captureResult"]["outputLocation"].removeprefix(VOLUME).strip("/")
    session = f"plugins/profile/{status['sessionId']}"
    # The image has Python, but neither a shell nor tar.
    program = ("python", "-c", ARCHIVE, f"{VOLUME_ROOT}/{location}/{session}", session)
    archive = kubectl.binary_output("exec", *inside, *program)
    target = into / location
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(target, filter="data")
    return target
