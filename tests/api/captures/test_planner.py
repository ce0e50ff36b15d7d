from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.model import Delivery, Tracers
from mldiagnostics_api.captures.plan import CapturePlan
from mldiagnostics_api.captures.planner import PodInventory, make_plan, needed_of
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import check
from mldiagnostics_api.names import RefusalReason, SkipReason
from mldiagnostics_api.workloads.pods import PodView
from support.cluster import builders as a

NOW = datetime(2026, 11, 21, 3, 4, 5, 678901, tzinfo=UTC)
TRAINER = {"workloadRef": {"kind": "JobSet", "name": "trainer"}}


def inventory_of(world: a.World, **changes: Any) -> PodInventory:
    return replace(PodInventory(pods=world.views(), workload=world.workload, owners=world.owners()), **changes)


def decide(inventory: PodInventory, *, attempt: int = 1, **trigger: Any) -> CapturePlan | CaptureRefusal:
    connection = a.parsed(a.connection(**trigger))
    request = check(connection, Policy())
    if isinstance(request, CaptureRefusal):
        return request
    return make_plan(connection, request, inventory, policy=Policy(), cluster="train-cluster", now=NOW, attempt=attempt)


def planned(inventory: PodInventory, **trigger: Any) -> CapturePlan:
    plan = decide(inventory, **trigger)
    assert isinstance(plan, CapturePlan), plan
    return plan


def refused(inventory: PodInventory, **trigger: Any) -> CaptureRefusal:
    refusal = decide(inventory, **trigger)
    assert isinstance(refusal, CaptureRefusal), refusal
    return refusal


def test_a_whole_jobset() -> None:
    world = a.jobset(jobs={"driver": (1, 1), "workers": (2, 2)}, labels={"managed-mldiagnostics-gke": "true"})
    plan = planned(inventory_of(world), target=TRAINER)
    names = [pod["metadata"]["name"] for pod in world.pods]
    assert [target.pod for target in plan.targets] == names
    assert [target.rank for target in plan.targets] == [0, 1, 2, 3, 4]
    assert [target.slice for target in plan.targets] == [0, 0, 0, 1, 1]
    assert [target.stem for target in plan.targets] == names
    assert {target.port for target in plan.targets} == {9999}
    assert plan.skipped == ()
    assert plan.needed == plan.total == 5
    [directory] = plan.directories
    assert directory == plan.output
    assert str(directory).startswith("volume:///")
    assert plan.targets[0].run_id == directory.segments[-1]
    assert plan.delivery is Delivery.OPERATOR
    assert plan.tracers == Tracers(host=2, device=1, python=0)


@pytest.mark.parametrize(
    ("annotations", "tracers", "skipped"),
    [
        ({}, {}, ()),
        ({"diagon.gke.io/capture-reason": "slot"}, {}, (SkipReason.COMMAND_BUFFERS_ACTIVE,)),
        ({"diagon.gke.io/capture-reason": "slot"}, {"tracers": {"device": 0}}, ()),
    ],
)
def test_an_automatic_capture_spares_gpus_that_it_could_end(
    annotations: dict[str, str], tracers: dict[str, Any], skipped: tuple[SkipReason, ...]
) -> None:
    made = a.connection(podName="trainer-0", **tracers)
    made["metadata"]["annotations"] = annotations
    request = check(a.parsed(made), Policy())
    assert not isinstance(request, CaptureRefusal)
    inventory = PodInventory(pods=[PodView.of(a.pod(gpus=8))])
    plan = make_plan(a.parsed(made), request, inventory, policy=Policy(), cluster="c", now=NOW)
    assert isinstance(plan, CapturePlan)
    assert tuple(each.reason for each in plan.skipped) == skipped
    assert [each.pod for each in plan.endangered] == ([] if annotations else ["trainer-0"])


def test_times_follow_from_lead_and_duration() -> None:
    plan = planned(inventory_of(a.jobset()), target=TRAINER, durationSeconds=3)
    assert plan.lead_ms == 2000
    assert plan.planned_start == NOW + timedelta(seconds=2)
    assert plan.deadline == NOW + timedelta(seconds=2 + 2 * 3 + 60)
    assert plan.start_ns == 1795230247678901000
    single = planned(inventory_of(a.job(pods=1)), target={"workloadRef": {"kind": "Job", "name": "trainer"}})
    assert (single.lead_ms, single.start_ns, single.planned_start) == (0, None, NOW)


def test_values_of_the_spec_replace_the_defaults() -> None:
    plan = planned(
        inventory_of(a.jobset()),
        target=TRAINER,
        startLeadMilliseconds=500,
        deadlineSeconds=9,
        tracers={"python": 1},
        sessionId="before fix",
        allowOldServer=True,
        dryRun=True,
        minimumCaptured="50%",
    )
    assert plan.deadline == NOW + timedelta(seconds=9)
    assert plan.lead_ms == 500
    assert plan.tracers == Tracers(host=2, device=1, python=1)
    assert plan.session.startswith("before-fix")
    assert plan.allow_old_server
    assert plan.dry_run
    assert plan.needed == 1


