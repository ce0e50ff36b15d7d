from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.disruptions import DisruptionCause, Evidence
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.lifecycle.startup import PodStartup
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.observation import RunObservation, cause_messages, observed
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt, RunStartUp

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def evidence(cause: DisruptionCause, seconds: float, subject: str = "pod 'w-0'") -> Evidence:
    return Evidence(cause=cause, time=at(seconds), subject=subject, detail="shows it")


def reported(attempt: int = 0, *, changed: float | None = None) -> ReportedRun:
    host = ReportedHost(
        rank=0,
        slice=None,
        name="h",
        pod="w-0",
        pod_uid="u",
        node="",
        attempt=attempt,
        incarnation="00000001",
        step=None if changed is None else 1,
        changed=None if changed is None else at(changed).timestamp() + 2,
        clock_ahead=2.0,
        received=at(0).timestamp(),
    )
    key = RunKey("ml", "a" * 64)
    return ReportedRun(key=key, revision=1, first_received=0, last_received=0, hosts=[host])


PODS = [
    PodStartup(name="w-0", scheduled=at(20), pulled=at(50), started=at(50)),
    PodStartup(name="w-1", scheduled=at(30), pulled=at(60), started=at(60)),
]
SEEN = RunObservation(created=START, admitted=at(10), pods=PODS, expected=2)


def status(*attempts: RunAttempt, phase: MLRunPhase = MLRunPhase.ACTIVE, **changes: Any) -> MLRunStatus:
    return MLRunStatus(phase=phase, attempt=max(0, len(attempts) - 1), attempts=list(attempts) or None, **changes)


def the(run_status: MLRunStatus) -> RunAttempt:
    assert run_status.attempts
    return run_status.attempts[-1]


def test_a_start_up_is_recorded_once_and_stays_after_its_pods() -> None:
    first = observed(status(RunAttempt(attempt=0)), SEEN, reported(changed=100), at(101))
    start_up = the(first).start_up
    assert start_up is not None
    assert (start_up.created_time, start_up.admitted_time, start_up.scheduled_time) == (START, at(10), at(30))
    assert (start_up.pulled_time, start_up.started_time, start_up.first_step_time) == (at(60), at(60), at(100))
    assert first.goodput is not None
    assert first.goodput.start_up_seconds == {"queueing": 10, "scheduling": 20, "pull": 30, "startup": 40}
    later = observed(first, RunObservation(created=START), reported(changed=500), at(600))
    assert later == first


def test_the_first_step_is_made_in_a_pod_of_the_attempt_after_its_containers_have_started() -> None:
    attempts = (RunAttempt(attempt=0, end_time=at(1000)), RunAttempt(attempt=1, start_time=at(1100)))
    pods = [PodStartup(name="w-0", uid="u", scheduled=at(1020), pulled=at(1030), started=at(1030))]
    seen = RunObservation(created=START, admitted=START, pods=pods, expected=1)

    def first_step(changed: float, pod: str = "u") -> datetime | None:
        other = replace(seen, pods=[replace(pods[0], uid=pod)])
        start_up = the(observed(status(*attempts), other, reported(changed=changed), at(2000))).start_up
        assert start_up
        return start_up.first_step_time

    assert first_step(1080) == at(1080)
    assert first_step(1010) is None  # the process before, which had time to end
    assert first_step(1080, pod="v") is None


def test_a_restart_in_place_starts_up_from_the_end_before_it() -> None:
    attempts = (
        RunAttempt(attempt=0, end_time=at(100), reason="OOMKilled"),
        RunAttempt(attempt=1, container_restarts=1, start_time=at(110)),
    )
    pods = [PodStartup(name="w-0", uid="u", scheduled=at(5), pulled=at(6), started=at(6))]
    program = PodProgram(pod="w-0", uid="u", restarts=1, started=at(110), ended=at(100))
    crash = [evidence(DisruptionCause.EXIT_CODE, 100), evidence(DisruptionCause.OUT_OF_MEMORY, 130)]
    seen = RunObservation(created=START, admitted=START, pods=pods, expected=1, program=program, evidence=crash)
    after = observed(status(*attempts), seen, reported(changed=125), at(140))
    assert after.attempts
    assert [each.cause for each in after.attempts] == ["ExitCode", None]  # the second crash is not of the first attempt
    assert after.goodput is not None
    assert after.goodput.start_up_seconds == {"queueing": 0, "scheduling": 0, "pull": 0, "startup": 25}


def test_two_crashes_in_one_second_explain_two_attempts() -> None:
    """The kubelet gives whole seconds, and restarts a container at once the first time."""
    attempts = (
        RunAttempt(attempt=0, end_time=at(100), reason="Error"),
        RunAttempt(attempt=1, container_restarts=1, start_time=at(100), end_time=at(100), reason="Error"),
        RunAttempt(attempt=2, container_restarts=2, start_time=at(110)),
    )
    crash = [evidence(DisruptionCause.EXIT_CODE, 100)]
    after = observed(status(*attempts), RunObservation(evidence=crash), None, at(120))
    assert after.attempts
    assert [each.cause for each in after.attempts] == ["ExitCode", "ExitCode", None]


