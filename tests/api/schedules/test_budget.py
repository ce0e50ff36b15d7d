from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.schedules.budget import DAY_S, BudgetLimits, BudgetReason, Spending, expected_bytes, refusal

NOW = 1_790_000_000.0
LIMITS = st.builds(
    BudgetLimits,
    captures_per_run=st.none() | st.integers(0, 5),
    captures=st.none() | st.integers(0, 12),
    bytes=st.none() | st.integers(0, 1000),
    interval_s=st.sampled_from([0.0, 600.0, 7200.0]),
)
REQUESTS = st.lists(st.tuples(st.floats(0, 7200), st.sampled_from("abc"), st.integers(0, 300)), max_size=60)


@given(LIMITS, REQUESTS)
def test_no_budget_is_exceeded_in_any_24_hours(limits: BudgetLimits, requests: list[tuple[float, str, int]]) -> None:
    spent: list[Spending] = []
    now, largest = NOW, 0
    for later_s, target, size in requests:
        now += later_s
        if refusal(limits, spent, target, now, scope="schedule 's'") is None:
            spent = [replace(each, bytes=0 if each.bytes is None else each.bytes) for each in spent]
            spent.append(Spending(target=target, time=now, bytes=size))
            largest = max(largest, size)
    for last in spent:
        window = [each for each in spent if last.time - DAY_S < each.time <= last.time]
        same = [each for each in window if each.target == last.target]
        assert limits.captures is None or len(window) <= limits.captures
        assert limits.captures_per_run is None or len(same) <= limits.captures_per_run
        # A capture may be larger than all before it, so that the bytes are exceeded by one capture at most.
        assert limits.bytes is None or sum(each.bytes or 0 for each in window) <= limits.bytes + largest
        assert all(
            last.time - each.time >= limits.interval_s for each in same if each is not last and each.time < last.time
        )


def test_each_limit_names_itself() -> None:
    spent = [Spending(target="a", time=NOW - 700, bytes=40), Spending(target="a", time=NOW - 1400, bytes=60)]
    cases = [
        (BudgetLimits(interval_s=800), BudgetReason.RUN_INTERVAL),
        (BudgetLimits(captures_per_run=2), BudgetReason.RUN_CAPTURES),
        (BudgetLimits(captures=1), BudgetReason.CAPTURES),
        (BudgetLimits(bytes=159), BudgetReason.BYTES),
    ]
    for limits, reason in cases:
        refused = refusal(limits, spent, "a", NOW, scope="schedule 'nightly'")
        assert refused is not None
        assert refused.reason is reason
        assert refused.message.startswith("schedule 'nightly': ")
    assert refusal(BudgetLimits(captures_per_run=2, interval_s=800), spent, "b", NOW, scope="s") is None
    assert refusal(BudgetLimits(bytes=160), spent, "a", NOW, scope="s") is None


def test_a_capture_that_has_not_ended_counts_as_the_largest() -> None:
    spent = [Spending(target="a", time=NOW, bytes=40), Spending(target="b", time=NOW)]
    assert expected_bytes(spent) == 120


def test_a_clock_that_was_set_back_gives_no_budget_back() -> None:
    spent = [Spending(target="a", time=NOW + 5000, bytes=1)]
    assert refusal(BudgetLimits(captures=1), spent, "b", NOW, scope="s") is not None
    assert refusal(BudgetLimits(interval_s=60), spent, "a", NOW, scope="s") is not None
