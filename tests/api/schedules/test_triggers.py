from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.run_readings import RunReadings
from mldiagnostics_api.schedules.step_time import BASELINE, RECENT
from mldiagnostics_api.schedules.trigger_monitor import TriggerMonitor
from mldiagnostics_api.schedules.trigger_sample import WARM_UP, WINDOW_S, TriggerSample
from mldiagnostics_api.schedules.triggers import MARK_S, Firing, TriggerRule, TriggerType, is_worth

NOW = 1_790_000_000.0
DAY = int(86_400 / WINDOW_S)
RISE = TriggerRule(type=TriggerType.STEP_TIME_RISE)


class Job:
    """A run that is observed each window, and the triggers that fired."""

    def __init__(self, *rules: TriggerRule) -> None:
        self.rules = rules
        self.monitor, self.readings = TriggerMonitor(), RunReadings()
        self.fired: list[Firing] = []
        self.windows = 0

    def window(self, step_time_s: float | None = None, **observed: object) -> int:
        """Observe one window; return the number of captures until now."""
        self.windows += 1
        run = TriggerSample(step=self.windows, step_time_s=step_time_s, **observed)  # type: ignore[arg-type]
        now = NOW + self.windows * WINDOW_S
        self.readings.observe(run, now)
        firing = self.monitor.firing("run", self.readings, self.rules, self.fired, now)
        self.fired += [fire for fire, _ in firing]
        return len(self.fired)


def noisy(random: Random, sigma: float) -> float:
    """A step time as a healthy job has it: noise, and sometimes a step that takes half as long again."""
    return 0.2 * max(0.1, random.gauss(1, sigma)) * (1.5 if random.random() < 0.02 else 1)


def test_a_healthy_noisy_day_triggers_nothing() -> None:
    random = Random(29)
    for sigma in (0.01, 0.03):
        job = Job(RISE)
        for _ in range(DAY):
            job.window(noisy(random, sigma))
        assert not job.fired, sigma


@given(st.integers(0, 10**6), st.integers(WARM_UP + 60, 500), st.sampled_from([0.0, 0.01, 0.02]))
def test_a_rise_of_15_per_cent_is_found_within_10_windows(seed: int, healthy: int, sigma: float) -> None:
    random = Random(seed)
    job = Job(RISE)
    for _ in range(healthy):
        job.window(noisy(random, sigma))
    for _ in range(10):
        job.window(1.15 * noisy(random, sigma))
    assert len(job.fired) == 1
    assert job.fired[0].value >= 0.1


def test_a_rise_below_the_threshold_is_none() -> None:
    job = Job(RISE)
    for number in range(600):
        job.window(0.2 if number < 300 else 0.216)
    assert not job.fired


def test_one_slow_day_costs_a_handful_of_captures() -> None:
    random = Random(1)
    job = Job(RISE)
    for number in range(DAY):
        slower = 1 + 0.3 * ((number // 500) % 2)
        job.window(slower * noisy(random, 0.03))
    assert 1 <= len(job.fired) <= 5


def test_a_short_disturbance_is_no_rise() -> None:
    job = Job(RISE)
    for number in range(400):
        job.window(3.0 if number % 40 in (0, 1, 2) else 0.2)
    assert not job.fired


def test_slow_steps_that_the_account_explains_are_no_rise() -> None:
    job = Job(RISE)
    saved = 0.0
    for number in range(600):
        is_slow = number > 200 and number % 60 < 20
        saved += 6.0 if is_slow else 0.0
        job.window(
            0.6 if is_slow else 0.2,
            elapsed_s=number * WINDOW_S,
            unproductive_s={"UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": saved},
        )
    assert not job.fired


def test_slow_steps_that_wait_for_input_are_a_rise() -> None:
    job = Job(RISE)
    waited = 0.0
    for number in range(300):
        is_slow = number > 200
        waited += 6.0 if is_slow else 0.0
        job.window(0.6 if is_slow else 0.2, elapsed_s=number * WINDOW_S, unproductive_s={"DATA_LOADING_SYNC": waited})
    assert len(job.fired) == 1


def test_the_start_of_an_attempt_is_no_rise_but_its_slow_steps_are() -> None:
    job = Job(RISE)
    for _ in range(100):
        job.window(0.2)
    for _ in range(WARM_UP):
        job.window(9.0, attempt=1)
    for _ in range(50):
        job.window(0.2, attempt=1)
    assert not job.fired
    for _ in range(WARM_UP + RECENT + 3):
        job.window(0.3, attempt=2)
    assert [fire.attempt for fire in job.fired] == [2]


def test_a_run_without_steps_has_no_step_time() -> None:
    job = Job(RISE)
    for _ in range(BASELINE):
        job.window(0.2)
    for _ in range(50):
        job.windows -= 1
        assert job.window(9.0) == 0


def test_signals_of_the_run_fire_at_once_and_again_with_the_next_attempt() -> None:
    hanging = TriggerRule(type=TriggerType.HANGING, cool_down_s=600)
    job = Job(hanging)
    job.window()
    assert job.window(signals={"Hanging": "no step since 12:00"}) == 1
    for _ in range(int(MARK_S / WINDOW_S) - 10):
        assert job.window(signals={"Hanging": "no step since 12:00"}) == 1
    assert job.window(signals={"Hanging": "no step since 19:00"}, attempt=1) == 2
    assert job.window(signals={"Straggling": "w-3"}, attempt=2) == 2


def test_spread_and_goodput_have_thresholds_and_settle() -> None:
    spread = TriggerRule(type=TriggerType.STEP_TIME_SPREAD, settle_s=30)
    goodput = TriggerRule(type=TriggerType.GOODPUT_LOW, threshold=0.8)
    job = Job(spread, goodput)
    hosts = {"w-0": 0.2, "w-1": 0.2, "w-2": 0.2}
    assert job.window(host_step_times=hosts, goodput=0.5, elapsed_s=60) == 0, "a young run has started only now"
    for _ in range(3):
        assert job.window(host_step_times=hosts | {"w-2": 0.3}) == 0
    assert job.window(host_step_times=hosts | {"w-2": 0.3}) == 1
    assert job.window(host_step_times=hosts, goodput=0.7, elapsed_s=7200) == 2
    assert [fire.type for fire in job.fired] == [TriggerType.STEP_TIME_SPREAD, TriggerType.GOODPUT_LOW]


@pytest.mark.parametrize(
    ("later_s", "value", "attempt", "worth"),
    [
        (600, 9.0, 0, False),
        (3600, 0.21, 0, False),
        (3600, 0.23, 0, True),
        (3600, 0.2, 1, True),
        (MARK_S, 0.1, 0, True),
    ],
)
def test_after_a_capture_only_a_clearly_higher_reading_is_worth_one(
    later_s: float, value: float, attempt: int, worth: bool
) -> None:
    fired = [Firing(type=TriggerType.STEP_TIME_RISE, time=NOW, attempt=0, value=0.2)]
    assert is_worth(RISE, value, attempt, fired, NOW + later_s) is worth
