from __future__ import annotations

import asyncio
import gzip
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.runs import goodput
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import SteadyClock, utc_now
from mldiagnostics_operator.control_plane import limits
from mldiagnostics_operator.control_plane.memory.intervals import LATE_S
from mldiagnostics_operator.runs.watches.pod_watches import PodWatches
from support.cluster.control_planes import DEADLINE_S, Reporter, make_account, serving

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.control_planes import Running

pytestmark = pytest.mark.apiserver

START = 1_790_000_000


def steps(count: int) -> list[Event]:
    """A job of steps of a second, with ten seconds of start-up."""
    made = [Event(START * 1_000_000, EventCode.JOB_START)]
    for step in range(count):
        moment = (START + 10 + step) * 1_000_000
        made += [Event(moment, EventCode.STEP_START, step), Event(moment + 999_999, EventCode.STEP_END, step)]
    return made


async def test_a_run_is_reported_persisted_and_accounted(plane: Running, tmp_path: Path) -> None:
    client = await plane.reporter()
    events = {"first": 0, "items": packing.pack(steps(20))}
    first = await client.report(events=events, progress={"step": 19}, metrics={"loss": 0.5})
    assert (first.status, first.body["intervalSeconds"]) == (200, 10)
    last = await client.report(events=events, phase="Completed")
    assert last.body["persistedSequence"] == 2  # the answer to a final report waits for the journal
    assert last.body["persistedEvents"] == 41
    run = await plane.until(client.run, lambda run: run.goodput)
    [host] = run.hosts
    assert (run.phase, host.pod, host.node, host.rank) == ("Completed", "trainer-0", "node-1", 0)
    assert run.goodput is not None
    report = goodput(str(tmp_path / "volume/runs" / client.run / "reported"), now=run.goodput.as_of)
    assert report is not None
    assert run.goodput.goodput == pytest.approx(report.cumulative.goodput)
    assert run.goodput.unproductive == pytest.approx(report.cumulative.unproductive_s)
    assert run.goodput.last_step == 19


async def test_the_account_is_as_of_the_newest_report_that_has_events(plane: Running) -> None:
    client = await plane.reporter()
    events = {"first": 0, "items": packing.pack(steps(20))}
    await client.report(events=events, sent=START + 29.5)
    worker = {"v": 1, "incarnation": "00000002", "sequence": 1, "sent": START + 400, "rank": 1}
    await client.post(gzip.compress(json.dumps(worker).encode()))
    await client.report(events={"first": 0, "items": packing.pack(steps(21))}, sent=START + 30.5)
    run = await plane.until(client.run, lambda run: run.goodput and run.goodput.last_step == 20)
    assert run.goodput is not None
    assert (run.goodput.as_of, len(run.hosts)) == (START + 30.5, 2)


async def test_disruptions_and_times_to_recover_are_those_of_the_report(plane: Running, tmp_path: Path) -> None:
    client = await plane.reporter()
    again = [event._replace(t=event.t + 60_000_000) for event in steps(30)]
    await client.report(events={"first": 0, "items": packing.pack([*steps(20), *again])}, phase="Completed")
    await plane.until(client.run, lambda run: run.goodput and run.goodput.mttf_seconds)
    directory = tmp_path / "volume/runs" / client.run / "reported"
    suspended = {"attempt": 0, "ended": START + 31, "cause": "suspended", "startUpSeconds": {"queueing": 40}}
    record = {"v": 1, "runId": client.run, "created": START - 40, "attempts": [suspended]}
    (directory / "cluster.json").write_text(json.dumps(record))
    plane.plane.note_record(RunKey(plane.namespace, client.run))
    run = await plane.until(client.run, lambda run: run.goodput and not run.goodput.mttf_seconds)
    assert run.goodput is not None
    report = goodput(str(directory), now=run.goodput.as_of)
    assert report is not None
    assert report.queueing is not None
    assert report.failures.recovery is not None
    assert (run.goodput.disruptions, report.failures.count) == (1, 0)  # a suspension is not a failure
    assert run.goodput.mttr_seconds == report.failures.recovery.total_s
    assert run.goodput.ettr == report.queueing.ettr != report.ettr


