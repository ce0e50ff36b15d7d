"""A capture as its user sees it: follow the object until it is finished, then bring its files home."""

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
VOLUME_ROOT = "/var/lib/mldiagnostics"  # where the chart mounts it


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    """A condition of an object's status; empty if it has none of that type."""
    found = resource.get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def finished(capture: dict[str, Any]) -> bool:
    """Whether a capture has its verdict."""
    return condition(capture, "Complete").get("status") == "True"


def follow(kubectl: Kubectl, namespace: str, name: str, *, deadline_s: float) -> Iterator[dict[str, Any]]:
    """Give the object whenever its phase, progress or message has changed; the last one is finished.

    Raises:
        ClusterError: it did not finish within the deadline.
    """
    end, shown = time.monotonic() + deadline_s, None
    while True:
        capture = kubectl.get(RESOURCE, name, f"--namespace={namespace}")
        status = capture.get("status", {})
        news = (status.get("phase"), status.get("progress"), status.get("message"), finished(capture))
        if news != shown:
            shown = news
            yield capture
        if finished(capture):
            return
        if time.monotonic() > end:
            raise ClusterError(f"capture {namespace}/{name} is not finished after {deadline_s:.0f} s: {status}")
        time.sleep(0.3)


def until_finished(kubectl: Kubectl, namespace: str, name: str, *, deadline_s: float = 60) -> dict[str, Any]:
    """Wait for the verdict and return the object."""
    *_, last = follow(kubectl, namespace, name, deadline_s=deadline_s)
    return last


def until(
    kubectl: Kubectl, namespace: str, name: str, wanted: Callable[[dict[str, Any]], bool], *, deadline_s: float = 60
) -> dict[str, Any]:
    """Wait until the object is as wanted and return it.

    Raises:
        ClusterError: it finished, or the deadline came, before it was.
    """
    for capture in follow(kubectl, namespace, name, deadline_s=deadline_s):
        if wanted(capture):
            return capture
    raise ClusterError(f"capture {namespace}/{name} finished first: {capture['status']}")


def fetch(kubectl: Kubectl, capture: dict[str, Any], into: Path) -> Path:
    """Copy the session of a capture that lies in the operator's volume to a local log directory, which is returned.

    The operator's pod that made the capture is asked, since without a claim every pod has a volume of its own.
    """
    status = capture["status"]
    pod = status["holder"].partition("/")[0]
    inside = (f"--namespace={NAMESPACE}", pod, "--")
    location: str = status["captureResult"]["outputLocation"].removeprefix(VOLUME).strip("/")
    session = f"plugins/profile/{status['sessionId']}"
    archive = kubectl.binary_output("exec", *inside, "tar", "-C", f"{VOLUME_ROOT}/{location}", "-cf", "-", session)
    target = into / location
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(target, filter="data")
    return target
