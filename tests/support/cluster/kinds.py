"""Workloads on a real API server, with the pods, owners, labels and annotations that their controllers make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from support.cluster.builders import JOB, JOBSET, LWS, TRAINING, uid_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.cluster.namespaces import Object, Stage

    Labels = dict[str, str]

CONTAINERS: Final = {"containers": [{"name": "train", "image": "train:1"}]}
INITIALIZER: Final = "dataset-initializer"


async def job(
    stage: Stage,
    name: str = "trainer",
    *,
    labels: Labels | None = None,
    marks: Labels | None = None,
    owner: Object | None = None,
    pods: int = 11,
) -> Object:
    """An indexed Job. Its pods have `marks` as labels and as annotations, as those of a JobSet do."""
    marks = marks or {}
    template = {"metadata": {"labels": marks}, "spec": {**CONTAINERS, "restartPolicy": "Never"}}
    spec = {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template}
    made = await stage.make("batch/v1", "Job", name, labels=(labels or {}) | marks, owner=owner, spec=spec)
    given = made["spec"]["template"]["metadata"]["labels"]  # the API server adds the Job's name and uid
    for index in range(pods):
        place = {f"{JOB}/job-completion-index": str(index)}
        await stage.pod(
            f"{name}-{index}-{uid_of(index)[:5]}", owner=made, labels=given | place, annotations=marks | place
        )
    return made


async def jobset(
    stage: Stage,
    name: str = "trainer",
    *,
    labels: Labels | None = None,
    owner: Object | None = None,
    parts: Sequence[tuple[str, int, int]] = (("workers", 2, 2), ("driver", 1, 1)),
) -> Object:
    """A JobSet; `parts` are its replicated jobs: name, replicas and pods of each. Their order is not that of names."""
    replicated = [
        {
            "name": part,
            "replicas": replicas,
            "template": {
                "spec": {
                    "completionMode": "Indexed",
                    "completions": pods,
                    "parallelism": pods,
                    "template": {"spec": CONTAINERS},
                }
            },
        }
        for part, replicas, pods in parts
    ]
    made = await stage.make(
        "jobset.x-k8s.io/v1alpha2", "JobSet", name, labels=labels, owner=owner, spec={"replicatedJobs": replicated}
    )
    jobs = [(part, index, replicas, pods) for part, replicas, pods in parts for index in range(replicas)]
    for number, (part, index, replicas, pods) in enumerate(jobs):
        marks = {
            "jobset-name": name,
            "jobset-uid": made["metadata"]["uid"],
            "replicatedjob-name": part,
            "replicatedjob-replicas": str(replicas),
            "global-replicas": str(len(jobs)),
            "job-index": str(index),
            "job-global-index": str(number),
            "restart-attempt": "0",
        }
        marks = {f"{JOBSET}/{key}": value for key, value in marks.items()}
        await job(stage, f"{name}-{part}-{index}", marks=marks, owner=made, pods=pods)
    return made


async def train_job(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A TrainJob with its JobSet, whose initializer does not count as a rank."""
    spec = {"runtimeRef": {"name": "torch-distributed"}}
    made = await stage.make("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainer", labels=labels, spec=spec)
    await jobset(stage, owner=made, parts=((INITIALIZER, 1, 1), ("node", 1, 3)))
    del stage.ranks[0]
    return made


async def pytorch_job(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A PyTorchJob with a master and workers."""
    roles = {"Worker": 11, "Master": 1}
    replicas = {role: {"replicas": count, "template": {"spec": CONTAINERS}} for role, count in roles.items()}
    spec = {"pytorchReplicaSpecs": replicas}
    made = await stage.make("kubeflow.org/v1", "PyTorchJob", "torch", labels=labels, spec=spec)
    for role in ("master", "worker"):
        for index in range(roles[role.title()]):
            marks = {
                "job-name": "torch",
                "operator-name": "pytorchjob-controller",
                "replica-type": role,
                "replica-index": str(index),
            }
            marks = {f"{TRAINING}/{key}": value for key, value in marks.items()}
            await stage.pod(f"torch-{role}-{index}", owner=made, labels=marks)
    return made


async def leader_worker_set(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A LeaderWorkerSet: leaders belong to its StatefulSet, the workers to a StatefulSet of their leader."""
    groups, size = 11, 3
    spec = {"replicas": groups, "leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": CONTAINERS}}}
    made = await stage.make("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", labels=labels, spec=spec)
    of_set = {f"{LWS}/name": "serve"}
    leaders = await _set(stage, "StatefulSet", "serve", marks=of_set, labels=of_set, owner=made)
    for group in range(groups):
        marks = {f"{LWS}/name": "serve", f"{LWS}/group-index": str(group), f"{LWS}/group-key": uid_of(group)}
        owner = leaders
        for index in range(size):
            name = f"serve-{group}-{index}" if index else f"serve-{group}"
            place = {f"{LWS}/worker-index": str(index), "apps.kubernetes.io/pod-index": str(index or group)}
            made_pod = await stage.pod(name, owner=owner, labels=marks | place, annotations={f"{LWS}/size": str(size)})
            if not index:
                owner = await _set(stage, "StatefulSet", name, marks=marks, labels=marks, owner=made_pod)
    return made