def test_a_lost_node_replaces_the_exit_codes_that_showed_first() -> None:
    ended = status(RunAttempt(attempt=0, end_time=at(100), reason="Restarted"), RunAttempt(attempt=1))
    failed = evidence(DisruptionCause.EXIT_CODE, 95)
    first = observed(ended, RunObservation(evidence=[failed]), None, at(101))
    assert first.attempts is not None
    assert first.attempts[0].cause == "ExitCode"
    assert list(cause_messages(ended, first)) == ["attempt 0 ended, ExitCode: pod 'w-0': shows it"]
    lost = evidence(DisruptionCause.NODE_LOST, 145, "node 'n1'")
    second = observed(first, RunObservation(evidence=[failed, lost]), None, at(150))
    assert second.attempts is not None
    assert (second.attempts[0].cause, second.attempts[0].cause_message) == ("NodeLost", "node 'n1': shows it")
    assert observed(second, RunObservation(), None, at(200)) == second  # a new leader has seen nothing
    assert observed(second, RunObservation(evidence=[failed]), None, at(5000)) == second


@pytest.mark.parametrize("reason", ["Completed", None])
def test_a_completed_run_has_no_cause(reason: str | None) -> None:
    done = status(RunAttempt(attempt=0, end_time=at(100), reason=reason), phase=MLRunPhase.COMPLETED)
    after = observed(done, RunObservation(evidence=[evidence(DisruptionCause.DELETED, 99)]), None, at(101))
    assert the(after).cause is None


def test_without_evidence_the_cause_is_unknown() -> None:
    ended = status(RunAttempt(attempt=0, end_time=at(100), reason="Restarted"), RunAttempt(attempt=1))
    after = observed(ended, RunObservation(), None, at(101))
    assert after.attempts is not None
    assert after.attempts[0].cause == "Unknown"
    assert list(cause_messages(ended, after)) == []


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)])
def test_an_end_at_the_ends_of_the_calendar_gets_a_cause(moment: datetime) -> None:
    shown = Evidence(cause=DisruptionCause.NODE_LOST, time=moment, subject="node 'n1'", detail="is gone")
    ended = status(RunAttempt(attempt=0, start_time=at(0), end_time=moment), phase=MLRunPhase.FAILED)
    assert the(observed(ended, replace(SEEN, evidence=[shown]), None, at(5))).cause == "NodeLost"


def test_the_deletion_of_a_workload_is_the_cause_unless_its_pods_show_more() -> None:
    ended = RunAttempt(attempt=0, end_time=at(100), reason="WorkloadDeleted")
    deleted = status(ended, phase=MLRunPhase.FAILED, workload="Job/trainer")
    [message] = cause_messages(deleted, observed(deleted, RunObservation(), None, at(101)))
    assert message == "attempt 0 ended, Deleted: Job/trainer: was deleted; the API does not record by which user"
    lost = RunObservation(evidence=[evidence(DisruptionCause.NODE_LOST, 60, "node 'n1'")])
    assert the(observed(deleted, lost, None, at(101))).cause == "NodeLost"


def test_a_pending_run_says_what_its_pods_wait_for() -> None:
    pods = [PODS[0], PodStartup(name="w-1", waiting="Unschedulable: 0/3 nodes are available")]
    waits = status(phase=MLRunPhase.PENDING, reason="Starting", message="the JobSet waits for its pods")
    after = observed(waits, RunObservation(pods=pods, expected=2), None, at(60))
    assert after.message == "1 of 2 pods started; pod 'w-1': Unschedulable: 0/3 nodes are available"


REFUSED = Evidence(cause=DisruptionCause.QUOTA, time=at(20), subject="job 'trainer'", detail="exceeded quota: team")
WAITING = status(phase=MLRunPhase.PENDING, reason="Starting", message="the Job waits for its pods")


def test_a_run_whose_pods_are_refused_says_so_until_it_has_them() -> None:
    seen = RunObservation(created=START, pods=PODS[:1], expected=2, refused=REFUSED)
    waits = observed(WAITING, seen, None, at(60))
    assert waits.reason == "QuotaExceeded"
    assert waits.message == "1 of 2 pods created; job 'trainer': exceeded quota: team"
    assert observed(WAITING, replace(seen, pods=PODS), None, at(60)).reason == "Starting"
    assert observed(WAITING, seen, None, at(5000)).reason == "Starting"  # the events ended long ago
    assert observed(WAITING, replace(seen, created=at(30)), None, at(60)).reason == "Starting"  # of a former workload
    held = WAITING.model_copy(update={"reason": "Suspended"})
    assert observed(held, seen, None, at(60)).reason == "Suspended"
    restarted = status(RunAttempt(attempt=0, end_time=at(10)), RunAttempt(attempt=1), reason="Restarted")
    assert observed(restarted, seen, None, at(60)).reason == "QuotaExceeded"


