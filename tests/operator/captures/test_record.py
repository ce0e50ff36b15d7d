from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.location import Location
from mldiagnostics_operator.captures.record import claim, complete, namespace, owner
from support.cluster.builders import connection, parsed
from support.cluster.plans import OUT, captured, failed, plan, target, target_outcomes

if TYPE_CHECKING:
    from mldiagnostics_operator.captures.outcomes import TargetOutcome

OBJECT = parsed(connection("capture", uid="uid-of-capture", podName="trainer-0", durationSeconds=1))
VERSIONS = {"operator": "1.2.3"}


def test_a_claim_names_the_owner_and_plans_the_targets() -> None:
    content = claim(OBJECT, plan(2), OUT, VERSIONS)
    assert (owner(content), namespace(content)) == ("uid-of-capture", "ml")
    record = json.loads(content)
    assert record["v"] == 1
    assert record["session"] == "capture-1"
    assert record["requested"]["triggerCapture"]["durationSeconds"] == 1
    assert [entry["state"] for entry in record["targets"]] == ["Planned", "Planned"]
    assert record["targets"][0]["file"] == "volume:///out/plugins/profile/capture-1/trainer-0.xplane.pb"


@given(target_outcomes())
def test_a_complete_record_has_every_target_with_its_whole_message(outcomes: list[TargetOutcome]) -> None:
    record = json.loads(complete(OBJECT, plan(len(outcomes)), OUT, outcomes, VERSIONS))
    written = {entry["pod"]: (entry["state"], entry["reason"], entry["message"] or "") for entry in record["targets"]}
    assert written == {e.target.pod: (str(e.state), e.reason, e.message) for e in outcomes}


def test_each_runs_directory_records_its_own_targets() -> None:
    other = Location.parse("volume:///other")
    here, there = captured(0), replace(failed(1), target=target(1, directory=other))
    planned = replace(plan(), targets=(here.target, there.target))
    for directory, pod in ((OUT, "trainer-0"), (other, "trainer-1")):
        claimed = json.loads(claim(OBJECT, planned, directory, VERSIONS))
        completed = json.loads(complete(OBJECT, planned, directory, [here, there], VERSIONS))
        assert [entry["pod"] for entry in claimed["targets"]] == [pod]
        assert [entry["pod"] for entry in completed["targets"]] == [pod]


@given(st.binary(max_size=100) | st.sampled_from([b"[]", b"{}", b"null", b'{"uid": 7}']))
def test_any_other_file_has_neither_owner_nor_namespace(content: bytes) -> None:
    assert owner(content) is None
    assert namespace(content) is None
