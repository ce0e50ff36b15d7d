from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.reported_parts import reported_hosts
from mldiagnostics_api.runs.signal_conditions import restored_states, signal_messages, signalled, thresholds
from mldiagnostics_api.runs.signals import Signal, SignalThresholds
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSignals, StatusCondition

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)
LIMITS = SignalThresholds()
OTHER = StatusCondition(type="Started", status="True", reason="Started", message="", last_transition_time=START)
ACTIVE = MLRunStatus(phase=MLRunPhase.ACTIVE, conditions=[OTHER])


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def reported(*received: float) -> ReportedRun:
    hosts = [
        ReportedHost(
            rank=rank,
            slice=None,
            name="h",
            pod=f"w-{rank}",
            pod_uid=f"u{rank}",
            node="",
            attempt=0,
            incarnation=f"{rank:08x}",
            received=at(seconds).timestamp(),
        )
        for rank, seconds in enumerate(received)
    ]
    key = RunKey("ml", "a" * 64)
    account = ReportedGoodput(
        as_of=0, started=0, elapsed=9000, productive=4500, unproductive={}, disruptions=0, attempts=1
    )
    return ReportedRun(key=key, revision=1, first_received=0, last_received=0, hosts=hosts, goodput=account)


def types(status: MLRunStatus) -> dict[str, str]:
    return {condition.type: condition.status for condition in status.conditions or ()}


def test_a_signal_is_a_condition_from_its_first_rise_on() -> None:
    quiet, states = signalled(ACTIVE, {}, reported(0, 0), LIMITS, at(10))
    assert quiet == ACTIVE
    raised, states = signalled(quiet, states, reported(0, 200), LIMITS, at(200))
    assert types(raised) == {"Started": "True", "HostsSilent": "True"}
    assert list(signal_messages(quiet, raised)) == [
        ("HostsSilent", "1 of 2 hosts has not reported for 120 s: w-0", True)
    ]
    kept, states = signalled(raised, states, reported(0, 210), LIMITS, at(210))
    assert kept == raised
    again, states = signalled(raised, states, reported(300, 300), LIMITS, at(301))
    assert types(again) == types(raised)  # it settles first
    cleared, _ = signalled(again, states, reported(360, 360), LIMITS, at(362))
    assert types(cleared)["HostsSilent"] == "False"
    assert list(signal_messages(again, cleared)) == [("HostsSilent", "within its limit again", False)]


def test_processes_that_report_less_often_on_request_are_not_silent() -> None:
    run = reported(0, 200)
    rare = replace(run, hosts=[replace(host, interval_s=100) for host in run.hosts])
    quiet, states = signalled(ACTIVE, {}, rare, LIMITS, at(200))
    assert quiet == ACTIVE
    assert reported_hosts(rare, at(200)).reporting == 2
    raised, _ = signalled(quiet, states, rare, LIMITS, at(301))
    assert types(raised)["HostsSilent"] == "True"
    assert reported_hosts(rare, at(301)).reporting == 1


def test_a_new_leader_goes_on_with_the_signals_in_the_status() -> None:
    raised, states = signalled(ACTIVE, {}, reported(0, 200), LIMITS, at(200))
    restored = restored_states(raised)
    assert restored[Signal.HOSTS_SILENT].raised
    assert restored[Signal.HOSTS_SILENT].changed == states[Signal.HOSTS_SILENT].changed
    assert signalled(raised, restored, None, LIMITS, at(210))[0] == raised


def test_the_end_of_the_run_clears_its_signals() -> None:
    raised, states = signalled(ACTIVE, {}, reported(0, 200), LIMITS, at(200))
    ended = raised.model_copy(update={"phase": MLRunPhase.FAILED})
    cleared, _ = signalled(ended, states, reported(0, 200), LIMITS, at(500))
    condition = next(each for each in cleared.conditions or () if each.type == "HostsSilent")
    assert (condition.status, condition.reason, condition.last_transition_time) == ("False", "RunEnded", at(500))


def test_the_spec_replaces_single_limits() -> None:
    assert thresholds(None) == LIMITS == thresholds(RunSignals())
    own = RunSignals(host_silent_seconds=0, straggler_ratio=1.5, hang_seconds=60, minimum_goodput_percent=90)
    assert thresholds(own) == SignalThresholds(silent_s=0, straggler_ratio=1.5, hang_s=60, goodput=0.9)
