"""Kubernetes objects as the API returns them, in one expression each, and whole workloads with pods and owners."""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass, field
from typing import Any

from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_api.workloads.pods import PodView

Object = dict[str, Any]

CREATED = "2026-04-24T03:04:05Z"
JOBSET = "jobset.sigs.k8s.io"
LWS = "leaderworkerset.sigs.k8s.io"
JOB = "batch.kubernetes.io"
TRAINING = "training.kubeflow.org"


def uid_of(*names: object) -> str:
    """Return the same uid for the same names, so that a failing example is reproducible."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, names))))


def owned(name: str, kind: str, api_version: str, *, controller: bool = True, uid: str | None = None) -> Object:
    """An owner reference."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid or uid_of(kind, name)}
    return reference | ({"controller": True, "blockOwnerDeletion": True} if controller else {})


def thing(
    name: str,
    *,
    kind: str,
    api_version: str,
    namespace: str = "ml",
    uid: str | None = None,
    labels: dict[str, str] | None = None,
    owner: Object | None = None,
    **parts: Any,
) -> Object:
    """Return an object; `owner` controls it, `parts` are spec and status."""
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": uid or uid_of(kind, name),
        "creationTimestamp": CREATED,
        "labels": labels or {},
    }
    if owner:
        metadata["ownerReferences"] = [
            owned(owner["metadata"]["name"], owner["kind"], owner["apiVersion"], uid=owner["metadata"]["uid"])
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def pod(
    name: str = "trainer-0",
    *,
    namespace: str = "ml",
    uid: str | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: Object | None = None,
    ip: str = "10.0.0.7",
    node: str = "node-1",
    phase: str = "Running",
    ports: dict[str, int] | None = None,
    container: str = "train",
    running: bool | None = None,
    host_network: bool = False,
    terminating: bool = False,
    gpus: int = 0,
    env: dict[str, str] | None = None,
) -> Object:
    """A pod; `ports` are the named container ports, `env` the variables of its container."""
    made = thing(name, kind="Pod", api_version="v1", namespace=namespace, uid=uid, labels=labels, owner=owner)
    made["metadata"]["annotations"] = annotations or {}
    if terminating:
        made["metadata"]["deletionTimestamp"] = CREATED
    named = [{"name": port, "containerPort": number} for port, number in (ports or {}).items()]
    running = phase == "Running" if running is None else running
    made["spec"] = {"nodeName": node, "containers": [{"name": container, "image": "train:1", "ports": named}]}
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    made["spec"]["containers"][0] |= {"env": variables, "resources": limits} if variables or limits else {}
    if host_network:
        made["spec"]["hostNetwork"] = True
    state = {"running": {"startedAt": CREATED}} if running else {"waiting": {"reason": "ContainerCreating"}}
    made["status"] = {
        "phase": phase,
        "podIP": ip,
        "containerStatuses": [{"name": container, "state": state}],
    }
    return made


@dataclass
class World:
    """The objects of one workload: the workload, the owners between it and its pods, and the pods."""

    workload: Object | None
    parts: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)

    def owners(self) -> dict[ObjectReference, Object | None]:
        """Return all owners by their references."""
        owners = [*([self.workload] if self.workload else []), *self.parts, *self.pods]
        by_uid = {owner["metadata"]["uid"]: owner for owner in owners}
        by_reference: dict[ObjectReference, Object | None] = {}
        for owner in owners:
            reference = ObjectReference.to_controller(owner["metadata"], owner["metadata"]["namespace"])
            if reference:
                by_reference[reference] = by_uid.get(reference.uid)
        return by_reference

    def views(self) -> list[PodView]:
        """Return the pods as the product parses them."""
        return [PodView.of(pod) for pod in self.pods]

    def owned_by(self, kind: str, name: str, api_version: str) -> World:
        """Return this world below one more owner."""
        above = thing(name, kind=kind, api_version=api_version)
        workload = copy.deepcopy(self.workload)
        if workload is None:
            raise ValueError("a world without workload has nothing to own")
        workload["metadata"]["ownerReferences"] = [owned(name, kind, api_version)]
        return World(above, [*self.parts, workload], self.pods)


