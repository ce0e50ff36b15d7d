"""Functions of `goodput_utils`: step statistics, times of payloads, metadata of machines."""

from __future__ import annotations

import socket
import statistics
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import goodput_utils
from mldiagnostics.goodput import google_cloud
from mldiagnostics.goodput_utils import (
    MonitoringWindowType,
    compute_ideal_step_time,
    compute_percentile,
    compute_step_deviation_from_baseline,
    get_anomalous_and_normal_step_times,
    get_extra_time_from_anomalous_steps,
    get_timestamp_from_log_entry,
)
from support.servers.local_http import served

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

durations = st.lists(st.floats(0.001, 1e5), max_size=40)


def test_the_ideal_leaves_outliers_out() -> None:
    assert compute_ideal_step_time([2.0, 2.1, 1.9, 2.0, 60.0]) == pytest.approx(2.0)
    assert compute_ideal_step_time([]) is None


def test_short_steps_count_only_among_themselves() -> None:
    assert compute_ideal_step_time([0.001, 4.0, 0.001, 4.0, 4.0]) == 4.0
    assert compute_ideal_step_time([0.3] * 199 + [20.0]) == pytest.approx(0.3)
    assert compute_ideal_step_time([0.5, 0.5, 4.0, 4.0]) == 2.25
    assert compute_ideal_step_time([0.2, 0.2, 0.2]) == pytest.approx(0.2)


def test_extra_time_is_the_excess_of_outliers() -> None:
    assert get_anomalous_and_normal_step_times([2.0, 2.0, 2.0, 8.0]) == ([8.0], [2.0, 2.0, 2.0])
    assert get_extra_time_from_anomalous_steps([2.0, 2.0, 2.0, 8.0, 9.0]) == pytest.approx(13.0)
    assert get_extra_time_from_anomalous_steps([2.0, 2.0]) == 0.0
    assert get_extra_time_from_anomalous_steps([]) == 0.0


@given(durations)
def test_no_step_is_lost_between_outliers_and_others(values: list[float]) -> None:
    anomalous, normal = get_anomalous_and_normal_step_times(values)
    assert sorted(anomalous + normal) == sorted(values)
    assert not values or len(normal) * 2 >= len(values)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.integers(1, 99))
def test_percentiles_are_those_of_the_standard_library(values: list[float], percentile: int) -> None:
    expected = statistics.quantiles(values, n=100, method="inclusive")[percentile - 1]
    assert compute_percentile(values, percentile) == pytest.approx(expected, abs=1e-6)


def test_percentiles_reach_the_ends() -> None:
    assert (compute_percentile([3.0, 1.0, 2.0], 0), compute_percentile([3.0, 1.0, 2.0], 100)) == (1.0, 3.0)
    assert compute_percentile([], 50) == 0.0


def numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_few_deviations_are_averaged() -> None:
    assert compute_step_deviation_from_baseline({}) == 0.0
    assert compute_step_deviation_from_baseline(numbered([1.0, -3.0])) == 2.0


def test_many_deviations_are_a_spike_over_the_steps_before() -> None:
    calm, spiky = [1.0] * 1000, [5.0] * 100
    assert compute_step_deviation_from_baseline(numbered(calm + spiky)) == 4.0
    assert compute_step_deviation_from_baseline(numbered(calm[:999] + spiky)) == 5.0
    assert compute_step_deviation_from_baseline(numbered(calm + spiky), MonitoringWindowType.INTERVAL) == 5.0
    assert compute_step_deviation_from_baseline(numbered(spiky + calm)) == 0.0


def test_the_window_types_are_complete() -> None:
    values = numbered([9.0, 1.0, 1.0, 3.0, 5.0])
    assert compute_step_deviation_from_baseline(values, recent_window_size=2, baseline_window_size=2) == 3.8
    assert compute_step_deviation_from_baseline(values, recent_window_size=2, baseline_window_size=3) == 3.8
    assert compute_step_deviation_from_baseline(values, recent_window_size=6) == 3.8
    assert (
        compute_step_deviation_from_baseline(values, recent_window_size=2, baseline_window_size=2, spike_percentile=100)
        == 4.0
    )


AT = 1_700_000_000.0


