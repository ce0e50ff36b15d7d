"""Small workloads of every kind whose controller runs on the test cluster: pods that wait, and a real Ray cluster."""

from collections.abc import Mapping
from typing import Any

from cluster import images
from cluster.paths import E2E
from cluster.provider import Provider

PEERS_IMAGE = "localhost/mldiagnostics/peers-test:1"
PYTHON = "/opt/peers/bin/python"
RUN_ID = "/opt/peers/run_id.py"
"""Prints what Google's SDK computes."""
RAY_VERSION = "2.60.0"
WAIT = "trap 'exit 0' TERM; sleep infinity & wait"
ENV = [{"name": "OWN", "value": "kept"}]
TASK = "import os, ray; ray.init(); print('in a task:', ray.get(ray.remote(lambda: os.environ.get(NAME)).remote()))"

Manifest = dict[str, Any]
Labels = Mapping[str, str]


def load_peers_image(provider: Provider) -> None:
    """Build the image that has Ray and Google's SDK, and load it; an unchanged one is left as it is."""
    folder = E2E / "peers"
    images.load(images.build(folder / "Dockerfile", folder, PEERS_IMAGE), provider)


def pod_spec(name: str = "main", *, restart: str = "Never", **container: Any) -> Manifest:
    """A pod with one container that waits until it is told to end, unless `container` says otherwise."""
    waiting = {
        "name": name,
        "image": PEERS_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", WAIT],
        "env": ENV,
        "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}},
    }
    return {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": False,
        "containers": [waiting | container],
    }


def pod_on_gke() -> Manifest:
    """A pod whose node looks like one of GKE: a sidecar is the metadata server."""
    spec = pod_spec()
    (main,) = spec["containers"]
    setup = {"name": "setup", "command": ["true"]}
    server = {"name": "metadata", "command": [PYTHON, "/opt/peers/metadata_server.py", "80", "on-gke"]}
    return spec | {
        "initContainers": [main | setup, main | server | {"restartPolicy": "Always"}],
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["metadata.google.internal"]}],
        "securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]},
    }


def pod_that_fails_once() -> Manifest:
    """A pod that ends with an error in the first attempt of its run, and waits in the others."""
    return pod_spec(command=["sh", "-c", f'[ "$MLDIAG_ATTEMPT" != 0 ] || exit 1; {WAIT}'])


def annotated(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    return manifest | {"metadata": manifest["metadata"] | {"annotations": dict(annotations)}}


def jobset(name: str, *, labels: Labels | None = None, pod: Manifest | None = None, hosts: int = 2) -> Manifest:
    """One Job, its pods indexed as the hosts of a training are; it may be restarted once."""
    job = {"parallelism": hosts, "completions": hosts, "completionMode": "Indexed", "backoffLimit": 0}
    workers = {"name": "workers", "replicas": 1, "template": {"spec": job | {"template": {"spec": pod or pod_spec()}}}}
    spec = {"replicatedJobs": [workers], "failurePolicy": {"maxRestarts": 1}}
    return _workload("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec, labels)


def job(name: str, *, labels: Labels | None = None) -> Manifest:
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {"spec": pod_spec()}}
    return _workload("batch/v1", "Job", name, spec, labels)


def cron_job(name: str, *, labels: Labels | None = None) -> Manifest:
    """A CronJob that starts a Job, which has the labels too, at the next full minute, and no other while that runs."""
    template = {"metadata": {"labels": dict(labels or {})}, "spec": {"template": {"spec": pod_spec()}}}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    return _workload("batch/v1", "CronJob", name, spec, labels)


def leader_worker_set(name: str, *, labels: Labels | None = None) -> Manifest:
    """One group: a leader and a worker."""
    template = {"spec": pod_spec(restart="Always")}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    return _workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, spec, labels)


def ray_job(name: str, *, labels: Labels | None = None, variable: str = "OWN") -> Manifest:
    """A head, a worker and a submitter, whose job prints what a Ray task sees in an environment variable."""
    spec = {
        "entrypoint": f'{PYTHON} -c "{TASK.replace("NAME", repr(variable))}"',
        "submissionMode": "K8sJobMode",
        "rayClusterSpec": ray_cluster_spec(),
        "submitterPodTemplate": {"spec": _ray_pod("submitter", restart="Never")},
    }
    return _workload("ray.io/v1", "RayJob", name, spec, labels)


def ray_cluster_spec() -> Manifest:
    """The smallest real Ray cluster: a head that takes no tasks, and one worker."""
    start = {"object-store-memory": "80000000"}
    head = {"rayStartParams": start | {"num-cpus": "0"}, "template": {"spec": _ray_pod("ray-head")}}
    worker = {
        "groupName": "workers",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "rayStartParams": start | {"num-cpus": "1"},
        "template": {"spec": _ray_pod("ray-worker")},
    }
    return {"rayVersion": RAY_VERSION, "headGroupSpec": head, "workerGroupSpecs": [worker]}


def ray_cluster(name: str, *, labels: Labels | None = None) -> Manifest:
    return _workload("ray.io/v1", "RayCluster", name, ray_cluster_spec(), labels)


def ray_service(name: str, *, labels: Labels | None = None) -> Manifest:
    spec = {"serveConfigV2": "applications: []", "rayClusterConfig": ray_cluster_spec()}
    return _workload("ray.io/v1", "RayService", name, spec, labels)


def stateful_set(name: str, *, labels: Labels | None = None) -> Manifest:
    return _workload("apps/v1", "StatefulSet", name, {"serviceName": name} | _replicated(name), labels)


def deployment(name: str, *, labels: Labels | None = None) -> Manifest:
    return _workload("apps/v1", "Deployment", name, _replicated(name), labels)


def bare_pod(name: str, *, labels: Labels | None = None, **container: Any) -> Manifest:
    return _workload("v1", "Pod", name, pod_spec(**container), labels)


def _replicated(name: str) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(restart="Always")}
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def _ray_pod(name: str, *, restart: str = "Always") -> Manifest:
    """A pod whose command KubeRay composes."""
    env = [*ENV, {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"}]
    resources = {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
    spec = pod_spec(name, restart=restart, env=env, resources=resources)
    del spec["containers"][0]["command"]
    return spec


def _workload(version: str, kind: str, name: str, spec: Manifest, labels: Labels | None) -> Manifest:
    metadata = {"name": name} | ({"labels": dict(labels)} if labels else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
