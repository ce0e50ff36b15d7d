"""The attempts of a run, by the counts of controllers and kubelets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.lifecycle import Lifecycle
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.reported_run import ReportedRun
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.events import events_between
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.status import fold
from mldiagnostics_api.v1alpha1 import MLRunStatus

NOW = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)
RUNNING = Lifecycle(phase=MLRunPhase.ACTIVE, reason="Running", message="the Job runs", hosts=1, counts_pods=True)
PROGRAM = PodProgram(pod="w-0", uid="u", started=NOW)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def crashed(restarts: int, ended: float, *, reason: str = "Error", uid: str = "u") -> PodProgram:
    """Return a program that waits for its next restart."""
    message = "container 'train' of pod 'w-0' ended with exit code 1"
    words = "back-off 10s restarting failed container"
    return PodProgram(
        pod="w-0", uid=uid, restarts=restarts, ended=at(ended), reason=reason, message=message, waiting=words
    )


def restarted(restarts: int, ended: float, *, reason: str = "Error", uid: str = "u") -> PodProgram:
    """Return a program that runs again, one second after its end."""
    again = crashed(restarts, ended, reason=reason, uid=uid)
    return replace(again, waiting="", started=at(ended + 1))


def facts(program: PodProgram | None, state: Lifecycle = RUNNING, **more: Any) -> RunFacts:
    crashing = program if program is not None and program.waiting else None
    return RunFacts(
        run_id="r",
        workload="Job/trainer",
        lifecycle=state,
        program=program,
        crashing=crashing,
        **more,
    )


def history(*steps: RunFacts) -> list[MLRunStatus]:
    statuses = [MLRunStatus()]
    for number, step in enumerate(steps):
        statuses.append(fold(statuses[-1], step, at(10 * number)))
    return statuses[1:]


def shown(status: MLRunStatus) -> list[tuple[int, str | None]]:
    return [(each.attempt, each.reason) for each in status.attempts or ()]


def test_each_restart_in_place_is_an_attempt_with_the_end_that_the_kubelet_reports() -> None:
    last = history(
        facts(PROGRAM), facts(restarted(1, 7, reason="OOMKilled")), facts(crashed(1, 17)), facts(restarted(2, 17))
    )[-1]
    assert shown(last) == [(0, "OOMKilled"), (1, "Error"), (2, None)]
    assert [each.end_time for each in last.attempts or ()] == [at(7), at(17), None]
    assert last.attempt == 2


def test_an_instance_that_ends_before_anybody_sees_it_run_leaves_the_one_before_its_own_end() -> None:
    def program(**status: Any) -> PodProgram:
        container = {"name": "train", **status}
        return PodProgram.of(
            {
                "metadata": {"name": "w-0", "uid": "u"},
                "spec": {"containers": [{"name": "train"}]},
                "status": {"containerStatuses": [container]},
            }
        )

    def ended(code: int, reason: str, seconds: float) -> dict[str, Any]:
        return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": format_time(at(seconds))}}

    running = {"running": {"startedAt": format_time(at(8))}}
    last = history(
        facts(PROGRAM),
        facts(program(restartCount=1, state=running, lastState=ended(3, "Error", 7))),
        facts(program(restartCount=2, state=ended(0, "Completed", 18), lastState=ended(4, "OOMKilled", 17))),
    )[-1]
    assert shown(last) == [(0, "Error"), (1, "OOMKilled"), (2, None)]
    assert [each.end_time for each in last.attempts or ()] == [at(7), at(17), None]


def test_a_crash_loop_is_the_reason_of_the_run_with_an_event_until_the_container_runs() -> None:
    statuses = history(facts(PROGRAM), facts(crashed(0, 5)), facts(crashed(0, 5)), facts(restarted(1, 5)))
    assert [(each.phase, each.reason) for each in statuses] == [
        (MLRunPhase.ACTIVE, "Running"),
        *2 * [(MLRunPhase.ACTIVE, "CrashLoopBackOff")],
        (MLRunPhase.ACTIVE, "Running"),
    ]
    assert statuses[1].message == (
        "container 'train' of pod 'w-0' ended with exit code 1; back-off 10s restarting failed container"
    )
    assert shown(statuses[1]) == [(0, "Error")]
    events = [(event.reason, event.message) for pair in pairwise(statuses) for event in events_between(*pair)]
    assert [reason for reason, _ in events] == ["CrashLoopBackOff", "Restarted"]
    assert events[1][1] == "Job/trainer is in attempt 1: container 'train' of pod 'w-0' ended with exit code 1"


def test_a_program_that_crashes_before_anybody_sees_it_run_has_started() -> None:
    waiting = Lifecycle(reason="Starting", message="the Job waits for its pods", hosts=1)
    [status] = history(facts(crashed(3, -20), waiting))
    assert (status.phase, status.reason) == (MLRunPhase.ACTIVE, "CrashLoopBackOff")
    assert [number for number, _ in shown(status)] == [0, 1, 2, 3]


def test_a_replaced_pod_counts_once_in_every_order_of_the_news() -> None:
    again = replace(RUNNING, attempt=1)
    old, new = restarted(2, 3, uid="old"), PodProgram(pod="w-1", uid="new", started=at(20))
    for between in (facts(old, again), facts(None, again), facts(new)):
        last = history(facts(old), between, facts(new, again), facts(restarted(1, 31, uid="new"), again))[-1]
        assert [number for number, _ in shown(last)] == [0, 1, 2, 3, 4]


def test_a_replaced_pod_that_leads_is_an_attempt_of_a_workload_that_does_not_count() -> None:
    moved = replace(PROGRAM, uid="v")
    uncounted = replace(RUNNING, counts_pods=False)
    last = history(facts(PROGRAM, uncounted), facts(moved, uncounted))[-1]
    assert shown(last) == [(0, "PodReplaced"), (1, None)]
    assert shown(history(facts(PROGRAM), facts(moved))[-1]) == [(0, None)]  # the controller's count follows


def test_independent_processes_have_one_attempt_and_no_account() -> None:
    account = ReportedGoodput(
        as_of=1, started=0, elapsed=9, productive=1, unproductive={}, disruptions=1095, attempts=1096
    )
    report = ReportedRun(
        key=RunKey("ml", "r"), revision=1, first_received=0, last_received=0, step=7, goodput=account, world_size=1
    )
    serves = replace(RUNNING, independent=True, endless=True, hosts=2)
    steps = [
        facts(program, serves, reported=report, endless=True, restarts=4).without_account()
        for program in (PROGRAM, restarted(4, 5), replace(PROGRAM, uid="v"), crashed(5, 25))
    ]
    last = history(*steps)[-1]
    assert shown(last) == [(0, None)]
    assert (last.independent, last.goodput, last.progress, last.reason) == (True, None, None, "CrashLoopBackOff")
    assert last.hosts
    assert (last.hosts.restarts, last.hosts.expected) == (4, 2)
    ranked = facts(PROGRAM, serves, reported=replace(report, world_size=2)).without_account()
    assert history(ranked)[-1].goodput  # a launcher gave ranks


PROGRAMS = st.none() | st.builds(
    PodProgram,
    pod=st.just("w-0"),
    uid=st.sampled_from("uv"),
    restarts=st.integers(0, 4),
    started=st.none() | st.integers(-50, 50).map(at),
    ended=st.none() | st.integers(-50, 50).map(at),
    waiting=st.sampled_from(("", "back-off")),
)
STATES = st.sampled_from(
    [
        RUNNING,
        replace(RUNNING, attempt=2),
        replace(RUNNING, counts_pods=False),
        Lifecycle(suspended=True, admitted=False, reason="Suspended", message="is suspended", hosts=1),
        Lifecycle(phase=MLRunPhase.FAILED, reason="Failed", message="failed", attempt=1, hosts=1),
    ]
)


@given(st.lists(st.builds(facts, PROGRAMS, STATES, endless=st.booleans()), min_size=1, max_size=6))
def test_the_numbers_of_attempts_rise_and_only_the_last_one_is_open(steps: list[RunFacts]) -> None:
    statuses = history(*steps)
    for status, step in zip(statuses, steps, strict=True):
        attempts = status.attempts or []
        assert all(one.attempt < two.attempt for one, two in pairwise(attempts))
        assert all(one.end_time is not None for one in attempts[:-1])
        assert not attempts or status.attempt == attempts[-1].attempt
        again = fold(status, step, at(10 * len(steps)))
        assert again.attempts == status.attempts
        assert tuple(events_between(status, again)) == ()
    assert all(one.attempt is not None and one.attempt <= (two.attempt or 0) for one, two in pairwise(statuses))
