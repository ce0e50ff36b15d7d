"""An HTTP endpoint for Prometheus with the last value of every series.

`prometheus::9464` serves on all addresses, `prometheus:127.0.0.1:9464` on one; further processes of a host add their
local rank to the port. A metric `step_time` in seconds is `ml_step_time_seconds`, its labels are kept, and a series
with one number per device has the label `device`. Metrics about the run itself start with `mldiagnostics_`.
"""

from __future__ import annotations

import math
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.extras import require
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker
from mldiagnostics.sink_urls import MAX_PORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

MAX_SERIES = 1000
"""Limit of series: labels with unlimited values would fill Prometheus."""

_RETRY_S = 30.0
_SUFFIXES = {"s": "_seconds", "%": "_percent"}


def maker(url: str) -> SinkMaker:
    """Return the maker for `prometheus:[host]:port`. Raises `MissingExtraError`."""
    address = urlsplit(f"//{url.removeprefix('prometheus:').removeprefix('//')}")
    host, port = address.hostname or "", address.port or 0
    require("prometheus_client", extra="prometheus", needed_for=url)
    return SinkMaker(url, lambda origin: PrometheusSink(host, port, origin))


class PrometheusSink:
    """Serves a table of last values; the run goes on if its port is taken."""

    batch_policy = BatchPolicy(flush_s=_RETRY_S)
    durable = True

    def __init__(self, host: str, port: int, origin: Origin) -> None:
        self._host = host
        self._port = port + origin.local_rank if port else 0
        self._table = SeriesTable(origin)
        self._server: Any = None

    @property
    def port(self) -> int:
        """The port of the endpoint, 0 without one."""
        return self._server.server_port if self._server is not None else 0

    def open(self) -> None:
        """Start the endpoint; if that fails, log a warning and retry with each flush."""
        from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - imported by the sink's own thread

        if self._port > MAX_PORT:
            warn_once(
                "prometheus-port",
                f"sink prometheus: port {self._port} (port + local rank) is above {MAX_PORT}; choose a lower port",
            )
            return
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._table)
        try:
            self._server, _ = start_http_server(self._port, self._host or "0.0.0.0", registry)
        except OSError as error:
            warn_once(
                "prometheus-port",
                f"sink prometheus: cannot listen on {self._host}:{self._port}: {error.strerror}; retrying every "
                f"{_RETRY_S:g} s; choose another port with sinks=['prometheus::PORT']",
            )

    def write(self, batch: Sequence[Record]) -> None:
        """Store the last values."""
        self._table.update(batch)

    def flush(self) -> None:
        """Retry the start of the endpoint if it failed."""
        if self._server is None:
            self.open()

    def close(self) -> None:
        """Stop the endpoint."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class SeriesKey(NamedTuple):
    """The name and labels of a series in Prometheus."""

    name: str
    labels: tuple[tuple[str, str], ...]


class SeriesTable:
    """Last values and counts, written by the sink's thread and read by scrapes."""

    def __init__(self, origin: Origin) -> None:
        self._info = {
            "run": origin.run_id,
            "name": origin.name,
            "attempt": str(origin.attempt),
            "rank": str(origin.rank),
            "slice": "" if origin.slice is None else str(origin.slice),
            "host": origin.host,
        }
        self._lock = threading.Lock()
        self._values: dict[SeriesKey, float] = {}
        self._dropped: dict[tuple[str, str], float] = {}
        self._step = self._last_s = math.nan
        self._left_out = 0

    def update(self, batch: Sequence[Record]) -> None:
        """Store each series' last value of the batch."""
        with self._lock:
            for record in batch:
                if record.kind == "metric":
                    self._last_s = record.t
                    self._step = self._step if record.step is None else float(record.step)
                    self._update_series(record)
                elif record.kind == "drop" and isinstance(record.value, float):
                    key = record.labels.get("sink", ""), record.name
                    self._dropped[key] = self._dropped.get(key, 0.0) + record.value

    def collect(self) -> Iterator[Any]:
        """Yield the metric families of a scrape, for `prometheus_client`."""
        from prometheus_client.core import (  # noqa: PLC0415 - imported by the serving threads
            CounterMetricFamily,
            GaugeMetricFamily,
            InfoMetricFamily,
            Metric,
        )

        with self._lock:
            values, dropped, left_out = dict(self._values), dict(self._dropped), self._left_out
            step, last_s = self._step, self._last_s
        yield InfoMetricFamily("mldiagnostics_run", "The run, and which process of it this is.", self._info)
        if step == step:  # noqa: PLR0124 - not NaN
            yield GaugeMetricFamily("mldiagnostics_step", "The step of the last metric that had one.", step)
        if last_s == last_s:  # noqa: PLR0124 - not NaN
            yield GaugeMetricFamily(
                "mldiagnostics_last_metric_timestamp_seconds", "When the last metric was recorded, Unix time.", last_s
            )
        drops = CounterMetricFamily(
            "mldiagnostics_dropped_records", "Records that were dropped.", labels=("sink", "reason")
        )
        for key, number in dropped.items():
            drops.add_metric(key, number)
        yield drops
        yield CounterMetricFamily(
            "mldiagnostics_left_out_values", f"Values of series beyond the first {MAX_SERIES}.", left_out
        )
        families: dict[str, Metric] = {}
        for series, value in values.items():
            family = families.setdefault(series.name, Metric(series.name, "Last value of this metric.", "gauge"))
            family.add_sample(series.name, dict(series.labels), value)
        yield from families.values()

    def _update_series(self, record: Record) -> None:
        for series, value in series_of(record):
            if series in self._values or len(self._values) < MAX_SERIES:
                self._values[series] = value
            else:
                self._left_out += 1
                warn_once(
                    "prometheus-series",
                    f"sink prometheus: {record.name} with labels {dict(series.labels)} is left out: the limit is "
                    f"{MAX_SERIES} series; use labels with few values",
                )


def series_of(record: Record) -> Iterator[tuple[SeriesKey, float]]:
    """Yield a metric's values with their series."""
    suffix = _SUFFIXES.get(record.unit, "")
    name = f"ml_{re.sub('[^a-zA-Z0-9_]', '_', record.name)}"
    name = name if name.endswith(suffix) else name + suffix
    if isinstance(record.value, tuple):
        for device, value in enumerate(record.value):
            yield SeriesKey(name, _labels({**record.labels, "device": str(device)})), value
    elif record.value is not None:
        yield SeriesKey(name, _labels(record.labels)), record.value


def _labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    clean = {_label_name(key): str(value).encode("utf-8", "replace").decode() for key, value in labels.items()}
    return tuple(sorted(clean.items()))


def _label_name(key: str) -> str:
    name = re.sub("[^a-zA-Z0-9_]", "_", key)
    return f"label_{name}" if not name or name[0].isdigit() or name.startswith("__") else name
