"""Signals of a run in its status: conditions, with their thresholds from the spec."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.reports.reported_run import SILENT_S, ReportedRun
from mldiagnostics_api.runs.signals import (
    HostSample,
    Reading,
    RunSample,
    Signal,
    SignalState,
    SignalThresholds,
    SlowVerdict,
    readings,
)
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSignals, StatusCondition

SignalStates = Mapping[Signal, SignalState]

_DEFAULTS: Final = SignalThresholds()


def thresholds(spec: RunSignals | None) -> SignalThresholds:
    """Return the limits of a run; those that the spec does not have are the defaults."""
    given = spec or RunSignals()
    percent = given.minimum_goodput_percent
    return SignalThresholds(
        silent_s=_DEFAULTS.silent_s if given.host_silent_seconds is None else given.host_silent_seconds,
        straggler_ratio=_DEFAULTS.straggler_ratio if given.straggler_ratio is None else given.straggler_ratio,
        hang_s=_DEFAULTS.hang_s if given.hang_seconds is None else given.hang_seconds,
        goodput=_DEFAULTS.goodput if percent is None else percent / 100,
    )


def restored_states(status: MLRunStatus) -> SignalStates:
    """Return the states of the signals that an earlier process wrote."""
    conditions = {condition.type: condition for condition in status.conditions or ()}
    return {
        signal: SignalState(conditions[signal].status == "True", conditions[signal].last_transition_time.timestamp())
        for signal in Signal
        if signal in conditions
    }


def signalled(
    status: MLRunStatus,
    states: SignalStates,
    reported: ReportedRun | None,
    limits: SignalThresholds,
    now: datetime,
    *,
    slow: SlowVerdict | None = None,
) -> tuple[MLRunStatus, SignalStates]:
    """Return a status with the conditions of its signals, and their new states.

    A signal that was never raised has no condition. After the end of the run all are cleared.

    Args:
        status: Status of the run.
        states: States after the last call, else `restored_states`.
        reported: Reports of the run.
        limits: Limits of the signals.
        now: Current time.
        slow: The slow hosts of its newest diagnosis; None without one.
    """
    now = now.replace(microsecond=0)
    ended = status.phase in FINISHED_RUN_PHASES
    current: Mapping[Signal, Reading] = {}
    if reported and not ended:
        sample, fleet_limits = _sample(reported, now, slow), _of_fleet(limits, reported)
        current = readings(sample, fleet_limits)
    following: dict[Signal, SignalState] = {}
    others = [condition for condition in status.conditions or () if condition.type not in set(Signal)]
    conditions = {condition.type: condition for condition in status.conditions or ()}
    for signal in Signal:
        state, reading = states.get(signal, SignalState()), current.get(signal)
        if ended:
            state = SignalState()
        elif reading is not None:
            state = state.next(reading, now.timestamp())
        following[signal] = state
        if state.raised or signal in conditions:
            others.append(_condition(signal, state, reading, conditions.get(signal), now, ended=ended))
    return status.model_copy(update={"conditions": others}), following


def signal_messages(before: MLRunStatus, after: MLRunStatus) -> Iterable[tuple[str, str, bool]]:
    """Return type, message and whether it is a warning of each signal that changed."""
    known = {condition.type: condition.status for condition in before.conditions or ()}
    for condition in after.conditions or ():
        if condition.type in set(Signal) and condition.status != known.get(condition.type, "False"):
            yield condition.type, condition.message, condition.status == "True"


def _of_fleet(limits: SignalThresholds, reported: ReportedRun) -> SignalThresholds:
    """Return the limits for processes that report less often on request."""
    if not limits.silent_s or reported.silent_s <= SILENT_S:
        return limits
    return replace(limits, silent_s=max(limits.silent_s, reported.silent_s))


def _sample(reported: ReportedRun, now: datetime, slow: SlowVerdict | None) -> RunSample:
    goodput = reported.goodput
    return RunSample(
        now=now.timestamp(),
        hosts=[
            HostSample(
                name=host.pod or host.name or host.incarnation,
                received=host.received,
                changed=None if host.changed is None else min(host.changed - host.clock_ahead, now.timestamp()),
                step_time_s=host.step_time_seconds,
                ended=host.phase != "Active",
            )
            for host in reported.hosts
        ],
        goodput=goodput.goodput if goodput else None,
        elapsed_s=goodput.elapsed if goodput else 0.0,
        slow=slow,
    )


def _condition(
    signal: Signal,
    state: SignalState,
    reading: Reading | None,
    before: StatusCondition | None,
    now: datetime,
    *,
    ended: bool,
) -> StatusCondition:
    if state.raised:
        reason = str(signal)
        message = (reading.message if reading else "") or (before.message if before and before.status == "True" else "")
    else:
        reason, message = ("RunEnded", "the run has ended") if ended else ("Cleared", "within its limit again")
    status: Literal["True", "False"] = "True" if state.raised else "False"
    kept = before is not None and before.status == status
    return StatusCondition(
        type=str(signal),
        status=status,
        reason=reason,
        message=message[:1024],
        last_transition_time=before.last_transition_time if kept and before else now,
    )
