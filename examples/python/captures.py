"""Capture a workload and read its run with the official Kubernetes client, in the cluster or outside it.

pip install kubernetes
python captures.py trainer --namespace ml --kind JobSet --seconds 2
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION = "diagon.gke.io", "v1alpha1"
CAPTURES, RUNS = "mldiagnosticsconnections", "mlruns"
API_VERSIONS = {"JobSet": "jobset.x-k8s.io/v1alpha2", "RayJob": "ray.io/v1", "Job": "batch/v1"}


def connect() -> client.CustomObjectsApi:
    """Return a client with the rights of this pod, or of the current context of the kubeconfig."""
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()
    return client.CustomObjectsApi()


def create_capture(
    api: client.CustomObjectsApi, namespace: str, target: dict[str, Any], **trigger: Any
) -> dict[str, Any]:
    """Create a capture and return its object.

    Args:
        api: Client of the cluster.
        namespace: Namespace of the capture and its pods.
        target: `{"workloadRef": {…}}`, `{"runRef": {"name": …}}` or `{"selector": {"matchLabels": {…}}}`.
        trigger: Other fields of `spec.triggerCapture`, such as `durationSeconds=2`.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"generateName": "python-"},
        "spec": {"triggerCapture": {"target": target, **trigger}},
    }
    return api.create_namespaced_custom_object(GROUP, VERSION, namespace, CAPTURES, body)


def wait_for(api: client.CustomObjectsApi, capture: dict[str, Any], timeout_s: float = 300) -> dict[str, Any]:
    """Wait until the capture is complete and return its object.

    Raises:
        TimeoutError: The capture is not complete in time; the message has its progress.
        LookupError: The capture was deleted.
    """
    namespace, name = capture["metadata"]["namespace"], capture["metadata"]["name"]
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        # A watch starts with the object as it is, and ends when the API server wants: then it starts again.
        events = watch.Watch().stream(
            api.list_namespaced_custom_object,
            *(GROUP, VERSION, namespace, CAPTURES),
            field_selector=f"metadata.name={name}",
            timeout_seconds=max(1, min(60, int(left_s))),
        )
        for event in events:
            capture = event["object"]
            if event["type"] == "DELETED":
                raise LookupError(f"capture {namespace}/{name}: was deleted")
            if condition(capture, "Complete"):
                events.close()
                return capture
    raise TimeoutError(f"capture {namespace}/{name}: not complete after {timeout_s:g} s: {capture.get('status')}")


def condition(item: dict[str, Any], kind: str) -> bool:
    """Return whether a condition of an object is true."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def read_run(api: client.CustomObjectsApi, namespace: str, workload: str) -> dict[str, Any] | None:
    """Return the newest MLRun of a workload, or None."""
    listed = api.list_namespaced_custom_object(GROUP, VERSION, namespace, RUNS)
    runs = [run for run in listed["items"] if run["spec"].get("workloadRef", {}).get("name") == workload]
    return max(runs, key=lambda run: run["metadata"]["creationTimestamp"], default=None)


def main() -> None:
    """Capture the workload of the command line, and print the result and its run."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("workload", help="name of the workload")
    arguments.add_argument("--namespace", default="default")
    arguments.add_argument("--kind", default="JobSet", choices=API_VERSIONS)
    arguments.add_argument("--seconds", type=int, default=2, help="duration of the capture")
    given = arguments.parse_args()

    api = connect()
    workload = {"apiVersion": API_VERSIONS[given.kind], "kind": given.kind, "name": given.workload}
    capture = create_capture(api, given.namespace, {"workloadRef": workload}, durationSeconds=given.seconds)
    status = wait_for(api, capture)["status"]
    print(f"{status['phase']}: {status['message']}")
    for result in status.get("results", ()):
        print(f"{result['pod']}: {result['state']}, {result.get('bytes', 0)} bytes")
    print(f"xprof --logdir {status.get('captureResult', {}).get('outputLocation', '-')}")
    if run := read_run(api, given.namespace, given.workload):
        print(f"run {run['metadata']['name']}: {run.get('status', {}).get('phase', 'Pending')}")


if __name__ == "__main__":
    main()
