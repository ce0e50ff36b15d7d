"""Servers of XProf on Kubernetes, with the rights of the user."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.client.apiserver import Conflict, NotFound, path_to

from mldiagnostics_cli.cluster.port_forward import PodPort
from mldiagnostics_cli.xprof.instances import ENDED, FAILED, IDLE, RUNNING, STARTING, XprofInstance
from mldiagnostics_cli.xprof.manifests import (
    INSTANCE,
    LOG_DIRECTORY,
    PORT,
    SELECTOR,
    job_of,
    object_name,
    objects,
    owned_by,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.xprof.manifests import XprofSpec


KUBERNETES = "kubernetes"
_OPENSHIFT = "security.openshift.io"
"""API group of the SecurityContextConstraints."""
READY_LIMIT_S = 300.0
"""A node may have to be added, and the image pulled."""
_POLL_S = 1.0
_COLLECTIONS = {
    "CronJob": ("batch", "v1", "cronjobs"),
    "Job": ("batch", "v1", "jobs"),
    "Pod": ("", "v1", "pods"),
    "Service": ("", "v1", "services"),
    "NetworkPolicy": ("networking.k8s.io", "v1", "networkpolicies"),
    "Ingress": ("networking.k8s.io", "v1", "ingresses"),
}


async def assigns_ids(cluster: Cluster) -> bool:
    """Return whether the cluster chooses the user ids of pods, as OpenShift does."""
    try:
        await cluster.client.get(f"/apis/{_OPENSHIFT}")
    except NotFound:
        return False
    return True


async def create_on_kubernetes(cluster: Cluster, spec: XprofSpec) -> XprofInstance:
    """Create a server; if one of its objects is rejected, none is left.

    Raises:
        ConfigurationError: The name is taken, or the log directory cannot be read in a pod.
        ClusterError: The API server rejects an object.
    """
    cron_job, *owned = objects(spec)
    try:
        created = await cluster.client.create(_path(cluster.namespace, "CronJob"), cron_job)
    except Conflict:
        raise ConfigurationError(
            f"{spec.name}: a server in {cluster.namespace} has this name; choose another name"
        ) from None
    try:
        for each in owned:
            await cluster.client.create(_path(cluster.namespace, each["kind"]), owned_by(created, each))
        job = await cluster.client.create(_path(cluster.namespace, "Job"), job_of(created, ()))
    except BaseException as error:
        uid = created["metadata"]["uid"]
        await asyncio.shield(cluster.client.delete(_path(cluster.namespace, "CronJob", spec.name), uid=uid))
        if isinstance(error, Conflict):
            raise ConfigurationError(
                f"{spec.name}: objects of a deleted server with this name are left; run the command again, or choose "
                "another name"
            ) from None
        raise
    return _instance(created, [job])


async def start_on_kubernetes(cluster: Cluster, instance: XprofInstance) -> None:
    """Start a server that has ended; one that runs or starts stays as it is.

    Raises `ClusterError`.
    """
    cron_job = await cluster.client.get(_path(instance.namespace, "CronJob", instance.name))
    jobs = await cluster.client.items(_path(instance.namespace, "Job"), dict, labels=_selector(instance.name))
    if all(map(_has_ended, _owned(cron_job, jobs))):
        body = job_of(cron_job, [job["metadata"]["name"] for job in jobs])
        with suppress(Conflict):  # another reader starts it too
            await cluster.client.create(_path(instance.namespace, "Job"), body)


async def list_on_kubernetes(cluster: Cluster) -> list[XprofInstance]:
    """Return the servers of a namespace or of all, by namespace and name."""
    jobs = await cluster.client.items(_path(cluster.scope, "Job"), dict, labels=SELECTOR)
    cron_jobs = await cluster.client.items(_path(cluster.scope, "CronJob"), dict, labels=SELECTOR)
    found = [_instance(each, _owned(each, jobs)) for each in cron_jobs]
    return sorted(found, key=lambda each: (each.namespace, each.name))


async def delete_on_kubernetes(cluster: Cluster, instance: XprofInstance) -> None:
    """Delete a server with the objects that it owns.

    One that is gone counts as deleted.
    """
    path = _path(instance.namespace, "CronJob", instance.name)
    try:
        uid = (await cluster.client.get(path, metadata_only=True))["metadata"]["uid"]
        await cluster.client.delete(path, uid=uid)
    except NotFound:
        return


async def wait_until_ready(cluster: Cluster, instance: XprofInstance) -> XprofInstance:
    """Wait until a server answers, and return it.

    Raises:
        ConfigurationError: It fails, or does not answer in time; the message has the state of its pod.
    """
    namespace, selector = instance.namespace, _selector(instance.name)
    cron_job = await cluster.client.get(_path(namespace, "CronJob", instance.name))
    problem = f"does not answer after {READY_LIMIT_S:g} s"
    failures: int | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_LIMIT_S):
            while True:
                jobs = _owned(cron_job, await cluster.client.items(_path(namespace, "Job"), dict, labels=selector))
                instance = _instance(cron_job, jobs)
                if instance.state == RUNNING:
                    return instance
                before, failures = failures, sum(job.get("status", {}).get("failed", 0) for job in jobs)
                if instance.state in ENDED or (before is not None and failures > before):
                    problem = "does not start"
                    break
                await asyncio.sleep(_POLL_S)
    pods = await cluster.client.items(_path(namespace, "Pod"), dict, labels=selector)
    cause = _problem_of(max(pods, key=_order)) if pods else "it has no pod"
    raise ConfigurationError(
        f"{instance.name}: {problem}: {cause}; see `kubectl -n {namespace} describe pod -l {selector}`"
    )


async def pod_port(cluster: Cluster, instance: XprofInstance) -> PodPort:
    """Return the port of the pod of a server. Raises `NotFound` while no pod is ready."""
    pods = await cluster.client.items(_path(instance.namespace, "Pod"), _ready_name, labels=_selector(instance.name))
    if not pods:
        raise NotFound(f"xprof {instance.name}: no pod is ready", status=404, detail="no pod is ready")
    return PodPort(instance.namespace, pods[0], PORT)


def _path(namespace: str | None, kind: str, name: str | None = None) -> str:
    group, version, plural = _COLLECTIONS[kind]
    return path_to(group, version, plural, namespace=namespace, name=None if name is None else object_name(name))


def _selector(name: str) -> str:
    return f"{SELECTOR},{INSTANCE}={name}"


def _owned(cron_job: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the Jobs of a server, not those of a deleted one with its name."""
    uid = cron_job["metadata"]["uid"]
    return [job for job in jobs if any(uid == each["uid"] for each in job["metadata"].get("ownerReferences") or ())]


