"""Classes of exporters by the names of Google's SDK.

Programs derive from them; this package calls none of them: records go to the sinks of a run (`sinks=`, MLDIAG_SINKS).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

__all__ = [
    "BaseLogsExporter",
    "BaseMetricsExporter",
    "CompositeLogsExporter",
    "CompositeMetricsExporter",
    "LogEntry",
    "MetricPoint",
]

Item = TypeVar("Item")


@dataclass(frozen=True)
class MetricPoint:
    """One value of a metric, with the time at which it was recorded."""

    name: str
    value: float
    step: int | None = None
    labels: Mapping[str, str] | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True)
class LogEntry:
    """One entry of a log: a text, or a dict."""

    body: str | Mapping[str, Any]
    severity: str = "INFO"
    step: int | None = None
    labels: Mapping[str, str] | None = None
    timestamp: datetime | None = None


class _Exporter(ABC, Generic[Item]):
    """Sends batches somewhere.

    Args:
        resource_attributes: Attributes of the sender.
    """

    def __init__(self, resource_attributes: Mapping[str, Any]) -> None:
        self.resource_attributes = resource_attributes

    @abstractmethod
    def export(self, batch: Sequence[Item]) -> None:
        """Send a batch."""

    def shutdown(self) -> None:
        """Send the rest, and release what is held."""


class BaseMetricsExporter(_Exporter[MetricPoint]):
    """Sends points of metrics."""


class BaseLogsExporter(_Exporter[LogEntry]):
    """Sends entries of logs."""

    def force_flush(self) -> None:
        """Send the rest."""


class _CompositeExporter(_Exporter[Item]):
    """Sends each batch by several exporters, also if one of them fails.

    Args:
        exporters: The exporters.
        resource_attributes: Attributes of the sender.
    """

    def __init__(self, exporters: Sequence[_Exporter[Item]], resource_attributes: Mapping[str, Any]) -> None:
        super().__init__(resource_attributes)
        self._exporters = exporters

    def export(self, batch: Sequence[Item]) -> None:  # type: ignore[explicit-override]
        """Send a batch by each exporter."""
        _for_each(self._exporters, lambda each: each.export(batch))

    def shutdown(self) -> None:  # type: ignore[explicit-override]
        """Shut each exporter down."""
        _for_each(self._exporters, lambda each: each.shutdown())


class CompositeMetricsExporter(_CompositeExporter[MetricPoint], BaseMetricsExporter):
    """Sends points of metrics by several exporters."""


class CompositeLogsExporter(_CompositeExporter[LogEntry], BaseLogsExporter):
    """Sends entries of logs by several exporters."""

    _exporters: Sequence[BaseLogsExporter]

    def force_flush(self) -> None:  # type: ignore[explicit-override]
        """Flush each exporter."""
        _for_each(self._exporters, lambda each: each.force_flush())


Exporter = TypeVar("Exporter")


def _for_each(exporters: Sequence[Exporter], act: Callable[[Exporter], object]) -> None:
    for exporter in exporters:
        try:
            act(exporter)
        except Exception as error:  # noqa: BLE001, PERF203 - of any program
            name = type(exporter).__name__
            warn_once(f"exporter-{name}", f"{name}: failed: {error}; the other exporters go on")
