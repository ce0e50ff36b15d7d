"""The thread that reports the state of a process to the control plane."""

from __future__ import annotations

import math
import os
import random
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mldiagnostics.configs.detection import is_installed
from mldiagnostics.control_plane.answers import DEFAULT_INTERVAL_S, back_off_s
from mldiagnostics.control_plane.collector import Collector, NoCollector
from mldiagnostics.control_plane.endpoint import PEER_URL
from mldiagnostics.control_plane.report import Progress, encode, fitting_configs
from mldiagnostics.diagnostics import warn_once
from mldiagnostics.identity.environment import session_id
from mldiagnostics.pipeline.sink import SinkMaker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.control_plane.answers import Acknowledgement
    from mldiagnostics.control_plane.client import ControlPlaneClient, ReportFailed
    from mldiagnostics.control_plane.endpoint import Endpoint
    from mldiagnostics.control_plane.report import RunSnapshot
    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.sink import Sink


_TIMEOUT_S = 10.0
"""Time limit of each wait for the network."""

_SPREAD = 0.1
"""Part of an interval by which reports are moved, so that hosts started together spread."""

_LONG_PAUSE_S = 4.0
"""A control plane whose back-off is longer is down, as one that was never reached: the end of the run tries it once."""

_SHORTEST_PAUSE_S = 0.1
_OF_THE_REPORT = frozenset({"rejected", "too-large"})
"""Faults that a later report may not have."""

_OF_ANOTHER_SERVER = frozenset({"answer", "denied", "not-found", "rejected"})
_CLOSING_PAUSE_S = 0.1
_LONGEST_CLOSING_PAUSE_S = 1.0


