"""Signals of a run: silent hosts, stragglers, hangs, low goodput.

Each signal has two limits and a time to settle, so that it does not flap: it is raised beyond the first limit, cleared
behind the second one, and keeps its value in between. Times are Unix seconds by the operator's clock.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import Final

from mldiagnostics.text.counts import counted_of

from mldiagnostics_api.formats import enumerated, format_time

SETTLE_S: Final = 60.0
"""A signal changes at most once in this time, and is cleared only after readings this long."""
FEWEST_HOSTS: Final = 3
"""With two hosts, the median does not say which one is slow."""
FIRST_ACCOUNT_S: Final = 1800.0
"""A younger run has spent its time on its start-up."""
_RELEASE: Final = 0.8
"""Share of a limit below which a reading clears the signal."""
_GOODPUT_RELEASE: Final = 0.02


class Signal(StrEnum):
    """A signal; the condition of this type is True while it is raised."""

    HOSTS_SILENT = "HostsSilent"
    STRAGGLING = "Straggling"
    HANGING = "Hanging"
    GOODPUT_LOW = "GoodputLow"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalThresholds:
    """Limits of the signals; 0 disables one. The defaults are quiet."""

    silent_s: float = 120.0
    """A host is silent after this long without a report; hosts report every 10 s."""
    straggler_ratio: float = 2.0
    """A host straggles if its steps take more than this many times the median."""
    hang_s: float = 900.0
    """The run hangs after this long without a step, evaluations and saves included …"""
    hang_ratio: float = 20.0
    """… and this many times the usual step time."""
    goodput: float = 0.0
    """The goodput is low below this share, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """A process of the current attempt, as it reported."""

    name: str
    received: float
    """Arrival of its newest report."""
    changed: float | None = None
    """When its step changed."""
    step_time_s: float | None = None
    ended: bool = False
    """Whether it reported its end."""


@dataclass(frozen=True, slots=True)
class SlowVerdict:
    """Hosts that a diagnosis calls slow; the message is empty if it calls none so."""

    message: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSample:
    """A run that is active, at one moment."""

    now: float
    hosts: Sequence[HostSample]
    goodput: float | None = None
    """Productive share of the elapsed time."""
    elapsed_s: float = 0.0
    """Time of the account of the goodput."""
    slow: "SlowVerdict | None" = None
    """The newest diagnosis of the attempt; None without one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A signal at one moment: beyond the first limit, behind the second, or between."""

    raised: bool
    cleared: bool
    message: str = ""
    hosts: tuple[str, ...] = ()
    """Hosts that are the reason."""
    hold_s: float = 0.0
    """A signal is raised only after readings this long; limits that are times need no more."""


@dataclass(frozen=True, slots=True)
class SignalState:
    """A signal between readings."""

    raised: bool = False
    changed: float | None = None
    """Its last change; None before the first."""
    turning: float | None = None
    """Since when readings are continuously against its value."""

    def next(self, reading: Reading, now: float) -> "SignalState":
        """Return the state after a reading."""
        against = reading.cleared if self.raised else reading.raised
        if not against:
            return SignalState(self.raised, self.changed)
        since = now if self.turning is None else min(self.turning, now)
        hold_s = SETTLE_S if self.raised else reading.hold_s
        settled = self.changed is None or now - self.changed >= SETTLE_S
        if settled and now - since >= hold_s:
            return SignalState(not self.raised, now)
        return SignalState(self.raised, self.changed, since)


def readings(sample: RunSample, thresholds: SignalThresholds) -> Mapping[Signal, Reading]:
    """Return the reading of every signal.

    A reading without data neither raises nor clears a signal; a disabled signal is clear.
    """
    working = [host for host in sample.hosts if not host.ended]
    return {
        Signal.HOSTS_SILENT: _silent(sample, working, thresholds.silent_s),
        Signal.STRAGGLING: _straggling(sample, working, thresholds),
        Signal.HANGING: _hanging(sample, working, thresholds),
        Signal.GOODPUT_LOW: _goodput_low(sample, thresholds.goodput),
    }


