"""Opens the destinations of a monitor; one that cannot be opened is skipped."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.goodput.exports import cloud_monitoring, metrics, tensorboard, workload
from mldiagnostics.goodput.exports.export import Export
from mldiagnostics.goodput.google_cloud import GCPOptions
from mldiagnostics.identity.origin import Origin
from mldiagnostics.sinks import sink_maker
from mldiagnostics.sinks.tensorboard import maker as tensorboard_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mldiagnostics.goodput.exports.export import Translate
    from mldiagnostics.goodput.exports.observe import Observation
    from mldiagnostics.goodput.monitor.assignment import Assignment
    from mldiagnostics.sinks import SinkMaker


class Exports:
    """All destinations of a monitor; a failure of one does not affect the others."""

    def __init__(self, exports: Iterable[Export], reports: Export | None) -> None:
        self._exports = tuple(exports)
        self._reports = reports

    @property
    def wants_reports(self) -> bool:
        """Whether a destination accepts whole reports."""
        return self._reports is not None

    def write(self, observation: Observation) -> None:
        """Send an observation to all destinations."""
        for export in self._exports:
            export.write(observation)

    def report(self, at: int, content: Mapping[str, object]) -> None:
        """Send a report to the destinations that accept reports."""
        if self._reports is not None:
            self._reports.report(metrics.REPORT, at, content)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written; return False on a timeout or a failure."""
        return all(self._run_all(lambda export: export.flush(timeout_s), timeout_s))

    def close(self, timeout_s: float) -> None:
        """Close all destinations."""
        self._run_all(lambda export: export.close(timeout_s), timeout_s)

    def _run_all(self, action: Callable[[Export], Any], timeout_s: float) -> list[Any]:
        """Run an action on all destinations in parallel; a slow one delays no other."""
        results: list[Any] = [False] * len(self._exports)

        def act(index: int, export: Export) -> None:
            results[index] = action(export)

        threads = [threading.Thread(target=act, args=each, daemon=True) for each in enumerate(self._exports)]
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return results


def open_exports(assignment: Assignment) -> Exports:
    """Open the destinations of the assignment."""
    origin = Origin(
        run_id=assignment.job,
        name=assignment.job,
        storage=f"{assignment.log.rstrip('/')}/reports",
        incarnation=os.urandom(4).hex(),
        host=socket.gethostname(),
    )
    monitoring = [url for url in assignment.exports if url.startswith(cloud_monitoring.SCHEME)]
    records = [url for url in assignment.exports if url not in monitoring]
    reports = _export(origin, metrics.metrics, _makers(records, _record_sink))
    exports = (_tensorboard(origin, assignment), _cloud_monitoring(origin, assignment, monitoring), reports)
    return Exports([export for export in exports if export is not None], reports)


def _tensorboard(origin: Origin, assignment: Assignment) -> Export | None:
    def make(root: str) -> SinkMaker:
        return tensorboard_maker(f"tensorboard:{root}", folder=tensorboard.FOLDER)

    translate = tensorboard.curves if assignment.badput else tensorboard.without_badput
    return _export(origin, translate, _makers([assignment.tensorboard], make) if assignment.tensorboard else [])


def _cloud_monitoring(origin: Origin, assignment: Assignment, urls: list[str]) -> Export | None:
    """Open Cloud Monitoring, also by default.

    A missing extra is a warning: the uploads are lost. A machine outside Google Cloud is one only if the program
    requests them.
    """
    options = GCPOptions(**assignment.gcp)
    goodput, deviations = options.enable_gcp_goodput_metrics, options.enable_gcp_step_deviation_metrics
    level = logging.WARNING if urls or options.project_id else logging.INFO
    if not urls and (goodput or deviations):
        urls = [cloud_monitoring.SCHEME]
    translate = partial(workload.series, goodput=goodput, deviations=deviations)
    makers = _makers(urls, lambda url: cloud_monitoring.maker(url, options, level=level))
    return _export(origin, translate, makers)


def _record_sink(url: str) -> SinkMaker:
    if url.startswith("stdout:"):
        raise ConfigurationError("stdout: the monitor's process has no standard output; use another sink")
    return sink_maker(url)


def _export(origin: Origin, translate: Translate, makers: list[SinkMaker]) -> Export | None:
    return Export(origin, translate, makers) if makers else None


def _makers(urls: Iterable[str], make: Callable[[str], SinkMaker]) -> list[SinkMaker]:
    return [maker for url in urls if (maker := _maker(url, make)) is not None]


def _maker(url: str, make: Callable[[str], SinkMaker]) -> SinkMaker | None:
    try:
        return make(url)
    except MLDiagnosticsError as error:
        warn_once(f"goodput-export {url}", f"goodput export {url.rstrip(':')!r} is skipped: {error}")
        return None
