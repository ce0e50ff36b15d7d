"""A scrape by HTTP has the last value of every series, up to the limit."""

from __future__ import annotations

import socket
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import diagnostics
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import sink_maker
from mldiagnostics.sinks.prometheus import MAX_SERIES, PrometheusSink, SeriesTable
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.records import RUN, origin, records

if TYPE_CHECKING:
    from collections.abc import Iterator

Scrape = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def sink() -> Iterator[PrometheusSink]:
    """A sink that serves on a free port."""
    prometheus = PrometheusSink("127.0.0.1", 0, origin())
    prometheus.open()
    yield prometheus
    prometheus.close()


def scraped(sink: PrometheusSink) -> Scrape:
    """Return the samples that Prometheus would scrape."""
    with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/metrics", timeout=30) as answer:
        return parsed(answer.read().decode())


def parsed(text: str) -> Scrape:
    """Parse a scrape; Prometheus would reject one with a repeated series."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    scrape = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(scrape) == len(samples)
    return scrape


def value(scrape: Scrape, name: str, /, **labels: str) -> float | None:
    return scrape.get((name, frozenset(labels.items())))


def metric(name: str, number: float | tuple[float, ...], unit: str = "1", **labels: str) -> Record:
    return Record("metric", 10.0, name, number, labels=labels, unit=unit)


def test_the_last_value_of_each_series_is_served(sink: PrometheusSink) -> None:
    sink.write([metric("loss", 2.0), metric("loss", 1.0), metric("loss", 3.0, split="eval")])
    sink.write([metric("step_time", 0.5, "s"), metric("hbm_utilization", (10.0, 20.0), "%")])
    scrape = scraped(sink)
    assert value(scrape, "ml_loss") == 1.0
    assert value(scrape, "ml_loss", split="eval") == 3.0
    assert value(scrape, "ml_step_time_seconds") == 0.5
    assert value(scrape, "ml_hbm_utilization_percent", device="1") == 20.0
    assert value(scrape, "mldiagnostics_last_metric_timestamp_seconds") == 10.0


def test_the_run_its_step_and_its_drops_are_served(sink: PrometheusSink) -> None:
    sink.write([Record("metric", 10.0, "loss", 1.0, step=7), metric("loss", 1.0)])
    sink.write([Record("drop", 10.0, "queue-full", number, labels={"sink": "jsonl"}) for number in (2.0, 3.0)])
    scrape = scraped(sink)
    assert value(scrape, "mldiagnostics_step") == 7.0
    assert value(scrape, "mldiagnostics_dropped_records_total", sink="jsonl", reason="queue-full") == 5.0
    who = {"run": RUN, "name": "test", "attempt": "0", "rank": "0", "slice": "", "host": "host"}
    assert value(scrape, "mldiagnostics_run_info", **who) == 1.0


def test_series_beyond_the_limit_are_left_out_and_counted(sink: PrometheusSink) -> None:
    before = diagnostics.counts().get("prometheus-series", 0)
    sink.write([metric("loss", 1.0, sample=str(number)) for number in range(MAX_SERIES + 5)])
    sink.write([metric("loss", 2.0, sample="0")])
    scrape = scraped(sink)
    assert sum(name == "ml_loss" for name, _ in scrape) == MAX_SERIES
    assert value(scrape, "ml_loss", sample="0") == 2.0
    assert value(scrape, "mldiagnostics_left_out_values_total") == 5.0
    assert diagnostics.counts()["prometheus-series"] == before + 5


def test_a_taken_port_is_logged_and_used_once_it_is_free() -> None:
    before = diagnostics.counts().get("prometheus-port", 0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        sink = PrometheusSink("127.0.0.1", taken.getsockname()[1], origin())
        sink.open()
        sink.write([metric("loss", 1.0)])
        sink.flush()
        assert sink.port == 0
        assert diagnostics.counts()["prometheus-port"] == before + 2
    sink.flush()
    assert value(scraped(sink), "ml_loss") == 1.0
    sink.close()


def test_the_local_rank_is_added_to_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    sink = PrometheusSink("127.0.0.1", port - 3, replace(origin(), local_rank=3))
    sink.open()
    assert sink.port == port
    sink.close()


@given(batch=st.lists(records(), max_size=5))
def test_any_records_give_a_valid_scrape(batch: list[Record]) -> None:
    table, registry = SeriesTable(origin()), CollectorRegistry(auto_describe=False)
    registry.register(table)
    table.update(batch)
    names = {name for name, _ in parsed(generate_latest(registry).decode())}
    numbers = [each for each in batch if each.kind == "metric" and each.value not in {None, ()}]
    assert any(name.startswith("ml_") for name in names) == bool(numbers)


@pytest.mark.parametrize("url", ["prometheus:", "prometheus:host", "prometheus::port", "prometheus::9464/metrics"])
def test_a_url_without_a_port_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError, match="prometheus::9464"):
        sink_maker(url)
