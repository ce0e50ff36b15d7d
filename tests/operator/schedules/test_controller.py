"""Schedules on a real API server: their captures, records, refusals and deletions."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import AUTHOR_ANNOTATION, SCHEDULE_LABEL, TRIGGER_LABEL
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.request_retry import FORBIDDEN_S
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.schedules.controller import ScheduleController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.definitions import install
from support.cluster.grants import grant
from support.cluster.operating import DEADLINE_S
from support.cluster.quota import limit_objects

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
RUN = "4f6c" + 60 * "0"


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)

    def __call__(self) -> datetime:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Stage:
    """A namespace with schedules and runs."""

    def __init__(self, cluster: ApiClient, namespace: str, volume: Path) -> None:
        self.cluster, self.namespace, self.volume = cluster, namespace, volume
        self.clock = Clock()
        self.schedules = path_to(*SCHEDULES.gvr, namespace=namespace)
        self.runs = path_to(*RUNS.gvr, namespace=namespace)
        self.captures = path_to(*CONNECTIONS.gvr, namespace=namespace)

    @asynccontextmanager
    async def leading(self, policy: Policy | None = None) -> AsyncIterator[ScheduleController]:
        """Run a leader's controller."""
        config = OperatorConfig(watch_namespaces=(self.namespace,), policy=policy or Policy())
        controller = ScheduleController(
            self.cluster, config, OperatorMetrics(), holder="test", storage=Storage(self.volume),
            exchange=RunExchange(), clock=self.clock, look_s=0.05,
        )  # fmt: skip
        running = asyncio.create_task(controller.run())
        try:
            yield controller
        finally:
            running.cancel()
            await asyncio.wait({running}, timeout=DEADLINE_S)

    async def schedule(self, name: str = "nightly", **spec: Any) -> Object:
        body = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": {"name": name}, "spec": spec}
        made = await self.cluster.create(self.schedules, body)
        self.clock.now = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
        return made

    async def change(self, name: str, **spec: Any) -> None:
        await self.cluster.patch(f"{self.schedules}/{name}", {"spec": spec})

    async def run(self, name: str, **status: Any) -> None:
        body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}, "spec": {"runId": RUN}}
        await self.cluster.create(self.runs, body)
        active = {"phase": "Active", "startTime": format_time(self.clock.now - timedelta(hours=1)), "runId": RUN}
        await self.status_of_run(name, **active | status)

    async def status_of_run(self, name: str, **status: Any) -> None:
        await self.cluster.patch(f"{self.runs}/{name}/status", {"status": status})

    async def until(self, holds: Callable[[Object], Any], name: str = "nightly") -> Object:
        """Wait until the status of a schedule meets the condition; return it."""
        status: Object = {}
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds(status):
                    await asyncio.sleep(0.05)
                    status = (await self.cluster.get(f"{self.schedules}/{name}")).get("status") or {}
        except TimeoutError:
            raise AssertionError(f"{name} stays at {status}") from None
        return status

    async def made(self) -> list[Object]:
        items: list[Object] = await self.cluster.items(self.captures, dict)
        return sorted(items, key=lambda each: str(each["metadata"]["name"]))

    async def until_gone(self, capture: Object) -> None:
        """Wait until a capture is deleted."""
        async with asyncio.timeout(DEADLINE_S):
            while capture["metadata"]["uid"] in {each["metadata"]["uid"] for each in await self.made()}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def until_event(self, reason: str) -> None:
        """Wait until there is an event with a reason."""
        events = path_to("", "v1", "events", namespace=self.namespace)
        async with asyncio.timeout(DEADLINE_S):
            while reason not in {each["reason"] for each in await self.cluster.items(events, dict)}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def finish(self, capture: Object, **status: Any) -> None:
        path = f"{self.captures}/{capture['metadata']['name']}/status"
        ended = {"phase": "Succeeded", "completionTime": format_time(self.clock.now), "bytes": 1000}
        await self.cluster.patch(path, {"status": ended | status})


def reason(status: Object, kind: str = "Ready") -> str:
    return next((each["reason"] for each in status.get("conditions") or () if each["type"] == kind), "")


def created(number: int) -> Callable[[Object], bool]:
    return lambda status: sum(each["state"] != "Planned" for each in status.get("captures") or ()) == number


@pytest.fixture
async def stage(cluster: ApiClient, namespace: str, tmp_path: Path) -> Stage:
    for resource in (SCHEDULES, RUNS, CONNECTIONS):
        await install(cluster, resource)
    return Stage(cluster, namespace, tmp_path)


