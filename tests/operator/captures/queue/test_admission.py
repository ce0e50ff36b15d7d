from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.captures.queue.admission import AdmissionDecision, CaptureClaim, Quota, WaitReason, decide

if TYPE_CHECKING:
    from random import Random

PODS = st.frozensets(st.sampled_from("abcdef"), max_size=4)


@st.composite
def claims(draw: st.DrawFn, *, least: int = 0, most: int = 12) -> list[CaptureClaim]:
    """Claims with distinct uids and arrivals, in any order."""
    count = draw(st.integers(least, most))
    made = [CaptureClaim(f"u{n}", draw(st.sampled_from(["x", "y", "z"])), n, draw(PODS)) for n in range(count)]
    return draw(st.permutations(made))


QUOTAS = st.builds(Quota, per_namespace=st.integers(1, 4), total=st.integers(1, 6))


def finish_all(line: list[CaptureClaim], quota: Quota) -> list[list[CaptureClaim]]:
    """Drive the queue as the operator does; end the oldest capture if none can start."""
    waiting, running, turns, rounds = list(line), list[CaptureClaim](), dict[str, int](), []
    turn = count()
    while waiting or running:
        decision = decide(waiting, running, quota, turns)
        if not decision.start:
            assert running, "no capture runs and none may start"
            running.pop(0)
            continue
        for claim in decision.start:
            waiting.remove(claim)
            running.append(claim)
            turns[claim.namespace] = next(turn)
        rounds.append(list(running))
    return rounds


@given(claims(), QUOTAS)
def test_every_claim_starts_and_the_bounds_hold_at_every_moment(line: list[CaptureClaim], quota: Quota) -> None:
    rounds = finish_all(line, quota)
    assert {claim for running in rounds for claim in running} == set(line)
    for running in rounds:
        assert len(running) <= quota.total
        assert max(Counter(claim.namespace for claim in running).values()) <= quota.per_namespace
        assert max(Counter(pod for claim in running for pod in claim.pods).values(), default=1) == 1


@given(claims(), QUOTAS)
def test_a_claim_either_starts_or_has_a_reason_to_wait(line: list[CaptureClaim], quota: Quota) -> None:
    decision = decide(line, (), quota, {})
    assert {claim.uid for claim in decision.start} | set(decision.waits) == {claim.uid for claim in line}
    assert len(decision.start) + len(decision.waits) == len(line)


@given(claims(), QUOTAS, st.randoms())
def test_the_order_in_which_claims_are_listed_does_not_matter(
    line: list[CaptureClaim], quota: Quota, random: Random
) -> None:
    shuffled = list(line)
    random.shuffle(shuffled)
    assert decide(line, (), quota, {}) == decide(shuffled, (), quota, {})


@given(claims(), QUOTAS)
def test_no_claim_overtakes_an_earlier_claim_of_the_same_pod(line: list[CaptureClaim], quota: Quota) -> None:
    started = decide(line, (), quota, {}).start
    for claim in started:
        earlier = [other for other in line if other.arrival < claim.arrival and other.pods & claim.pods]
        assert not earlier


@given(claims(least=1), QUOTAS)
def test_a_free_place_is_never_left_empty(line: list[CaptureClaim], quota: Quota) -> None:
    decision = decide(line, (), quota, {})
    if len(decision.start) < quota.total:
        assert WaitReason.CLUSTER_QUOTA not in decision.waits.values()


def line_of(namespace: str, count: int, first: int = 0) -> list[CaptureClaim]:
    return [
        CaptureClaim(f"{namespace}{n}", namespace, first + n, frozenset({f"{namespace}-{n}"})) for n in range(count)
    ]


def test_a_namespace_with_a_long_queue_does_not_delay_another() -> None:
    decision = decide(line_of("busy", 50) + line_of("quiet", 1, first=50), (), Quota(per_namespace=9, total=2), {})
    assert [claim.uid for claim in decision.start] == ["busy0", "quiet0"]


def test_the_next_place_is_for_the_namespace_that_was_served_longest_ago() -> None:
    both = line_of("x", 1) + line_of("y", 1, first=1)
    quota = Quota(per_namespace=1, total=1)
    assert [claim.namespace for claim in decide(both, (), quota, {"x": 7, "y": 3}).start] == ["y"]


def test_each_reason_to_wait_is_named() -> None:
    running = [CaptureClaim("r", "x", 0, frozenset({"p"}))]
    pod_busy, quota_full = CaptureClaim("a", "y", 1, frozenset({"p"})), CaptureClaim("b", "x", 2, frozenset({"q"}))
    last = CaptureClaim("c", "z", 4, frozenset({"t"}))
    first = CaptureClaim("d", "y", 3, frozenset({"s"}))
    decision = decide([pod_busy, quota_full, first, last], running, Quota(per_namespace=1, total=2), {})
    assert decision == AdmissionDecision(
        (first,), {"a": WaitReason.POD_BUSY, "b": WaitReason.NAMESPACE_QUOTA, "c": WaitReason.CLUSTER_QUOTA}
    )
