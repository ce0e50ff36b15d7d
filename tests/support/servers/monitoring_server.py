"""A server with Cloud Monitoring's CreateTimeSeries and its rules about points."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import grpc

if TYPE_CHECKING:
    from collections.abc import Iterator

METHOD: Final = "/google.monitoring.v3.MetricService/CreateTimeSeries"
MAX_SERIES: Final = 200
APART_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Written:
    """One point as received."""

    name: str
    labels: dict[str, str]
    value: float
    kind: str
    at: float
    resource: tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class MonitoringServer:
    """A server that keeps valid points, rejects those that the service rejects, or all with `status` if set."""

    port: int = 0
    status: grpc.StatusCode | None = None
    written: list[Written] = field(default_factory=list)
    projects: set[str] = field(default_factory=set)
    requests: list[int] = field(default_factory=list)
    """Number of series of each request."""
    faults: list[str] = field(default_factory=list)
    """Faults that the service would reject."""
    _last: dict[object, float] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """The export URL of this server."""
        return f"cloud-monitoring:http://127.0.0.1:{self.port}"

    def named(self, name: str) -> list[Written]:
        """Return the points of one metric."""
        return [each for each in self.written if each.name == name]

    def take(self, request: Any, context: Any) -> Any:
        if self.status is not None:
            context.abort(self.status, "the test says so")
        with self._lock:
            faults = self._faults(request)
            self.requests.append(len(request.time_series))
            self.projects.add(request.name)
            self.faults += faults
        if faults:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, faults[0])
        return None

    def _faults(self, request: Any) -> list[str]:
        faults = [f"{len(request.time_series)} series"] if len(request.time_series) > MAX_SERIES else []
        for series in request.time_series:
            metric, resource = series.metric, series.resource
            labels, place = dict(metric.labels), (resource.type, tuple(sorted(dict(resource.labels).items())))
            key = metric.type, tuple(sorted(labels.items())), place
            if len(series.points) != 1:
                faults.append(f"{len(series.points)} points of {key}")
                continue
            [point] = series.points
            at = point.interval.end_time.timestamp()
            kind = type(point.value).pb(point.value).WhichOneof("value")
            if at < self._last.get(key, 0.0) + APART_S - 0.001:
                faults.append(f"{key} came {at - self._last[key]:.3f} s after the point before")
            self._last[key] = at
            self.written.append(Written(metric.type, labels, getattr(point.value, kind), kind, at, place))
        return faults


@contextlib.contextmanager
def monitoring_server() -> Iterator[MonitoringServer]:
    """A server that listens."""
    from google.cloud.monitoring_v3 import CreateTimeSeriesRequest

    made = MonitoringServer()
    server = grpc.server(ThreadPoolExecutor(4))
    service, method = METHOD.strip("/").split("/")
    read = CreateTimeSeriesRequest.deserialize
    handler: Any = grpc.unary_unary_rpc_method_handler(made.take, read, lambda _: b"")  # an Empty
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    made.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield made
    finally:
        server.stop(None).wait()
