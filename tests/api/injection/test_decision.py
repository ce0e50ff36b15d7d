from __future__ import annotations

import copy
import datetime as dt
import json
import re
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import identity
from mldiagnostics_api.injection import (
    MAX_POD_BYTES,
    Injection,
    InjectionReason,
    InjectionSettings,
    NotInjected,
    OwnersUnknown,
    controller_of,
    decide,
    patch,
)
from mldiagnostics_api.workloads.matching import MatchReason
from mldiagnostics_api.workloads.owners import lone_run, owner_chain
from support.cluster import admission
from support.cluster import builders as a

Object = dict[str, Any]

NOW = dt.datetime(2026, 11, 21, 7, 0, 0, 123, tzinfo=dt.UTC)
PLAIN = InjectionSettings(cluster="projects/p/locations/l/clusters/train-cluster")
FULL = InjectionSettings(
    cluster="train-cluster",
    storage="gs://bücket/runs",
    sinks=("jsonl:", "otlp://c:4317"),
    view_url="https://view",
    control_plane_url="https://control:8443",
    control_plane_ca="-----BEGIN CERTIFICATE-----\n" + "A" * 600,
)
ALWAYS = {
    "MLDIAG_POD_NAME",
    "MLDIAG_POD_UID",
    "MLDIAG_NODE_NAME",
    "MLDIAG_NAMESPACE",
    "MLDIAG_RUN_ID",
    "MLDIAG_WORKLOAD",
    "MLDIAG_ATTEMPT",
    "MLDIAG_PROFILER_PORT",
    "GKE_DIAGON_IDENTIFIER",
    "GKE_DIAGON_METADATA",
}


def decided(pod: Any, world: a.World | None = None, **changes: Any) -> Injection | NotInjected:
    owners = owner_chain(controller_of(pod, "ml"), admission.reader(world), pods=False) if world else ()
    usual: dict[str, Any] = {
        "namespace": "ml",
        "namespace_labels": {},
        "namespace_annotations": {},
        "owners": owners,
        "settings": PLAIN,
        "now": NOW,
    }
    return decide(pod, **usual | changes)


def patched(pod: Object, decision: Injection | NotInjected) -> Object:
    result: Object = jsonpatch.apply_patch(pod, patch(pod, decision))
    return result


def injected(pod: Object, world: a.World | None = None, **changes: Any) -> Object:
    decision = decided(pod, world, **changes)
    assert isinstance(decision, Injection), decision
    return patched(pod, decision)


def refused(pod: Object, world: a.World | None = None, **changes: Any) -> NotInjected:
    decision = decided(pod, world, **changes)
    assert isinstance(decision, NotInjected), decision
    return decision


def variables(container: Object) -> dict[str, Object]:
    return {variable["name"]: variable for variable in container.get("env") or ()}


def all_containers(pod: Object) -> list[Object]:
    return [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]


