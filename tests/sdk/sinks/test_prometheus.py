"""A scrape by HTTP finds the last value of every series, within bounds."""

from __future__ import annotations

import socket
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
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
    """A sink that serves on a port of the system's choice."""
    made = PrometheusSink("127.0.0.1", 0, origin())
    made.open()
    yield made
    made.close()


def scraped(sink: PrometheusSink) -> Scrape:
    """What Prometheus would read."""
    with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/metrics", timeout=30) as answer:
        return parsed(answer.read().decode())


def parsed(text: str) -> Scrape:
    """The samples of a scrape; no series may come twice, or Prometheus would reject everything."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def value(found: Scrape, name: str, /, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def metric(name: str, number: float | tuple[float, ...], unit: str = "1", **labels: str) -> Record:
    return Record("metric", 10.0, name, number, labels=labels, unit=unit)


def test_the_last_value_of_each_series_is_served(sink: PrometheusSink) -> None:
    sink.write([metric("loss", 2.0), metric("loss", 1.0), metric("loss", 3.0, split="eval")])
    sink.write([metric("step_time", 0.5, "s"), metric("hbm_utilization", (10.0, 20.0), "%")])
    found = scraped(sink)
    assert value(found, "ml_loss") == 1.0
    assert value(found, "ml_loss", split="eval") == 3.0
    assert value(found, "ml_step_time_seconds") == 0.5
    assert value(found, "ml_hbm_utilization_percent", device="1") == 20.0
    assert value(found, "mldiagnostics_last_metric_timestamp_seconds") == 10.0


def test_the_run_its_step_and_its_drops_are_told(sink: PrometheusSink) -> None:
    sink.write([Record("metric", 10.0, "loss", 1.0, step=7), metric("loss", 1.0)])
    sink.write([Record("drop", 10.0, "queue-full", number, labels={"sink": "jsonl"}) for number in (2.0, 3.0)])
    found = scraped(sink)
    assert value(found, "mldiagnostics_step") == 7.0
    assert value(found, "mldiagnostics_dropped_records_total", sink="jsonl", reason="queue-full") == 5.0
    who = {"run": RUN, "name": "test", "attempt": "0", "rank": "0", "slice": "", "host": "host"}
    assert value(found, "mldiagnostics_run_info", **who) == 1.0


def test_labels_that_vary_without_end_are_bounded_and_counted(sink: PrometheusSink) -> None:
    before = diagnostics.counts().get("prometheus-series", 0)
    sink.write([metric("loss", 1.0, sample=str(number)) for number in range(MAX_SERIES + 5)])
    sink.write([metric("loss", 2.0, sample="0")])
    found = scraped(sink)
    assert sum(name == "ml_loss" for name, _ in found) == MAX_SERIES
    assert value(found, "ml_loss", sample="0") == 2.0
    assert value(found, "mldiagnostics_left_out_values_total") == 5.0
    assert diagnostics.counts()["prometheus-series"] == before + 5


def test_a_port_that_is_taken_is_complained_of_and_used_once_it_is_free() -> None:
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


def test_processes_of_one_host_add_their_rank_on_it_to_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    sink = PrometheusSink("127.0.0.1", port - 3, replace(origin(), local_rank=3))
    sink.open()
    assert sink.port == port
    sink.close()


@settings(max_examples=40)
@given(batch=st.lists(records(), max_size=5))
def test_whatever_is_recorded_the_scrape_can_be_read(batch: list[Record]) -> None:
    table, registry = SeriesTable(origin()), CollectorRegistry(auto_describe=False)
    registry.register(table)
    table.take(batch)
    names = {name for name, _ in parsed(generate_latest(registry).decode())}
    numbers = [each for each in batch if each.kind == "metric" and each.value not in {None, ()}]
    assert any(name.startswith("ml_") for name in names) == bool(numbers)


@pytest.mark.parametrize("url", ["prometheus:", "prometheus:host", "prometheus::port", "prometheus::9464/metrics"])
def test_a_url_without_a_port_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="prometheus::9464"):
        sink_maker(url)