async def test_a_slot_captures_every_run_once_across_leaders(stage: Stage) -> None:
    made = await stage.schedule(schedule={"every": "10m"}, capture={"durationSeconds": 3, "ranks": "0-3"})
    await stage.run("run-a")
    await stage.run("run-b")
    async with stage.leading():
        status = await stage.until(lambda status: status.get("runs") == 2)
        assert reason(status) == "Scheduled"
        assert status["schedule"] == "every 10m"
        stage.clock.pass_s(601)
        await stage.until(created(2))
    async with stage.leading(), stage.leading():
        await stage.run("run-late", startTime=format_time(stage.clock.now))
        await stage.until(lambda status: status.get("runs") == 3)
        stage.clock.pass_s(30)
        assert len(await stage.made()) == 2
        stage.clock.pass_s(570)
        await stage.until(created(5))
    captures = await stage.made()
    runs = [each["spec"]["triggerCapture"]["target"]["runRef"]["name"] for each in captures]
    assert sorted(runs) == ["run-a", "run-a", "run-b", "run-b", "run-late"]
    first = captures[0]
    assert first["spec"]["triggerCapture"]["durationSeconds"] == 3
    assert first["spec"]["triggerCapture"]["target"]["ranks"] == "0-3"
    assert first["metadata"]["labels"] == {SCHEDULE_LABEL: made["metadata"]["uid"], TRIGGER_LABEL: "Slot"}
    assert first["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert first["metadata"]["annotations"]["diagon.gke.io/capture-reason"].startswith("the slot of 20")


async def test_a_leader_finishes_what_the_one_before_had_planned(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"})
    now = format_time(stage.clock.now)
    entry = {"name": "nightly-1", "run": "run-a", "time": now, "slotTime": now, "state": "Planned", "message": "m"}
    await stage.cluster.patch(f"{stage.schedules}/nightly/status", {"status": {"captures": [entry]}})
    async with stage.leading():
        status = await stage.until(created(1))
    assert [each["metadata"]["name"] for each in await stage.made()] == ["nightly-1"]
    assert status["captures"][0]["state"] == "Created"


async def test_a_run_that_starts_later_is_captured_in_its_next_slot(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, target={"matchLabels": {"diagon.gke.io/run-group": "llm"}})
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 0)
        stage.clock.pass_s(605)
        await stage.run("run-a", startTime=format_time(stage.clock.now))
        await stage.cluster.patch(f"{stage.runs}/run-a", {"metadata": {"labels": {"diagon.gke.io/run-group": "llm"}}})
        await stage.run("run-of-others")
        await stage.until(lambda status: status.get("runs") == 1)
        assert await stage.made() == []
        stage.clock.pass_s(600)
        await stage.until(created(1))
    assert [each["spec"]["triggerCapture"]["target"]["runRef"]["name"] for each in await stage.made()] == ["run-a"]


async def test_budgets_refuse_with_a_reason_also_after_a_restart(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, budget={"capturesPerRun": 1})
    await stage.run("run-a")
    for number in range(3):
        stage.clock.pass_s(600)
        async with stage.leading():
            await stage.until(created(1) if number == 0 else lambda status, n=number: status.get("refused") == n)
    status = await stage.until(lambda status: status.get("refused") == 2)
    assert len(await stage.made()) == 1
    assert reason(status, "BudgetAvailable") == "CapturesPerRun"
    assert status["refusals"][0]["message"].startswith("schedule 'nightly': the budget of 1 capture of this run")
    await stage.change("nightly", budget={"capturesPerRun": 2})
    stage.clock.pass_s(600)
    async with stage.leading():
        status = await stage.until(created(2))
    assert reason(status, "BudgetAvailable") == "Available"


async def test_a_budget_that_is_lowered_under_what_was_used_refuses_until_that_is_a_day_old(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"})
    await stage.run("run-a")
    async with stage.leading():
        for number in (1, 2):
            stage.clock.pass_s(600)
            await stage.until(created(number))
        await stage.change("nightly", budget={"capturesPerRun": 1})
        await stage.until(lambda status: status.get("observedGeneration") == 2)
        stage.clock.pass_s(600)
        status = await stage.until(lambda status: status.get("refused") == 1)
        assert (reason(status), reason(status, "BudgetAvailable")) == ("Scheduled", "CapturesPerRun")
        assert len(status["captures"]) == 2
        stage.clock.pass_s(86_400)
        status = await stage.until(lambda status: len(status.get("captures") or ()) == 1)
    assert len(await stage.made()) == 3


async def test_a_run_that_ends_in_its_slot_is_not_captured(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"})
    await stage.run("run-a")
    await stage.run("run-b")
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 2)
        await stage.status_of_run("run-a", phase="Completed")
        await stage.until(lambda status: status.get("runs") == 1)
        stage.clock.pass_s(601)
        status = await stage.until(created(1))
    assert [each["run"] for each in status["captures"]] == ["run-b"]


async def test_a_pulse_counts_with_the_traces_that_its_diagnosis_keeps(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, capture={"pulse": True})
    await stage.run("run-a")
    async with stage.leading(Policy(automatic_captures_per_run=1)):
        for number in (1, 2):
            stage.clock.pass_s(600)
            await stage.until(created(number))
        first, _ = await stage.made()
        assert first["spec"]["triggerCapture"]["pulse"] is True
        await stage.finish(first, diagnosis={"state": "Pending"})
        await stage.until(lambda status: status.get("bytesLastDay") == 1000)
        await stage.finish(first, bytes=20, diagnosis={"state": "Done"})
        status = await stage.until(lambda status: status.get("bytesLastDay") == 20)
    assert [each["pulse"] for each in status["captures"]] == [True, True]


async def test_two_schedules_on_one_run_share_its_interval(stage: Stage) -> None:
    await stage.schedule("first", schedule={"every": "10m"})
    await stage.schedule("second", schedule={"every": "10m"})
    await stage.run("run-a")
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 1, "second")
        stage.clock.pass_s(602)
        async with asyncio.timeout(DEADLINE_S):
            while not await stage.made():  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.05)
        statuses = [
            await stage.until(lambda status: status.get("captures") or status.get("refused"), name)
            for name in ("first", "second")
        ]
    assert len(await stage.made()) == 1
    assert sorted(reason(each, "BudgetAvailable") for each in statuses) == ["Available", "MinimumInterval"]


