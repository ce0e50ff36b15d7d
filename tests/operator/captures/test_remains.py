from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.model import Delivery, Reason, TargetState
from mldiagnostics_api.v1alpha1 import ConnectionStatus, TargetCounts
from mldiagnostics_operator.captures.outcomes import of_file, results
from mldiagnostics_operator.captures.remains import Remains, lost
from mldiagnostics_operator.captures.verdict import judge
from support.cluster.plans import captured, plan, target

HOLDER = "operator-a/uid-a/1795000000-x"


def left_by(*reported: int, has_record: bool = False) -> Remains:
    """Return what is left of an attempt that reported these targets as captured; nothing is stored here."""
    status = ConnectionStatus(
        holder=HOLDER,
        targets=TargetCounts(total=2, captured=len(reported), failed=0, skipped=0),
        results=results([captured(rank) for rank in reported], max_bytes=2**20),
    )
    return Remains(stored=(), has_record=has_record, status=status)


def test_targets_lost_by_a_restart_and_by_a_cancel_have_different_states() -> None:
    assert lost(target(0), Reason.INTERRUPTED).state is TargetState.FAILED
    assert lost(target(0), Reason.CANCELLED).state is TargetState.CANCELLED


@given(
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([Reason.INTERRUPTED, Reason.CANCELLED]),
    st.data(),
)
def test_after_a_restart_every_target_has_one_outcome(
    targets: int, skips: int, has_record: bool, reason: Reason, data: st.DataObject
) -> None:
    planned = plan(targets, skips)
    everyone = [*planned.targets, *planned.skipped]
    kept = data.draw(st.sets(st.sampled_from(everyone))) if everyone and has_record else set()
    reported = data.draw(st.sets(st.integers(0, targets - 1))) if targets else set()
    remains = replace(
        left_by(*reported, has_record=has_record), stored=[of_file(one, file="f", size=1) for one in kept]
    )
    outcomes = remains.outcomes(planned, reason)
    assert sorted(outcome.target.pod for outcome in outcomes) == sorted(one.pod for one in everyone)
    assert {outcome.target for outcome in outcomes if outcome.stored} == kept
    ended = {outcome.target for outcome in outcomes if outcome.reason == reason}
    elsewhere = {outcome.target for outcome in outcomes if outcome.reason == Reason.STORE_NOT_SHARED}
    assert ended | elsewhere == set(planned.targets) - kept
    assert elsewhere == (set() if has_record else {target(rank) for rank in reported})


def test_a_trace_in_storage_of_another_replica_is_not_lost_and_not_recorded_again() -> None:
    remains = left_by(0)
    assert remains.traces == 1
    first, second = remains.outcomes(plan(2), Reason.INTERRUPTED)
    assert first.reason == Reason.STORE_NOT_SHARED
    assert first.message.startswith("trainer-0: the trace was stored, but operator operator-a ended")
    assert "whether it stored the trace is not known" in second.message
    assert judge([first, second], needed=1).reason == "Interrupted"


def test_a_trace_that_the_pod_itself_stored_stays_captured() -> None:
    outcomes = left_by(0).outcomes(plan(2, delivery=Delivery.WORKLOAD), Reason.INTERRUPTED)
    assert [outcome.reason for outcome in outcomes] == ["Captured", "Interrupted"]
    assert outcomes[0].file == captured(0).file


@pytest.mark.parametrize(
    ("has_record", "text"),
    [
        (True, "which had stored no trace"),
        (False, "which had reported no trace; the storage of operator operator-a cannot be read here"),
    ],
)
def test_the_next_attempt_says_what_is_known_of_the_last_one(has_record: bool, text: str) -> None:
    assert left_by(has_record=has_record).loss == text
