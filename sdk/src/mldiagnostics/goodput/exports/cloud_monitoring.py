"""Sends the series of a job to Cloud Monitoring, by Google's client, from threads of the monitor's process."""

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

__all__ = ["SCHEME", "CloudMonitoringSink", "maker"]

SCHEME = "cloud-monitoring:"

APART_S = 5.0
"""How far apart the service wants the points of one series."""

_RESOURCE = "compute.googleapis.com/Workload"
_LOOK_UP_S = 1.0
_AGAIN_S = 60.0
_WORTH_ANOTHER_TRY = frozenset({401, 403, 404, 408, 429})
"""Besides all of 500 and above: rights, projects and quotas come while a job runs."""

_Key: TypeAlias = "tuple[str, tuple[tuple[str, str], ...]]"


def maker(url: str, options: GCPOptions, *, level: int = logging.WARNING) -> SinkMaker:
    """Return the maker for `cloud-monitoring:[endpoint]`; one that begins with `http://` is asked without credentials.

    What `options` leave open is looked up when the sink opens; that this is not Google Cloud is told at `level`.
    Raises `MissingExtraError`.
    """
    require("google.cloud.monitoring_v3", extra="cloud-monitoring", needed_for="Cloud Monitoring")
    endpoint = url.removeprefix(SCHEME).rstrip("/")
    return SinkMaker(url.rstrip(":"), lambda origin: CloudMonitoringSink(endpoint, options, origin, level=level))


class CloudMonitoringSink:
    """Writes the last point of each series, none sooner than the service wants; off Google Cloud it takes nothing."""

    pace = BatchPolicy(records=10_000, gather_s=0.3, flush_s=_AGAIN_S)
    durable = False

    def __init__(self, endpoint: str, options: GCPOptions, origin: Origin, *, level: int = logging.WARNING) -> None:
        self._endpoint = endpoint
        self._level = level
        self._options = options
        self._job = origin.run_id
        self._sent_at: dict[_Key, float] = {}
        self._access: _Access | None = None
        self._asked_at = 0.0

    def open(self) -> None:
        """Find project, credentials and machine; where one is missing, say so, and ask again with the flushes."""
        project = self._options.project_id or CloudEnvironment(env=os.environ).project(_LOOK_UP_S)
        if project is None:
            self._leave_out("no project of Google Cloud is known here")
            return
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - in the sink's own thread

        try:
            metrics = GCPMetrics(project, client=self._client())
        except GoogleAuthError as error:
            self._leave_out(f"project {project}: {error}")
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
        """Write what the batch says last of each series. Raises `SinkUnavailable` also where rights are missing."""
        if self._access is None:
            return
        newest = {_key(record): record for record in batch if record.kind == "metric"}
        times = {key: max(record.t, self._sent_at.get(key, 0.0) + APART_S) for key, record in newest.items()}
        pause_s = max(times.values(), default=0.0) - time.time()
        if pause_s > 0:
            time.sleep(min(pause_s, APART_S))
        self._send(self._access, [self._access.series(newest[key], times[key]) for key in newest])
        self._sent_at |= times

    def flush(self) -> None:
        """Ask again for what was missing, but not each time: where nobody answers it takes half a minute."""
        if self._access is None and time.monotonic() >= self._asked_at + _AGAIN_S:
            self.open()

    def close(self) -> None:
        """Do nothing: the connection ends with the process."""

    def _leave_out(self, problem: str) -> None:
        self._asked_at = time.monotonic()
        warn_once("cloud-monitoring", f"Cloud Monitoring is left out: {problem}", level=self._level)

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

        place = f"Cloud Monitoring of project {access.metrics.project_id}"
        try:
            access.metrics.send(series)
        except GoogleAPICallError as error:
            code = int(error.code or 500)
            worth = code in _WORTH_ANOTHER_TRY or code >= 500
            story = f"{place}: HTTP {code}: {error.message}{_advice(code)}"
            raise (SinkUnavailable if worth else SinkRefused)(story) from error
        except (GoogleAPIError, GoogleAuthError, OSError) as error:
            raise SinkUnavailable(f"{place}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Access:
    metrics: GCPMetrics
    labels: dict[str, str]
    resource: dict[str, str]

    def series(self, record: Record, at: float) -> Any:
        """Return a record's series, with its point at `at`, Unix time in seconds."""
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
    return ": the job's service account needs the role roles/monitoring.metricWriter" if code == 403 else ""
