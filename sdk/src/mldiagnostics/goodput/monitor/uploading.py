"""The uploaders of one monitor: which of them run, in a process that is begun with the first and ends with the last."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import LOGGER, warn_once
from mldiagnostics.goodput.monitor.process import MonitorProcess, deadline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.monitor.assignment import Assignment

__all__ = ["MAX_RESTARTS", "Uploaders"]

MAX_RESTARTS = 3
"""How often a process that ended by itself is begun anew,"""

STEADY_S = 3600.0
"""unless it lived that long before: then the count begins anew too."""

_FLUSH_SHARE = 0.4
"""How much of the time for a last upload the records of this process may take on their way into the log."""


class Uploaders:
    """Starts and stops uploaders by their names; nothing here raises, and only `stop` waits, as long as it is told."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._lock = threading.RLock()  # a signal's handler may stop what its thread is just starting
        self._running: dict[str, dict[str, Any]] = {}
        self._process: MonitorProcess | None = None
        self._began = False
        self._restarts = 0
        self._begun_at = 0.0
        _all.add(self)

    @property
    def pid(self) -> int | None:
        """The id of the process, None if there is none."""
        process = self._process
        return process.pid if process is not None else None

    def start(self, name: str, **options: Any) -> None:
        """Start an uploader; one that runs already is left as it is."""
        with self._lock:
            if name in self._running:
                warn_once(f"goodput-start {name}", f"the uploader of {name} runs already and is not started again")
                return
            self._running[name] = options
            if self._process is None:
                self._begin()
            else:
                self._tell_to_start(name)

    def stop(self, names: Iterable[str], *, flush: bool, timeout_s: float) -> None:
        """Stop uploaders, each after a last upload if `flush`, within `timeout_s`.

        Where none was ever started, `flush` uploads once all the same.
        """
        left_s = deadline(timeout_s)
        with self._lock:
            known = [name for name in names if name in self._running or (flush and not self._began)]
            if not known:
                return
            if flush:
                _flush_own_records(left_s() * _FLUSH_SHARE)
                self._require(known)
            answer = self._told_to_stop(known, left_s(), flush=flush)
            for name in known:
                self._running.pop(name, None)
            if flush and not answer:
                why = "takes too long" if answer is None else "could not"
                job = self._assignment.job
                warn_once("goodput-flush", f"the last goodput of {job} is not everywhere: its monitor {why}")
            if answer is None or not self._running:
                self._end(0.0 if answer is None else left_s())

    def stop_all(self) -> None:
        """Stop whatever runs, at the end of the process."""
        flush_s = self._assignment.flush_s
        self.stop(list(self._running), flush=flush_s is not None, timeout_s=1.0 if flush_s is None else flush_s)

    def forget(self) -> None:
        """Begin anew in a forked child, where none of this is running."""
        self._lock = threading.RLock()
        process, self._process = self._process, None
        self._running, self._began = {}, True  # what was the parent's to upload is not the child's
        if process is not None:
            process.forget()

    def _require(self, names: list[str]) -> None:
        """Have a process with these uploaders, also where it was given up or none was ever begun."""
        if self._process is None:
            self._running |= {name: self._running.get(name, {}) for name in names}
            self._begin()

    def _told_to_stop(self, names: list[str], timeout_s: float, *, flush: bool) -> bool | None:
        """Return whether the last uploads went well, None if there is no answer in time."""
        if self._process is None:
            return None
        stop = {"do": "stop", "uploaders": names, "flush": flush, "timeout_s": timeout_s}
        if flush:
            return self._process.ask(stop, timeout_s)
        self._process.tell(stop)
        return True

    def _end(self, timeout_s: float) -> None:
        """End the process, and begin another if some uploaders shall go on."""
        process, self._process = self._process, None
        if process is not None:
            process.end(timeout_s)
        if self._running:
            self._begin()

    def _begin(self) -> None:
        self._began = True
        self._begun_at = time.monotonic()
        try:
            self._process = MonitorProcess(said=_say, ended=self._ended)
        except (OSError, RuntimeError) as error:  # no more processes or threads, or the interpreter ends
            warn_once("goodput-monitor", f"goodput is not monitored, its process cannot be begun: {error}")
            return
        self._process.tell(self._assignment.to_json())
        for name in self._running:
            self._tell_to_start(name)

    def _tell_to_start(self, name: str) -> None:
        if self._process is not None:
            self._process.tell({"do": "start", "uploader": name, **self._running[name]})

    def _ended(self, process: MonitorProcess, status: int) -> None:
        """Begin the process anew, in the thread that heard of its end, unless it was told to end."""
        with self._lock:
            if process is not self._process:
                return
            self._process = None
            if not self._running:
                return
            self._restarts = 1 if time.monotonic() - self._begun_at > STEADY_S else self._restarts + 1
            ended = f"the process that monitors the goodput of {self._assignment.job} ended with status {status}"
            if self._restarts <= MAX_RESTARTS:
                warn_once("goodput-monitor-again", f"{ended}: another one goes on")
                self._begin()
            else:
                warn_once("goodput-monitor-over", f"{ended} for the {self._restarts}th time: no other one goes on")


def _say(message: str, level: int) -> None:
    LOGGER.log(level, "goodput monitor: %s", message)


def _flush_own_records(timeout_s: float) -> None:
    """Have what this process recorded last in the log before it is read."""
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