class Reporter:
    """Reports a process until its run is closed.

    Each report has the whole state, so a lost one needs no repetition; only goodput events wait until they are
    persisted. `wake` and `finish` may be called by a signal handler.

    Args:
        endpoint: The control plane.
        origin: Identity of the process in its records.
        host: Node and uid of the pod, where they are known.
        leads: Whether the process reports about the run, its configurations and goodput events too.
    """

    def __init__(self, endpoint: Endpoint, origin: Origin, *, host: Mapping[str, Any], leads: bool) -> None:
        self.endpoint = endpoint
        self._origin = origin
        self._session, self._process = session_id(0), host
        self._host = {key: host[key] for key in ("node", "podUid") if key in host}
        if self._host.get("podUid"):
            self._host["pod"] = origin.host
        self._leads = leads
        self._collector = Collector(origin, keeps_events=leads, on_server=self.wake)
        self._view: Callable[[], RunSnapshot] | None = None
        self._sequence = self._event_count = 0
        self._persisted = self._persisted_events = 0
        self._interval_s = DEFAULT_INTERVAL_S
        self._was_reached = False
        self._failures = 0
        self._pause_s = 0.0
        self._progress = Progress()
        self._configs: Mapping[str, Any] | None = None
        self._configs_since = 0
        """Number of the first report with these configurations."""
        self._tensorflow: bool | None = None
        self._dice = random.Random(origin.incarnation)  # noqa: S311 - spreads reports
        self._inbox: SimpleQueue[None] = SimpleQueue()
        self._finished: SimpleQueue[bool] = SimpleQueue()
        self._deadline = math.inf
        """End of the last reports, by `time.monotonic`, once the run closes."""
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="mldiagnostics-reports", daemon=True)

    @property
    def sink(self) -> SinkMaker:
        """Maker of the sink that collects the state from records."""
        return SinkMaker("control-plane", self._sink)

    def _sink(self, origin: Origin) -> Sink:
        """Return the collector.

        A forked child has none, except a daemon, which may come to lead the run.
        """
        if os.getpid() != self._pid:
            if session_id(0) == self._session:
                return NoCollector()
            self.__init__(self.endpoint, origin, host=self._process, leads=self._leads)  # type: ignore[misc]
        return self._collector

    def start(self, view: Callable[[], RunSnapshot]) -> None:
        """Start the thread, which reports at once.

        Args:
            view: Returns the state of the run.
        """
        self._view = view
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads for this process
            warn_once("control-plane-start", f"control plane: this process does not report: {error}")

    def wake(self) -> None:
        """Report soon, after a change that others wait for."""
        self._inbox.put(None)

    def finish(self, timeout_s: float) -> bool:
        """Report a last time and stop.

        Return whether that report was persisted within `timeout_s`.
        """
        if os.getpid() != self._pid or not self._thread.is_alive():
            return False
        self._deadline = time.monotonic() + timeout_s
        self._inbox.put(None)
        is_persisted = False
        with suppress(Empty):
            is_persisted = self._finished.get(timeout=timeout_s)
        if not is_persisted:
            warn_once(
                "control-plane-end",
                f"control plane {self.endpoint.url}: did not confirm the end of this run in time; run.json has it",
            )
        return is_persisted

    def _work(self) -> None:
        from mldiagnostics.control_plane.client import ControlPlaneClient  # noqa: PLC0415 - brings TLS, in this thread

        client = ControlPlaneClient(self.endpoint, self._origin.run_id)
        is_control_plane, is_persisted = True, False
        try:
            while is_control_plane and self._deadline == math.inf:
                is_control_plane = self._report(client)
                if is_control_plane:
                    self._wait()
            is_persisted = is_control_plane and self._close(client)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end silently
            warn_once("control-plane-fault", f"control plane: reports of this process end: {error!r}; please report it")
        finally:
            client.close()
            self._collector.release()
            self._finished.put(is_persisted)

    def _wait(self) -> None:
        """Wait for the next report; a change shortens the interval, but not a back-off."""
        spread = 1 + _SPREAD * (2 * self._dice.random() - 1)
        at = time.monotonic() + (self._pause_s or self._interval_s * spread)
        while self._deadline == math.inf and (left_s := at - time.monotonic()) > 0:
            with suppress(Empty):
                self._inbox.get(timeout=left_s)
                while not self._inbox.empty():  # several changes are one report
                    self._inbox.get_nowait()
                if not self._pause_s:
                    return

    def _close(self, client: ControlPlaneClient) -> bool:
        """Report the end until it is persisted or the time is over."""
        was_down = self._failures > 0 and (self._pause_s > _LONG_PAUSE_S or not self._was_reached)
        pause_s = _CLOSING_PAUSE_S
        last = self._sequence + 1
        while (left_s := self._deadline - time.monotonic()) > 0:
            goes_on = self._report(client, timeout_s=min(left_s, _TIMEOUT_S))
            if self._persisted >= last and self._failures == 0 and self._persisted_events >= self._event_count:
                return True
            next_s = max(pause_s, self._pause_s)
            if not goes_on or (was_down and self._failures) or time.monotonic() + next_s >= self._deadline:
                return False
            time.sleep(next_s)
            pause_s = min(_LONGEST_CLOSING_PAUSE_S, pause_s * 2)
        return False

    def _report(self, client: ControlPlaneClient, *, timeout_s: float = _TIMEOUT_S) -> bool:
        """Send a report; return whether others may follow: the server is a control plane."""
        from mldiagnostics.control_plane.client import ReportFailed  # noqa: PLC0415 - loaded already

        body = self._body()
        try:
            answer = client.send(body, timeout_s=timeout_s)
        except ReportFailed as failure:
            return self._note_failure(failure)
        self._note_answer(answer)
        return True

    def _body(self) -> bytes:
        assert self._view is not None  # noqa: S101 - for mypy: `start` sets it
        view, collected = self._view(), self._collector.collected(self._persisted_events)
        self._event_count = collected.event_count if self._leads else 0
        now = time.time()
        self._progress.update(collected.step if view.step is None else view.step, now, view.step_time_s)
        if collected.profiler and self._tensorflow is None:
            self._tensorflow = is_installed("tensorflow")
        self._sequence += 1
        if self._leads and view.configs != self._configs:
            self._configs, self._configs_since = view.configs, self._sequence
        configs = self._fitting(view.configs) if self._persisted < self._configs_since else None
        return encode(
            self._origin,
            view,
            collected,
            self._progress,
            sequence=self._sequence,
            sent=now,
            host=self._host,
            tensorflow=self._tensorflow,
            leads=self._leads,
            configs=configs,
        )

    @staticmethod
    def _fitting(configs: Mapping[str, Any]) -> Mapping[str, Any]:
        fitting, is_whole = fitting_configs(configs)
        if not is_whole:
            warn_once(
                "control-plane-configs",
                "control plane: the configurations of the program are too large to be reported; run.json has them",
            )
        return fitting

    def _note_answer(self, answer: Acknowledgement) -> None:
        self._was_reached = True
        self._failures, self._pause_s, self._interval_s = 0, 0.0, answer.interval_s
        self._persisted, self._persisted_events = min(answer.sequence, self._sequence), answer.events
        if self._leads and not answer.accepts_events:
            warn_once(
                "control-plane-full",
                "control plane: it keeps no more goodput events of this run; the goodput in its status ends here, the "
                "log of the run has the rest",
            )
            self._collector.stop_events(answer.events)
            self._event_count = min(self._event_count, answer.events)

    def _note_failure(self, failure: ReportFailed) -> bool:
        """Choose the pause after a failure; return whether to try again."""
        self._failures += 1
        if self.endpoint.source == PEER_URL and failure.fault in _OF_ANOTHER_SERVER:
            warn_once(
                "control-plane-peer",
                f"{PEER_URL}={self.endpoint.url}: does not accept reports of mldiagnostics, so this run is not "
                f"reported ({failure}); set MLDIAG_CONTROL_PLANE_URL to the https:// URL of the operator's API",
            )
            return False
        warn_once(f"control-plane-{failure.fault}", str(failure))
        luck = self._dice.random()
        if failure.fault in _OF_THE_REPORT:
            self._pause_s = 0.0
        elif failure.retry_after_s is not None:
            self._pause_s = max(_SHORTEST_PAUSE_S, failure.retry_after_s * (1 + _SPREAD * luck))
        else:
            self._pause_s = back_off_s(self._failures, luck=luck)
        return True
