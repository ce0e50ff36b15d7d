"""The uploaders of a monitor; their process runs while any of them does."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import LOGGER, warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.monitor.process import MonitorProcess, time_left
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.monitor.assignment import Assignment


MAX_RESTARTS = 3
"""Restarts of a process that ended unexpectedly."""

STABLE_S = 3600.0
"""Seconds of running after which the count of restarts is reset."""

_FLUSH_SHARE = 0.4
"""Share of a last upload's timeout for writing this process's records to the log."""


class Uploaders:
    """Starts and stops uploaders by name; only `stop` waits."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._lock = threading.RLock()  # a signal handler may call `stop` during `start` in the same thread
        self._running: dict[str, dict[str, Any]] = {}
        self._process: MonitorProcess | None = None
        self._has_started = False
        self._restarts = 0
        self._started_at = 0.0
        _all.add(self)

    @property
    def pid(self) -> int | None:
        """Id of the process; None without one."""
        process = self._process
        return process.pid if process is not None else None

    def start(self, name: str, **options: Any) -> None:
        """Start an uploader; warn if it is already running.

        Raises:
            ConfigurationError: its interval is invalid.
        """
        if name in self._assignment.invalid:
            raise ConfigurationError(self._assignment.invalid[name])
        with self._lock:
            if name in self._running:
                warn_once(f"goodput-start {name}", f"uploader {name!r}: already running; start ignored")
                return
            self._running[name] = options
            if self._process is None:
                self._start_process()
            else:
                self._send_start(name)

    def stop(self, names: Iterable[str], *, flush: bool, timeout_s: float) -> None:
        """Stop uploaders within `timeout_s`, with a last upload if `flush`.

        With `flush`, an uploader that was never started uploads once too.
        """
        left_s = time_left(timeout_s)
        with self._lock:
            names_to_stop = [name for name in names if name in self._running or (flush and not self._has_started)]
            if not names_to_stop:
                return
            if flush:
                _flush_own_records(left_s() * _FLUSH_SHARE)
                self._ensure_process(names_to_stop)
            reply = self._send_stop(names_to_stop, left_s(), flush=flush)
            for name in names_to_stop:
                self._running.pop(name, None)
            if flush and not reply:
                why = "timed out" if reply is None else "failed"
                job = self._assignment.job
                warn_once(
                    "goodput-flush", f"job {job}: the last goodput upload {why}; see earlier warnings of its monitor"
                )
            if reply is None or not self._running:
                self._end_process(0.0 if reply is None else left_s())

    def stop_all(self) -> None:
        """Stop all uploaders at the end of the process."""
        flush_s = self._assignment.flush_s
        self.stop(list(self._running), flush=flush_s is not None, timeout_s=1.0 if flush_s is None else flush_s)

    def forget(self) -> None:
        """Reset in a forked child: the uploaders run for the parent."""
        self._lock = threading.RLock()
        process, self._process = self._process, None
        self._running, self._has_started = {}, True  # the child does not upload for the parent
        if process is not None:
            process.forget()

    def _ensure_process(self, names: list[str]) -> None:
        """Start a process with these uploaders if there is none."""
        if self._process is None:
            self._running |= {name: self._running.get(name, {}) for name in names}
            self._start_process()

    def _send_stop(self, names: list[str], timeout_s: float, *, flush: bool) -> bool | None:
        """Send a stop; return whether the last uploads succeeded, None on a timeout."""
        if self._process is None:
            return None
        stop = {"do": "stop", "uploaders": names, "flush": flush, "timeout_s": timeout_s}
        if flush:
            return self._process.request(stop, timeout_s)
        self._process.send(stop)
        return True

    def _end_process(self, timeout_s: float) -> None:
        """Stop the process, and start another one for the remaining uploaders."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(timeout_s)
        if self._running:
            self._start_process()

    def _start_process(self) -> None:
        self._has_started = True
        self._started_at = time.monotonic()
        try:
            self._process = MonitorProcess(on_message=_log_message, on_end=self._on_process_end)
        except (OSError, RuntimeError) as error:  # the limit of processes is reached, or the interpreter exits
            warn_once(
                "goodput-monitor",
                f"job {self._assignment.job}: goodput is not monitored, its process cannot start: {error}",
            )
            return
        self._process.send(self._assignment.to_json())
        for name in self._running:
            self._send_start(name)

    def _send_start(self, name: str) -> None:
        if self._process is not None:
            self._process.send({"do": "start", "uploader": name, **self._running[name]})

    def _on_process_end(self, process: MonitorProcess, status: int) -> None:
        """Restart the process after an unexpected end; runs in its receiver thread."""
        with self._lock:
            if process is not self._process:
                return
            self._process = None
            if not self._running:
                return
            self._restarts = 1 if time.monotonic() - self._started_at > STABLE_S else self._restarts + 1
            ended = f"job {self._assignment.job}: its goodput monitor exited with status {status}"
            if self._restarts <= MAX_RESTARTS:
                warn_once("goodput-monitor-again", f"{ended}; restarted")
                self._start_process()
            else:
                warn_once(
                    "goodput-monitor-over",
                    f"{ended} {counted(self._restarts, 'time')}; not restarted, goodput is no longer monitored",
                )


def _log_message(message: str, level: int) -> None:
    LOGGER.log(level, "goodput monitor: %s", message)


def _flush_own_records(timeout_s: float) -> None:
    """Write this process's last records to the log before the monitor reads it."""
    recording = sys.modules.get("mldiagnostics.pipeline.recorder")
    if recording is not None:
        recording.flush_all(timeout_s)


_all: weakref.WeakSet[Uploaders] = weakref.WeakSet()


def _stop_all() -> None:
    for uploaders in list(_all):
        uploaders.stop_all()


def _forget_all() -> None:
    for uploaders in list(_all):
        uploaders.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
