from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.lifecycle import Lifecycle
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.events import events_between
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.status import fold, is_urgent, is_worth_writing
from mldiagnostics_api.v1alpha1 import MLRunStatus

SCHEMA = definition_of(RUNS)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
RUN = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"
PENDING, ACTIVE, COMPLETED, FAILED = MLRunPhase

QUEUED = Lifecycle(suspended=True, admitted=False, queue="tpu", reason="Queued", message="waits", hosts=4)
STARTING = Lifecycle(reason="Starting", message="the JobSet waits for its pods", hosts=4)
RUNNING = Lifecycle(phase=ACTIVE, reason="Running", message="the JobSet runs", hosts=4)
RESTARTED = replace(STARTING, attempt=1, reason="Restarted", message="restart 1")
DONE = Lifecycle(phase=COMPLETED, reason="AllJobsCompleted", message="done", hosts=4, ended=NOW)
BROKEN = Lifecycle(phase=FAILED, reason="FailedJobs", message="a Job failed", attempt=2, hosts=4)


def facts(state: Lifecycle | None = None, **more: Any) -> RunFacts:
    return RunFacts(run_id=RUN, workload="JobSet/trainer", lifecycle=state, **more)


def history(*steps: RunFacts, each_s: int = 10) -> list[MLRunStatus]:
    """Return the statuses of a run through the steps."""
    statuses = [MLRunStatus()]
    for number, step in enumerate(steps):
        statuses.append(fold(statuses[-1], step, NOW + timedelta(seconds=each_s * number)))
    return statuses[1:]


def truths(status: MLRunStatus) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions or ()}


def report(hosts: int = 4, *, at: datetime = NOW, **more: Any) -> ReportedRun:
    received = at.timestamp()
    return ReportedRun(
        key=RunKey("ml", RUN),
        revision=1,
        first_received=received,
        last_received=received,
        hosts=[
            ReportedHost(
                rank=rank,
                slice=0,
                name=f"h{rank}",
                pod=f"trainer-{rank}",
                pod_uid="u",
                node="n",
                attempt=0,
                incarnation=f"{rank:08x}",
                ports=(9999,),
                received=received,
            )
            for rank in range(hosts)
        ],
        **more,
    )


def test_the_story_of_a_run_that_waits_restarts_and_completes() -> None:
    steps = [facts(state) for state in (QUEUED, STARTING, RUNNING, RESTARTED, replace(RUNNING, attempt=1))]
    statuses = history(*steps, facts(replace(DONE, attempt=1, ended=NOW + timedelta(seconds=45))))
    assert [status.phase for status in statuses] == [PENDING, PENDING, ACTIVE, ACTIVE, ACTIVE, COMPLETED]
    assert [status.attempt for status in statuses] == [0, 0, 0, 1, 1, 1]
    reasons = [
        event.reason
        for pair in zip([MLRunStatus(), *statuses], statuses, strict=False)
        for event in events_between(*pair)
    ]
    assert reasons == ["Queued", "Admitted", "Started", "Restarted", "Completed"]
    first, last = statuses[0], statuses[-1]
    assert truths(first)["Admitted"] == ("False", "Queued")
    assert truths(first)["Complete"] == ("False", "Queued")
    assert truths(last)["Complete"] == ("True", "AllJobsCompleted")
    assert truths(last)["Admitted"] == ("True", "Admitted")
    assert truths(last)["Started"] == ("True", "Started")
    assert last.start_time == NOW + timedelta(seconds=20)
    assert last.completion_time == NOW + timedelta(seconds=45)
    assert [(each.attempt, each.reason) for each in last.attempts or ()] == [(0, "Restarted"), (1, "AllJobsCompleted")]


def test_attempts_that_fail_before_they_are_seen_to_run_are_counted() -> None:
    last = history(facts(STARTING), facts(replace(RUNNING, attempt=2)))[-1]
    seen = [(each.attempt, each.start_time is None, each.end_time is None) for each in last.attempts or ()]
    assert seen == [(0, True, False), (1, True, False), (2, False, True)]


def test_the_name_is_that_of_people_of_the_program_or_of_the_workload() -> None:
    named = report(name="llama", storage="gs://theirs/profiles")
    first, reported, forgotten, ended = history(
        facts(STARTING, storage="volume:///"),
        facts(RUNNING, reported=named, storage="volume:///"),
        facts(RUNNING, storage="gs://new"),
        facts(DONE, storage="gs://new"),
    )
    assert [each.display_name for each in (first, reported, forgotten, ended)] == ["trainer", "llama", "llama", "llama"]
    assert [each.storage_location for each in (first, reported, forgotten)] == ["volume:///", "volume:///", "gs://new"]
    assert (first.reported_storage, reported.reported_storage) == (None, "gs://theirs/profiles")
    assert ended.reported_storage == "gs://theirs/profiles"
    later = fold(ended, facts(DONE, display_name="best", storage="gs://newest"), NOW + timedelta(seconds=60))
    assert (later.display_name, later.storage_location) == ("best", "gs://new"), "files of an ended run do not move"