@pytest.mark.parametrize(
    "payload",
    [
        {"job_name": "j", "step_count": 3, "step_start_time": AT},
        {"time_between_consecutive_saves_sec": 12.0, "preemption_received_at": None, "step": 3, "event_type": "save"}
        | {"wait_for_prev_start_time": AT - 5, "checkpoint_manager_blocking_start_time": AT},
        {"broadcast_start_time": None, "checkpoint_manager_start_time": AT, "event_type": "restore"},
        {"active_slices": 1, "elastic_slice_counts_timestamp": AT},
        {"my_time": AT},
    ],
)
def test_the_time_of_an_entry_is_that_of_its_event(payload: dict[str, Any]) -> None:
    assert get_timestamp_from_log_entry(payload) == datetime.fromtimestamp(AT, timezone.utc)
    assert get_timestamp_from_log_entry(dict(reversed(payload.items()))) == datetime.fromtimestamp(AT, timezone.utc)


@pytest.mark.parametrize(
    "payload", [{}, {"step": 3}, {"job_start_time": None}, {"job_start_time": "now"}, {"job_start_time": 1e300}]
)
def test_an_entry_may_have_no_time(payload: dict[str, Any]) -> None:
    assert get_timestamp_from_log_entry(payload) is None


def test_options_are_not_shared() -> None:
    first, second = goodput_utils.GCPOptions(), goodput_utils.GCPOptions()
    first.project_id = "mine"
    assert second.project_id is None
    assert goodput_utils.GoodputInfo().last_updated_timestamp.tzinfo is timezone.utc


@contextmanager
def metadata(answers: Mapping[str, str]) -> Iterator[str]:
    """A metadata server that knows these paths."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.removeprefix("/computeMetadata/v1/"))
            self.send_response(200 if answer else 404)
            self.send_header("Metadata-Flavor", "Google")
            self.end_headers()
            self.wfile.write((answer or "").encode())

        def log_message(self, *arguments: object) -> None:
            del arguments

    with served(Handler) as address:
        yield address


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> pytest.MonkeyPatch:
    """An environment that says nothing of Google Cloud."""
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path_factory.mktemp("gcloud")))
    return monkeypatch


def look_up_at(host: str, elsewhere: pytest.MonkeyPatch) -> None:
    """Use this metadata server, with enough time for each response on a slow machine."""
    elsewhere.setenv("GCE_METADATA_HOST", host)
    elsewhere.setattr(google_cloud, "_LOOK_UP_S", 60.0)
    elsewhere.setattr(google_cloud.get_gcp_metadata, "__defaults__", (60.0, 3))


def test_a_machine_of_google_cloud_has_its_metadata(elsewhere: pytest.MonkeyPatch) -> None:
    answers = {
        "project/project-id": "ours",
        "instance/zone": "projects/7/zones/us-east5-b",
        "instance/machine-type": "projects/7/machineTypes/ct5lp-hightpu-4t",
        "instance/attributes/cluster-name": "trainer",
    }
    with metadata(answers) as host:
        look_up_at(host, elsewhere)
        assert goodput_utils.get_gcp_project_id() == "ours"
        assert goodput_utils.get_node_zone() == "us-east5-b"
        assert goodput_utils.get_accelerator_type() == "TPU-v5e"
        assert goodput_utils.get_cluster_name() == "trainer"
        assert goodput_utils.get_gcp_metadata("instance", "attributes/none", timeout=5, retries=3) is None


def test_other_machines_return_none_without_waiting(elsewhere: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        elsewhere.setenv("GCE_METADATA_HOST", f"127.0.0.1:{silent.getsockname()[1]}")
        elsewhere.setattr("mldiagnostics.goodput.google_cloud._LOOK_UP_S", 0.01)
        assert goodput_utils.get_gcp_project_id() is None
        assert goodput_utils.get_node_zone() is None
        assert goodput_utils.get_accelerator_type() == "UNKNOWN"
        assert goodput_utils.get_cluster_name() is None


@pytest.mark.parametrize(
    ("machine", "accelerator"),
    [
        ("ct5p-hightpu-1t", "TPU-v5p"),
        ("a3-ultragpu-8g", "NVIDIA-H200"),
        ("a2-highgpu-1g", "NVIDIA-A100"),
        ("tpu7x-standard-4t", "TPU-7x"),
        ("n2-standard-8", "UNKNOWN"),
    ],
)
def test_the_first_matching_part_of_a_machine_type_counts(
    elsewhere: pytest.MonkeyPatch, machine: str, accelerator: str
) -> None:
    with metadata({"instance/machine-type": f"projects/7/machineTypes/{machine}"}) as host:
        look_up_at(host, elsewhere)
        assert goodput_utils.get_accelerator_type() == accelerator