_NO_DATA: Final = Reading(raised=False, cleared=False)
_CLEAR: Final = Reading(raised=False, cleared=True)


def _silent(sample: RunSample, working: Collection[HostSample], limit_s: float) -> Reading:
    if not limit_s:
        return _CLEAR
    silent = sorted(host.name for host in working if sample.now - host.received > limit_s)
    if not silent:
        settled = all(sample.now - host.received <= _RELEASE * limit_s for host in working)
        return Reading(raised=False, cleared=settled)
    hosts = counted_of(len(silent), len(working), "host", "have")
    message = f"{hosts} not reported for {limit_s:g} s: {enumerated(silent)}"
    return Reading(raised=True, cleared=False, message=message, hosts=tuple(silent))


def _straggling(sample: RunSample, working: Collection[HostSample], thresholds: SignalThresholds) -> Reading:
    """Read step times, and the newest diagnosis where they are all equal.

    Collectives make all hosts wait for the slowest one, so that their step times are equal: only a profile of all
    hosts shows who arrives last.
    """
    if not thresholds.straggler_ratio:
        return _CLEAR
    by_steps = _slow_steps(sample, working, thresholds)
    if by_steps.raised or sample.slow is None:
        return by_steps
    if sample.slow.message:
        return Reading(raised=True, cleared=False, message=sample.slow.message, hosts=sample.slow.hosts)
    return Reading(raised=False, cleared=by_steps is _NO_DATA or by_steps.cleared)


def _slow_steps(sample: RunSample, working: Collection[HostSample], thresholds: SignalThresholds) -> Reading:
    ratio = thresholds.straggler_ratio
    recent_s = thresholds.silent_s or SETTLE_S
    times = {
        host.name: host.step_time_s for host in working if host.step_time_s and sample.now - host.received <= recent_s
    }
    if len(times) < FEWEST_HOSTS:
        return _NO_DATA
    usual = median(times.values())
    slow = sorted(name for name, seconds in times.items() if seconds > ratio * usual)
    if not slow:
        release = 1 + _RELEASE * (ratio - 1)
        return Reading(raised=False, cleared=all(seconds <= release * usual for seconds in times.values()))
    message = (
        f"by their step times: steps of {len(slow)} of {len(times)} hosts take over {ratio:g} times the median: "
        f"{enumerated(slow)}"
    )
    return Reading(raised=True, cleared=False, message=message, hosts=tuple(slow), hold_s=2 * SETTLE_S)


def _hanging(sample: RunSample, working: Collection[HostSample], thresholds: SignalThresholds) -> Reading:
    if not thresholds.hang_s:
        return _CLEAR
    recent_s = thresholds.silent_s or SETTLE_S
    steps = [host.changed for host in working if host.changed is not None]
    times = [host.step_time_s for host in working if host.step_time_s]
    if not steps or not times or all(sample.now - host.received > recent_s for host in working):
        return _NO_DATA  # before the second step it compiles; without reports the hosts are silent
    allowed_s = max(thresholds.hang_s, thresholds.hang_ratio * median(times))
    age_s = sample.now - max(steps)
    if age_s <= allowed_s:
        return Reading(raised=False, cleared=age_s <= _RELEASE * allowed_s)
    since = format_time(datetime.fromtimestamp(max(steps), UTC))
    message = (
        f"no step since {since}, longer than the allowed {allowed_s:.0f} s; capture a profile to see where it waits"
    )
    return Reading(raised=True, cleared=False, message=message)


def _goodput_low(sample: RunSample, limit: float) -> Reading:
    if not limit:
        return _CLEAR
    if sample.goodput is None or sample.elapsed_s < FIRST_ACCOUNT_S:
        return _NO_DATA
    if sample.goodput >= limit:
        return Reading(raised=False, cleared=sample.goodput >= min(1.0, limit + _GOODPUT_RELEASE))
    message = f"the goodput is below {limit:.0%}; the buckets of the account show where the time goes"
    return Reading(raised=True, cleared=False, message=message, hold_s=5 * SETTLE_S)
