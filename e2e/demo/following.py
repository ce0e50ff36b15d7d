"""The MLRun of the demo's training job and its schedule, as kubectl shows them."""

from typing import Any

from demo.injecting import labelled_pod
from demo.kubectl import Kubectl, eventually

CONTROL_PLANE = "MLDIAG_CONTROL_PLANE_URL"
REPORTS_DEADLINE_S = 240
"""The kubelet's and the operator's intervals are 10 s; a busy machine needs several."""
GOODPUT_DEADLINE_S = 240
"""The operator accounts the time of a run at most every 30 s."""
AUTOMATIC_DEADLINE_S = 240
"""The slot comes a minute after the schedule; a capture and its diagnosis take ten seconds."""


def until_published(kubectl: Kubectl, namespace: str, *, deadline_s: float = REPORTS_DEADLINE_S) -> None:
    """Wait until new pods get the address of the control plane.

    Raises:
        ClusterError: they do not get it within the deadline.
    """

    def published() -> bool:
        containers = labelled_pod(kubectl, namespace)["spec"]["containers"]
        return any(each["name"] == CONTROL_PLANE for each in containers[0].get("env", ()))

    eventually(published, "a pod with the address of the control plane", deadline_s=deadline_s)


def until_reported(kubectl: Kubectl, namespace: str, run_id: str, hosts: int) -> str:
    """Wait until all hosts of a run report and train; return the name of its MLRun.

    Raises:
        ClusterError: they do not within the deadline.
    """
    summary = f"{hosts}/{hosts}"

    def reported() -> str | None:
        name, status = _run(kubectl, namespace, run_id)
        trains = status.get("progress", {}).get("stepTime")
        return name if trains and status.get("hosts", {}).get("summary") == summary else None

    return eventually(reported, f"reports of {hosts} hosts", deadline_s=REPORTS_DEADLINE_S)


def until_accounted(kubectl: Kubectl, namespace: str, run_id: str) -> None:
    """Wait until the MLRun of a run has its goodput.

    Raises:
        ClusterError: it does not have it within the deadline.
    """

    def accounted() -> bool:
        _, status = _run(kubectl, namespace, run_id)
        return bool(status.get("goodput", {}).get("summary"))

    eventually(accounted, "goodput of the run", deadline_s=GOODPUT_DEADLINE_S)


def story(kubectl: Kubectl, namespace: str, name: str) -> str:
    """Return the events of an MLRun, the oldest first."""
    return kubectl("events", f"--for=mlrun/{name}", f"--namespace={namespace}")


def until_captured(kubectl: Kubectl, namespace: str, schedule: str) -> None:
    """Wait until a schedule has made a capture, and its diagnosis has ended.

    Raises:
        ClusterError: It has not within the deadline.
    """
    where = f"--namespace={namespace}"

    def poll() -> bool:
        made = kubectl.get("mlds", schedule, where).get("status", {}).get("captures") or ()
        if not made or made[0]["state"] != "Finished":
            return False
        status = kubectl.get("mldc", made[0]["name"], where)["status"]
        return bool(status.get("diagnosis", {}).get("state") != "Pending")

    eventually(poll, f"the capture of schedule {schedule}", deadline_s=AUTOMATIC_DEADLINE_S)


def _run(kubectl: Kubectl, namespace: str, run_id: str) -> tuple[str, dict[str, Any]]:
    """Return name and status of the MLRun of a run; both are empty before it exists."""
    runs = kubectl.items("mlruns", f"--namespace={namespace}")
    mine = (run for run in runs if run.get("status", {}).get("runId") == run_id)
    return next(((run["metadata"]["name"], run["status"]) for run in mine), ("", {}))
