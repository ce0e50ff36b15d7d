"""Exporters that programs derive from the classes of Google's SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.compat.base_exporter import (
    BaseLogsExporter,
    BaseMetricsExporter,
    CompositeLogsExporter,
    CompositeMetricsExporter,
    LogEntry,
    MetricPoint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kept(BaseMetricsExporter):
    def __init__(self) -> None:
        super().__init__({"service.name": "trainer"})
        self.points: list[MetricPoint] = []
        self.is_shut_down = False

    def export(self, batch: Sequence[MetricPoint]) -> None:
        self.points += batch

    def shutdown(self) -> None:
        self.is_shut_down = True


class Broken(BaseMetricsExporter):
    def export(self, batch: Sequence[MetricPoint]) -> None:
        raise OSError(f"no network for {len(batch)} points")


class Written(BaseLogsExporter):
    entries: Sequence[LogEntry] = ()
    flushes = 0

    def export(self, batch: Sequence[LogEntry]) -> None:
        self.entries = batch

    def force_flush(self) -> None:
        self.flushes += 1


def test_one_exporter_that_fails_does_not_keep_a_batch_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    kept, point = Kept(), MetricPoint("loss", 0.5, step=1)
    both = CompositeMetricsExporter([Broken({}), kept], {})
    both.export([point])
    both.shutdown()
    assert (kept.points, kept.is_shut_down, kept.resource_attributes) == ([point], True, {"service.name": "trainer"})
    assert "Broken: failed: no network for 1 points" in caplog.text


def test_entries_of_logs_go_to_each_exporter() -> None:
    written, entry = Written({}), LogEntry("started")
    both = CompositeLogsExporter([written], {})
    both.export([entry])
    both.force_flush()
    both.shutdown()
    assert (written.entries, written.flushes, entry.severity) == ([entry], 1, "INFO")


def test_a_class_without_export_cannot_be_used() -> None:
    with pytest.raises(TypeError, match="export"):
        BaseMetricsExporter({})  # type: ignore[abstract]