def jobset(
    name: str = "trainer",
    *,
    jobs: dict[str, tuple[int, int]] | None = None,
    labels: dict[str, str] | None = None,
    namespace: str = "ml",
    **of_pods: Any,
) -> World:
    """A JobSet with its Jobs and pods; `jobs` maps a replicated job to its replicas and the pods of each."""
    workload = thing(name, kind="JobSet", api_version="jobset.x-k8s.io/v1alpha2", labels=labels, namespace=namespace)
    world = World(workload)
    number = 0
    for replicated, (replicas, parallelism) in (jobs or {"workers": (1, 2)}).items():
        for index in range(replicas):
            common = {
                f"{JOBSET}/jobset-name": name,
                f"{JOBSET}/jobset-uid": workload["metadata"]["uid"],
                f"{JOBSET}/replicatedjob-name": replicated,
                f"{JOBSET}/job-index": str(index),
                f"{JOBSET}/job-global-index": str(number),
            }
            number += 1
            job_name = f"{name}-{replicated}-{index}"
            made = thing(
                job_name, kind="Job", api_version="batch/v1", labels=common, owner=workload, namespace=namespace
            )
            world.parts.append(made)
            world.pods += _job_pods(made, parallelism, common, start=len(world.pods), **of_pods)
    return world


def job(
    name: str = "trainer", *, pods: int = 2, labels: dict[str, str] | None = None, namespace: str = "ml", **of_pods: Any
) -> World:
    """An indexed Job with its pods."""
    workload = thing(name, kind="Job", api_version="batch/v1", labels=labels, namespace=namespace)
    return World(workload, [], _job_pods(workload, pods, {}, start=0, **of_pods))


def _job_pods(made: Object, count: int, labels: dict[str, str], *, start: int, **of_pods: Any) -> list[Object]:
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    return [
        pod(
            f"{name}-{index}-{uid_of(name, index)[:5]}",
            namespace=namespace,
            labels={
                **labels,
                f"{JOB}/job-name": name,
                f"{JOB}/controller-uid": made["metadata"]["uid"],
                f"{JOB}/job-completion-index": str(index),
            },
            owner=made,
            **{"ip": f"10.{(start + index) // 250}.1.{(start + index) % 250 + 1}", "node": f"node-{start + index}"}
            | of_pods,
        )
        for index in range(count)
    ]


def leader_worker_set(name: str = "serve", *, groups: int = 2, size: int = 3) -> World:
    """A LeaderWorkerSet: leaders belong to its StatefulSet, workers to a StatefulSet of their leader."""
    workload = thing(name, kind="LeaderWorkerSet", api_version="leaderworkerset.x-k8s.io/v1")
    leaders = thing(name, kind="StatefulSet", api_version="apps/v1", owner=workload)
    world = World(workload, [leaders])
    for group in range(groups):
        labels = {f"{LWS}/name": name, f"{LWS}/group-index": str(group)}
        leader = pod(f"{name}-{group}", labels=labels | {f"{LWS}/worker-index": "0"}, owner=leaders)
        workers = thing(
            f"{name}-{group}", kind="StatefulSet", api_version="apps/v1", labels=labels, owner=leader, uid=uid_of(group)
        )
        world.parts.append(workers)
        world.pods.append(leader)
        world.pods += [
            pod(
                f"{name}-{group}-{index}",
                labels=labels | {f"{LWS}/worker-index": str(index)},
                owner=workers,
                ip=f"10.2.{group}.{index}",
            )
            for index in range(1, size)
        ]
    return world


