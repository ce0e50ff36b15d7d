from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mldiagnostics.capture.model import Reason
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.names import SkipReason
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus
from mldiagnostics_operator.captures.outcomes import of_skip
from mldiagnostics_operator.captures.status import StatusBuilder
from mldiagnostics_operator.captures.verdict import judge
from support.cluster.plans import NOW, captured, failed, plan, skipped, target_outcomes

if TYPE_CHECKING:
    from mldiagnostics_operator.captures.outcomes import TargetOutcome

SCHEMA = definition_of(CONNECTIONS)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
ME = "operator/uid/1-a"
SPEC_AND_METADATA_BYTES = 2 * 131_072 + 16_384  # the longest podName, its copy in kubectl's annotation, and the rest


def dump(status: ConnectionStatus) -> dict[str, Any]:
    body: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    Draft202012Validator(SCHEMA).validate(body)
    return body


def conditions(status: ConnectionStatus) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions or ()}


def builder(previous: ConnectionStatus | None = None) -> StatusBuilder:
    return StatusBuilder(previous, generation=1, me=ME)


@given(target_outcomes(), st.integers(1, 10))
def test_every_status_of_a_capture_fits_the_schema_and_reads_back(outcomes: list[TargetOutcome], needed: int) -> None:
    planned, writer = plan(len(outcomes)), builder()
    for status in (
        writer.waiting("PodBusy", "queued", now=NOW),
        writer.running(planned, now=NOW),
        writer.progressed(outcomes[:1], planned),
        writer.finished(planned, outcomes, judge(outcomes, needed=needed), now=NOW + timedelta(seconds=3)),
    ):
        assert ConnectionStatus.model_validate(dump(status)) == status


@given(target_outcomes(), st.integers(1, 10))
def test_a_finished_capture_is_complete_and_its_numbers_add_up(outcomes: list[TargetOutcome], needed: int) -> None:
    judged = judge(outcomes, needed=needed)
    status = builder().finished(plan(len(outcomes)), outcomes, judged, now=NOW)
    assert conditions(status)["Complete"] == ("True", judged.reason)
    assert status.phase == ("Succeeded" if judged.succeeded else "Failed")
    counts = status.targets
    assert counts
    assert (counts.captured or 0) + (counts.failed or 0) + (counts.skipped or 0) == counts.total == len(outcomes)
    assert status.completion_time == NOW


def test_an_object_with_a_thousand_targets_is_below_half_a_mebibyte() -> None:
    long = "the profiler returned a long message, " * 20
    outcomes = [failed(rank, Reason.SERVER_ERROR, long) for rank in range(1000)]
    status = builder().finished(plan(1000), outcomes, judge(outcomes, needed=1000), now=NOW)
    size = len(json.dumps(dump(status)))
    assert size + SPEC_AND_METADATA_BYTES < 512 * 1024
    assert len(status.results or ()) > 100
    assert status.progress == "0/1000"


def test_the_intent_has_all_that_the_next_leader_needs() -> None:
    planned = plan(3, skips=1)
    status = builder().running(planned, now=NOW)
    assert (status.phase, status.holder, status.session_id, status.attempt) == ("Running", ME, "capture-1", 1)
    assert (status.planned_start_time, status.deadline) == (planned.planned_start, planned.deadline)
    assert status.targets
    assert (status.targets.total, status.targets.skipped) == (4, 1)


def test_progress_keeps_the_fields_of_the_intent() -> None:
    writer = builder()
    intent = writer.running(plan(3), now=NOW)
    progress = writer.progressed([captured(0), failed(1)], plan(3))
    assert progress.progress == "1/3"
    assert [result.pod for result in progress.results or ()] == ["trainer-1", "trainer-0"]
    kept = {"progress": None, "targets": None, "bytes": None, "results": None}
    assert progress.model_copy(update=kept) == intent.model_copy(update=kept)
    assert writer.running(plan(3), now=NOW) == intent  # the next attempt starts without results