def test_refused_pods_explain_only_an_attempt_that_never_started() -> None:
    seen = RunObservation(created=START, refused=REFUSED, evidence=[evidence(DisruptionCause.DEADLINE, 90)])
    ended = RunAttempt(attempt=0, end_time=at(100), reason="DeadlineExceeded")
    assert the(observed(status(ended, phase=MLRunPhase.FAILED), seen, None, at(101))).cause == "Quota"
    started = ended.model_copy(update={"start_up": RunStartUp(started_time=at(10))})
    assert the(observed(status(started, phase=MLRunPhase.FAILED), seen, None, at(101))).cause == "DeadlineExceeded"
    late = replace(seen, refused=replace(REFUSED, time=at(105)))  # the pods of the next attempt
    assert the(observed(status(ended, phase=MLRunPhase.FAILED), late, None, at(106))).cause == "DeadlineExceeded"


def test_an_interruption_is_a_suspension_unless_the_cluster_shows_more() -> None:
    held = RunAttempt(attempt=0, end_time=at(100), reason="Queued", message="waits in queue tpu")
    waits = status(held, phase=MLRunPhase.PENDING, reason="Queued", workload="JobSet/trainer")
    deleted = evidence(DisruptionCause.DELETED, 99)
    after = observed(waits, RunObservation(evidence=[deleted]), None, at(101))
    assert (the(after).cause, the(after).cause_message) == ("Suspended", "JobSet/trainer: Queued: waits in queue tpu")
    preempted = evidence(DisruptionCause.PREEMPTION, 98, "Workload 'w'")
    assert the(observed(after, RunObservation(evidence=[deleted, preempted]), None, at(102))).cause == "Preemption"


def test_what_ended_an_attempt_is_not_the_cause_of_the_next_end() -> None:
    failed = RunAttempt(attempt=0, end_time=at(100), reason="Restarted")
    held = RunAttempt(attempt=1, start_time=at(100), end_time=at(126), reason="Suspended", message="is suspended")
    waits = status(failed, held, phase=MLRunPhase.PENDING, reason="Suspended", workload="RayJob/trainer")
    after = observed(waits, RunObservation(evidence=[evidence(DisruptionCause.EXIT_CODE, 95)]), None, at(127))
    assert [attempt.cause for attempt in after.attempts or ()] == ["ExitCode", "Suspended"]


def test_the_steps_before_an_interruption_are_not_those_of_the_rest() -> None:
    held = RunAttempt(attempt=0, start_time=START, end_time=at(100), reason="Queued", cause="Preemption")
    resumed = status(held, RunAttempt(attempt=1, start_time=at(200)))
    for changed, expected in ((90, None), (250, at(250))):
        start_up = the(observed(resumed, SEEN, reported(changed=changed), at(300))).start_up
        assert start_up
        assert start_up.first_step_time == expected


MOMENTS = st.none() | st.integers(-100, 900).map(at)


@given(
    st.lists(
        st.builds(
            evidence,
            st.sampled_from([cause for cause in DisruptionCause if cause is not DisruptionCause.UNKNOWN]),
            st.integers(0, 900),
        ),
        max_size=5,
    ),
    st.lists(st.builds(PodStartup, name=st.just("w"), scheduled=MOMENTS, pulled=MOMENTS, started=MOMENTS), max_size=3),
    MOMENTS,
    st.none() | st.integers(0, 900).map(float),
    st.integers(0, 1000).map(at),
)
def test_an_observation_is_idempotent_and_loses_nothing(
    markers: list[Evidence], pods: list[PodStartup], created: datetime | None, changed: float | None, now: datetime
) -> None:
    seen = RunObservation(created=created, pods=pods, evidence=markers)
    before = status(RunAttempt(attempt=0, end_time=at(300), reason="Restarted"), RunAttempt(attempt=1))
    once = observed(before, seen, reported(1, changed=changed), now)
    assert observed(once, seen, reported(1, changed=changed), now) == once
    later = observed(once, RunObservation(), None, now)
    assert later.attempts == once.attempts
    assert MLRunStatus.model_validate(once.model_dump(by_alias=True, mode="json")).attempts == once.attempts


def test_the_end_of_the_pull_stays_open_until_its_events_are_read() -> None:
    starting = status(RunAttempt(attempt=0))
    waiting = the(observed(starting, replace(SEEN, are_pulls_open=True), None, at(61)))
    assert waiting.start_up
    assert (waiting.start_up.pulled_time, waiting.start_up.started_time) == (None, at(60))
    known = the(observed(status(waiting), replace(SEEN, pulled=at(45)), None, at(62)))
    assert known.start_up
    assert known.start_up.pulled_time == at(45)
    late = the(observed(starting, replace(SEEN, pulled=at(300)), None, at(301)))
    assert late.start_up
    assert late.start_up.pulled_time == at(60)  # clocks differ: an image is present before its container starts