def test_texts_of_programs_fit_and_hide_passwords() -> None:
    [status] = history(facts(RUNNING, reported=report(name="n" * 300, storage="https://u:pw@h/" + "x" * 2000)))
    assert len(status.display_name or "") == 253
    assert len(status.reported_storage or "") == 1024
    assert "pw" not in (status.reported_storage or "")


def test_the_last_account_and_step_of_a_run_arrive_after_its_end() -> None:
    early = ReportedGoodput(
        as_of=NOW.timestamp(),
        started=NOW.timestamp(),
        elapsed=1,
        productive=0,
        unproductive={},
        disruptions=0,
        attempts=1,
    )
    last = replace(early, as_of=early.as_of + 30, elapsed=30, productive=28)
    at_end = report(at=NOW + timedelta(seconds=10), step=90, goodput=early)
    after = report(at=NOW + timedelta(seconds=12), step=99, phase="Completed", goodput=last)
    ended, final = history(facts(RUNNING, reported=at_end), facts(DONE, reported=at_end), facts(DONE, reported=after))[
        1:
    ]
    assert ended.goodput is not None
    assert ended.goodput.ratio == 0
    assert final.goodput is not None
    assert (final.goodput.summary, final.progress and final.progress.step) == ("93.3%", 99)
    assert (final.phase, final.completion_time, final.attempts) == (ended.phase, ended.completion_time, ended.attempts)
    for older in (None, at_end):  # of another leader
        assert fold(final, facts(DONE, reported=older), NOW + timedelta(seconds=60)) == final


def test_a_client_that_reports_no_hosts_leaves_them_unknown() -> None:
    peer = replace(report(0), aliases=("mlrun-1",))
    after = fold(MLRunStatus(), facts(RUNNING, reported=peer), NOW)
    assert after.hosts is not None
    assert (after.hosts.reporting, after.hosts.summary) == (None, "?/4")
    assert {truths(after)[kind] for kind in ("Reporting", "Profilable")} == {("Unknown", "UnknownForClient")}


@pytest.mark.parametrize("last", [facts(STARTING, gone=True), facts(replace(BROKEN, attempt=0, ran=False))], ids=str)
def test_a_run_that_never_started_has_one_attempt_without_a_start(last: RunFacts) -> None:
    before, after = history(facts(STARTING), last)
    [attempt] = after.attempts or ()
    assert (attempt.attempt, attempt.start_time, attempt.end_time) == (0, None, after.completion_time)
    assert attempt.reason == after.reason
    assert truths(after)["Started"][0] == "False"
    assert [event.reason for event in events_between(before, after)] == ["Failed"]
    assert fold(after, last, NOW + timedelta(seconds=60)) == after


@pytest.mark.parametrize(
    ("steps", "phase", "reason"),
    [
        ([facts(RUNNING), facts(RUNNING, gone=True)], FAILED, "WorkloadDeleted"),
        ([facts(RUNNING), facts(gone=True, endless=True)], COMPLETED, "WorkloadDeleted"),
        ([facts(gone=True)], FAILED, "WorkloadDeleted"),
        ([facts(RUNNING), facts(BROKEN, gone=True)], FAILED, "FailedJobs"),
        ([facts(RUNNING), facts(gone=True, reported=report(phase="Completed"))], COMPLETED, "Reported"),
        ([facts(RUNNING), facts(DONE), facts(RUNNING), facts(gone=True)], COMPLETED, "AllJobsCompleted"),
        ([facts(RUNNING), facts(None)], ACTIVE, "Running"),
        ([facts(RUNNING), facts(QUEUED)], PENDING, "Queued"),
        ([facts(STARTING, reported=report())], ACTIVE, "Running"),
    ],
)
def test_the_phase_after_an_end_a_deletion_or_a_gap(steps: list[RunFacts], phase: MLRunPhase, reason: str) -> None:
    last = history(*steps)[-1]
    assert (last.phase, last.reason) == (phase, reason)
    assert (last.completion_time is not None) == (phase in FINISHED_RUN_PHASES)


def test_hosts_are_counted_and_those_that_stop_reporting_are_named() -> None:
    [status] = history(facts(RUNNING, reported=report()))
    assert status.hosts is not None
    assert (status.hosts.summary, status.hosts.exceptions) == ("4/4", None)
    assert truths(status)["Reporting"] == ("True", "Reporting")
    assert truths(status)["Profilable"] == ("True", "ProfilerServers")
    late = report()
    lost = replace(late, hosts=[*late.hosts[:3], replace(late.hosts[3], received=late.hosts[3].received - 31)])
    [status] = history(facts(RUNNING, reported=lost))
    assert status.hosts is not None
    assert status.hosts.summary == "3/4"
    assert [(host.host, host.reason) for host in status.hosts.exceptions or ()] == [("trainer-3", "Lost")]
    ended = history(facts(RUNNING, reported=lost), facts(DONE, reported=lost), facts(gone=True))[-1]
    assert ended.hosts is not None
    assert ended.hosts.summary == "3/4"
    assert truths(ended)["Reporting"] == ("False", "RunEnded")