async def ray_cluster(
    stage: Stage, name: str = "ray", *, labels: Labels | None = None, owner: Object | None = None
) -> Object:
    """A RayCluster: a head, and replicas of two hosts. KubeRay names workers at random."""
    group = {"groupName": "gpu", "replicas": 2, "minReplicas": 0, "maxReplicas": 2, "numOfHosts": 2}
    common = {"rayStartParams": {}, "template": {"spec": CONTAINERS}}
    spec = {"headGroupSpec": common, "workerGroupSpecs": [group | common]}
    made = await stage.make("ray.io/v1", "RayCluster", name, labels=labels, owner=owner, spec=spec)
    marks = {"ray.io/cluster": name, "ray.io/is-ray-node": "yes", "app.kubernetes.io/name": "kuberay"}
    head = {"ray.io/node-type": "head", "ray.io/group": "headgroup"}
    await stage.pod(f"{name}-head", owner=made, labels=marks | head)
    for number, tail in enumerate(("x2p9k", "m4v7d", "c8q5t", "b7zl2")):
        replica, host = divmod(number, 2)
        place = {
            "ray.io/node-type": "worker",
            "ray.io/group": "gpu",
            "ray.io/worker-group-replica-name": f"gpu-{replica}",
            "ray.io/worker-group-replica-index": str(replica),
            "ray.io/replica-host-index": str(host),
        }
        await stage.pod(f"{name}-gpu-worker-{tail}", owner=made, labels=marks | place)
    return made


async def ray_job(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A RayJob: its RayCluster, and the submitting Job, which does not count as a rank."""
    head = {"rayStartParams": {}, "template": {"spec": CONTAINERS}}
    spec = {"entrypoint": "python train.py", "rayClusterSpec": {"headGroupSpec": head}}
    status = {"rayClusterName": "ray-x7k2p", "jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
    made = await stage.make("ray.io/v1", "RayJob", "ray", labels=labels, spec=spec, status=status)
    marks = {"ray.io/originated-from-cr-name": "ray", "ray.io/originated-from-crd": "RayJob"}
    await job(stage, "ray", marks=marks, owner=made, pods=1)
    stage.ranks.clear()
    await ray_cluster(stage, status["rayClusterName"], owner=made)
    return made


async def stateful_set(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A StatefulSet with enough pods that the orders of names and of numbers differ."""
    made = await _set(stage, "StatefulSet", "store", marks={"app": "store"}, labels=labels)
    for index in range(11):
        place = {"apps.kubernetes.io/pod-index": str(index), "statefulset.kubernetes.io/pod-name": f"store-{index}"}
        await stage.pod(f"store-{index}", owner=made, labels={"app": "store"} | place)
    return made


async def deployment(stage: Stage, *, labels: Labels | None = None) -> Object:
    """A Deployment with its ReplicaSet, whose pods have names only."""
    made = await _set(stage, "Deployment", "web", marks={"app": "web"}, labels=labels)
    marks = {"app": "web", "pod-template-hash": "5f6c8d7b9"}
    replicas = await _set(stage, "ReplicaSet", "web-5f6c8d7b9", marks=marks, owner=made)
    for tail in ("b7zl2", "c8q5t", "x2p9k"):
        await stage.pod(f"web-5f6c8d7b9-{tail}", owner=replicas, labels=marks)
    return made


async def _set(stage: Stage, kind: str, name: str, *, marks: Labels, **parts: Any) -> Object:
    spec = {"selector": {"matchLabels": marks}, "template": {"metadata": {"labels": marks}, "spec": CONTAINERS}}
    return await stage.make("apps/v1", kind, name, spec=spec, **parts)
