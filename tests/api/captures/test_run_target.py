from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mldiagnostics_api.captures.plan import CapturePlan
from mldiagnostics_api.captures.planner import PodInventory, make_plan
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import CaptureRequest, check
from mldiagnostics_api.captures.run_target import RunTarget
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.reports.reported_profilers import ReportedProfilers
from mldiagnostics_api.v1alpha1 import read_run
from support.cluster import builders as a

POLICY = Policy.parse(
    '{"defaultStorage": "volume:///", "allowedStorage": {"ml": ["gs://runs/ml"]}, "strictTenancy": true}'
)
NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
TRAINER = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "trainer"}
BY_RUN = {"target": {"runRef": {"name": "trainer-1"}}}


def target(*, phase: str = "Active", pods: dict[str, str] | None = None, **spec: Any) -> RunTarget:
    body = a.thing("trainer-1", kind="MLRun", api_version="diagon.gke.io/v1alpha1", spec=spec, status={"phase": phase})
    return RunTarget(read_run(body), pods or {})


def checked(run: RunTarget | None, **trigger: Any) -> CaptureRequest | CaptureRefusal:
    return check(a.parsed(a.connection(**(BY_RUN | trigger))), POLICY, run)


def accepted(run: RunTarget, **trigger: Any) -> CaptureRequest:
    request = checked(run, **trigger)
    assert isinstance(request, CaptureRequest), request
    return request


def planned(world: a.World, run: RunTarget, **inventory: Any) -> CapturePlan | CaptureRefusal:
    pods = PodInventory(pods=world.views(), workload=world.workload, owners=world.owners(), **inventory)
    return make_plan(a.parsed(a.connection(**BY_RUN)), accepted(run), pods, policy=POLICY, cluster="c", now=NOW)


@pytest.mark.parametrize(
    ("run", "reason", "transient", "words"),
    [
        (None, RefusalReason.RUN_NOT_FOUND, True, "'trainer-1': no such MLRun in namespace 'ml'; list them"),
        (target(workloadRef=TRAINER, phase="Completed"), RefusalReason.RUN_ENDED, False, "ended (Completed)"),
        (target(workloadRef=TRAINER, phase="Failed"), RefusalReason.RUN_ENDED, False, "ended (Failed)"),
        (target(), RefusalReason.RUN_WITHOUT_PODS, True, "no pod of namespace 'ml' reports it"),
        (target(workloadRef=TRAINER | {"kind": "CronJob"}), RefusalReason.KIND_NOT_SUPPORTED, False, "a CronJob"),
        (
            target(workloadRef=TRAINER, storageLocation="gs://runs/other"),
            RefusalReason.STORAGE_NOT_ALLOWED,
            False,
            "gs://runs/ml",
        ),
        (target(workloadRef=TRAINER, profiling={"port": 22}), RefusalReason.PORT_NOT_ALLOWED, False, "capturePort 22"),
    ],
)
def test_a_run_that_cannot_be_captured_is_refused_with_the_reason(
    run: RunTarget | None, reason: RefusalReason, transient: bool, words: str
) -> None:
    refusal = checked(run)
    assert isinstance(refusal, CaptureRefusal)
    assert (refusal.reason, refusal.transient) == (reason, transient)
    assert words in refusal.message


def test_a_run_is_in_the_namespace_of_its_capture() -> None:
    policy = Policy.parse('{"defaultStorage": "volume:///", "crossNamespaces": ["shared"]}')
    refusal = check(a.parsed(a.connection(**BY_RUN, podNamespace="shared")), policy, target(workloadRef=TRAINER))
    assert isinstance(refusal, CaptureRefusal)
    assert refusal.message.startswith("podNamespace 'shared': not allowed with target.runRef")


