"""Objects of a server of XProf on Kubernetes; pure.

A suspended CronJob is the server: a stored template of Jobs, which owns all other objects. Each start is a Job of it,
whose pod ends with success after a time without readers. A pod needs no rights for that.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import OPT_IN_LABEL

from mldiagnostics_cli.xprof import idle_server
from mldiagnostics_cli.xprof.limits import CACHE_BYTES, IDLE_S
from mldiagnostics_cli.xprof.stage_plan import is_staged

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


PORT = 8791
USER = 65532
"""The user of the operator's image, so that files of its claim can be read."""

_OWN_IDS = {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER, "fsGroupChangePolicy": "OnRootMismatch"}

LABELS = {
    "app.kubernetes.io/name": "mldiag-xprof",
    "app.kubernetes.io/part-of": "mldiagnostics",
    OPT_IN_LABEL: "false",  # a Job in a labelled namespace would be a run
}
SELECTOR = "app.kubernetes.io/name=mldiag-xprof"
INSTANCE = "app.kubernetes.io/instance"
LOG_DIRECTORY = "diagon.gke.io/log-directory"

DEFAULT_MEMORY = "4Gi"
"""XProf needs a few times the size of a session: 1 GiB of traces took 3 GiB."""

STOP_S = 5
"""XProf keeps nothing."""

RESTARTS = 6
"""So often a pod whose XProf has failed is replaced, after 10 s, 20 s, and so on; disruptions of its node are free."""

KEPT_S = 24 * 3600
"""So long the Job of an ended server is kept, for its log."""

_NAME_LIMIT = 52 - len("mldiag-xprof-")
"""Kubernetes limits the names of CronJobs."""

_MOUNT = "/logs"
_TMP = "/tmp"  # noqa: S108 - of the container
_CACHE = "/cache"
_STAGED_SERVER = "mldiagnostics_cli.xprof.pod_server"
_AZURE_IDENTITY = {"azure.workload.identity/use": "true"}
"""AKS gives pods with this label the identity of their service account."""
_VOLUME = "volume://"
_MACHINE = re.compile(r"[a-z][a-z0-9]*-(standard|highmem|highcpu)-([0-9]{1,3})", re.ASCII)
_GIB_OF_A_CPU = {"standard": 4, "highmem": 8, "highcpu": 1}
_ALLOCATABLE = 0.75
"""Share of a machine that a pod requests: the rest is the node's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XprofSpec:
    """A server as the user wants it.

    Args:
        name: Its name.
        log_directory: `gs://…`, `s3://…`, `az://…`, or `volume:///…` for a directory of the claim.
        image: Image in which the command `xprof` runs; with `mldiagnostics-cli` for `s3://` and `az://`.
        claim: Claim with the profiles, such as the operator's; None without one.
        service_account: Service account of the pod, which can read the bucket; None for the default one.
        bucket_secret: Secret whose keys are variables of the bucket's client, such as AWS_ACCESS_KEY_ID; or None.
        cache_bytes: Most bytes of the copy of a bucket that XProf cannot read.
        resources: Requests of the pod.
        host: Host of an Ingress; None without one.
        idle_s: It ends after so many seconds without readers; 0 for never.
        has_own_ids: Whether the pod has fixed user and group ids; OpenShift assigns them and rejects others.
    """

    name: str
    log_directory: str
    image: str
    claim: str | None = None
    service_account: str | None = None
    bucket_secret: str | None = None
    cache_bytes: int = CACHE_BYTES
    resources: dict[str, str]
    host: str | None = None
    idle_s: float = IDLE_S
    has_own_ids: bool = True


def resources_of(machine_type: str | None, memory: str | None) -> dict[str, str]:
    """Return the requests of a pod.

    Args:
        machine_type: Type of a machine of Google Cloud whose size the pod has; None for a small pod.
        memory: Memory as Kubernetes writes it; it wins over that of the machine.

    Raises:
        ConfigurationError: The type is not `<family>-standard|highmem|highcpu-<CPUs>`.

    >>> resources_of("c4-highmem-8", None)
    {'cpu': '6', 'memory': '48Gi'}
    """
    if machine_type is None:
        return {"cpu": "500m", "memory": memory or DEFAULT_MEMORY}
    match = _MACHINE.fullmatch(machine_type)
    if match is None:
        raise ConfigurationError(
            f"--machine-type {machine_type}: not the type of a machine; pass a type such as c4-highmem-8, or --memory"
        )
    cpus = int(match[2]) * _ALLOCATABLE
    return {"cpu": f"{cpus:g}", "memory": memory or f"{int(cpus * _GIB_OF_A_CPU[match[1]])}Gi"}


def object_name(name: str) -> str:
    """Return the name of the objects of a server."""
    return f"mldiag-xprof-{name}"


def objects(spec: XprofSpec) -> list[dict[str, Any]]:
    """Return the CronJob, and then the objects that it owns.

    These are the Service, the NetworkPolicy and maybe an Ingress.

    Raises:
        ConfigurationError: The name is too long, or the log directory is a path of this machine or in a claim that is
            not given, or the Secret is not for its kind of bucket.
    """
    if len(spec.name) > _NAME_LIMIT:
        raise ConfigurationError(f"{spec.name}: is longer than {_NAME_LIMIT} characters; choose a shorter name")
    labels = {**LABELS, INSTANCE: spec.name}
    selector = {"app.kubernetes.io/name": LABELS["app.kubernetes.io/name"], INSTANCE: spec.name}
    metadata = {
        "name": object_name(spec.name),
        "labels": labels,
        "annotations": {LOG_DIRECTORY: spec.log_directory},
    }
    is_disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    job = {
        "backoffLimit": RESTARTS,
        "podFailurePolicy": {"rules": [is_disrupted]},
        "ttlSecondsAfterFinished": KEPT_S,
        "template": {"metadata": {"labels": labels | _identity_labels(spec)}, "spec": _pod(spec)},
    }
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {
            "suspend": True,  # people start it, never a clock
            "schedule": "@yearly",
            "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }
    # Port-forward comes from the node itself, which a policy does not restrict.
    sources: list[dict[str, Any]] = [] if spec.host is None else [{"ports": [{"port": PORT}]}]
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": sources},
    }
    return [cron_job, service, policy, *([] if spec.host is None else [_ingress(spec.host, metadata)])]


def job_of(cron_job: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Return the Job that starts a server, as `kubectl create job --from` makes it.

    Args:
        cron_job: The server.
        taken: Names of its Jobs. Two people who start it at the same moment get the same name, so that one succeeds.
    """
    template = cron_job["spec"]["jobTemplate"]
    name = cron_job["metadata"]["name"]
    names = (f"{name}-{number}" for number in range(1, len(taken) + 2))
    metadata = {**template["metadata"], "name": next(each for each in names if each not in taken)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    return owned_by(cron_job, job)


def owned_by(cron_job: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that its server's CronJob owns, and that is deleted with it."""
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": cron_job["metadata"]["name"],
        "uid": cron_job["metadata"]["uid"],
        "blockOwnerDeletion": False,
    }
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [owner]}}


