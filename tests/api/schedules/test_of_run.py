from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_api.schedules.of_run import MAX_SHOWN_CAPTURES, schedules_of

RUN = {
    "metadata": {"name": "trainer", "labels": {"team": "llm"}},
    "spec": {"workloadRef": {"kind": "JobSet", "name": "trainer"}},
}


def schedule(name: str = "often", *, status: dict[str, Any] | None = None, **target: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"schedule": {"every": "6h"}} | ({"target": target} if target else {})
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def made(name: str, run: str = "trainer") -> dict[str, Any]:
    return {"name": name, "run": run, "time": "2026-01-01T06:00:00Z", "state": "Finished", "trigger": "Hanging"}


def test_only_schedules_that_apply_to_the_run_are_shown() -> None:
    bodies = [
        schedule("by-label", matchLabels={"team": "llm"}),
        schedule("all"),
        schedule("other", runRef={"name": "other"}),
        schedule("of-workload", workloadRef={"kind": "JobSet", "name": "trainer"}),
        schedule("broken") | {"spec": {"schedule": 7}},
    ]
    assert [each.name for each in schedules_of(RUN, bodies)] == ["all", "by-label", "of-workload"]


def test_captures_are_those_of_the_run() -> None:
    captures = [made("a"), made("b", "other"), made("c")]
    ready = {"type": "Ready", "status": "True", "reason": "Scheduled", "message": "the next slot is at 12:00"}
    status = {
        "schedule": "every 6h",
        "nextCaptureTime": "2026-01-01T12:00:00Z",
        "captures": captures,
        "conditions": [ready | {"lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "refusals": [
            {"reason": "Captures", "count": 3, "lastTime": "2026-01-01T06:00:00Z", "run": "a", "message": "used"}
        ],
    }
    [shown] = schedules_of(RUN, [schedule(status=status)])
    document = shown.to_json()
    assert [each["name"] for each in document["captures"]] == ["a", "c"]
    assert document["captures"][0]["trigger"] == "Hanging"
    assert (document["ready"], document["nextCaptureTime"]) == (True, "2026-01-01T12:00:00Z")
    assert document["refusals"][0]["count"] == 3


def test_the_newest_captures_are_shown() -> None:
    captures = [made(str(number)) for number in range(200)]
    [shown] = schedules_of(RUN, [schedule(status={"captures": captures})])
    assert [each.name for each in shown.captures] == [str(number) for number in range(200 - MAX_SHOWN_CAPTURES, 200)]


@pytest.mark.parametrize("status", [{}, {"conditions": []}])
def test_a_schedule_that_no_operator_has_read_says_so(status: dict[str, Any]) -> None:
    [shown] = schedules_of(RUN, [schedule(status=status)])
    assert (shown.is_ready, shown.message) == (False, "no operator has read it yet")
