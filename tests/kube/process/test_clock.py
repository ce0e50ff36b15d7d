from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.process.clock import SteadyClock, loop_time, utc_now

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Machine:
    """A machine whose clock is set."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = 1_790_000_000.0, 5.0

    def steady(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall_s, lambda: self.monotonic_s)

    def run(self, seconds: float, *, step_s: float = 0.0) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds + step_s


SECONDS = st.floats(0, 1e5)


@given(st.lists(st.tuples(SECONDS, st.floats(-1e5, 1e5))))
def test_a_steady_clock_measures_durations_while_the_clock_is_set(runs: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.steady()
    shown_s = clock.unix_s()
    for seconds, step_s in runs:
        machine.run(seconds, step_s=step_s)
        before_s, shown_s = shown_s, clock.unix_s()
        assert 0.9 * seconds - 1e-3 <= shown_s - before_s <= 1.1 * seconds + 1e-3


@given(SECONDS, st.floats(-3600, 3600))
def test_a_steady_clock_shows_the_time_again(seconds: float, step_s: float) -> None:
    machine = Machine()
    clock = machine.steady()
    machine.run(seconds, step_s=step_s)
    for _ in range(20):
        machine.run(max(abs(step_s), 1.0))
        clock.unix_s()
    assert abs(clock.unix_s() - machine.wall_s) < 1e-3
    assert clock.now().tzinfo is UTC


async def test_a_time_of_day_becomes_a_time_of_the_loops_clock() -> None:
    before = asyncio.get_running_loop().time()
    converted = loop_time(NOW + timedelta(seconds=90), lambda: NOW)
    assert before + 90 <= converted <= asyncio.get_running_loop().time() + 90


def test_the_real_clock_has_a_time_zone() -> None:
    assert utc_now().tzinfo is UTC
