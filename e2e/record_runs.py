"""Record the lives of workloads and pods from real controllers: `python record_runs.py FOLDER`.

Writes each workload with all states that its controller gave it, pods as they ended, and the events of refused pods.
Needs a cluster of which nobody else uses priority classes and extended resources of these names.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import injection_workloads as make
from cluster import addons
from cluster.progress import ClusterError, echo, step
from cluster.providers import provider
from cluster.tools import tool
from demo.kubectl import Kubectl, eventually

Object = dict[str, Any]
Versions = dict[str, list[Object]]

NAMESPACE = "e2e-recorded-runs"
HERE = f"--namespace={NAMESPACE}"
DEADLINE_S = 420
REFUSED, URGENT = "e2e-refused", "e2e-urgent"
SLOT = "e2e.mldiagnostics.dev/slot"
FAILS = make.pod_spec(command=["sh", "-c", "sleep 2; exit 3"])
ENDS = make.pod_spec(command=["sh", "-c", "sleep 2"])
FILLS_MEMORY = make.pod_spec(
    command=[make.PYTHON, "-c", "x = [bytes(range(256)) * 4096 for _ in range(400)]; input()"],
    resources={"requests": {"memory": "16Mi"}, "limits": {"memory": "64Mi"}},
)
KINDS = {
    "jobset": "jobsets",
    "job": "jobs",
    "leaderworkerset": "leaderworkersets",
    "rayjob": "rayjobs",
    "pod": "pods",
    "event": "events",
}
DISTURBED = ("evicted", "exceeds", "preempted", "restarts", "retries")
"""Workloads whose pods end by a disturbance or a failure."""
WORKLOADS = ("jobset", "job", "leaderworkerset", "rayjob")


def main(folder: Path) -> None:
    """Record everything into the folder."""
    chosen = provider()
    chosen.up()
    kubectl = Kubectl(tool("kubectl"), chosen.kubeconfig)
    make.load_peers_image(chosen)
    for name in ("jobset", "lws", "kuberay"):
        addons.install(name, chosen)
    for name in (REFUSED, URGENT):
        kubectl.apply(_priority_class(name))
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    try:
        kubectl.apply(_placed(_quota()))
        with _recording(kubectl) as recorded, step("Recording the lives of workloads", about_s=300):
            _live(kubectl)
        folder.mkdir(parents=True, exist_ok=True)
        for title, versions in _selected(recorded):
            text = "".join(f"{json.dumps(each, sort_keys=True)}\n" for each in versions)
            (folder / f"{title}.jsonl").write_text(text)
    finally:
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        kubectl("delete", "priorityclass", REFUSED, URGENT)
        _set_slots(kubectl, None)


def _live(kubectl: Kubectl) -> None:
    """Make the workloads, and disturb them."""
    refused = make.pod_spec() | {"priorityClassName": REFUSED}
    kubectl.apply(_placed(_retried_ray_job()))
    kubectl.apply(_placed(make.jobset("completes", pod=ENDS, hosts=2)))
    kubectl.apply(_placed(make.jobset("restarts", pod=FAILS, hosts=1)))
    kubectl.apply(_placed(make.jobset("refused", pod=refused, hosts=1)))
    kubectl.apply(_placed(_job("retries", FAILS, limit=1)))
    kubectl.apply(_placed(_job("exceeds", FILLS_MEMORY, limit=0)))
    kubectl.apply(_placed(_job("evicted", make.pod_spec(), limit=1)))
    kubectl.apply(_placed(make.leader_worker_set("serves")))
    suspended = make.jobset("suspended", hosts=1)
    kubectl.apply(_placed(suspended | {"spec": suspended["spec"] | {"suspend": True}}))
    _preempt(kubectl)
    _until(kubectl, "jobset", "completes", "Completed")
    for kind, name in (("jobset", "restarts"), ("job", "retries"), ("job", "exceeds")):
        _until(kubectl, kind, name, "Failed")
    kubectl("wait", "leaderworkerset", "serves", HERE, "--for=condition=Available", *_deadline(), timeout_s=DEADLINE_S)
    (pod,) = _pods(kubectl, "evicted")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body))
    for value in ("false", "true"):
        kubectl("patch", "jobset", "suspended", HERE, "--type=merge", f'--patch={{"spec": {{"suspend": {value}}}}}')
        ready = "1" if value == "false" else "0"
        path = "{.status.replicatedJobsStatus[0].ready}"
        kubectl(
            "wait", "jobset", "suspended", HERE, f"--for=jsonpath={path}={ready}", *_deadline(), timeout_s=DEADLINE_S
        )
    failed = "--for=jsonpath={.status.jobDeploymentStatus}=Failed"
    try:
        kubectl("wait", "rayjob", "retries", HERE, failed, *_deadline(), timeout_s=DEADLINE_S)
    except ClusterError as error:  # two Ray clusters, one after the other, need minutes each on a busy machine
        echo(f"The RayJob is recorded without its end: {error}")


def _preempt(kubectl: Kubectl) -> None:
    """Give the only slot of the node to a pod that is more urgent than the one that has it."""
    _set_slots(kubectl, "1")
    slot = {"requests": {SLOT: "1"}, "limits": {SLOT: "1"}}
    kubectl.apply(_placed(_job("preempted", make.pod_spec(resources=slot), limit=1)))
    eventually(lambda: bool(_pods(kubectl, "preempted")), "the first pod runs", deadline_s=DEADLINE_S)
    urgent = make.pod_spec(resources=slot) | {"priorityClassName": URGENT}
    kubectl.apply(_placed(_job("urgent", urgent, limit=0)))


def _set_slots(kubectl: Kubectl, count: str | None) -> None:
    """Set the number of slots of the first node; None removes them."""
    (node,) = kubectl.items("nodes", "--field-selector=spec.unschedulable!=true")[:1]
    patch = json.dumps({"status": {"capacity": {SLOT: count}, "allocatable": {SLOT: count}}})
    kubectl("patch", "node", node["metadata"]["name"], "--subresource=status", "--type=merge", f"--patch={patch}")


def _pods(kubectl: Kubectl, job: str) -> list[str]:
    """Return the running pods of a Job, once there are some."""

    def running() -> list[str]:
        pods = kubectl.items("pods", HERE, f"--selector=batch.kubernetes.io/job-name={job}")
        return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]

    eventually(lambda: bool(running()), f"the pod of {job} runs", deadline_s=DEADLINE_S)
    return running()


def _until(kubectl: Kubectl, kind: str, name: str, condition: str) -> None:
    kubectl("wait", kind, name, HERE, f"--for=condition={condition}", *_deadline(), timeout_s=DEADLINE_S)


def _deadline() -> tuple[str]:
    return (f"--timeout={DEADLINE_S - 10}s",)


def _job(name: str, pod: Object, *, limit: int) -> Object:
    job = make.job(name)
    job["spec"] = {"backoffLimit": limit, "template": {"spec": pod}}
    return job


def _retried_ray_job() -> Object:
    """Return a RayJob that fails in two clusters, one after the other."""
    job = make.ray_job("retries")
    job["spec"] |= {"entrypoint": "sh -c 'exit 3'", "backoffLimit": 1, "shutdownAfterJobFinishes": True}
    return job


def _priority_class(name: str) -> Object:
    value = 1000 if name == URGENT else 0
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return kind | {"metadata": {"name": name}, "value": value}


def _quota() -> Object:
    scope = {"operator": "In", "scopeName": "PriorityClass", "values": [REFUSED]}
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [scope]}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": spec}


def _placed(manifest: Object) -> Object:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": NAMESPACE}}


@contextmanager
def _recording(kubectl: Kubectl) -> Iterator[dict[str, Versions]]:
    """Record all versions of all objects while the block runs, by kind and name."""
    recorded: dict[str, Versions] = {kind: {} for kind in KINDS}
    processes = []
    for kind, plural in KINDS.items():
        command = [str(kubectl.binary), f"--kubeconfig={kubectl.kubeconfig}", "get", plural, HERE, "--watch", "-ojson"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=_record, args=(process, recorded[kind]), daemon=True).start()
        processes.append(process)
    try:
        yield recorded
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def _record(process: subprocess.Popen[str], versions: Versions) -> None:
    """Keep the objects that a watch prints."""
    assert process.stdout
    decoder, text = json.JSONDecoder(), ""
    for line in process.stdout:
        text += line
        if line.rstrip() != "}":
            continue
        with suppress(json.JSONDecodeError):
            item, _ = decoder.raw_decode(text)
            text = ""
            versions.setdefault(item["metadata"]["name"], []).append(item)


def _selected(recorded: dict[str, Versions]) -> Iterator[tuple[str, list[Object]]]:
    """Yield title and versions of each recording."""
    for kind in WORKLOADS:
        for name, versions in recorded[kind].items():
            if not versions[0]["metadata"].get("ownerReferences"):
                yield f"{kind}-{name}", [_trimmed(each) for each in _changes(versions)]
    for job in DISTURBED:
        names = [name for name in sorted(recorded["pod"]) if name.startswith(f"{job}-") and "-head-" not in name]
        yield f"pods-{job}", [_trimmed(recorded["pod"][name][-1]) for name in names]
    refused = [
        each
        for versions in recorded["event"].values()
        for each in versions[-1:]
        if each["type"] == "Warning" and "exceeded quota" in each.get("message", "")
    ]
    if not refused:
        raise ClusterError("no pod was refused: the ResourceQuota had no effect")
    yield "events-refused", [_trimmed(each) for each in refused[:4]]


def _changes(versions: list[Object]) -> list[Object]:
    """Return the versions whose spec or status differs from the one before."""
    changed: list[Object] = []
    for each in versions:
        parts = (each["spec"], each.get("status"))
        if not changed or parts != (changed[-1]["spec"], changed[-1].get("status")):
            changed.append(each)
    return changed


def _trimmed(item: Object) -> Object:
    dropped = {"managedFields", "annotations"}
    metadata = {key: value for key, value in item["metadata"].items() if key not in dropped}
    return item | {"metadata": metadata}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