async def test_the_policy_of_the_administrator_is_above_the_budget(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, budget={"capturesPerRun": 100})
    await stage.schedule("second", schedule={"every": "10m"})
    await stage.run("run-a")
    await stage.run("run-b")
    async with stage.leading(Policy(automatic_captures_per_namespace=1, schedules_per_namespace=1)):
        await stage.until(lambda status: reason(status) == "TooManySchedules", "second")
        await stage.until(lambda status: status.get("runs") == 2)
        stage.clock.pass_s(602)
        await stage.until(lambda status: status.get("refused") == 1)
        status = await stage.until(created(1))
    assert reason(status, "BudgetAvailable") == "Captures"
    assert len(await stage.made()) == 1


async def test_a_trigger_captures_with_its_reason_and_cools_down(stage: Stage) -> None:
    await stage.schedule(triggers=[{"type": "Hanging"}], budget={"minimumIntervalSeconds": 0})
    hanging = {"type": "Hanging", "status": "True", "reason": "NoStep", "message": "no step since 12:00"}
    condition = hanging | {"lastTransitionTime": format_time(stage.clock.now)}
    await stage.run("run-a", attempt=2, conditions=[condition])
    async with stage.leading():
        await stage.until(created(1))
        stage.clock.pass_s(1800)
        await stage.until(lambda status: status.get("runs") == 1)
    async with stage.leading():
        await stage.change("nightly", budget={"minimumIntervalSeconds": 1})
        status = await stage.until(lambda status: status.get("observedGeneration") == 2)
    (capture,) = await stage.made()
    assert capture["metadata"]["labels"][TRIGGER_LABEL] == "Hanging"
    assert capture["metadata"]["annotations"]["diagon.gke.io/capture-reason"] == "Hanging: no step since 12:00"
    (entry,) = status["captures"]
    assert (entry["trigger"], entry["attempt"], entry["value"]) == ("Hanging", 2, 1.0)
    events = await stage.cluster.items(path_to("", "v1", "events", namespace=stage.namespace), dict)
    assert [each["reason"] for each in events if each["involvedObject"]["kind"] == SCHEDULES.kind] == ["CaptureCreated"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedule": {"cron": "61 * * * *"}}, "InvalidSchedule"),
        ({"schedule": {"cron": "0 0 * * *", "timeZone": "Mars/Olympus"}}, "InvalidSchedule"),
        ({"schedule": {"cron": "* * */20 * 1L"}}, "NeverDue"),
        ({"schedule": {"every": "30s"}}, "InvalidSchedule"),
        ({"schedule": {"every": "10m"}, "suspend": True}, "Suspended"),
    ],
)
async def test_a_schedule_that_makes_no_captures_says_why(stage: Stage, spec: Object, expected: str) -> None:
    await stage.schedule(**spec)
    async with stage.leading():
        status = await stage.until(reason)
    assert reason(status) == expected
    assert "nextCaptureTime" not in status