def _instance(cron_job: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> XprofInstance:
    metadata = cron_job["metadata"]
    return XprofInstance(
        name=metadata.get("labels", {}).get(INSTANCE, metadata["name"]),
        on=KUBERNETES,
        log_directory=metadata.get("annotations", {}).get(LOG_DIRECTORY, ""),
        state=_state(jobs),
        url="",
        created=datetime.fromisoformat(metadata["creationTimestamp"]).timestamp(),
        namespace=metadata["namespace"],
    )


def _state(jobs: Sequence[Mapping[str, Any]]) -> str:
    """Return the state of a server by its newest Job.

    A Job that has not ended has precedence.
    """
    if not jobs:
        return IDLE
    newest = max(jobs, key=lambda job: (not _has_ended(job), *_order(job)))
    if not _has_ended(newest):
        return RUNNING if newest.get("status", {}).get("ready") else STARTING
    return FAILED if _is_true(newest, "Failed") else IDLE


def _order(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the sort key by order of creation, also within a second."""
    return body["metadata"]["creationTimestamp"], body["metadata"]["name"]


def _has_ended(job: Mapping[str, Any]) -> bool:
    return _is_true(job, "Complete") or _is_true(job, "Failed")


def _is_true(body: Mapping[str, Any], condition: str) -> bool:
    conditions = body.get("status", {}).get("conditions") or ()
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _ready_name(pod: Mapping[str, Any]) -> str | None:
    return pod["metadata"]["name"] if _is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"] else None


def _problem_of(pod: Mapping[str, Any]) -> str:
    status = pod.get("status", {})
    for container in status.get("containerStatuses") or []:
        waiting = container.get("state", {}).get("waiting") or container.get("state", {}).get("terminated")
        if waiting:
            message = str(waiting.get("message", "")).strip().rpartition("\n")[2]
            return f"{waiting.get('reason', '')}: {message}".strip(": ")
    conditions = [each for each in status.get("conditions") or [] if each.get("status") != "True"]
    return next((each["message"] for each in conditions if each.get("message")), str(status.get("phase", "Pending")))
