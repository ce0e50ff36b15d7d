from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.names import ARTIFACTS_FINALIZER, MLRunPhase
from mldiagnostics_api.runs.artifacts import (
    DELETION_LIMIT,
    ArtifactAction,
    artifact_action,
    capture_names_run,
    record_names_run,
    run_directories,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
RULES = {"allowedStorage": {"*": ["volume:///{namespace}"], "ml": ["gs://shared/ml", "/tmp"]}, "strictTenancy": True}
POLICY = Policy.parse(json.dumps(RULES))
CAPTURE = {
    "object": {"namespace": "ml"},
    "requested": {"triggerCapture": {"target": {}}},
    "targets": [{"runId": "r"}, {"runId": "r"}],
}


@given(
    wanted=st.none() | st.booleans(),
    finalizers=st.sampled_from([None, [], ["other"], [ARTIFACTS_FINALIZER], ["other", ARTIFACTS_FINALIZER]]),
    age_s=st.none() | st.integers(0, 2000),
    phase=st.none() | st.sampled_from(list(MLRunPhase)),
)
def test_files_are_deleted_only_with_a_held_and_deleted_run_that_does_not_go_on(
    wanted: bool | None, finalizers: list[str] | None, age_s: int | None, phase: MLRunPhase | None
) -> None:
    metadata: dict[str, Any] = {} if finalizers is None else {"finalizers": finalizers}
    if age_s is not None:
        metadata["deletionTimestamp"] = (NOW - timedelta(seconds=age_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = {"metadata": metadata, "spec": {"retention": {"deleteArtifacts": wanted}}, "status": {"phase": phase}}
    action = artifact_action(body, NOW)
    held = ARTIFACTS_FINALIZER in (finalizers or ())
    if action is ArtifactAction.DELETE:
        assert wanted
        assert held
        assert age_s is not None
        assert phase != MLRunPhase.ACTIVE
    if action is ArtifactAction.HOLD:
        assert (wanted, held, age_s) == (True, False, None)
    if not held:
        assert action in (ArtifactAction.NONE, ArtifactAction.HOLD)
    if held and age_s is not None and age_s > DELETION_LIMIT.total_seconds():
        assert action in (ArtifactAction.GIVE_UP, ArtifactAction.RELEASE), "an object must not wait longer"


@pytest.mark.parametrize(
    ("location", "directories"),
    [
        (None, ["volume:///r", "volume:///ml/r/reported"]),
        ("volume:///ml/x", ["volume:///ml/x/r", "volume:///r", "volume:///ml/r/reported"]),
        ("gs://shared/ml", ["gs://shared/ml/r", "volume:///r", "volume:///ml/r/reported"]),
    ],
)
def test_the_directories_of_a_run_are_in_its_storage_and_in_the_default(
    location: str | None, directories: list[str]
) -> None:
    assert [str(each.location) for each in run_directories("r", "ml", location, POLICY)] == directories


@pytest.mark.parametrize(
    "location", ["volume:///", "volume:///other", "gs://shared", "gs://shared/mlops", "gs://a/../b", "/tmp/x", "s3://b"]
)
def test_no_directory_is_outside_of_what_the_namespace_may_name(location: str) -> None:
    with pytest.raises(ValueError, match="storageLocation"):
        run_directories("r", "ml", location, POLICY)


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,127}", fullmatch=True))
def test_every_directory_is_below_its_root(run_id: str) -> None:
    root = Location.parse("volume:///")
    for directory in run_directories(run_id, "ml", None, POLICY):
        assert directory.location.within(root)
        assert directory.location != root


def test_a_record_names_the_run_by_id_namespace_and_workload() -> None:
    record = {"runId": "r", "namespace": "ml", "identity": {"workload": {"uid": "u"}}}
    assert record_names_run(record, "r", "ml", "u")
    assert record_names_run(record, "r", "ml", "")
    assert record_names_run({"runId": "r", "namespace": "ml"}, "r", "ml", "u")
    for other in (("s", "ml", "u"), ("r", "other", "u"), ("r", "ml", "v")):
        assert not record_names_run(record, *other)
    for broken in (None, "", [], {}, {"runId": "r"}):
        assert not record_names_run(broken, "r", "ml", "")


def test_a_capture_names_the_run_if_it_is_of_the_same_namespace_and_of_this_run_alone() -> None:
    assert capture_names_run(CAPTURE, "r", "ml")
    hostile: list[Any] = [
        CAPTURE | {"object": {"namespace": "other"}},
        CAPTURE | {"requested": {"triggerCapture": {"podNamespace": "other"}}},
        CAPTURE | {"targets": [{"runId": "r"}, {"runId": "s"}]},
        CAPTURE | {"targets": []},
        CAPTURE | {"targets": "r"},
        [],
        "r",
    ]
    assert not any(capture_names_run(record, "r", "ml") for record in hostile)
