from datetime import UTC, datetime
from pathlib import Path

from mldiagnostics_webhook.telemetry import WebhookMetrics, reference
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]


def samples(telemetry: WebhookMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return values by name and label values, in the order of the label names."""
    families = text_string_to_metric_families(telemetry.exposition().decode())
    parsed = (sample for family in families for sample in family.samples)
    return {(s.name, tuple(s.labels[name] for name in sorted(s.labels))): s.value for s in parsed}


def test_events_are_counted() -> None:
    telemetry = WebhookMetrics().identify(version="1.2.3", cluster="train")
    telemetry.reviewed(result="injected", reason="Injected")
    telemetry.reviewed(result="injected", reason="Injected")
    telemetry.took(0.002)
    telemetry.in_flight(lambda: 3)
    telemetry.looked_up("cache")
    telemetry.watch("Job", before="unknown", now="unknown")
    telemetry.watch("Job", before="unknown", now="followed")
    telemetry.kept("Job", objects=7, left_out=1)
    values = samples(telemetry)
    assert values["mldiagnostics_webhook_info", ("train", "1.2.3")] == 1
    assert values["mldiagnostics_webhook_reviews_total", ("Injected", "injected")] == 2
    assert values["mldiagnostics_webhook_review_duration_seconds_sum", ()] == 0.002
    assert values["mldiagnostics_webhook_reviews_in_flight", ()] == 3
    assert values["mldiagnostics_webhook_lookups_total", ("cache",)] == 1
    assert values["mldiagnostics_webhook_watch", ("Job", "unknown")] == 0
    assert values["mldiagnostics_webhook_watch", ("Job", "followed")] == 1
    assert values["mldiagnostics_webhook_cached_objects", ("Job",)] == 7
    assert values["mldiagnostics_webhook_cache_left_out", ("Job",)] == 1


def test_the_expiry_is_that_of_the_current_certificate() -> None:
    telemetry, end = WebhookMetrics(), [None, datetime(2027, 1, 1, tzinfo=UTC)]
    name = ("mldiagnostics_webhook_certificate_expiry_timestamp_seconds", ())
    telemetry.certificate_ends(lambda: end[0])
    assert samples(telemetry)[name] == 0
    end.pop(0)
    assert samples(telemetry)[name] == 1798761600


def test_names_follow_the_conventions() -> None:
    for family in text_string_to_metric_families(WebhookMetrics().exposition().decode()):
        assert family.documentation, family.name
        assert family.name.startswith(("mldiagnostics_webhook", "process_")), family.name


def test_the_reference_page_is_current() -> None:
    page = ROOT / "docs/reference/webhook-metrics.md"
    assert page.read_text() == reference(), "write it again: python -m mldiagnostics_webhook.telemetry > that file"
