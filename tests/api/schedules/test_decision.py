from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.budget import DAY_S, BudgetLimits, BudgetReason
from mldiagnostics_api.schedules.decision import (
    CaptureSubject,
    ScheduleRules,
    WantedCapture,
    budget_refusal,
    wanted_by_slot,
    wanted_by_trigger,
)
from mldiagnostics_api.schedules.timing import Every
from mldiagnostics_api.schedules.triggers import Firing, TriggerType

NOW = 1_790_000_000.0
RULES = ScheduleRules(
    name="often", uid="uid-1", timing=Every(600, NOW), jitter_s=60, limits=BudgetLimits(captures_per_run=3)
)
RUNS = [CaptureSubject(key=key) for key in ("run-a", "run-b")]


@given(
    st.lists(
        st.tuples(st.floats(-300, 900), st.sampled_from(["works", "restarts", "dies before it creates"])), max_size=80
    ),
    st.integers(0, 4),
)
def test_no_slot_has_two_captures_and_no_budget_is_exceeded_across_leaders(
    ticks: list[tuple[float, str]], per_run: int
) -> None:
    """The record is written before the capture is created; a leader that dies between leaves it to the next one."""
    rules = replace(RULES, limits=BudgetLimits(captures_per_run=per_run))
    record: list[WantedCapture] = []
    objects: set[str] = set()
    refused: set[tuple[str, float]] = set()
    now = NOW
    for later_s, fate in ticks:
        now += later_s
        if fate == "restarts":
            refused.clear()
        for each in record:
            objects.add(each.name)
        for wanted in wanted_by_slot(rules, RUNS, record, now, refused=refused):
            assert wanted.slot is not None
            if budget_refusal(rules, wanted, record, policy=BudgetLimits(), of_namespace=record, now=now):
                refused.add((wanted.target, wanted.slot))
                continue
            record.append(wanted)
            if fate == "works":
                objects.add(wanted.name)
    causes = [(each.target, each.slot) for each in record]
    assert len(set(causes)) == len(causes) == len({each.name for each in record})
    assert objects <= {each.name for each in record}
    for last in record:
        day = [each for each in record if each.target == last.target and last.time - DAY_S < each.time <= last.time]
        assert len(day) <= per_run


def test_a_run_that_started_after_the_slot_waits_for_the_next_one() -> None:
    runs = [CaptureSubject(key="old"), CaptureSubject(key="new", started=NOW + 601)]
    rules = replace(RULES, jitter_s=0)
    assert [each.target for each in wanted_by_slot(rules, runs, [], NOW + 605)] == ["old"]
    assert {each.target for each in wanted_by_slot(rules, runs, [], NOW + 1205)} == {"old", "new"}


def test_two_schedules_on_one_run_share_its_interval_and_the_policy() -> None:
    rules = replace(RULES, jitter_s=0, limits=BudgetLimits(interval_s=300))
    (wanted,) = wanted_by_slot(rules, RUNS[:1], [], NOW + 600)
    other = WantedCapture(name="other-1", target="run-a", time=NOW + 400, message="", bytes=1)
    refused = budget_refusal(rules, wanted, [], policy=BudgetLimits(), of_namespace=[other], now=NOW + 600)
    assert refused is not None
    assert refused.reason is BudgetReason.RUN_INTERVAL
    old = replace(other, time=NOW)
    assert budget_refusal(rules, wanted, [], policy=BudgetLimits(), of_namespace=[old], now=NOW + 600) is None
    limited = budget_refusal(rules, wanted, [], policy=BudgetLimits(captures=1), of_namespace=[old], now=NOW + 600)
    assert limited is not None
    assert limited.message.startswith("policy of the namespace: the budget of 1 capture in 24 hours is used")


def test_the_administrator_counts_twenty_pulses_as_one_capture_and_the_schedule_counts_each() -> None:
    rules = replace(RULES, jitter_s=0, makes_pulses=True, limits=BudgetLimits(captures_per_run=20))
    (wanted,) = wanted_by_slot(rules, RUNS[:1], [], NOW + 600)
    made = [replace(wanted, time=NOW - 600 * number) for number in range(20)]
    policy = BudgetLimits(captures_per_run=1)
    for count, reason in ((19, None), (20, BudgetReason.RUN_CAPTURES)):
        spent = made[:count]
        refused = budget_refusal(rules, wanted, spent, policy=BudgetLimits(), of_namespace=spent, now=NOW + 600)
        assert (refused and refused.reason) is reason
        refused = budget_refusal(rules, wanted, [], policy=policy, of_namespace=spent, now=NOW + 600)
        assert (refused and refused.reason) is reason
    whole = [replace(each, is_pulse=False) for each in made[:1]]
    assert budget_refusal(rules, wanted, [], policy=policy, of_namespace=whole, now=NOW + 600) is not None


def test_the_capture_of_a_trigger_says_which_and_why() -> None:
    fire = Firing(type=TriggerType.STEP_TIME_RISE, time=NOW, attempt=0, value=0.15)
    wanted = wanted_by_trigger(RULES, "run-a", fire, "the step time is 15% above its usual value")
    assert wanted.message == "StepTimeRise: the step time is 15% above its usual value"
    assert wanted.name.startswith("often-")
