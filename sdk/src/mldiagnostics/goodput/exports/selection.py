"""Which places a monitor tells: those of its assignment that can be; one that cannot is left out, with one line."""

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

    from mldiagnostics.goodput.exports.export import Words
    from mldiagnostics.goodput.exports.observe import Observation
    from mldiagnostics.goodput.monitor.assignment import Assignment
    from mldiagnostics.sinks import SinkMaker

__all__ = ["Exports", "open_exports"]


class Exports:
    """All places of a monitor; what one of them does not take is nothing to the others."""

    def __init__(self, exports: Iterable[Export], reports: Export | None) -> None:
        self._exports = tuple(exports)
        self._reports = reports

    @property
    def wants_reports(self) -> bool:
        """Whether a place takes whole reports."""
        return self._reports is not None

    def write(self, observation: Observation) -> None:
        """Tell all places an observation."""
        for export in self._exports:
            export.write(observation)

    def report(self, at: int, content: Mapping[str, object]) -> None:
        """Tell those that take whole reports."""
        if self._reports is not None:
            self._reports.report(metrics.REPORT, at, content)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is everywhere; false if that takes longer, or one place does not take it."""
        return all(self._together(lambda export: export.flush(timeout_s), timeout_s))

    def close(self, timeout_s: float) -> None:
        """Stop telling."""
        self._together(lambda export: export.close(timeout_s), timeout_s)

    def _together(self, action: Callable[[Export], Any], timeout_s: float) -> list[Any]:
        """Do something with all places at once, so that a slow one takes no time from the others."""
        answers: list[Any] = [False] * len(self._exports)

        def act(place: int, export: Export) -> None:
            answers[place] = action(export)

        threads = [threading.Thread(target=act, args=each, daemon=True) for each in enumerate(self._exports)]
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return answers


def open_exports(assignment: Assignment) -> Exports:
    """Return the places that the assignment names, ready to be told."""
    origin = Origin(
        run_id=assignment.job,
        name=assignment.job,
        storage=f"{assignment.log.rstrip('/')}/reports",
        incarnation=os.urandom(4).hex(),
        host=socket.gethostname(),
    )
    monitoring = [url for url in assignment.exports if url.startswith(cloud_monitoring.SCHEME)]
    records = [url for url in assignment.exports if url not in monitoring]
    reports = _export(origin, metrics.metrics, _made(records, _of_records))
    places = (_tensorboard(origin, assignment), _cloud_monitoring(origin, assignment, monitoring), reports)
    return Exports([place for place in places if place is not None], reports)


def _tensorboard(origin: Origin, assignment: Assignment) -> Export | None:
    def make(root: str) -> SinkMaker:
        return tensorboard_maker(f"tensorboard:{root}", folder=tensorboard.FOLDER)

    words = tensorboard.curves if assignment.badput else tensorboard.without_badput
    return _export(origin, words, _made([assignment.tensorboard], make) if assignment.tensorboard else [])


def _cloud_monitoring(origin: Origin, assignment: Assignment, urls: list[str]) -> Export | None:
    """Tell Cloud Monitoring also where nobody asks for it, and warn only a program that does.

    A program that passes `gcp_options` is warned of a missing extra, but not of a machine outside Google Cloud.
    """
    options = GCPOptions(**assignment.gcp)
    goodput, deviations = options.enable_gcp_goodput_metrics, options.enable_gcp_step_deviation_metrics
    level = logging.WARNING if urls or options.project_id else logging.INFO
    missing = logging.WARNING if assignment.gcp else level
    if not urls and (goodput or deviations):
        urls = [cloud_monitoring.SCHEME]
    words = partial(workload.series, goodput=goodput, deviations=deviations)
    makers = _made(urls, lambda url: cloud_monitoring.maker(url, options, level=level), level=missing)
    return _export(origin, words, makers)


def _of_records(url: str) -> SinkMaker:
    if url.startswith("stdout:"):
        raise ConfigurationError("what the monitor's process writes to its standard output nobody sees")
    return sink_maker(url)


def _export(origin: Origin, words: Words, makers: list[SinkMaker]) -> Export | None:
    return Export(origin, words, makers) if makers else None


def _made(urls: Iterable[str], make: Callable[[str], SinkMaker], *, level: int = logging.WARNING) -> list[SinkMaker]:
    return [maker for url in urls if (maker := _maker(url, make, level)) is not None]


def _maker(url: str, make: Callable[[str], SinkMaker], level: int) -> SinkMaker | None:
    try:
        return make(url)
    except MLDiagnosticsError as error:
        warn_once(f"goodput-export {url}", f"goodput is not told to {url.rstrip(':')}: {error}", level=level)
        return None