def test_a_later_attempt_has_a_session_of_its_own() -> None:
    inventory = inventory_of(a.jobset())
    first, second = decide(inventory, target=TRAINER), decide(inventory, target=TRAINER, attempt=2)
    assert isinstance(first, CapturePlan)
    assert isinstance(second, CapturePlan)
    assert second.session == f"{first.session}-2"
    assert second.attempt == 2


def test_pods_with_only_the_labels_do_not_belong_to_the_workload() -> None:
    world = a.deployment()
    impostor = a.pod("impostor", labels={"app": "web"})
    other = a.deployment("web2").pods[0]
    other["metadata"]["labels"] = {"app": "web"}
    world.pods += [impostor, other]
    plan = planned(inventory_of(world), target={"workloadRef": {"kind": "Deployment", "name": "web"}})
    assert {target.pod for target in plan.targets} == {pod["metadata"]["name"] for pod in world.pods[:2]}


def test_a_pod_that_no_controller_confirms_is_skipped_and_not_counted() -> None:
    world = a.job(pods=2)
    forged = a.pod("forged", labels={"batch.kubernetes.io/job-completion-index": "0"}, owner=world.workload)
    world.pods.append(forged)
    target = {"workloadRef": {"kind": "Job", "name": "trainer"}}
    plan = planned(inventory_of(world), target=target)
    assert [(each.pod, each.reason) for each in plan.skipped] == [("forged", SkipReason.NOT_CONFIRMED)]
    assert plan.needed == plan.total == len(plan.targets) == 2
    named = planned(inventory_of(world), podName=",".join(pod["metadata"]["name"] for pod in world.pods))
    assert named.needed == named.total == 3


def test_a_recreated_workload_of_the_same_name_has_none_of_the_old_pods() -> None:
    world = a.job()
    recreated = a.thing("trainer", kind="Job", api_version="batch/v1", uid="another")
    refusal = refused(
        inventory_of(world, workload=recreated), target={"workloadRef": {"kind": "Job", "name": "trainer"}}
    )
    assert (refusal.reason, refusal.transient) == (RefusalReason.NO_POD_MATCHES, True)


def test_pod_names_that_do_not_exist_are_skipped_with_a_suggestion() -> None:
    inventory = PodInventory(pods=[a.PodView.of(a.pod("trainer-0"))], nearby=["trainer-0", "trainer-1", "web-7"])
    plan = planned(inventory, podName="trainer-0,trainr-1", minimumCaptured=1)
    assert [target.pod for target in plan.targets] == ["trainer-0"]
    [skipped] = plan.skipped
    assert (skipped.pod, skipped.reason) == ("trainr-1", SkipReason.NOT_FOUND)
    assert "did you mean trainer-1" in skipped.message
    assert plan.total == 2
    assert plan.needed == 1
    assert plan.may_grow


def test_only_the_first_absent_names_get_a_suggestion() -> None:
    inventory = PodInventory(pods=[a.PodView.of(a.pod("trainer-0"))], nearby=["trainer-0"])
    plan = planned(inventory, podName=",".join(f"trainer-{rank}" for rank in range(50)), minimumCaptured=1)
    hinted = ["did you mean trainer-0?" in skipped.message for skipped in plan.skipped]
    assert hinted == [True] * 10 + [False] * 39


@pytest.mark.parametrize(
    ("inventory", "trigger", "reason", "expected"),
    [
        (
            PodInventory(nearby=["trainer-0", "x"]),
            {"podName": "trainer-o"},
            RefusalReason.PODS_NOT_FOUND,
            "did you mean trainer-0?",
        ),
        (
            PodInventory(),
            {"podName": "a,b"},
            RefusalReason.PODS_NOT_FOUND,
            "pods a, b in namespace ml: not found; the namespace has none",
        ),
        (PodInventory(nearby=["zeta"]), {"podName": "a"}, RefusalReason.PODS_NOT_FOUND, "the namespace has zeta"),
        (
            PodInventory(nearby=["trainer2"]),
            {"target": TRAINER},
            RefusalReason.WORKLOAD_NOT_FOUND,
            "did you mean trainer2",
        ),
        (PodInventory(workload=a.jobset().workload), {"target": TRAINER}, RefusalReason.NO_POD_MATCHES, "has no pods"),
        (
            PodInventory(nearby=["a", "b"]),
            {"target": {"selector": {"matchLabels": {"app": "x"}}}},
            RefusalReason.NO_POD_MATCHES,
            "app=x in namespace ml: not found; the namespace has 2 other pods",
        ),
        (
            inventory_of(a.jobset()),
            {"target": TRAINER | {"ranks": "7"}},
            RefusalReason.NO_POD_MATCHES,
            "none of 2 pods matches ranks",
        ),
    ],
)
def test_a_refusal_names_the_request_and_existing_objects(
    inventory: PodInventory, trigger: dict[str, Any], reason: RefusalReason, expected: str
) -> None:
    refusal = refused(inventory, **trigger)
    assert refusal.reason is reason
    assert refusal.transient
    assert expected in refusal.message


