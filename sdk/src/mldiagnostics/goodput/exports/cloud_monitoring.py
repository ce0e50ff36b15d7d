"""A sink that writes the series of a job to Cloud Monitoring with Google's client."""

from __future__ import annotations

import logging
import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.cloud import CloudEnvironment
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.extras import require
from mldiagnostics.goodput.exports.gcp_metrics import GCPMetrics, ValueType
from mldiagnostics.goodput.exports.workload import INTEGERS, PREFIX, UNLABELLED
from mldiagnostics.goodput.google_cloud import get_accelerator_type, get_cluster_name, get_node_zone
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.google_cloud import GCPOptions
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record


SCHEME = "cloud-monitoring:"

MIN_INTERVAL_S = 5.0
"""Minimum seconds between two points of one series, as the service requires."""

_RESOURCE = "compute.googleapis.com/Workload"
_LOOKUP_TIMEOUT_S = 1.0
_RETRY_S = 60.0
_RETRYABLE = frozenset({401, 403, 404, 408, 429})
"""Also retried, besides 500 and above: permissions, projects and quotas may change while a job runs."""

_Key: TypeAlias = "tuple[str, tuple[tuple[str, str], ...]]"


def maker(url: str, options: GCPOptions, *, level: int = logging.WARNING) -> SinkMaker:
    """Return the sink maker for `cloud-monitoring:[endpoint]`.

    An endpoint that starts with `http://` is used without credentials. Missing options are looked up when the sink
    opens; if this is not Google Cloud, that is logged at `level`.

    Raises:
        MissingExtraError: the extra `cloud-monitoring` is not installed.
    """
    require("google.cloud.monitoring_v3", extra="cloud-monitoring", needed_for="Cloud Monitoring")
    endpoint = url.removeprefix(SCHEME).rstrip("/")
    return SinkMaker(url.rstrip(":"), lambda origin: CloudMonitoringSink(endpoint, options, origin, level=level))


class CloudMonitoringSink:
    """Writes the last point of each series; disabled outside Google Cloud."""

    batch_policy = BatchPolicy(records=10_000, gather_s=0.3, flush_s=_RETRY_S)
    durable = False

    def __init__(self, endpoint: str, options: GCPOptions, origin: Origin, *, level: int = logging.WARNING) -> None:
        self._endpoint = endpoint
        self._level = level
        self._options = options
        self._job = origin.run_id
        self._sent_at: dict[_Key, float] = {}
        self._access: _Access | None = None
        self._tried_at = 0.0

    def open(self) -> None:
        """Find project, credentials and machine; warn if one is missing, retry on flush."""
        project = self._options.project_id or CloudEnvironment(env=os.environ).project(_LOOKUP_TIMEOUT_S)
        if project is None:
            self._disable("no Google Cloud project found; set `project_id` in gcp_options")
            return
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - in the sink's own thread

        try:
            metrics = GCPMetrics(project, client=self._client())
        except GoogleAuthError as error:
            self._disable(f"project {project}: {error}")
            return
        cluster = self._options.cluster_name or get_cluster_name()
        labels = {"accelerator_type": self._options.acc_type or get_accelerator_type()}
        location = self._options.location or get_node_zone() or "global"
        self._access = _Access(
            metrics,
            labels | ({"cluster_name": cluster} if cluster else {}),
            {"location": location, "workload_id": self._job, "replica_id": self._options.replica_id},
        )

    def write(self, batch: Sequence[Record]) -> None:
        """Write the last point of each series; raise `SinkUnavailable` or `SinkRefused`."""
        if self._access is None:
            return
        newest = {_key(record): record for record in batch if record.kind == "metric"}
        times = {key: max(record.t, self._sent_at.get(key, 0.0) + MIN_INTERVAL_S) for key, record in newest.items()}
        pause_s = max(times.values(), default=0.0) - time.time()
        if pause_s > 0:
            time.sleep(min(pause_s, MIN_INTERVAL_S))
        self._send(self._access, [self._access.series(newest[key], times[key]) for key in newest])
        self._sent_at |= times

    def flush(self) -> None:
        """Retry `open` at intervals; without a response it can take half a minute."""
        if self._access is None and time.monotonic() >= self._tried_at + _RETRY_S:
            self.open()

    def close(self) -> None:
        """Do nothing: the connection ends with the process."""

    def _disable(self, problem: str) -> None:
        self._tried_at = time.monotonic()
        warn_once("cloud-monitoring", f"sink cloud-monitoring: disabled: {problem}", level=self._level)

    def _client(self) -> Any:
        from google.api_core.client_options import ClientOptions  # noqa: PLC0415 - in the sink's own thread
        from google.cloud.monitoring_v3 import MetricServiceClient  # noqa: PLC0415 - the same

        if not self._endpoint.startswith("http://"):
            return MetricServiceClient(client_options=ClientOptions(api_endpoint=self._endpoint or None))
        import grpc  # noqa: PLC0415 - the same
        from google.cloud.monitoring_v3.services.metric_service.transports import (  # noqa: PLC0415 - the same
            MetricServiceGrpcTransport,
        )

        channel = grpc.insecure_channel(self._endpoint.removeprefix("http://"))
        return MetricServiceClient(transport=MetricServiceGrpcTransport(channel=channel))

    def _send(self, access: _Access, series: Sequence[Any]) -> None:
        from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError  # noqa: PLC0415 - the same
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - the same

        destination = f"Cloud Monitoring, project {access.metrics.project_id}"
        try:
            access.metrics.send(series)
        except GoogleAPICallError as error:
            code = int(error.code or 500)
            retryable = code in _RETRYABLE or code >= 500
            message = f"{destination}: HTTP {code}: {error.message}{_advice(code)}"
            raise (SinkUnavailable if retryable else SinkRefused)(message) from error
        except (GoogleAPIError, GoogleAuthError, OSError) as error:
            raise SinkUnavailable(f"{destination}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Access:
    metrics: GCPMetrics
    labels: dict[str, str]
    resource: dict[str, str]

    def series(self, record: Record, at: float) -> Any:
        """Return the series of a record with one point at `at` (Unix seconds)."""
        whole = record.name in INTEGERS
        nanos, seconds = math.modf(at)
        return self.metrics.create_time_series(
            PREFIX + record.name,
            round(record.value) if whole and isinstance(record.value, float) else record.value,
            ValueType.INT if whole else ValueType.DOUBLE,
            {} if record.name in UNLABELLED else {**record.labels, **self.labels},
            _RESOURCE,
            self.resource,
            int(seconds),
            int(nanos * 1e9),
        )


def _key(record: Record) -> _Key:
    return record.name, tuple(sorted(record.labels.items()))


def _advice(code: int) -> str:
    return "; grant the job's service account roles/monitoring.metricWriter" if code == 403 else ""