async def test_only_the_own_run_is_written(plane: Running, admin: ApiClient, namespace: str) -> None:
    mine, other = await plane.reporter("mine-0"), await plane.reporter("other-0")
    forged = await mine.report(run=other.run)
    assert (forged.status, plane.view(other.run)) == (403, None)
    assert "belongs to run" in forged.body["error"]
    assert mine.run in forged.body["error"]
    assert (await mine.report(run="UPPER")).status == 404
    account = await plane.token(account="trainer")
    for run in ("by-hand", "a" * 64):
        assert (await mine.report(run=run, token=account)).status == 200
    assert (await mine.report(run="by-hand")).status == 403
    await make_account(admin, namespace, "eve")
    stolen = await mine.report(run="by-hand", token=await plane.token(account="eve"))
    assert (stolen.status, "another client" in stolen.body["error"]) == (403, True)
    assert plane.view("by-hand") is not None


async def test_tokens_of_others_are_rejected(cluster: ApiClient, namespace: str, tmp_path: Path) -> None:
    """The clock stands still: a rejection is cached for ten seconds, and a slow machine may take longer."""
    await make_account(cluster, namespace)
    now = utc_now().timestamp()
    async with serving(cluster, namespace, tmp_path, clock=lambda: now) as plane:
        client = await plane.reporter()
        wrong = await client.report(token=await plane.token(audience="another"))
        assert (wrong.status, wrong.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "--audience=mldiagnostics" in wrong.body["error"]
        header, payload, _ = client.token.split(".")
        for token in ("", "x", "\xe4", "x" * 4000, f"{header}.{payload}.AAAA"):
            assert (await client.report(token=token)).status == 401
        reviews = plane.value("lookups_total", kind="tokenreview")
        for _ in range(3):
            assert (await client.report(token="x")).status == 401
            assert (await client.report()).status == 200
        # Rejections and senders are cached: three more of each cost one review, for the first valid one.
        assert plane.value("lookups_total", kind="tokenreview") == reviews + 1
        pods = path_to("", "v1", "pods", namespace=namespace)
        uid = (await cluster.get(f"{pods}/trainer-0"))["metadata"]["uid"]
        await plane.remove(f"{pods}/trainer-0")
        assert (await client.report()).status == 200  # a pod without the run's label: for at most five minutes
        plane.plane.pod_gone(uid)
        assert (await client.report()).status in {401, 403}  # the API server remembers a valid token for ten seconds


async def test_the_token_of_a_deleted_pod_is_dropped(plane: Running, namespace: str) -> None:
    client = await plane.reporter(labels={RUN_LABEL: "any"})
    watches = PodWatches(plane.cluster, [namespace], lambda _: None, plane.telemetry, is_followed=lambda _: True)
    with watches.deleted_pods.passed_to(plane.plane.pod_gone, plane.plane.pods_missed):
        watching = asyncio.create_task(watches.run())
        assert (await client.report()).status == 200
        await plane.remove(path_to("", "v1", "pods", namespace=namespace, name="trainer-0"))
        async with asyncio.timeout(60):
            while (await client.report()).status == 200:  # noqa: ASYNC110 - asks the server
                await asyncio.sleep(0.5)  # as a client does, which has a rate
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_two_workloads_of_one_name_are_two_runs(plane: Running, namespace: str) -> None:
    jobs, pods = (path_to(g, "v1", p, namespace=namespace) for g, p in (("batch", "jobs"), ("", "pods")))
    first = await plane.reporter(owner=await plane.job("trainer"))
    assert (await first.report()).status == 200
    await plane.remove(f"{pods}/trainer-0")
    async with asyncio.timeout(30):
        while True:  # a run id has the second of the creation
            await plane.remove(f"{jobs}/trainer")
            owner = await plane.job("trainer")
            if plane.run_of(owner) != first.run:
                break
    second = await plane.reporter(owner=owner)
    assert (await second.report()).status == 200
    assert (await second.report(run=first.run)).status == 403


async def test_a_workload_that_is_deleted_at_once_has_no_run(plane: Running, namespace: str) -> None:
    client = await plane.reporter(owner=await plane.job("brief"))
    await plane.remove(path_to("batch", "v1", "jobs", namespace=namespace, name="brief"))
    late = await client.report()
    assert (late.status, "was deleted" in late.body["error"]) == (403, True)
    assert plane.view(client.run) is None


@pytest.mark.parametrize("ahead_s", [-86_400, 86_400])
async def test_the_clock_of_a_host_decides_nothing(plane: Running, ahead_s: int) -> None:
    client = await plane.reporter()
    before = utc_now().timestamp()
    await client.persisted(sent=before + ahead_s, progress={"step": 1, "changed": before + ahead_s})
    [host] = plane.view(client.run).hosts  # type: ignore[union-attr]
    assert before <= host.received <= utc_now().timestamp()
    assert host.clock_ahead == pytest.approx(ahead_s, abs=host.received - before + 1)


async def test_bad_bodies_have_an_answer_and_change_nothing(plane: Running) -> None:
    client = await plane.reporter()
    valid = {"v": 1, "incarnation": "00000001", "sequence": 1, "sent": 1.0}
    deep: Any = []
    for _ in range(20):
        deep = [deep]
    bodies: list[tuple[bytes, str, int]] = [
        (b"{", "", 400),
        (b"[]", "", 422),
        (b"\xff", "", 400),
        (b"not gzip", "gzip", 400),
        (gzip.compress(b"{}" * 100)[:-10], "gzip", 400),
        (gzip.compress(b" " * 2**26), "gzip", 413),
        (gzip.compress(b"[" * 300_000), "gzip", 422),
        (gzip.compress(b'{"metrics":' + b"[" * 300_000), "gzip", 400),
        (b"{}", "br", 415),
        (json.dumps(valid | {"metrics": {"a": deep}}).encode(), "", 400),
        (b"[" * 5000, "", 422),
        (json.dumps(valid | {"sequence": -1}).encode(), "", 422),
        (json.dumps(valid | {"events": {"items": [{"a": 1}]}}).encode(), "", 422),
        (b"x" * (2**20 + 1), "", 413),
    ]
    for content, encoding, status in bodies:
        answer = await client.post(content, encoding=encoding)
        assert (answer.status, bool(answer.body["error"])) == (status, True), content[:50]
    assert plane.view(client.run) is None


async def test_a_flood_of_one_pod_is_slowed_and_others_are_served(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    """The clock stands still: however slow the machine is, no client may repeat a request."""
    await make_account(cluster, namespace)
    now = utc_now().timestamp()
    async with serving(cluster, namespace, tmp_path, clock=lambda: now) as plane:
        noisy, quiet = await plane.reporter("noisy-0"), await plane.reporter("quiet-0")
        for client in (noisy, quiet):  # both senders are known from now on
            assert (await client.report()).status == 200
        answers = await asyncio.gather(*(noisy.report() for _ in range(limits.REPORTS_BURST + 40)))
        refused = [each for each in answers if each.status == 429]
        assert {each.status for each in answers} == {200, 429}
        assert all(int(each.headers["Retry-After"]) >= 1 for each in refused)
        assert (await quiet.report()).status == 200
        unknown = await asyncio.gather(*(noisy.report(token=f"x{number}") for number in range(50)))
        assert {each.status for each in unknown} <= {401, 503}
        assert (await quiet.report()).status == 200


async def test_a_late_event_loop_takes_fewer_reports_until_it_is_in_time_again(
    cluster: ApiClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LATENESS_S", 0.01)
    async with serving(cluster, namespace, tmp_path) as plane, asyncio.timeout(DEADLINE_S):
        rate = plane.table.rate
        while rate.share == 1:
            time.sleep(2 * LATE_S)  # noqa: ASYNC251 - keeps the event loop from its work
            await asyncio.sleep(0.02)
        while rate.share < 1:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)


async def test_the_journal_carries_a_run_over_to_the_next_leader(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    everything = steps(50)
    async with serving(cluster, namespace, tmp_path) as first:
        client = await first.reporter()
        await client.report(events={"first": 0, "items": packing.pack(everything[:60])}, configs={"user": {"lr": 1}})
        answer = await client.persisted(events={"first": 0, "items": packing.pack(everything[:60])})
        assert answer["persistedEvents"] == 60
    async with serving(cluster, namespace, tmp_path) as second:
        await second.plane.recall(RunKey(namespace, client.run))
        run = second.view(client.run)
        assert run is not None
        assert (run.configs.sections["user"], len(run.hosts)) == ({"lr": "1"}, 1)
        # A run that falls silent before the change of the leader still has its account.
        run = await second.until(client.run, lambda run: run.goodput)
        assert run.goodput is not None
        assert run.goodput.last_step == 29
        client.url, client.session = second.url, second.session
        answer = await client.persisted(events={"first": 60, "items": packing.pack(everything[60:])})
        assert answer["persistedEvents"] == len(everything)
        run = await second.until(client.run, lambda run: run.goodput and run.goodput.last_step == 49)
        assert run.goodput is not None
        assert run.goodput.attempts == 1


async def test_the_next_leader_knows_a_silent_run_that_was_reported_from_outside_the_cluster(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as first:
        outside = Reporter(first.session, first.url, await first.token(), "my-experiment")
        await outside.persisted(events={"first": 0, "items": packing.pack(steps(20))})
    async with serving(cluster, namespace, tmp_path) as second:
        await second.plane.recall(RunKey(namespace, outside.run))
        run = await second.until(outside.run, lambda run: run.goodput)
        assert run.goodput is not None
        assert (len(run.hosts), run.goodput.last_step) == (1, 19)


async def test_nothing_is_acknowledged_that_cannot_be_persisted(
    cluster: ApiClient, namespace: str, tmp_path: Path
) -> None:
    await make_account(cluster, namespace)
    async with serving(cluster, namespace, tmp_path) as plane:
        client, cold = await plane.reporter("warm-0"), await plane.reporter("cold-0")
        await client.persisted()
        key = RunKey(namespace, client.run)
        async with asyncio.timeout(DEADLINE_S):  # the journal may still write a later report
            while plane.table.answer(key, client.incarnation).persisted_sequence != client.sequence:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        volume = tmp_path / "volume"
        volume.rename(tmp_path / "away")
        volume.write_text("a file is not a directory")
        known = (await client.report()).body["persistedSequence"]
        answer = await client.report(phase="Failed")
        assert (answer.status, answer.body["persistedSequence"]) == (200, known)
        refused = await cold.report()  # its journal may have more than this client sends
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert plane.value("journal_writes_total", result="failed") > 0
        volume.unlink()
        (tmp_path / "away").rename(volume)
        assert (await client.report(phase="Failed")).body["persistedSequence"] == client.sequence
        assert (await cold.report()).status == 200


async def test_reports_wait_for_an_api_server_that_is_away(plane: Running) -> None:
    known, fresh = await plane.reporter("known-0"), await plane.reporter("fresh-0")
    assert (await known.report()).status == 200
    server = plane.cluster.access.server
    object.__setattr__(plane.cluster.access, "server", "https://127.0.0.1:9")
    assert (await known.report()).status == 200
    refused = await fresh.report()
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    object.__setattr__(plane.cluster.access, "server", server)
    assert (await fresh.report()).status == 200


@pytest.mark.parametrize("step_s", [-3600, 3600])
async def test_a_step_of_the_leaders_clock_refuses_nobody(
    cluster: ApiClient, namespace: str, tmp_path: Path, step_s: int
) -> None:
    await make_account(cluster, namespace)
    machine_s = [0.0]
    clock = SteadyClock(lambda: time.time() + machine_s[0])
    async with serving(cluster, namespace, tmp_path, clock=clock.unix_s) as plane:
        client = await plane.reporter()
        await client.persisted()
        before = await plane.until(client.run, lambda run: run.last_received)
        machine_s[0] = step_s
        for _ in range(3):
            assert (await client.report()).status == 200
        after = await plane.until(client.run, lambda run: run.last_received > before.last_received)
        assert after.last_received - before.last_received < 3600 / 2
        assert plane.value("lookups_total", kind="tokenreview") == 1
