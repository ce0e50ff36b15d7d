"""Attacks and disruptions of automatic captures: no slot is doubled or lost, and no tenant is slower."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from demo.installation import NAMESPACE as OPERATORS
from demo.kubectl import eventually
from mldiagnostics_api.names import SCHEDULE_LABEL

from chaos import clock
from chaos.accounting import Observed
from chaos.replicas import Object
from chaos.scenarios import Scenarios
from chaos.stage import ATTACKER, CAPTURES, VICTIM, Stage, in_parallel

AUTOMATIC = automatic = Scenarios()

SCHEDULES = "/apis/diagon.gke.io/v1alpha1/namespaces/{}/mldiagnosticsschedules"
MANAGED = {"managed-mldiagnostics-gke": "true"}
EACH_MINUTE: dict[str, Any] = {"schedule": {"every": "1m"}, "budget": {"minimumIntervalSeconds": 0}}
TRIGGERS = [{"type": each} for each in ("StepTimeRise", "StepTimeSpread", "Hanging", "Straggling", "GoodputLow")]
FLOOD, ADMITTED = 1000, 100
"""Schedules of the attacker, and how many of them the default policy admits."""
CAPTURES_PER_RUN = 48
SLOT_S, LATEST_S = 60, 120
SEEN_WITHIN_S = 180


def make(stage: Stage, namespace: str, name: str, **spec: Any) -> Object:
    """Create a schedule and return it."""
    body = {"apiVersion": "diagon.gke.io/v1alpha1", "kind": "MLDiagnosticsSchedule", "metadata": {"name": name}}
    made: Object = stage.api("POST", SCHEDULES.format(namespace), {**body, "spec": EACH_MINUTE | spec}).body
    return made


@contextmanager
def scheduled(stage: Stage) -> Iterator[Object]:
    """Capture a run of the victim each minute while the block runs; yield the schedule once it has a next slot."""
    with stage.pod("profiler", "9999=plain", namespace=VICTIM, labels=MANAGED):
        schedule = make(stage, VICTIM, "each-minute", capture={"durationMilliseconds": 100})
        path = f"{SCHEDULES.format(VICTIM)}/each-minute"
        try:
            eventually(lambda: status_of(stage).get("runs"), "the run of the schedule", deadline_s=SEEN_WITHIN_S)
            yield schedule
        finally:
            stage.api("DELETE", path)
            stage.delete_runs(VICTIM)


def status_of(stage: Stage) -> Object:
    status: Object = stage.api("GET", f"{SCHEDULES.format(VICTIM)}/each-minute").body.get("status") or {}
    return status


def until_slot(stage: Stage) -> float:
    """Wait for the moment of the next slot and return it."""
    slot = datetime.fromisoformat(status_of(stage)["nextCaptureTime"]).timestamp()
    time.sleep(max(0.0, slot - time.time()))
    return slot


def check_slots(stage: Stage, seen: Observed, schedule: Object, *, since: float) -> None:
    """Wait until the slot of a moment has its capture, and note slots that have none or several."""

    def slots() -> dict[float, int] | None:
        captures = [each for each in status_of(stage).get("captures") or () if each["state"] != "Planned"]
        counts = Counter(datetime.fromisoformat(each["slotTime"]).timestamp() for each in captures)
        return counts if any(slot >= since for slot in counts) else None

    counts = eventually(slots, "a capture of the slot", deadline_s=SEEN_WITHIN_S)
    seen.faults += [f"slot {slot:.0f} has {count} captures" for slot, count in counts.items() if count > 1]
    if since not in counts:
        seen.faults.append(f"slot {since:.0f} has no capture; there are {sorted(counts)}")
    uid = schedule["metadata"]["uid"]
    items = stage.api("GET", f"{CAPTURES.format(VICTIM)}?labelSelector={SCHEDULE_LABEL}={uid}").body["items"]
    recorded = {each["name"] for each in status_of(stage).get("captures") or ()}
    seen.faults += [
        f"{name}: is not in the record" for name in sorted({each["metadata"]["name"] for each in items} - recorded)
    ]


def disturbed_in_slot(stage: Stage, seen: Observed, disturb: Callable[[], object]) -> Iterator[None]:
    """Disturb at the moment of a slot, which must have its capture then."""
    with scheduled(stage) as schedule:
        slot = until_slot(stage)
        disturb()
        yield
        check_slots(stage, seen, schedule, since=slot)


@automatic("kill -9 of the leader in the slot of a schedule", restarts=True)
def leader_killed_in_slot(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from disturbed_in_slot(stage, seen, lambda: stage.operator.kill(stage.operator.leader()))


@automatic("kill -9 of both operator replicas in the slot of a schedule", restarts=True)
def operators_killed_in_slot(stage: Stage, seen: Observed) -> Iterator[None]:
    yield from disturbed_in_slot(stage, seen, lambda: stage.operator.kill(*stage.operator.pods()))


@automatic("the Lease is deleted in the slot of a schedule", restarts=True)
def lease_deleted_in_slot(stage: Stage, seen: Observed) -> Iterator[None]:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATORS}/leases/{stage.operator.name}"
    yield from disturbed_in_slot(stage, seen, lambda: stage.api("DELETE", lease))


@automatic("the leader's clock steps an hour back and forth with a schedule of each minute", restarts=True)
def clock_steps_with_schedule(stage: Stage, seen: Observed) -> Iterator[None]:
    with clock.adjustable(stage.kubectl), scheduled(stage) as schedule:
        check_slots(stage, seen, schedule, since=until_slot(stage))
        leader = stage.operator.leader()
        for seconds in (-3600, 0):
            clock.step(stage.kubectl, leader, seconds)
            time.sleep(SLOT_S + 10)  # a slot passes by both clocks
        yield
        check_slots(stage, seen, schedule, since=until_slot(stage))


@automatic("1000 schedules of each minute with all triggers in the attacker's namespace")
def many_schedules(stage: Stage, seen: Observed) -> Iterator[None]:
    path = SCHEDULES.format(ATTACKER)
    with stage.pod("profiler", "9999=plain", labels=MANAGED):
        in_parallel(lambda number: make(stage, ATTACKER, f"flood-{number}", triggers=TRIGGERS), range(FLOOD))
        try:
            yield

            def reasons() -> Counter[str] | None:
                counts = Counter(ready_reason(each) for each in stage.api("GET", path).body["items"])
                return None if counts[""] else counts

            counts = eventually(reasons, "the condition Ready of all schedules", deadline_s=SEEN_WITHIN_S)
            if counts != {"Scheduled": ADMITTED, "TooManySchedules": FLOOD - ADMITTED}:
                seen.faults.append(f"conditions of the schedules: {dict(counts)}")
            time.sleep(SLOT_S)
            made = len(stage.api("GET", CAPTURES.format(ATTACKER)).body["items"])
            if not 0 < made <= CAPTURES_PER_RUN:
                seen.faults.append(f"{made} automatic captures of one run; the policy allows {CAPTURES_PER_RUN}")
        finally:
            stage.api("DELETE", path)
            stage.delete_captures(ATTACKER)
            stage.delete_runs(ATTACKER)


def ready_reason(schedule: Object) -> str:
    conditions = (schedule.get("status") or {}).get("conditions") or ()
    return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), "")
