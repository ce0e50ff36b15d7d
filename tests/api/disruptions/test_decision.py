from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.disruptions import DisruptionVerdict, Evidence, decide
from mldiagnostics_api.disruptions.causes import PRECEDENCE
from mldiagnostics_api.disruptions.causes import DisruptionCause as Cause
from mldiagnostics_api.disruptions.decision import WINDOW

if TYPE_CHECKING:
    import random

START = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)


def evidence(cause: Cause, seconds: float, subject: str = "pod 'w-0'") -> Evidence:
    return Evidence(cause=cause, time=START + timedelta(seconds=seconds), subject=subject, detail=f"shows {cause}")


EVIDENCE = st.builds(
    evidence,
    st.sampled_from([cause for cause in Cause if cause is not Cause.UNKNOWN]),
    st.integers(0, 2000),
    st.sampled_from(["pod 'w-0'", "pod 'w-1'", "node 'n1'"]),
)


def test_a_lost_node_explains_the_failures_of_the_other_hosts() -> None:
    verdict = decide(
        [
            evidence(Cause.EXIT_CODE, 5, "pod 'w-1'"),
            evidence(Cause.EXIT_CODE, 6, "pod 'w-2'"),
            evidence(Cause.NODE_LOST, 52, "node 'n1'"),
            evidence(Cause.EVICTION, 352, "pod 'w-0'"),
            evidence(Cause.DELETED, 10, "pod 'w-3'"),
        ]
    )
    assert verdict == DisruptionVerdict(Cause.NODE_LOST, START + timedelta(seconds=5), "node 'n1': shows NodeLost")


def test_the_removal_of_nodes_without_work_is_not_the_cause() -> None:
    verdict = decide([evidence(Cause.EXIT_CODE, 0), evidence(Cause.NODE_LOST, 700, "node 'n1'")])
    assert (verdict.cause, verdict.message) == (Cause.EXIT_CODE, "pod 'w-0': shows ExitCode")


def test_one_host_without_memory_ends_all() -> None:
    failed = [evidence(Cause.EXIT_CODE, at, f"pod 'w-{at}'") for at in range(1, 4)]
    verdict = decide([*failed, evidence(Cause.OUT_OF_MEMORY, 4, "pod 'w-9'")])
    assert (verdict.cause, verdict.message) == (Cause.OUT_OF_MEMORY, "pod 'w-9': shows OutOfMemory")
    assert decide(failed).message == "pod 'w-1' (and 2 more): shows ExitCode"


def test_evidence_long_before_the_end_did_not_end_the_attempt() -> None:
    replaced = evidence(Cause.PREEMPTION, 0, "pod 'w-0'")
    verdict = decide([replaced, evidence(Cause.EXIT_CODE, 3600)], ended=START + timedelta(seconds=3600))
    assert verdict.cause is Cause.EXIT_CODE


def test_without_evidence_the_cause_is_unknown() -> None:
    assert decide([]) == DisruptionVerdict(Cause.UNKNOWN, None, "pods, nodes and events show no cause")


@given(st.lists(EVIDENCE, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_the_verdict_depends_on_the_evidence_and_not_on_its_order(items: list[Evidence], order: random.Random) -> None:
    verdict = decide(items)
    assert decide([*order.sample(items, len(items)), *items]) == verdict
    assert verdict.cause in {item.cause for item in items}
    assert verdict.time == min(item.time for item in items)


@given(st.lists(EVIDENCE, min_size=1, max_size=8), EVIDENCE)
def test_a_consequence_or_a_later_event_changes_nothing(items: list[Evidence], further: Evidence) -> None:
    verdict = decide(items)
    assert verdict.time is not None
    consequence = PRECEDENCE[further.cause] > PRECEDENCE[verdict.cause] and further.time >= verdict.time
    if consequence or further.time > verdict.time + WINDOW:
        assert decide([*items, further]) == verdict