def ray_cluster(name: str = "ray", *, workers: int = 3, indexed: bool = True) -> World:
    """A RayCluster: a head and the workers of one group, with replica indices or, as older versions, without."""
    workload = thing(name, kind="RayCluster", api_version="ray.io/v1")
    common = {"ray.io/cluster": name, "ray.io/is-ray-node": "yes"}
    head = pod(
        f"{name}-head", labels=common | {"ray.io/node-type": "head", "ray.io/group": "headgroup"}, owner=workload
    )
    indices = [{"ray.io/worker-group-replica-index": str(n)} if indexed else {} for n in range(workers)]
    return World(
        workload,
        [],
        [head]
        + [
            pod(
                f"{name}-gpu-worker-{uid_of(name, n)[:5]}",
                labels=common | {"ray.io/node-type": "worker", "ray.io/group": "gpu"} | index,
                owner=workload,
                ip=f"10.3.0.{n + 1}",
            )
            for n, index in enumerate(indices)
        ],
    )


def stateful_set(name: str = "store", *, pods: int = 12) -> World:
    """A StatefulSet with enough pods that order of names and of numbers differ."""
    workload = thing(name, kind="StatefulSet", api_version="apps/v1", spec={"selector": {"matchLabels": {"app": name}}})
    members = [pod(f"{name}-{n}", labels={"app": name}, owner=workload, ip=f"10.4.0.{n + 1}") for n in range(pods)]
    return World(workload, [], members)


def deployment(name: str = "web", *, pods: int = 2) -> World:
    """A Deployment with its ReplicaSet and pods."""
    selector = {"selector": {"matchLabels": {"app": name}}}
    workload = thing(name, kind="Deployment", api_version="apps/v1", spec=selector)
    replicas = thing(f"{name}-5f6c", kind="ReplicaSet", api_version="apps/v1", owner=workload, spec=selector)
    members = [
        pod(f"{name}-5f6c-{uid_of(n)[:5]}", labels={"app": name}, owner=replicas, ip=f"10.5.0.{n + 1}")
        for n in range(pods)
    ]
    return World(workload, [replicas], members)


def training_job(name: str = "torch", *, kind: str = "PyTorchJob", workers: int = 2) -> World:
    """A job of the Kubeflow training operator: one master and some workers."""
    workload = thing(name, kind=kind, api_version="kubeflow.org/v1")
    roles = [("Master", 0), *(("Worker", n) for n in range(workers))]
    return World(
        workload,
        [],
        [
            pod(
                f"{name}-{role.lower()}-{n}",
                labels={
                    f"{TRAINING}/job-name": name,
                    f"{TRAINING}/replica-type": role.lower(),
                    f"{TRAINING}/replica-index": str(n),
                },
                owner=workload,
            )
            for role, n in roles
        ],
    )


def connection(name: str = "capture", *, namespace: str = "ml", uid: str | None = None, **trigger: Any) -> Object:
    """A capture; `trigger` are fields of `spec.triggerCapture`, `cancel` and `ttlSecondsAfterFinished` of `spec`."""
    spec = {key: trigger.pop(key) for key in ("cancel", "ttlSecondsAfterFinished") if key in trigger}
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or uid_of("MLDiagnosticsConnection", name),
            "generation": 1,
            "creationTimestamp": CREATED,
        },
        "spec": {"triggerCapture": trigger or {"podName": "trainer-0"}, **spec},
    }


def peer_connection(pods: str, **changes: Any) -> Object:
    """A capture in the six fields of the peer."""
    fields: dict[str, Any] = {
        "podName": pods,
        "podNamespace": "ml",
        "capturePort": 9999,
        "durationSeconds": 2,
        "profiler": "google_cloud_mldiagnostics",
        "storageLocation": "volume:///captures",
    }
    return connection(**fields | changes)


def parsed(body: Object) -> MLDiagnosticsConnection:
    """Return the capture as the product parses it."""
    return MLDiagnosticsConnection.model_validate(body)
