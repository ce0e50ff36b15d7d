"""Hypothesis strategies for admission: pods in every valid shape, and any JSON in place of a pod."""

from __future__ import annotations

import copy
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from support.cluster import builders as a
from support.cluster.strategies import dns_labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.workloads.owners import ObjectReference

Object = dict[str, Any]

LABELLED = {"managed-mldiagnostics-gke": "true"}
OURS = ("MLDIAG_RUN_ID", "GKE_DIAGON_METADATA", "MLDIAG_POD_UID", "MLDIAG_CONTROL_PLANE_URL", "MLDIAG_PROFILER_PORT")

WORLDS: tuple[Callable[[], a.World], ...] = (
    a.jobset,
    a.job,
    a.leader_worker_set,
    a.ray_cluster,
    a.stateful_set,
    a.deployment,
    a.training_job,
    lambda: a.jobset().owned_by("TrainJob", "tune", "trainer.kubeflow.org/v1alpha1"),
    lambda: a.job().owned_by("CronJob", "nightly", "batch/v1"),
    lambda: a.ray_cluster().owned_by("RayJob", "ray", "ray.io/v1"),
    lambda: a.ray_cluster().owned_by("RayJob", "ray", "ray.io/v1").owned_by("RayCronJob", "nightly", "ray.io/v1"),
)

any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@st.composite
def maybe(draw: st.DrawFn, key: str, value: st.SearchStrategy[Any]) -> Object:
    """Draw an object with the key, with null as its value, or without it."""
    return draw(st.sampled_from([{}, {key: None}])) if draw(st.booleans()) else {key: draw(value)}


@st.composite
def containers(draw: st.DrawFn, *, starting: bool = False) -> Object:
    """Draw a container with variables, some with our names, and mounts, some in our directory."""
    sources = [{"value": "mine"}, {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {}]
    variable = st.builds(
        lambda name, source: {"name": name, **source}, st.sampled_from([*OURS, "PATH"]), st.sampled_from(sources)
    )
    env = st.lists(variable, unique_by=itemgetter("name"), max_size=4)
    paths = ["/data", "/var/run/secrets", "/var/run/secrets/mldiagnostics", "/var/run/secrets/mldiagnostics/token"]
    mounts = st.lists(st.sampled_from(paths), unique=True, max_size=2).map(
        lambda chosen: [{"name": "data", "mountPath": path} for path in chosen]
    )
    ports = st.just([{"name": "web", "containerPort": 80}, {"name": "mldiag-prof", "containerPort": 10001}])
    return {
        "name": draw(dns_labels(max_size=8)),
        "image": "train:1",
        **draw(maybe("env", env)),
        **draw(maybe("volumeMounts", mounts)),
        **draw(maybe("ports", ports)),
        **({"restartPolicy": "Always"} if starting and draw(st.booleans()) else {}),
    }


@st.composite
def admitted(draw: st.DrawFn, pod: Object) -> Object:
    """Draw the pod of a world as in admission: without uid and status, with its own spec."""
    metadata = {key: pod["metadata"][key] for key in ("labels", "ownerReferences") if key in pod["metadata"]}
    spec = {
        "containers": draw(st.lists(containers(), min_size=1, max_size=4, unique_by=itemgetter("name"))),
        **draw(maybe("initContainers", st.lists(containers(starting=True), max_size=2, unique_by=itemgetter("name")))),
        **draw(maybe("serviceAccountName", st.just("default"))),
        **draw(maybe("volumes", st.sampled_from([[], [{"name": "data", "emptyDir": {}}]]))),
    }
    annotations = draw(maybe("annotations", st.sampled_from([{}, {"note": "mine"}, {"note": "x" * 262_000}])))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, **annotations}, "spec": spec}


@st.composite
def worlds(draw: st.DrawFn) -> a.World:
    """Draw a workload of some kind that is opted in by its own label; other labels may be long and many."""
    made = draw(st.sampled_from(WORLDS))()
    others = {f"team-{n}": "x" * length for n, length in enumerate(draw(st.lists(st.integers(0, 63), max_size=40)))}
    if made.workload is None:
        raise ValueError("every world here has a workload")
    for owner in (made.workload, *made.parts):
        owner["metadata"]["labels"] = {**owner["metadata"]["labels"], **LABELLED, **others}
    return made


def situations() -> st.SearchStrategy[tuple[a.World, Object]]:
    """Return a strategy of a world and one of its pods as in admission."""
    return worlds().flatmap(lambda world: st.tuples(st.just(world), st.sampled_from(world.pods).flatmap(admitted)))


@st.composite
def broken(draw: st.DrawFn, pod: Object) -> Any:
    """Draw the pod with one part replaced by any JSON."""
    damaged = copy.deepcopy(pod)
    here: Any = damaged
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = draw(st.sampled_from(keys))
        below = here[key]
        if not isinstance(below, (dict, list)) or not below or draw(st.booleans()):
            here[key] = draw(any_json)
            return damaged
        here = below


def reader(world: a.World) -> Callable[[ObjectReference], Object | None]:
    """Return a lookup of owners like the webhook's: it never reads pods, and finds a LeaderWorkerSet by name."""
    known = world.owners()

    def lookup(reference: ObjectReference) -> Object | None:
        if reference.kind == "Pod":
            raise AssertionError("the webhook may not read pods")
        workload = world.workload
        named = workload is not None and (workload["kind"], workload["metadata"]["name"]) == (
            reference.kind,
            reference.name,
        )
        return known.get(reference) or (workload if named else None)

    return lookup
