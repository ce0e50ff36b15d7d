from collections.abc import Iterable
from pathlib import Path

from mldiagnostics_operator.telemetry import OperatorMetrics, reference
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]


def parsed(telemetry: OperatorMetrics) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(telemetry.exposition().decode())}


def samples(families: Iterable[Metric]) -> dict[tuple[str, tuple[str, ...]], float]:
    return {(s.name, tuple(sorted(s.labels.values()))): s.value for family in families for s in family.samples}


def test_a_scraper_reads_the_recorded_events() -> None:
    telemetry = OperatorMetrics()
    telemetry.identify(version="1.2", cluster="projects/p/locations/l/clusters/c")
    telemetry.leading(leader=True)
    telemetry.queue(queued=3, in_flight=2)
    telemetry.watch_lag(7.5)
    telemetry.capture_started(delay_s=0.4)
    telemetry.capture_ended(result="Succeeded", reason="Succeeded", duration_s=3.0)
    telemetry.capture_ended(result="Failed", reason="PodsNotFound")
    telemetry.target_ended(state="Captured", reason="Captured", stored_bytes=100)
    telemetry.target_ended(state="Captured", reason="Captured", stored_bytes=50)
    telemetry.target_ended(state="Failed", reason="NothingListens")
    telemetry.start_skew(0.002)
    telemetry.status_written("written")
    read = samples(parsed(telemetry).values())
    expected = {
        ("mldiagnostics_operator_info", ("1.2", "projects/p/locations/l/clusters/c")): 1,
        ("mldiagnostics_operator_leader", ()): 1,
        ("mldiagnostics_operator_standing_down", ()): 0,
        ("mldiagnostics_captures_queued", ()): 3,
        ("mldiagnostics_captures_in_flight", ()): 2,
        ("mldiagnostics_watch_lag_seconds", ()): 7.5,
        ("mldiagnostics_captures_total", ("Succeeded", "Succeeded")): 1,
        ("mldiagnostics_captures_total", ("Failed", "PodsNotFound")): 1,
        ("mldiagnostics_capture_duration_seconds_sum", ("Succeeded",)): 3,
        ("mldiagnostics_capture_start_delay_seconds_count", ()): 1,
        ("mldiagnostics_capture_targets_total", ("Captured", "Captured")): 2,
        ("mldiagnostics_capture_targets_total", ("Failed", "NothingListens")): 1,
        ("mldiagnostics_trace_bytes_total", ()): 150,
        ("mldiagnostics_capture_start_skew_seconds_bucket", ("0.0025",)): 1,
        ("mldiagnostics_capture_start_skew_seconds_bucket", ("0.001",)): 0,
        ("mldiagnostics_status_writes_total", ("written",)): 1,
    }
    assert {key: read.get(key) for key in expected} == expected


def test_a_clock_that_goes_back_records_no_negative_time() -> None:
    telemetry = OperatorMetrics()
    telemetry.capture_started(delay_s=-3.0)
    telemetry.capture_ended(result="Succeeded", reason="Succeeded", duration_s=-3.0)
    read = samples(parsed(telemetry).values())
    assert read["mldiagnostics_capture_start_delay_seconds_sum", ()] == 0
    assert read["mldiagnostics_capture_duration_seconds_sum", ("Succeeded",)] == 0


def test_names_follow_the_conventions() -> None:
    for name, family in parsed(OperatorMetrics()).items():
        assert family.documentation, name
        assert name.startswith(("mldiagnostics_", "process_")), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name


def test_two_replicas_in_one_process_do_not_clash() -> None:
    OperatorMetrics().leading(leader=True)
    assert samples(parsed(OperatorMetrics()).values())["mldiagnostics_operator_leader", ()] == 0


def test_the_reference_page_is_current() -> None:
    page = ROOT / "docs/reference/metrics.md"
    assert page.read_text() == reference(), "write it again: python -m mldiagnostics_operator.telemetry > that file"