def test_a_finished_pod_that_was_named_is_reported_even_if_replaced() -> None:
    world = a.job(pods=2)
    old = a.pod("trainer-0-old", labels=world.pods[0]["metadata"]["labels"], owner=world.workload, phase="Failed")
    world.pods.append(old)
    named = planned(inventory_of(world), podName=",".join(pod["metadata"]["name"] for pod in world.pods))
    assert [(skipped.pod, skipped.reason) for skipped in named.skipped] == [("trainer-0-old", SkipReason.FINISHED)]
    assert planned(inventory_of(world), target={"workloadRef": {"kind": "Job", "name": "trainer"}}).skipped == ()


def test_several_runs_have_one_session_and_a_directory_each() -> None:
    one, other = a.jobset("one"), a.jobset("other")
    inventory = PodInventory(pods=[*one.views(), *other.views()], owners={**one.owners(), **other.owners()})
    plan = planned(inventory, podName=",".join(pod.name for pod in inventory.pods))
    assert [str(directory) for directory in plan.directories] == ["volume:///ml/one", "volume:///ml/other"]
    assert str(plan.output) == "volume:///ml"
    assert [target.rank for target in plan.targets] == [0, 1, 0, 1]


def test_a_plan_without_ready_pods_reports_each_pod() -> None:
    plan = planned(inventory_of(a.jobset(phase="Pending", ip="")), target=TRAINER)
    assert plan.targets == ()
    assert {skipped.reason for skipped in plan.skipped} == {SkipReason.NOT_READY}
    assert plan.may_grow
    assert str(plan.output) == "volume:///"


@pytest.mark.parametrize(("status", "may_grow"), [("True", False), ("False", True)])
def test_a_pod_that_runs_but_is_not_ready_is_a_target_worth_waiting_for(status: str, *, may_grow: bool) -> None:
    world = a.jobset()
    world.pods[0]["status"]["conditions"] = [{"type": "Ready", "status": status}]
    plan = planned(inventory_of(world), target=TRAINER)
    assert (len(plan.targets), plan.skipped, plan.may_grow) == (2, (), may_grow)


@pytest.mark.parametrize(
    ("minimum", "total", "needed"),
    [(None, 4, 4), ("100%", 3, 3), ("50%", 3, 2), ("1%", 3, 1), ("34%", 3, 2), (2, 3, 2), (9, 3, 9), (None, 0, 1)],
)
def test_the_number_of_needed_targets(minimum: int | str | None, total: int, needed: int) -> None:
    trigger = {"podName": "a"} | ({"minimumCaptured": minimum} if minimum else {})
    assert needed_of(a.parsed(a.connection(**trigger)).spec.trigger_capture, total) == needed


states = st.lists(
    st.fixed_dictionaries(
        {
            "phase": st.sampled_from(["Running", "Running", "Pending", "Failed", "Succeeded"]),
            "ip": st.sampled_from(["10.0.0.1", "", "127.0.0.1"]),
            "terminating": st.booleans(),
            "host_network": st.booleans(),
            "published_ports": st.sampled_from([None, "9999", "9999,10000", "1", "x"]),
        }
    ),
    min_size=6,
    max_size=6,
)
WORLD = a.jobset(jobs={"driver": (1, 1), "workers": (2, 2)})
VIEWS = [*WORLD.views(), a.PodView.of(a.pod("loose"))]
OWNERS = WORLD.owners()


@given(states, st.permutations(range(6)))
def test_every_pod_is_a_target_or_skipped_and_the_order_does_not_matter(
    changes: list[dict[str, Any]], permutation: list[int]
) -> None:
    views = [replace(view, **change) for view, change in zip(VIEWS, changes, strict=True)]
    names = ",".join([*(view.name for view in views), "ghost"])
    plan = planned(PodInventory(pods=views, owners=OWNERS), podName=names)
    assert plan == planned(PodInventory(pods=[views[index] for index in permutation], owners=OWNERS), podName=names)

    planned_uids = {target.uid for target in plan.targets}
    skipped = {target.uid for target in plan.skipped if target.uid}
    assert planned_uids | skipped == {view.uid for view in views}
    assert [target.pod for target in plan.skipped if not target.uid] == ["ghost"]
    files = [(target.directory, target.stem) for target in plan.targets]
    assert len(set(files)) == len(files)
    assert len({(target.host, target.port, target.uid) for target in plan.targets}) == len(files)
    for target in plan.targets:
        assert target.host == "10.0.0.1"
        assert target.port in Policy().allowed_ports
        assert target.directory.within(plan.output)
    assert 1 <= plan.needed == plan.total