def _pod(spec: XprofSpec) -> dict[str, Any]:
    memory = spec.resources["memory"]
    mounts = [{"name": "tmp", "mountPath": _TMP}]
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    if spec.claim is not None:
        mounts.append({"name": "logs", "mountPath": _MOUNT})
        volumes.append({"name": "logs", "persistentVolumeClaim": {"claimName": spec.claim}})
    if is_staged(spec.log_directory):
        mounts.append({"name": "cache", "mountPath": _CACHE})
        volumes.append({"name": "cache", "emptyDir": {}})
    container = {
        "name": "xprof",
        "image": spec.image,
        **_process(spec),
        "env": [{"name": "HOME", "value": _TMP}],
        **_secret_variables(spec),
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": spec.resources, "limits": {"memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }
    account = {} if spec.service_account is None else {"serviceAccountName": spec.service_account}
    return {
        **account,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": STOP_S,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            **(_OWN_IDS if spec.has_own_ids else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }


def _process(spec: XprofSpec) -> dict[str, list[str]]:
    """Return the command of the container and its arguments."""
    if is_staged(spec.log_directory):
        arguments = [str(PORT), str(spec.idle_s), str(spec.cache_bytes), spec.log_directory, _CACHE]
        return {"command": ["python3", "-m", _STAGED_SERVER], "args": arguments}
    arguments = [str(PORT), str(spec.idle_s), "xprof", "--logdir", _directory_in_pod(spec)]
    return {"command": ["python3", "-c", inspect.getsource(idle_server)], "args": arguments}


def _secret_variables(spec: XprofSpec) -> dict[str, Any]:
    if spec.bucket_secret is None:
        return {}
    if not is_staged(spec.log_directory):
        raise ConfigurationError(
            f"--bucket-secret: is for s3:// and az://, not for {spec.log_directory}; pass --service-account or --claim"
        )
    return {"envFrom": [{"secretRef": {"name": spec.bucket_secret}}]}


def _identity_labels(spec: XprofSpec) -> dict[str, str]:
    is_azure = spec.log_directory.startswith(("az://", "abfss://"))
    return _AZURE_IDENTITY if is_azure and spec.service_account is not None else {}


def _directory_in_pod(spec: XprofSpec) -> str:
    location = spec.log_directory
    if location.startswith("gs://"):
        return location
    if not location.startswith(f"{_VOLUME}/") or ".." in location.split("/"):
        raise ConfigurationError(
            f"{location}: a pod cannot read it; pass the URL of a bucket, or volume:///path with --claim"
        )
    if spec.claim is None:
        raise ConfigurationError(f"{location}: lies in a claim; pass its name with --claim")
    return _MOUNT + location.removeprefix(_VOLUME).rstrip("/")


def _ingress(host: str, metadata: dict[str, Any]) -> dict[str, Any]:
    backend = {"service": {"name": metadata["name"], "port": {"name": "http"}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {"rules": [{"host": host, "http": {"paths": paths}}]},
    }
