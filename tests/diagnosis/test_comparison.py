"""Two sessions side by side: the operation that changed, or the reason why they do not compare."""

from __future__ import annotations

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_diagnosis.comparison import compare
from mldiagnostics_diagnosis.summary import HostSummary, Operation
from support.host_summaries import changed, steady, synchronous_job

BEFORE = synchronous_job(steady(4, 10))


def test_the_operation_that_changed_most_is_first() -> None:
    after = synchronous_job(steady(4, 10, {host: {"compute": 0.005} for host in range(4)}))
    comparison = compare(BEFORE, after)
    assert comparison.message == "step +23 %: `op of compute` +5.0 ms on all hosts"
    assert comparison.operations[0].change_s == pytest.approx(0.005)


def test_a_new_operation_is_called_new() -> None:
    after = synchronous_job(steady(4, 10, {2: {"callback": 0.01}}))
    assert compare(BEFORE, after).message == "step +45 %: `op of callback` +10.0 ms on 1 of 4 hosts, new"


def shaped(*shapes: str, seconds: float = 0.02) -> list[HostSummary]:
    """Return a job whose hosts have an operation with these shapes."""
    return [
        changed(summary, operations=(Operation(name="f", phase="compute", seconds=seconds, count=1.0, shape=shape),))
        for summary, shape in zip(BEFORE, shapes, strict=True)
    ]


SMALL, LARGE = "f32[128,256]", "f32[256,256]"


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        ([SMALL] * 4, [LARGE] * 4, f", new shapes: {SMALL} before, {LARGE} now"),
        ([SMALL] * 4, [SMALL, LARGE] * 2, f", new shapes on 2 of 4 hosts: {SMALL} before, {LARGE} now"),
        ([SMALL, LARGE] * 2, [LARGE, SMALL] * 2, ""),
        ([SMALL] * 4, [""] * 4, ""),
        ([""] * 4, [LARGE] * 4, ""),
    ],
)
def test_the_message_names_both_shapes_of_an_operation(before: list[str], after: list[str], news: str) -> None:
    comparison = compare(shaped(*before), shaped(*after, seconds=0.026))
    assert comparison.message == f"step +0 %: `f` +6.0 ms on all hosts{news}"
    [change] = comparison.to_json()["operations"]
    assert change["shapes"] == ([SMALL, LARGE] if news else None)


def test_the_same_session_has_no_change() -> None:
    comparison = compare(BEFORE, BEFORE)
    assert comparison.change_share == 0
    assert {operation.change_s for operation in comparison.operations} == {0.0}


@pytest.mark.parametrize(
    ("after", "difference"),
    [
        (BEFORE[:3], "number of hosts: 4 before, 3 after"),
        ([changed(each, platform="tpu") for each in BEFORE], "platform: cpu before, tpu after"),
        ([changed(each, device="TPU v5") for each in BEFORE], "device:  before, TPU v5 after"),
    ],
)
def test_sessions_of_other_machines_are_compared_on_request_only(after: list, difference: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ConfigurationError, match=difference):
        compare(BEFORE, after)
    assert compare(BEFORE, after, force=True).before_step_s > 0


def test_a_session_without_steps_is_named() -> None:
    with pytest.raises(ConfigurationError, match="the later session: has no steps"):
        compare(BEFORE, [changed(each, steps=None) for each in BEFORE])