def test_a_run_without_a_workload_is_lost_and_found_by_its_reports() -> None:
    outside = RunFacts(run_id=RUN, reported=report(2, world_size=2))
    first = fold(MLRunStatus(), outside, NOW)
    assert (first.phase, first.reason, first.hosts and first.hosts.summary) == (ACTIVE, "Running", "2/2")
    lost = fold(first, outside, NOW + timedelta(seconds=31))
    assert (lost.phase, lost.reason, lost.completion_time) == (FAILED, "Lost", NOW)
    after_restart = fold(lost, RunFacts(run_id=RUN), NOW + timedelta(seconds=90))
    assert (after_restart.phase, after_restart.reason) == (FAILED, "Lost")
    listening_since = NOW + timedelta(seconds=80)
    in_time = fold(first, RunFacts(run_id=RUN, listening_since=listening_since), NOW + timedelta(seconds=110))
    assert (in_time.phase, in_time.reason) == (ACTIVE, "Running")
    too_late = fold(first, RunFacts(run_id=RUN, listening_since=listening_since), NOW + timedelta(seconds=111))
    assert (too_late.phase, too_late.reason, too_late.completion_time) == (FAILED, "Lost", NOW)
    later = NOW + timedelta(seconds=120)
    again = fold(lost, RunFacts(run_id=RUN, reported=report(2, at=later)), later)
    assert (again.phase, again.completion_time, truths(again)["Complete"][0]) == (ACTIVE, None, "False")
    assert [attempt.end_time for attempt in again.attempts or ()] == [None]
    assert fold(MLRunStatus(), RunFacts(run_id=RUN), NOW).reason == "NotReported"


def test_an_attempt_that_is_suspended_ends_and_goes_on_in_a_new_entry() -> None:
    statuses = history(facts(RUNNING), facts(QUEUED), facts(QUEUED), facts(STARTING), facts(RUNNING))
    numbers = [[(each.attempt, each.reason) for each in status.attempts or ()] for status in statuses]
    assert numbers == [[(0, None)], [(0, "Queued")], [(0, "Queued")], *2 * [[(0, "Queued"), (1, None)]]]
    assert statuses[1].attempts == statuses[2].attempts
    assert statuses[-1].attempt == 1
    events = [event.reason for pair in pairwise(statuses) for event in events_between(*pair)]
    assert events == ["Suspended", "Admitted"]


def test_only_a_recent_heartbeat_is_not_worth_a_write() -> None:
    before, after, late = (
        fold(MLRunStatus(), facts(RUNNING, reported=report(at=NOW + timedelta(seconds=s))), NOW) for s in (0, 10, 60)
    )
    assert [is_worth_writing(before, each) for each in (before, after, late)] == [False, False, True]
    assert not is_urgent(before, late)
    assert is_urgent(before, fold(before, facts(DONE), NOW))


STATES = st.sampled_from([None, QUEUED, STARTING, RUNNING, RESTARTED, DONE, BROKEN])
REPORTS = st.none() | st.builds(
    lambda hosts, phase, step, attempt: report(hosts, phase=phase, step=step, attempt=attempt),
    st.integers(0, 5),
    st.sampled_from(["Active", "Completed", "Failed"]),
    st.none() | st.integers(0, 10),
    st.integers(0, 3),
)
FACTS = st.builds(facts, STATES, gone=st.booleans(), endless=st.booleans(), reported=REPORTS)


@given(st.lists(FACTS, min_size=1, max_size=6), st.integers(1, 40))
def test_no_history_breaks_the_rules_of_a_run(steps: list[RunFacts], each_s: int) -> None:
    statuses = history(*steps, each_s=each_s)
    for number, (status, step) in enumerate(zip(statuses, steps, strict=True)):
        now = NOW + timedelta(seconds=each_s * number)
        jsonschema.validate(status.model_dump(mode="json", by_alias=True, exclude_none=True), SCHEMA)
        assert fold(status, step, now) == status  # facts that are repeated change nothing
        ended = status.phase in FINISHED_RUN_PHASES
        assert (truths(status)["Complete"][0] == "True") == ended == (status.completion_time is not None)
        assert not (status.start_time and status.completion_time and status.completion_time < status.start_time)
        if number and statuses[number - 1].phase in FINISHED_RUN_PHASES:
            assert status.phase == statuses[number - 1].phase
        assert (status.attempt or 0) >= ((statuses[number - 1].attempt or 0) if number else 0)
        attempts = [each.attempt for each in status.attempts or ()]
        assert attempts == sorted(attempts)
        assert all(each.end_time for each in (status.attempts or ())[:-1])