def test_the_request_has_workload_storage_and_port_of_the_run_unless_it_names_its_own() -> None:
    run = target(workloadRef=TRAINER | {"uid": "u1"}, storageLocation="gs://runs/ml", profiling={"port": 10001})
    request = accepted(run)
    assert request.workload is not None
    assert (request.workload.kind, request.workload_name, request.uids) == ("JobSet", "trainer", {"u1"})
    assert (str(request.root), request.explicit, request.port) == ("gs://runs/ml", False, 10001)
    own = accepted(run, storageLocation="gs://runs/ml/one", capturePort=9999)
    assert (str(own.root), own.explicit, own.port) == ("gs://runs/ml/one", True, 9999)
    plain = accepted(target(workloadRef=TRAINER))
    assert (str(plain.root), plain.port, plain.uids) == ("volume:///", None, frozenset())


def test_a_run_of_a_pod_or_of_reporting_pods_names_the_pods() -> None:
    alone = accepted(target(workloadRef={"apiVersion": "v1", "kind": "Pod", "name": "debug", "uid": "u1"}))
    assert (alone.workload, alone.pods, alone.uids) == (None, ("debug",), {"u1"})
    reported = accepted(target(pods={"u2": "w-1", "u1": "w-0"}))
    assert (reported.pods, reported.uids) == (("w-0", "w-1"), {"u1", "u2"})


def test_another_workload_of_the_same_name_is_not_the_run() -> None:
    world = a.jobset()
    assert world.workload is not None
    uid = world.workload["metadata"]["uid"]
    plan = planned(world, target(workloadRef=TRAINER | {"uid": uid}))
    assert isinstance(plan, CapturePlan)
    assert len(plan.targets) == len(world.pods)
    refusal = planned(world, target(workloadRef=TRAINER | {"uid": "deleted"}))
    assert isinstance(refusal, CaptureRefusal)
    assert refusal.reason is RefusalReason.RUN_ENDED
    assert "JobSet ml/trainer is not the workload of the run, which had uid deleted" in refusal.message


def test_a_pod_that_took_the_name_of_another_is_not_captured() -> None:
    world = a.World(None, pods=[a.pod("w-0", uid="u1"), a.pod("w-1", uid="new")])
    plan = planned(world, target(pods={"u1": "w-0", "u2": "w-1"}))
    assert isinstance(plan, CapturePlan)
    assert [target.pod for target in plan.targets] == ["w-0"]
    assert [target.pod for target in plan.skipped] == ["w-1"]


def test_reported_ports_come_before_published_ones_and_inside_the_allowed_set() -> None:
    pods = [a.pod(f"w-{rank}", uid=f"u{rank}", annotations={"diagon.gke.io/profiler-ports": "9012"}) for rank in "012"]
    reported = {
        "u0": ReportedProfilers((10000, 10001), frozenset({10001})),
        "u1": ReportedProfilers((22,), frozenset()),
    }
    plan = planned(
        a.World(None, pods=pods), target(pods={f"u{rank}": f"w-{rank}" for rank in "012"}), reported=reported
    )
    assert isinstance(plan, CapturePlan)
    assert [(target.pod, target.port, target.server_ok) for target in plan.targets] == [
        ("w-0", 10000, False),
        ("w-0", 10001, True),
        ("w-2", 9012, False),
    ]
    assert [(target.pod, target.reason) for target in plan.skipped] == [("w-1", "PortNotAllowed")]


@pytest.mark.parametrize(("step_time_s", "duration_ms"), [(None, 300), (0.02, 300), (0.5, 3500), (5.0, 10_000)])
def test_a_pulse_of_a_run_has_seven_of_its_steps(step_time_s: float | None, duration_ms: int) -> None:
    status = {"phase": "Active"} | ({"progress": {"stepTimeSeconds": step_time_s}} if step_time_s else {})
    spec = {"workloadRef": TRAINER}
    body = a.thing("trainer-1", kind="MLRun", api_version="diagon.gke.io/v1alpha1", spec=spec, status=status)
    assert accepted(RunTarget(read_run(body)), pulse=True).duration_ms == duration_ms
    assert accepted(RunTarget(read_run(body)), pulse=True, durationMilliseconds=400).duration_ms == 400
    assert accepted(RunTarget(read_run(body))).duration_ms == 2000
