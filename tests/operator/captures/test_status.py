from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mldiagnostics.capture.model import Reason
from mldiagnostics_api.definition import definition_of
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus
from mldiagnostics_operator.captures.status import StatusBuilder
from mldiagnostics_operator.captures.verdict import judge
from support.plans import NOW, captured, endings, failed, plan

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


def scribe(previous: ConnectionStatus | None = None) -> StatusBuilder:
    return StatusBuilder(previous, generation=1, me=ME)


@given(endings(), st.integers(1, 10))
def test_every_status_of_a_life_fits_the_schema_and_reads_back(ended: list[TargetOutcome], needed: int) -> None:
    planned, writer = plan(len(ended)), scribe()
    for status in (
        writer.waiting("PodBusy", "queued", now=NOW),
        writer.running(planned, now=NOW),
        writer.progressed(ended[:1], planned),
        writer.finished(planned, ended, judge(ended, needed=needed), now=NOW + timedelta(seconds=3)),
    ):
        assert ConnectionStatus.model_validate(dump(status)) == status


@given(endings(), st.integers(1, 10))
def test_a_finished_capture_is_complete_and_its_numbers_add_up(ended: list[TargetOutcome], needed: int) -> None:
    judged = judge(ended, needed=needed)
    status = scribe().finished(plan(len(ended)), ended, judged, now=NOW)
    assert conditions(status)["Complete"] == ("True", judged.reason)
    assert status.phase == ("Succeeded" if judged.succeeded else "Failed")
    counts = status.targets
    assert counts
    assert (counts.captured or 0) + (counts.failed or 0) + (counts.skipped or 0) == counts.total == len(ended)
    assert status.completion_time == NOW


def test_a_thousand_targets_leave_the_object_below_half_a_mebibyte() -> None:
    long = "the profiler said something of considerable length, " * 20
    ended = [failed(rank, Reason.SERVER_ERROR, long) for rank in range(1000)]
    status = scribe().finished(plan(1000), ended, judge(ended, needed=1000), now=NOW)
    size = len(json.dumps(dump(status)))
    assert size + SPEC_AND_METADATA_BYTES < 512 * 1024
    assert len(status.results or ()) > 100
    assert status.progress == "0/1000"


def test_the_intent_names_everything_that_a_successor_needs() -> None:
    planned = plan(3, skips=1)
    status = scribe().running(planned, now=NOW)
    assert (status.phase, status.holder, status.session_id, status.attempt) == ("Running", ME, "capture-1", 1)
    assert (status.planned_start_time, status.deadline) == (planned.planned_start, planned.deadline)
    assert status.targets
    assert (status.targets.total, status.targets.skipped) == (4, 1)


def test_progress_keeps_what_the_intent_said() -> None:
    writer = scribe()
    intent = writer.running(plan(3), now=NOW)
    progress = writer.progressed([captured(0), failed(1)], plan(3))
    assert progress.progress == "1/3"
    kept = {"progress": None, "targets": None, "bytes": None}
    assert progress.model_copy(update=kept) == intent.model_copy(update=kept)


def test_a_condition_changes_its_time_only_with_its_status() -> None:
    writer = scribe()
    moments = [NOW + timedelta(seconds=n) for n in range(3)]

    def accepted(status: ConnectionStatus) -> datetime:
        return next(c.last_transition_time for c in status.conditions or () if c.type == "Accepted")

    assert accepted(writer.waiting("PodBusy", "queued", now=moments[0])) == moments[0]
    assert accepted(writer.waiting("ClusterQuota", "queued", now=moments[1])) == moments[0]
    running = writer.running(plan(), now=moments[2])
    assert accepted(running) == moments[2]
    successor = scribe(running)
    assert accepted(successor.running(plan(), now=moments[0])) == moments[2]
    assert running.start_time == moments[0]


def test_a_refusal_is_told_in_the_peers_words_too() -> None:
    status = scribe().refused("PodsNotFound", "not found: pod a in namespace ml", now=NOW)
    assert status.phase == "Failed"
    assert status.capture_result
    assert (status.capture_result.status, status.capture_result.error_message) == ("Failed", status.message)
    assert conditions(status) == {"Accepted": ("False", "PodsNotFound"), "Complete": ("True", "PodsNotFound")}


def test_recorded_but_not_stored_is_told_from_not_recorded() -> None:
    ended = [captured(0), failed(1, Reason.STORE_FULL)]
    status = scribe().finished(plan(2), ended, judge(ended, needed=2), now=NOW)
    assert conditions(status)["Captured"] == ("True", "Captured")
    assert conditions(status)["Stored"] == ("False", "PartlyStored")
    ended = [failed(0, Reason.STORE_FULL), failed(1, Reason.STORE_FULL)]
    status = scribe().finished(plan(2), ended, judge(ended, needed=2), now=NOW)
    assert conditions(status)["Stored"] == ("False", "StoreFull")
    ended = [failed(0, Reason.NOTHING_LISTENS)]
    status = scribe().finished(plan(1), ended, judge(ended, needed=1), now=NOW)
    assert conditions(status)["Captured"] == ("False", "PartlyCaptured")
    assert conditions(status)["Stored"] == ("False", "NothingToStore")


def test_the_skew_is_in_whole_milliseconds() -> None:
    ended = [captured(0, start_ns=10**18), captured(1, start_ns=10**18 + 2_600_000)]
    status = scribe().finished(plan(2), ended, judge(ended, needed=2), now=NOW)
    assert status.start_skew_milliseconds == 3
