from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.runs.signals import (
    SETTLE_S,
    HostSample,
    Reading,
    RunSample,
    Signal,
    SignalState,
    SignalThresholds,
    SlowVerdict,
    readings,
)

DEFAULTS = SignalThresholds()
NOW = 1_790_000_000.0


def host(
    name: str = "w-0", *, age: float = 5, step_age: float = 5, step: float = 1.0, ended: bool = False
) -> HostSample:
    return HostSample(name=name, received=NOW - age, changed=NOW - step_age, step_time_s=step, ended=ended)


def read(
    signal: Signal,
    *hosts: HostSample,
    thresholds: SignalThresholds = DEFAULTS,
    slow: SlowVerdict | None = None,
    **account: float,
) -> Reading:
    return readings(RunSample(now=NOW, hosts=hosts, slow=slow, **account), thresholds)[signal]


def test_hosts_are_silent_after_the_limit_unless_they_ended() -> None:
    reading = read(Signal.HOSTS_SILENT, host(), host("w-1", age=121), host("w-2", age=999, ended=True))
    assert (reading.raised, reading.hosts) == (True, ("w-1",))
    assert reading.message == "1 of 2 hosts has not reported for 120 s: w-1"
    between = read(Signal.HOSTS_SILENT, host(), host("w-1", age=110))
    assert (between.raised, between.cleared) == (False, False)
    assert read(Signal.HOSTS_SILENT, host(), host("w-1", age=90)).cleared


def test_a_straggler_is_compared_with_the_median_of_all_hosts() -> None:
    fast = [host(f"w-{number}") for number in range(3)]
    reading = read(Signal.STRAGGLING, *fast, host("w-9", step=2.1))
    assert (reading.raised, reading.hosts) == (True, ("w-9",))
    assert reading.message == "by their step times: steps of 1 of 4 hosts take over 2 times the median: w-9"
    between = read(Signal.STRAGGLING, *fast, host("w-9", step=1.9))
    assert (between.raised, between.cleared) == (False, False)
    assert read(Signal.STRAGGLING, *fast, host("w-9", step=1.5)).cleared
    undecided = read(Signal.STRAGGLING, host(), host("w-9", step=9))
    assert (undecided.raised, undecided.cleared) == (False, False)


def test_the_newest_diagnosis_decides_where_step_times_are_equal() -> None:
    together = [host(f"w-{number}") for number in range(4)]
    slow = SlowVerdict("by profile s-1: SlowHost w-2: arrives last", ("w-2",))
    reading = read(Signal.STRAGGLING, *together, slow=slow)
    assert (reading.raised, reading.message, reading.hosts) == (True, slow.message, ("w-2",))
    assert read(Signal.STRAGGLING, *together, slow=SlowVerdict()).cleared
    assert read(Signal.STRAGGLING, host(), slow=slow).raised  # two hosts have no median, but a diagnosis
    assert read(Signal.STRAGGLING, host(), slow=SlowVerdict()).cleared
    apart = read(Signal.STRAGGLING, *together, host("w-9", step=9), slow=slow)
    assert (apart.raised, apart.hosts) == (True, ("w-9",))  # as it is now, not as the profile was
    assert read(Signal.STRAGGLING, *together, slow=slow, thresholds=SignalThresholds(straggler_ratio=0)).cleared


def test_a_run_hangs_if_no_host_makes_a_step_while_hosts_report() -> None:
    reading = read(Signal.HANGING, host(step_age=901), host("w-1", step_age=950))
    assert reading.raised
    assert reading.message == (
        "no step since 2026-09-21T13:58:19Z, longer than the allowed 900 s; capture a profile to see where it waits"
    )
    assert read(Signal.HANGING, host(step_age=901), host("w-1", step_age=3)).cleared
    assert not read(Signal.HANGING, host(step_age=901, step=60)).raised  # allowed: 20 times the usual
    silent = read(Signal.HANGING, host(step_age=901, age=500))
    assert (silent.raised, silent.cleared) == (False, False)
    compiling = read(Signal.HANGING, HostSample(name="w-0", received=NOW))
    assert (compiling.raised, compiling.cleared) == (False, False)