def test_a_condition_changes_its_time_only_with_its_status() -> None:
    writer = builder()
    moments = [NOW + timedelta(seconds=n) for n in range(3)]

    def accepted(status: ConnectionStatus) -> datetime:
        return next(c.last_transition_time for c in status.conditions or () if c.type == "Accepted")

    assert accepted(writer.waiting("PodBusy", "queued", now=moments[0])) == moments[0]
    assert accepted(writer.waiting("ClusterQuota", "queued", now=moments[1])) == moments[0]
    running = writer.running(plan(), now=moments[2])
    assert accepted(running) == moments[2]
    successor = builder(running)
    assert accepted(successor.running(plan(), now=moments[0])) == moments[2]
    assert running.start_time == moments[0]


def test_a_refusal_also_sets_the_peers_capture_result() -> None:
    status = builder().refused("PodsNotFound", "not found: pod a in namespace ml", now=NOW)
    assert status.phase == "Failed"
    assert status.capture_result
    assert (status.capture_result.status, status.capture_result.error_message) == ("Failed", status.message)
    assert conditions(status) == {"Accepted": ("False", "PodsNotFound"), "Complete": ("True", "PodsNotFound")}


def test_conditions_distinguish_recorded_but_not_stored_from_not_recorded() -> None:
    outcomes = [captured(0), failed(1, Reason.STORE_FULL)]
    status = builder().finished(plan(2), outcomes, judge(outcomes, needed=2), now=NOW)
    assert conditions(status)["Captured"] == ("True", "Captured")
    assert conditions(status)["Stored"] == ("False", "PartlyStored")
    outcomes = [failed(0, Reason.STORE_FULL), failed(1, Reason.STORE_FULL)]
    status = builder().finished(plan(2), outcomes, judge(outcomes, needed=2), now=NOW)
    assert conditions(status)["Stored"] == ("False", "StoreFull")
    outcomes = [failed(0, Reason.NOTHING_LISTENS)]
    status = builder().finished(plan(1), outcomes, judge(outcomes, needed=1), now=NOW)
    assert conditions(status)["Captured"] == ("False", "PartlyCaptured")
    assert conditions(status)["Stored"] == ("False", "NothingToStore")


def test_pods_that_no_controller_confirms_are_in_the_results_and_in_no_number() -> None:
    forged = skipped(9, SkipReason.NOT_CONFIRMED)
    planned = plan(8, skipped=(forged,), uncounted=1, needed=8)
    outcomes = [of_skip(forged), *(captured(rank) for rank in range(8))]
    writer = builder()
    running = writer.running(planned, now=NOW)
    progressed = writer.progressed(outcomes[:4], planned)
    judged = judge(outcomes, needed=8, uncounted=1)
    finished = writer.finished(planned, outcomes, judged, now=NOW)
    assert [status.progress for status in (running, progressed, finished)] == ["0/8", "3/8", "8/8"]
    for status in (running, progressed, finished):
        assert status.targets
        assert (status.targets.total, status.targets.skipped) == (8, 0)
    assert conditions(finished)["Captured"] == ("True", "Captured")
    assert {c.type: c.message for c in finished.conditions or ()} == {
        "Accepted": "8 targets are selected",
        "Captured": "8 of 8 targets recorded",
        "Stored": "8 traces stored",
        "Complete": judged.message,
    }
    assert judged.message.startswith("8 of 8 targets captured; 1 PositionNotConfirmed, not counted (trainer-9: ")
    assert ("trainer-9", "Skipped") in [(result.pod, result.state) for result in finished.results or ()]


def test_the_skew_is_in_whole_milliseconds() -> None:
    outcomes = [captured(0, start_ns=10**18), captured(1, start_ns=10**18 + 2_600_000)]
    status = builder().finished(plan(2), outcomes, judge(outcomes, needed=2), now=NOW)
    assert status.start_skew_milliseconds == 3


def test_control_characters_of_servers_are_escaped_in_every_message() -> None:
    text = "the server says \x1b[2J\r\n\u202eevil"
    outcomes = [failed(0, message=text), failed(1, message=text)]
    finished = builder().finished(plan(2), outcomes, judge(outcomes, needed=2), now=NOW)
    for status in (finished, builder().refused("Unexpected", text, now=NOW), builder().waiting("w", text, now=NOW)):
        written = status.model_dump(mode="json")
        for message in strings(written):
            assert message.isprintable(), message
        assert any("\\x1b[2J" in message for message in strings(written))


def strings(value: object) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in strings(part)]
