"""Check of the SDK in a container: version, extras of sinks, and storage."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError
from mldiagnostics_kube.client.pod_exec import PodContainer, run_in_container

from mldiagnostics_cli.doctor import container_probe
from mldiagnostics_cli.doctor.finding import broken, fine, unknown

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.doctor.finding import DoctorFinding

    Object = dict[str, Any]


PROBE_S = 60.0
"""A bucket may not respond, and Python starts slowly in a container with little CPU."""

INJECTED = "MLDIAG_RUN_ID"
_SDK, _STORAGE = "sdk of the pod", "storage of the pod"


async def check_pod_sdk(cluster: Cluster, pod: Object) -> list[DoctorFinding]:
    """Run a program in the pod that tries its sinks and its storage.

    Raises `ClusterError`.
    """
    view = PodView.of(pod)
    if view.phase != "Running" or not view.live:
        return [unknown(_SDK, f"the pod is {view.phase}, so nothing can be tried in it")]
    container, out = _container(pod), bytearray()
    program = ["python3", "-c", inspect.getsource(container_probe), container_probe.AS_PROGRAM]
    try:
        async with asyncio.timeout(PROBE_S):
            await run_in_container(
                cluster.client, PodContainer(view.namespace, view.name, container), program, out.extend
            )
    except TimeoutError:
        message = f"container '{container}': its sinks and storage did not respond in {PROBE_S:g} s"
        return [unknown(_SDK, message, "check the network of the pod")]
    except ClusterError as error:
        if error.status in NOT_PERMITTED:
            message = f"nothing could be tried in container '{container}': {error.detail or error}"
            return [unknown(_SDK, message, "ask the administrator for the right to create pods/exec")]
        return [unknown(_SDK, f"container '{container}': {' '.join(str(error).split())[:200]}")]
    return sdk_findings(container, _report(out.decode(errors="replace")))


def sdk_findings(container: str, report: Object) -> list[DoctorFinding]:
    """Return the verdicts about the report of a container; pure."""
    python, version, problems = report.get("python"), report.get("sdk"), report.get("problems") or ()
    if not version:
        message = f"container '{container}': {python} has no SDK of mldiagnostics: {'; '.join(problems)}"
        return [unknown(_SDK, message, "install mldiagnostics in the image, if its program reports runs")]
    findings = [broken(_SDK, *_parts(problem)) for problem in problems]
    findings = findings or [
        fine(_SDK, f"container '{container}': {python} has mldiagnostics {version}, with the extras of its sinks")
    ]
    storage, problem = report.get("storage"), report.get("storageProblem")
    if not storage:
        message = (
            f"container '{container}': has no MLDIAG_STORAGE; files of its run end with the pod, unless it sets one"
        )
        return [*findings, unknown(_STORAGE, message, "set storageLocation of the run, or the chart's value storage")]
    if problem:
        return [*findings, broken(_STORAGE, *_parts(problem))]
    return [*findings, fine(_STORAGE, f"{storage}: a file was written and deleted")]


def _container(pod: Object) -> str:
    """Return the container that has the variables of a run, else the first one."""
    containers: list[Object] = pod["spec"]["containers"]
    injected = [each for each in containers if any(entry["name"] == INJECTED for entry in each.get("env") or ())]
    return str((injected or containers)[0]["name"])


def _report(out: str) -> Object:
    """Parse the last line of the program, as imports may print others."""
    try:
        report = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        report = None
    if not isinstance(report, dict):
        raise ConfigurationError(f"python3 in the pod: printed no report but {out[-100:]!r}; run it with kubectl exec")
    return report


def _parts(problem: str) -> tuple[str, str]:
    """Return message and remedy of an error of the SDK."""
    message, _, remedy = problem.rpartition("; ")
    if message:
        return message, remedy
    before, _, after = problem.partition(": ")  # "sink needs the extra 'x': pip install …"
    return (before, after) if after else (problem, "see the log of the program")