def running(pod: Object) -> list[Object]:
    sidecars = [c for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"]
    return [*pod["spec"]["containers"], *sidecars]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


# Laws -----------------------------------------------------------------------------------------------------------------

settings = st.sampled_from([PLAIN, FULL])
situations = st.tuples(admission.situations(), settings).map(lambda drawn: (*drawn[0], drawn[1]))
Situation = tuple[a.World, Object, InjectionSettings]


@given(situations)
def test_property_an_injected_pod_lacks_nothing(situation: Situation) -> None:
    world, pod, settings = situation
    once = patched(pod, decided(pod, world, settings=settings))
    again = decided(once, world, settings=settings, now=NOW + dt.timedelta(seconds=9))
    assert patch(once, again) == []


@given(situations)
def test_property_the_patch_applies_the_decision_and_does_not_change_its_input(situation: Situation) -> None:
    world, pod, settings = situation
    before = copy.deepcopy(pod)
    decision = decided(pod, world, settings=settings)
    operations = patch(pod, decision)
    assert pod == before
    assert {operation["op"] for operation in operations} <= {"add"}
    assert jsonpatch.apply_patch(pod, operations) == structurally(pod, decision)


def structurally(pod: Object, decision: Injection | NotInjected) -> Object:
    """Return a copy of the pod with the additions of the decision."""
    pod = copy.deepcopy(pod)
    metadata, spec = pod["metadata"], pod["spec"]
    wanted = [(metadata, "annotations", decision.annotations)]
    if isinstance(decision, Injection):
        wanted.append((metadata, "labels", decision.labels))
        if decision.volume:
            spec["volumes"] = [*(spec.get("volumes") or ()), decision.volume]
        for addition in decision.containers:
            _, _, kind, index = addition.path.split("/")
            container = spec[kind][int(index)]
            if addition.variables:
                container["env"] = [*(container.get("env") or ()), *addition.variables]
            if addition.mount:
                container["volumeMounts"] = [*(container.get("volumeMounts") or ()), addition.mount]
    for parent, key, added in wanted:
        if added:
            parent[key] = {**(parent.get(key) or {}), **added}
    return pod


@given(situations)
def test_property_only_additions(situation: Situation) -> None:
    world, pod, settings = situation
    after = patched(pod, decided(pod, world, settings=settings))
    assert within(pod, after)
    for container, old in zip(all_containers(after), all_containers(pod), strict=True):
        names = [variable["name"] for variable in container.get("env") or ()]
        assert len(names) == len(set(names))
        assert names[: len(old.get("env") or ())] == [variable["name"] for variable in old.get("env") or ()]
        added = set(names) - {variable["name"] for variable in old.get("env") or ()}
        assert all(name.startswith(("MLDIAG_", "GKE_DIAGON_")) for name in added)


def within(before: Any, after: Any) -> bool:
    """Return whether all members and elements are still there, except nulls; lists may grow at their end."""
    if before is None:
        return True
    if isinstance(before, dict):
        return all(key in after and within(value, after[key]) for key, value in before.items())
    if isinstance(before, list):
        return len(before) <= len(after) and all(within(*pair) for pair in zip(before, after, strict=False))
    return bool(before == after)


@given(situations)
def test_property_all_is_injected_or_only_an_explanation(situation: Situation) -> None:
    world, pod, settings = situation
    decision = decided(pod, world, settings=settings)
    after = patched(pod, decision)
    if isinstance(decision, NotInjected):
        after["metadata"].pop("annotations", None)
        assert after == {**pod, "metadata": {k: v for k, v in pod["metadata"].items() if k != "annotations"}}
        return
    for container in running(after):
        assert variables(container).keys() >= ALWAYS
    starting = [c for c in after["spec"].get("initContainers") or () if "restartPolicy" not in c]
    assert all(c in pod["spec"]["initContainers"] for c in starting)
    metadata = after["metadata"]
    assert metadata["annotations"]["diagon.gke.io/run-id"].startswith(metadata["labels"]["diagon.gke.io/run"])


@given(situations)
def test_property_access_to_the_control_plane_is_complete_or_missing(situation: Situation) -> None:
    world, pod, settings = situation
    after = patched(pod, decided(pod, world, settings=settings))
    volumes = {volume["name"] for volume in after["spec"].get("volumes") or ()}
    for container, old in zip(all_containers(after), all_containers(pod), strict=True):
        names = variables(container).keys() - variables(old).keys()
        mounts = (container.get("volumeMounts") or [])[len(old.get("volumeMounts") or ()) :]
        given_whole = {"MLDIAG_CONTROL_PLANE_URL", "MLDIAG_CONTROL_PLANE_CA"} <= names
        assert given_whole == bool(mounts)
        assert given_whole or not {"MLDIAG_CONTROL_PLANE_URL", "MLDIAG_CONTROL_PLANE_CA"} & names
        assert {mount["name"] for mount in mounts} <= volumes
        assert all(mount["readOnly"] for mount in mounts)
        paths = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
        assert len(paths) == len(set(paths))


@given(situations)
def test_property_additions_are_within_the_bounds(situation: Situation) -> None:
    world, pod, settings = situation
    after = patched(pod, decided(pod, world, settings=settings))
    assert size(after) - size(pod) <= 8 * 1024
    annotations = after["metadata"].get("annotations") or {}
    assert sum(len(text.encode()) for pair in annotations.items() for text in pair) <= 256 * 1024
    for value in (after["metadata"].get("labels") or {}).values():
        assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", value)


@given(situations, st.data())
def test_property_any_json_is_decided_and_a_bad_pod_is_unchanged(situation: Situation, data: st.DataObject) -> None:
    world, pod, settings = situation
    damaged = data.draw(admission.broken(pod) | admission.any_json)
    decision = decided(damaged, world, settings=settings, namespace_labels=admission.LABELLED)
    if isinstance(decision, NotInjected) and decision.reason is InjectionReason.MALFORMED:
        assert decision.annotations == {}
        return
    after = patched(damaged, decision)
    json.dumps(after, ensure_ascii=False).encode()
    assert patch(after, decided(after, world, settings=settings, namespace_labels=admission.LABELLED)) == []


@given(st.text(), st.text())
def test_property_any_name_gives_valid_json(name: str, owner: str) -> None:
    pod = a.pod("trainer-0", owner=a.thing(owner, kind="Job", api_version="batch/v1"))
    pod["spec"]["containers"][0]["name"] = name
    for owners in (OwnersUnknown("\ud800 is in the way"), ()):
        decision = refused(pod, owners=owners, namespace_labels=admission.LABELLED)
        json.dumps(patch(pod, decision), ensure_ascii=False).encode()
    lone = a.pod(name, labels=dict(admission.LABELLED))
    json.dumps(patch(lone, decided(lone)), ensure_ascii=False).encode()


# Whose run ------------------------------------------------------------------------------------------------------------


@given(admission.worlds())
def test_property_all_pods_of_a_workload_get_its_run(world: a.World) -> None:
    assert world.workload is not None
    environment = {injected(pod, world)["metadata"]["annotations"]["diagon.gke.io/run-id"] for pod in world.pods}
    # A CronJob is never a run: each of its Jobs is.
    run = world.parts[-1] if world.workload["kind"] in {"CronJob", "RayCronJob"} else world.workload
    assert environment == {
        identity.run_id(
            cluster="train-cluster",
            namespace="ml",
            kind=run["kind"],
            name=run["metadata"]["name"],
            created=dt.datetime.fromisoformat(a.CREATED),
        )
    }


def test_the_check_value_of_the_identity_holds() -> None:
    world = a.jobset(labels=admission.LABELLED)
    environment = variables(injected(world.pods[0], world)["spec"]["containers"][0])
    assert environment["MLDIAG_RUN_ID"]["value"] == "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"


def test_a_lone_pod_has_the_same_run_in_its_variables_and_later() -> None:
    pod = injected(a.pod("notebook", labels=admission.LABELLED | {"team": "infra"}))
    environment = variables(pod["spec"]["containers"][0])
    metadata = json.loads(environment["GKE_DIAGON_METADATA"]["value"])
    assert metadata["creation-timestamp"] == "2026-11-21T07:00:00Z"
    assert '"uid":"$(MLDIAG_POD_UID)"' in environment["MLDIAG_WORKLOAD"]["value"]
    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    later = lone_run("notebook", labels, annotations, NOW + dt.timedelta(seconds=2))
    created = dt.datetime.fromisoformat(later.workload["metadata"]["creationTimestamp"])
    expected = identity.run_id(cluster="train-cluster", namespace="ml", kind="Pod", name="notebook", created=created)
    assert environment["MLDIAG_RUN_ID"]["value"] == expected == annotations["diagon.gke.io/run-id"]


def test_a_copy_of_an_injected_pod_is_declined_while_it_names_the_first_run() -> None:
    copied = injected(a.pod("notebook", labels=admission.LABELLED))
    later = refused(copied, now=NOW + dt.timedelta(hours=1))
    assert later.reason is InjectionReason.OTHER_RUN
    assert "diagon.gke.io/run-created" in later.message


# Reasons --------------------------------------------------------------------------------------------------------------

ON = admission.LABELLED
OFF = {"managed-mldiagnostics-gke": "false"}
DAEMON = a.thing("agent", kind="DaemonSet", api_version="apps/v1")


@pytest.mark.parametrize(
    ("pod", "changes", "reason", "requested"),
    [
        (a.pod(), {}, MatchReason.NO_LABEL, False),
        (a.pod(), {"namespace_labels": ON}, MatchReason.KIND_NEEDS_OWN_LABEL, True),
        (a.pod(labels=OFF), {"namespace_labels": ON}, MatchReason.WORKLOAD_OPTED_OUT, False),
        (a.pod(labels=ON), {"namespace": "kube-system"}, MatchReason.NAMESPACE_EXCLUDED, False),
        (
            a.pod(labels=ON),
            {"namespace_labels": {"diagon-webhook-exempt": "true"}},
            MatchReason.NAMESPACE_EXEMPT,
            False,
        ),
        (
            a.pod(labels=ON) | {"metadata": {"labels": ON, "generateName": "a-"}},
            {},
            InjectionReason.NAME_NOT_KNOWN,
            True,
        ),
        (a.pod(labels=ON, owner=DAEMON), {}, InjectionReason.KIND_NOT_SUPPORTED, True),
        (a.pod(owner=DAEMON), {"namespace_labels": ON}, InjectionReason.KIND_NOT_SUPPORTED, True),
        (a.pod(owner=DAEMON), {}, InjectionReason.KIND_NOT_SUPPORTED, False),
        (a.jobset().pods[0], {"namespace_labels": ON}, InjectionReason.OWNER_NOT_FOUND, True),
        (a.jobset().pods[0], {"owners": OwnersUnknown("slow")}, InjectionReason.OWNERS_UNKNOWN, False),
        (
            a.jobset().pods[0],
            {"owners": OwnersUnknown("slow"), "namespace_labels": ON},
            InjectionReason.OWNERS_UNKNOWN,
            True,
        ),
        (a.pod(labels=ON, annotations={"kubernetes.io/config.mirror": "x"}), {}, InjectionReason.MIRROR_POD, False),
        (a.pod(labels=ON, annotations={"diagon.gke.io/inject": "false"}), {}, InjectionReason.OPTED_OUT, False),
        (
            a.pod(labels=ON),
            {"namespace_annotations": {"diagon.gke.io/inject": "false"}},
            InjectionReason.OPTED_OUT,
            False,
        ),
        (a.pod(labels=ON, annotations={"diagon.gke.io/sinks": "a;b"}), {}, InjectionReason.ANNOTATION_INVALID, True),
        (a.pod(labels=ON), {"settings": InjectionSettings(cluster="")}, InjectionReason.IDENTITY_UNUSABLE, True),
        (a.pod(labels=ON | {"diagon.gke.io/run": "0" * 32}), {}, InjectionReason.OTHER_RUN, True),
        (a.pod(labels=ON, annotations={"diagon.gke.io/run-id": "0" * 64}), {}, InjectionReason.OTHER_RUN, True),
        (
            a.pod(labels=ON, annotations={"diagon.gke.io/inject-containers": "x"}),
            {},
            InjectionReason.NO_CONTAINER_CHOSEN,
            True,
        ),
        (a.pod(labels=ON) | {"spec": {}}, {}, InjectionReason.NO_CONTAINER_CHOSEN, True),
        (a.pod(labels=ON) | {"spec": {"containers": [{"name": "c"}] * 9}}, {}, InjectionReason.TOO_LARGE, True),
        (a.pod(labels=ON, annotations={"note": "x" * 262_000}), {}, InjectionReason.ANNOTATIONS_FULL, True),
        (a.pod(labels=ON) | {"spec": {"containers": "none"}}, {}, InjectionReason.MALFORMED, False),
    ],
)
def test_a_declined_pod_gets_an_explanation_if_a_label_requested_injection(
    pod: Object, changes: dict[str, Any], reason: InjectionReason | MatchReason, *, requested: bool
) -> None:
    decision = refused(pod, **changes)
    assert (decision.reason, decision.requested) == (reason, requested)
    operations = patch(pod, decision)
    if not requested:
        assert operations == []
        return
    explanation = patched(pod, decision)["metadata"]["annotations"]["diagon.gke.io/injection"]
    assert explanation == f"{reason}: {decision.message}"
    assert explanation.isascii()


def test_full_annotations_get_no_explanation_but_a_warning() -> None:
    decision = refused(a.pod(labels=ON, annotations={"note": "x" * (256 * 1024 - 4)}))
    assert decision.reason is InjectionReason.ANNOTATIONS_FULL
    assert decision.annotations == {}
    assert decision.warning.endswith(decision.message)


def test_a_pod_near_the_limit_of_etcd_gets_no_addition_but_a_warning() -> None:
    pod = a.pod(labels=ON)
    assert isinstance(decided(pod, pod_bytes=MAX_POD_BYTES), Injection)
    decision = refused(pod, pod_bytes=MAX_POD_BYTES + 1)
    assert decision.reason is InjectionReason.POD_TOO_LARGE
    assert patch(pod, decision) == []
    assert decision.warning.endswith(decision.message)
    other = refused(a.pod(labels=ON, annotations={"diagon.gke.io/sinks": "a;b"}), pod_bytes=MAX_POD_BYTES + 1)
    assert patch(pod, other) == []
    assert not refused(a.pod(), pod_bytes=MAX_POD_BYTES + 1).warning, "no label requests a run"


@pytest.mark.parametrize("depth", [1, 2])
def test_a_missing_owner_at_any_depth_leaves_the_pod_without_a_run(depth: int) -> None:
    world = a.jobset().owned_by("TrainJob", "tune", "trainer.kubeflow.org/v1alpha1")
    chain = owner_chain(controller_of(world.pods[0], "ml"), world.owners().get, pods=False)
    assert len(chain) == 3
    decision = refused(world.pods[0], owners=chain[:depth], namespace_labels=ON)
    assert decision.reason is InjectionReason.OWNER_NOT_FOUND


def test_owners_of_another_pod_do_not_count() -> None:
    world, other = a.job("mine"), a.job("other", labels=ON)
    chain = owner_chain(controller_of(other.pods[0], "ml"), other.owners().get)
    assert refused(world.pods[0], owners=chain, namespace_labels=ON).reason is InjectionReason.OWNER_NOT_FOUND


# Bounds ---------------------------------------------------------------------------------------------------------------


def test_labels_are_dropped_first_beyond_the_bound() -> None:
    world = a.jobset(labels=ON | {f"label-{n}": "x" * 63 for n in range(60)})
    pod = world.pods[0]
    decision = decided(pod, world)
    assert isinstance(decision, Injection)
    assert decision.labels_dropped
    environment = variables(patched(pod, decision)["spec"]["containers"][0])
    assert "associated-labels" not in json.loads(environment["GKE_DIAGON_METADATA"]["value"])
    assert "labels" not in json.loads(environment["MLDIAG_WORKLOAD"]["value"])
    few = a.jobset(labels=ON | {"team": "infra"})
    environment = variables(injected(few.pods[0], few)["spec"]["containers"][0])
    assert json.loads(environment["MLDIAG_WORKLOAD"]["value"])["labels"] == ON | {"team": "infra"}