async def test_an_author_who_may_not_capture_any_more_stops_the_schedule(stage: Stage) -> None:
    author = {"metadata": {"annotations": {AUTHOR_ANNOTATION: "ana\nresearch"}}}
    made = await stage.schedule(schedule={"every": "10m"}, budget={"minimumIntervalSeconds": 0})
    await stage.cluster.patch(f"{stage.schedules}/nightly", author)
    await stage.run("run-a")
    async with stage.leading():
        stage.clock.pass_s(601)
        status = await stage.until(lambda status: reason(status) == "AuthorNotAllowed")
        assert [each["state"] for each in status["captures"]] == ["Refused"]
        await stage.until_event("AuthorNotAllowed")
        capture = {"apiGroups": ["diagon.gke.io"], "resources": ["mldiagnosticsconnections"], "verbs": ["create"]}
        await grant(stage.cluster, stage.namespace, "research", capture, kind="Group")
        stage.clock.pass_s(600)
        status = await stage.until(lambda status: reason(status) == "Scheduled")
    [capture] = await stage.made()
    assert capture["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert [each["state"] for each in status["captures"]] == ["Refused", "Created"]


@pytest.mark.parametrize("is_permitted_again", [True, False])
async def test_a_capture_that_is_not_permitted_is_tried_again_for_a_moment(
    stage: Stage, is_permitted_again: bool
) -> None:
    await limit_objects(stage.cluster, stage.namespace, CONNECTIONS, 0)
    await stage.schedule(schedule={"every": "10m"})
    await stage.run("run-a")
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 1)
        stage.clock.pass_s(601)
        await stage.until(lambda status: status.get("captures"))
        if is_permitted_again:
            await limit_objects(stage.cluster, stage.namespace, CONNECTIONS, 1)
        else:
            stage.clock.pass_s(FORBIDDEN_S)
        status = await stage.until(created(1))
    assert [each["state"] for each in status["captures"]] == ["Created" if is_permitted_again else "Refused"]
    assert len(await stage.made()) == is_permitted_again


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_full_storage_stops_captures_for_an_hour(stage: Stage, is_refused: bool) -> None:
    await stage.schedule(schedule={"every": "10m"})
    await stage.run("run-a")
    async with stage.leading():
        stage.clock.pass_s(601)
        await stage.until(created(1))
        (capture,) = await stage.made()
        failed = {"pod": "a", "namespace": stage.namespace, "state": "Failed", "reason": "StoreFull"}
        refused = {"type": "Complete", "status": "True", "reason": "StoreFull", "message": "m"}
        refused["lastTransitionTime"] = format_time(stage.clock.now)
        ended = {"conditions": [refused]} if is_refused else {"results": [failed]}
        await stage.finish(capture, phase="Failed", **ended)
        await stage.until(lambda status: reason(status) == "StorageFull")
        stage.clock.pass_s(1200)
        await stage.change("nightly", suspend=False)  # the next look has the new generation
        status = await stage.until(lambda status: status.get("observedGeneration") == 2)
        assert (reason(status), len(status["captures"])) == ("StorageFull", 1)
        stage.clock.pass_s(2401)
        await stage.until(created(2))


async def test_a_target_without_a_run_is_named(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, target={"runRef": {"name": "absent"}})
    await stage.run("run-a")
    async with stage.leading():
        status = await stage.until(reason)
        stage.clock.pass_s(601)
        await stage.until(lambda status: status.get("nextCaptureTime", "") > format_time(stage.clock.now))
    [ready] = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert ready["message"].endswith("; no active run matches spec.target now")
    assert await stage.made() == []


async def test_missed_slots_are_not_made_up_after_a_suspension(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, suspend=True)
    await stage.run("run-a")
    async with stage.leading():
        await stage.until(lambda status: reason(status) == "Suspended")
        stage.clock.pass_s(1500)
        await stage.change("nightly", suspend=False)
        await stage.until(lambda status: reason(status) == "Scheduled")
        assert await stage.made() == []
        stage.clock.pass_s(300)
        await stage.until(created(1))


