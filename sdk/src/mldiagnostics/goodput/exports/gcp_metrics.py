"""Points for Cloud Monitoring, with the names of ml-goodput-measurement.

Needs the extra `cloud-monitoring`.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["MAX_SERIES", "GCPMetrics", "ValueType"]

MAX_SERIES = 200
"""Most series in one request."""

TIMEOUT_S = 10.0


class ValueType(Enum):
    """Type of a point's value, with the name of its field."""

    BOOL = "bool_value"
    INT = "int64_value"
    DOUBLE = "double_value"
    STRING = "string_value"
    DISTRIBUTION = "distribution_value"


class GCPMetrics:
    """Writes points to one project.

    Args:
        project_id: project of Google Cloud.
        client: a `MetricServiceClient`; by default one with the application default credentials.

    Raises:
        MissingExtraError: the extra `cloud-monitoring` is not installed.
        GoogleAuthError: there are no credentials.
    """

    def __init__(self, project_id: str, *, client: Any = None) -> None:
        require("google.cloud.monitoring_v3", extra="cloud-monitoring", needed_for="Cloud Monitoring")
        from google.cloud import monitoring_v3  # noqa: PLC0415 - takes a second to load

        self.project_id = project_id
        self.project_name = f"projects/{project_id}"
        self.client = client if client is not None else monitoring_v3.MetricServiceClient()
        self._types: Any = monitoring_v3

    def create_time_series(  # noqa: PLR0917 - the order of ml-goodput-measurement
        self,
        metric_type: str,
        value: Any,
        value_type: ValueType,
        metric_labels: Mapping[str, str] | None,
        resource_type: str,
        resource_labels: Mapping[str, str],
        seconds: int,
        nanos: int,
    ) -> Any:
        """Return a series with one point at `seconds` and `nanos` of Unix time."""
        types = self._types
        return types.TimeSeries(
            metric={"type": metric_type, "labels": dict(metric_labels or {})},
            resource={"type": resource_type, "labels": dict(resource_labels)},
            points=[
                types.Point(
                    interval=types.TimeInterval(end_time={"seconds": seconds, "nanos": nanos}),
                    value=types.TypedValue(**{value_type.value: value}),
                )
            ],
        )

    def send_metrics(self, metrics: Iterable[Mapping[str, Any]], context: Any = None) -> None:  # noqa: ARG002 - the peer's
        """Write one point of each series with the current time; a failure is logged once.

        Args:
            metrics: dicts with `metric_type`, `value`, `value_type`, `resource_type`, `resource_labels` and optionally
                `metric_labels`.
            context: ignored; for ml-goodput-measurement.
        """
        from google.api_core.exceptions import GoogleAPIError  # noqa: PLC0415 - with the client

        seconds, nanos = divmod(time.time_ns(), 10**9)
        try:
            self.send(
                [
                    self.create_time_series(
                        each["metric_type"],
                        each["value"],
                        each["value_type"],
                        each.get("metric_labels"),
                        each["resource_type"],
                        each["resource_labels"],
                        seconds,
                        nanos,
                    )
                    for each in metrics
                ]
            )
        except GoogleAPIError as error:
            warn_once("cloud-monitoring", f"Cloud Monitoring, project {self.project_id}: points rejected: {error}")

    def send(self, series: Sequence[Any]) -> None:
        """Write series, in several requests if needed; raise `GoogleAPIError` on failure."""
        for start in range(0, len(series), MAX_SERIES):
            self.client.create_time_series(
                name=self.project_name, time_series=series[start : start + MAX_SERIES], timeout=TIMEOUT_S
            )