def test_low_goodput_is_off_by_default_and_waits_for_the_start_up() -> None:
    assert read(Signal.GOODPUT_LOW, goodput=0.01, elapsed_s=9999).cleared
    limit = SignalThresholds(goodput=0.9)
    assert not read(Signal.GOODPUT_LOW, thresholds=limit, goodput=0.1, elapsed_s=600).raised
    reading = read(Signal.GOODPUT_LOW, thresholds=limit, goodput=0.89, elapsed_s=2000)
    assert reading.raised
    assert reading.message == "the goodput is below 90%; the buckets of the account show where the time goes"
    assert read(Signal.GOODPUT_LOW, thresholds=limit, goodput=0.93, elapsed_s=2000).cleared


@pytest.mark.parametrize("signal", Signal)
def test_zero_disables_a_signal(signal: Signal) -> None:
    off = SignalThresholds(silent_s=0, straggler_ratio=0, hang_s=0, goodput=0)
    hosts = [host(f"w-{number}", age=9e5, step_age=9e5, step=10.0**number) for number in range(4)]
    assert read(signal, *hosts, thresholds=off, goodput=0.0, elapsed_s=9e5).cleared


READINGS = st.lists(
    st.tuples(st.floats(0.1, 200), st.sampled_from(["raised", "cleared", "between"]), st.sampled_from([0.0, 120.0])),
    max_size=30,
)


@given(READINGS)
def test_a_signal_never_flaps(steps: list[tuple[float, str, float]]) -> None:
    state, now, changes, against = SignalState(), 0.0, [], None
    for seconds, value, hold_s in steps:
        now += seconds
        reading = Reading(raised=value == "raised", cleared=value == "cleared", hold_s=hold_s)
        opposes = value == ("cleared" if state.raised else "raised")
        against = (now if against is None else against) if opposes else None
        following = state.next(reading, now)
        if following.raised != state.raised:
            assert against is not None
            assert now - against >= (SETTLE_S if state.raised else hold_s)
            changes.append(now)
            against = None
        assert value != "between" or following.raised == state.raised
        state = following
    assert all(later - earlier >= SETTLE_S for earlier, later in itertools.pairwise(changes))


@given(st.booleans(), st.floats(0, 1e6), st.sampled_from([0.0, 120.0]))
def test_a_reading_that_persists_decides(raised: bool, start: float, hold_s: float) -> None:
    state = SignalState(not raised, start)
    reading = Reading(raised=raised, cleared=not raised, hold_s=hold_s)
    for seconds in (0, 1, 60, 121, 190):
        state = state.next(reading, start + seconds)
    assert state.raised is raised
    assert state.next(reading, start + 500) == state


HOSTS = st.lists(
    st.builds(
        HostSample,
        name=st.text(max_size=5),
        received=st.floats(0, 2 * NOW),
        changed=st.none() | st.floats(0, 2 * NOW),
        step_time_s=st.none() | st.floats(0, 1e9),
        ended=st.booleans(),
    ),
    max_size=6,
)


@given(
    HOSTS,
    st.none() | st.floats(0, 1),
    st.floats(0, 1e9),
    st.builds(
        SignalThresholds,
        silent_s=st.floats(0, 1e6),
        straggler_ratio=st.just(0.0) | st.floats(1, 100),
        hang_s=st.floats(0, 1e6),
        hang_ratio=st.floats(0, 100),
        goodput=st.floats(0, 1),
    ),
)
def test_every_sample_has_a_reading_of_every_signal(
    hosts: list[HostSample], goodput: float | None, elapsed_s: float, thresholds: SignalThresholds
) -> None:
    values = readings(RunSample(now=NOW, hosts=hosts, goodput=goodput, elapsed_s=elapsed_s), thresholds)
    assert set(values) == set(Signal)
    for reading in values.values():
        assert not (reading.raised and reading.cleared)
        assert bool(reading.message) == reading.raised
