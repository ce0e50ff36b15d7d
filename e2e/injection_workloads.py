"""Small workloads of every kind with a controller on the test cluster, and a real Ray cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster import images
from cluster.paths import E2E
from cluster.provider import Provider

PEERS_IMAGE = "localhost/mldiagnostics/peers-test:1"
PYTHON = "/opt/peers/bin/python"
RUN_ID = "/opt/peers/run_id.py"
"""Program that prints the run id of Google's SDK."""
RAY_VERSION = "2.60.0"
WAIT = "trap 'exit 0' TERM; sleep infinity & wait"
ENDS_ON_REQUEST = (
    "until [ -s /tmp/end ]; do sleep 0.2; done; read code writer </tmp/end; "
    "while [ -e /proc/$writer ]; do sleep 0.2; done; exit $code"
)
"""Shell command that ends with the code of `end_with`, once that process has ended: it would be killed with it."""
ENV = [{"name": "OWN", "value": "kept"}]
TASK = "import os, ray; ray.init(); print('in a task:', ray.get(ray.remote(lambda: os.environ.get(NAME)).remote()))"

Manifest = dict[str, Any]
Labels = Mapping[str, str]


def end_with(code: int) -> list[str]:
    """Return the command to execute in a container that runs `ENDS_ON_REQUEST`."""
    return ["sh", "-c", f"echo {code} $$ >/tmp/end"]


def peers_image() -> Path:
    """Build the image with Ray and Google's SDK, unless it is unchanged, and return its archive."""
    folder = E2E / "peers"
    return images.build(folder / "Dockerfile", folder, PEERS_IMAGE)


def load_peers_image(provider: Provider) -> None:
    """Build and load the image with Ray and Google's SDK, unless it is unchanged."""
    images.load(peers_image(), provider)


def pod_spec(name: str = "main", *, restart: str = "Never", **container: Any) -> Manifest:
    """Return a pod with one container, which waits for SIGTERM unless `container` overrides it."""
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
    """Return a pod with a sidecar as metadata server, as on a node of GKE."""
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
    """Return a pod that fails in the first attempt of its run and waits in later ones."""
    return pod_spec(command=["sh", "-c", f'[ "$MLDIAG_ATTEMPT" != 0 ] || exit 1; {WAIT}'])


def annotated(manifest: Manifest, annotations: Mapping[str, str]) -> Manifest:
    """Return the manifest with annotations."""
    return manifest | {"metadata": manifest["metadata"] | {"annotations": dict(annotations)}}


def jobset(name: str, *, labels: Labels | None = None, pod: Manifest | None = None, hosts: int = 2) -> Manifest:
    """Return a JobSet of one indexed Job that may restart once."""
    job = {"parallelism": hosts, "completions": hosts, "completionMode": "Indexed", "backoffLimit": 0}
    workers = {"name": "workers", "replicas": 1, "template": {"spec": job | {"template": {"spec": pod or pod_spec()}}}}
    spec = {"replicatedJobs": [workers], "failurePolicy": {"maxRestarts": 1}}
    return _workload("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec, labels)


def job(name: str, *, labels: Labels | None = None) -> Manifest:
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {"spec": pod_spec()}}
    return _workload("batch/v1", "Job", name, spec, labels)


def cron_job(name: str, *, labels: Labels | None = None) -> Manifest:
    """Return a CronJob that starts one Job at the next full minute; both have the labels."""
    template = {"metadata": {"labels": dict(labels or {})}, "spec": {"template": {"spec": pod_spec()}}}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template}
    return _workload("batch/v1", "CronJob", name, spec, labels)


def leader_worker_set(name: str, *, labels: Labels | None = None) -> Manifest:
    """Return a LeaderWorkerSet of one group: a leader and a worker."""
    template = {"spec": pod_spec(restart="Always")}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    return _workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, spec, labels)


def ray_job(name: str, *, labels: Labels | None = None, variable: str = "OWN") -> Manifest:
    """Return a RayJob whose task prints an environment variable."""
    spec = {
        "entrypoint": f'{PYTHON} -c "{TASK.replace("NAME", repr(variable))}"',
        "submissionMode": "K8sJobMode",
        "rayClusterSpec": ray_cluster_spec(),
        "submitterPodTemplate": {"spec": _ray_pod("submitter", restart="Never")},
    }
    return _workload("ray.io/v1", "RayJob", name, spec, labels)


def ray_job_on_head(name: str, entrypoint: str, *, labels: Labels | None = None, **fields: Any) -> Manifest:
    """Return a RayJob of one pod, the head: KubeRay submits the program by HTTP."""
    cluster = ray_cluster_spec()
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    # KubeRay's own probe waits 10 s, then 5 s between two tries.
    ready = {"httpGet": {"path": "/api/gcs_healthz", "port": 8265}, "periodSeconds": 1, "timeoutSeconds": 5}
    head["readinessProbe"] = ready | {"failureThreshold": 300}
    spec = {
        "entrypoint": entrypoint,
        "submissionMode": "HTTPMode",
        "rayClusterSpec": cluster | {"workerGroupSpecs": []},
    }
    return _workload("ray.io/v1", "RayJob", name, spec | fields, labels)


def ray_cluster_spec() -> Manifest:
    """Return the smallest Ray cluster: a head without tasks, and one worker."""
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
    """Return a pod without a command: KubeRay composes it.

    Ray ends if one of its processes needs 15 s to start, so it gets most of a busy machine's time for pods.
    """
    env = [*ENV, {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"}]
    resources = {"requests": {"cpu": "200m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
    spec = pod_spec(name, restart=restart, env=env, resources=resources)
    del spec["containers"][0]["command"]
    return spec


def _workload(version: str, kind: str, name: str, spec: Manifest, labels: Labels | None) -> Manifest:
    metadata = {"name": name} | ({"labels": dict(labels)} if labels else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
