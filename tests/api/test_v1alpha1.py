from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mldiagnostics_api.v1alpha1 import ConnectionStatus, MLDiagnosticsConnection, TargetResult, read_connection
from support.cluster import builders as a


def test_the_peers_six_fields_mean_what_they_meant() -> None:
    trigger = read_connection(a.peer_connection("trainer-0,trainer-1")).spec.trigger_capture
    assert trigger.model_dump(by_alias=True, exclude_none=True) == {
        "podName": "trainer-0,trainer-1",
        "podNamespace": "ml",
        "capturePort": 9999,
        "durationSeconds": 2,
        "profiler": "google_cloud_mldiagnostics",
        "storageLocation": "volume:///captures",
    }


def test_reading_is_lenient_about_what_a_newer_version_wrote() -> None:
    body = a.connection(podName="a", futureField=1)
    body["spec"]["another"] = {}
    body["status"] = {"phase": "Running", "novelty": True, "results": [{"pod": "a", "state": "Failed", "reason": "X"}]}
    status = read_connection(body).status
    assert status is not None
    assert status.results is not None
    assert status.results[0].reason == "X"


def test_every_fault_is_named_by_its_field() -> None:
    with pytest.raises(ValueError, match=r"spec\.triggerCapture\.capturePort: .*; spec\.triggerCapture\.profiler: "):
        read_connection(a.connection(podName="a", capturePort=0, profiler="other"))
    with pytest.raises(ValueError, match=r"spec\.triggerCapture: Field required"):
        read_connection({"metadata": a.connection()["metadata"], "spec": {}})


@pytest.mark.parametrize(
    "trigger",
    [
        {"podName": ""},
        {"podName": ","},
        {"podName": "a b"},
        {"podName": "../a"},
        {"podNamespace": "a/../b"},
        {"target": {"selector": {"matchExpressions": [{"key": "a=b", "operator": "Exists"}]}}},
        {"durationSeconds": 0},
        {"capturePort": 65536},
        {"minimumCaptured": 0},
        {"minimumCaptured": "0%"},
        {"minimumCaptured": "101%"},
        {"minimumCaptured": "half"},
        {"startLeadMilliseconds": 60_001},
        {"delivery": "Pigeon"},
        {"tracers": {"host": 4}},
        {"target": {"ranks": "a"}},
        {"target": {"limit": 0}},
    ],
)
def test_what_is_out_of_bounds_is_refused(trigger: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"spec\.triggerCapture"):
        read_connection(a.connection(**{"podName": "a"} | trigger))


def test_times_are_formatted_as_in_kubernetes() -> None:
    result = TargetResult(
        pod="a", state="Captured", reason="Captured", start_time=datetime(2026, 11, 21, 3, 4, 5, 678901, tzinfo=UTC)
    )
    assert (
        result.model_dump(mode="json", by_alias=True, exclude_none=True)["startTime"] == "2026-11-21T03:04:05.678901Z"
    )


def test_a_time_without_zone_is_rejected() -> None:
    with pytest.raises(ValueError, match="timezone"):
        ConnectionStatus(start_time=datetime(2026, 11, 21))  # noqa: DTZ001  # the point of the test


def test_values_are_immutable() -> None:
    connection = read_connection(a.connection())
    with pytest.raises(ValueError, match="frozen"):
        connection.spec.cancel = True  # type: ignore[misc]  # the point of the test
    assert isinstance(connection, MLDiagnosticsConnection)


def test_annotations_that_are_not_read_do_not_stay_in_memory() -> None:
    body = a.connection(podName="a")
    body["metadata"]["annotations"] = {"diagon.gke.io/run-id": "r", "diagon.gke.io/other": "x", "mine": "x" * 250_000}
    assert read_connection(body).metadata.annotations == {"diagon.gke.io/run-id": "r"}