async def test_the_history_keeps_captures_with_findings_longer(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, history={"keep": 1, "keepWithFindings": 1})
    await stage.run("run-a")
    names: list[str] = []
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 1)
        for number in range(3):
            stage.clock.pass_s(600)
            await stage.until(lambda status, n=number: len(status.get("captures") or ()) == n + 1)
            await stage.until(created(number + 1))
            (capture,) = [each for each in await stage.made() if each["metadata"]["name"] not in names]
            names.append(capture["metadata"]["name"])
            findings = {"state": "Done", "critical": 1} if number == 0 else {"state": "Done", "critical": 0}
            await stage.finish(capture, diagnosis=findings)
            await stage.until(lambda status, n=number: status.get("bytesLastDay") == 1000 * (n + 1))
        async with asyncio.timeout(DEADLINE_S):
            while len(await stage.made()) != 2:  # noqa: ASYNC110 - polls the API server
                await asyncio.sleep(0.05)
    assert {each["metadata"]["name"] for each in await stage.made()} == {names[0], names[2]}
    status = await stage.until(bool)
    assert len(status["captures"]) == 3, "a deleted capture still counts"


def put_session(volume: Path, session: str, uid: str) -> Path:
    """Write the files of a session, and return its directory."""
    folder = volume / "runs/a/plugins/profile" / session
    folder.mkdir(parents=True)
    head = {"v": 1, "session": session, "uid": uid, "targets": []}
    (folder / "capture.json").write_text(json.dumps(head, indent=1))
    (folder / "trainer-0.xplane.pb").write_bytes(b"trace")
    (folder / "diagnosis.json").write_text("{}")
    return folder


@pytest.mark.parametrize("deletes", [True, False])
async def test_files_go_with_the_captures_that_leave_on_request(stage: Stage, deletes: bool) -> None:
    history = {"keep": 0, "keepWithFindings": 0} | ({"deleteArtifacts": True} if deletes else {})
    await stage.schedule(schedule={"every": "10m"}, history=history)
    await stage.run("run-a")
    result = {"status": "Succeeded", "outputLocation": "volume:///runs/a"}
    async with stage.leading():
        stage.clock.pass_s(601)
        await stage.until(created(1))
        (capture,) = await stage.made()
        own = put_session(stage.volume, "own", capture["metadata"]["uid"])
        foreign = put_session(stage.volume, "foreign", "11111111-2222-3333-4444-555555555555")
        outside = stage.volume / "outside"
        outside.mkdir()
        (outside / "kept").touch()
        (own / "link").symlink_to(outside)
        await stage.finish(capture, captureResult=result, sessionId="own")
        await stage.until_gone(capture)
        stage.clock.pass_s(600)
        await stage.until(created(2))
        (second,) = await stage.made()
        await stage.finish(second, captureResult=result, sessionId="foreign")
        await stage.until_gone(second)
    assert own.exists() is not deletes
    assert foreign.exists(), "its record names another capture"
    assert (outside / "kept").exists()


async def test_a_capture_stays_while_its_files_cannot_be_deleted(stage: Stage) -> None:
    await stage.schedule(schedule={"every": "10m"}, history={"keep": 0, "keepWithFindings": 0, "deleteArtifacts": True})
    await stage.run("run-a")
    async with stage.leading():
        stage.clock.pass_s(601)
        await stage.until(created(1))
        (capture,) = await stage.made()
        own = put_session(stage.volume, "own", capture["metadata"]["uid"])
        record = (own / "capture.json").rename(own / "record")
        (own / "capture.json").symlink_to("record")  # a store refuses links
        result = {"status": "Succeeded", "outputLocation": "volume:///runs/a"}
        await stage.finish(capture, captureResult=result, sessionId="own")
        await stage.until_event("ArtifactsNotDeleted")
        assert await stage.made() != []
        (own / "capture.json").unlink()
        record.rename(own / "capture.json")
        stage.clock.pass_s(601)
        await stage.until_gone(capture)
    assert not own.exists()


async def test_a_deleted_schedule_is_forgotten(stage: Stage) -> None:
    made = await stage.schedule(schedule={"every": "10m"})
    await stage.run("run-a")
    async with stage.leading():
        await stage.until(lambda status: status.get("runs") == 1)
        await stage.cluster.delete(f"{stage.schedules}/nightly", uid=made["metadata"]["uid"])
        with pytest.raises(NotFound):
            await stage.cluster.get(f"{stage.schedules}/nightly")
        again = await stage.schedule(schedule={"every": "1h"})
        await stage.until(lambda status: status.get("runs") == 1)
        stage.clock.pass_s(601)
        await stage.change("nightly", schedule={"every": "2h"})
        await stage.until(lambda status: status.get("observedGeneration") == 2)
    assert again["metadata"]["uid"] != made["metadata"]["uid"]
    assert await stage.made() == []
