"""The work of the monitor's process: read the log, observe, and export when due.

One thread does all of it in sequence; only destinations have their own threads. A failure is logged once and retried
with growing pauses.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.goodput.exports.observe import observe, observe_steps, observe_windows
from mldiagnostics.goodput.monitor.assignment import DEVIATION, GOODPUT, INTERVAL, ROLLING
from mldiagnostics.goodput.monitor.schedule import UploadSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mldiagnostics.goodput.exports.selection import Exports
    from mldiagnostics.goodput.monitor.assignment import Assignment
    from mldiagnostics.goodput.monitor.inbox import Inbox
    from mldiagnostics.goodput.monitor.reading import LogFollower
    from mldiagnostics.goodput.report.view import RunView


MAX_LISTED = 20
"""Number of last attempts and disruptions in an exported report, to bound its size."""

_MARGIN_S = 0.2


class Worker:
    """Serves one parent; replies to its requests with `reply(number, success=…)`."""

    def __init__(
        self, assignment: Assignment, reading: LogFollower, exports: Exports, reply: Callable[..., object]
    ) -> None:
        self._assignment = assignment
        self._reading = reading
        self._exports = exports
        self._reply = reply
        self._schedules: dict[str, UploadSchedule] = {}
        self._windows: dict[str, list[int]] = {}
        ideal_s = assignment.ideal_step_time_s
        self._ideal = None if ideal_s is None else round(ideal_s * 1e6)

    def serve(self, inbox: Inbox) -> None:
        """Serve the parent until it ends, then upload a last time for running uploaders."""
        while True:
            try:
                message = inbox.next(self._time_until_due_s())
            except EOFError:
                break
            if message is None:
                self._upload_due()
            elif message["do"] == "start":
                self._start(message["uploader"], message.get("windows", []))
            elif message["do"] == "stop":
                success = self._stop(message["uploaders"], flush=message["flush"], timeout_s=message["timeout_s"])
                if "ask" in message:
                    self._reply(message["ask"], success=success)
        if self._assignment.flush_s is not None and self._schedules:
            self._stop(list(self._schedules), flush=True, timeout_s=self._assignment.flush_s)
        self._exports.close(self._assignment.flush_s or 0.0)
        self._reading.save(at_once=True)

    def _time_until_due_s(self) -> float:
        due = min((schedule.due for schedule in self._schedules.values()), default=math.inf)
        return min(3600.0, max(0.0, due - time.monotonic()))

    def _start(self, name: str, windows: list[int]) -> None:
        interval_s = self._assignment.deviation_interval_s if name == DEVIATION else self._assignment.interval_s
        self._schedules[name] = UploadSchedule(interval_s, time.monotonic())
        if windows:
            self._windows[name] = windows

    def _stop(self, names: Iterable[str], *, flush: bool, timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s - _MARGIN_S
        uploaded = [self._upload(name) for name in names] if flush else []
        for name in names:
            self._schedules.pop(name, None)
        return not flush or (self._exports.flush(max(0.0, end - time.monotonic())) and all(uploaded))

    def _upload_due(self) -> None:
        for name, schedule in self._schedules.items():
            if schedule.due <= time.monotonic():
                success = self._upload(name)
                schedule.record_result(time.monotonic(), success=success)

    def _upload(self, name: str) -> bool:
        """Read new events and export them; return whether that succeeded."""
        now = time.time_ns() // 1000
        try:
            view = self._reading.view(now)
            if view is None:
                assignment = self._assignment
                warn_once(
                    "goodput-nothing",
                    f"job {assignment.job}: no {name} yet, {assignment.log} has no events of this job",
                )
            else:
                self._export(name, view, now)
                self._reading.save()
        except Exception as error:  # noqa: BLE001 - a later upload may succeed
            warn_once(
                f"goodput-upload {type(error).__name__}",
                f"job {self._assignment.job}: upload of {name} failed: {error}",
            )
            return False
        return True

    def _export(self, name: str, view: RunView, now: int) -> None:
        if name == GOODPUT:
            self._exports.write(observe(view, now, ideal=self._ideal, slices=self._assignment.slices))
            if self._exports.wants_reports:
                self._exports.report(now, self._report(view, now))
        elif name in {ROLLING, INTERVAL}:
            windows_s = self._windows.get(name, [])
            self._exports.write(observe_windows(view, now, windows_s, slices=self._assignment.slices))
        else:
            self._exports.write(observe_steps(view, now, exported=self._reading.exported, ideal=self._ideal))

    def _report(self, view: RunView, now: int) -> dict[str, Any]:
        from mldiagnostics.goodput.report import as_json, make_report  # noqa: PLC0415 - only for exports of reports

        report = make_report(
            view,
            now=now,
            windows_s=sorted({window_s for windows_s in self._windows.values() for window_s in windows_s}),
            ideal_step_time_s=self._assignment.ideal_step_time_s,
            name=self._assignment.job,
            job=self._assignment.job,
        )
        document = as_json(report)
        return {**document, **{key: document[key][-MAX_LISTED:] for key in ("attempts", "disruptions")}}
