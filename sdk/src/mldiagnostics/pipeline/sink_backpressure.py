"""Let the drain wait for slow sinks with `on_full="wait"`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.backpressure import PAUSE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.pipeline.sink_worker import SinkWorker

STALL_S = 10.0
"""Longest wait for a sink that takes no records."""

WORKER_CAPACITY = 16_384
"""Number of records that may wait for a sink: few, so that `close()` can write them in time."""


class SinkBackpressure:
    """Lets the drain wait for slow sinks, each until it stalls."""

    def __init__(self) -> None:
        self._stalled: set[SinkWorker] = set()

    def wait(self, worker: SinkWorker, is_stopped: Callable[[], bool]) -> None:
        """Wait until the worker has room, has stalled, or the drain stops."""
        waiting, since = worker.waiting, time.monotonic()
        if waiting < WORKER_CAPACITY:
            self._stalled.discard(worker)
        while waiting >= WORKER_CAPACITY and worker not in self._stalled and not is_stopped():
            time.sleep(PAUSE_S)
            if worker.waiting < waiting:
                waiting, since = worker.waiting, time.monotonic()
            elif time.monotonic() - since > STALL_S:
                self._stalled.add(worker)
                warn_once(
                    f"on-full {worker.name}",
                    f"on_full='wait': sink {worker.name} takes no records since {STALL_S:g} s; until it does, records "
                    "beyond its queue are dropped and counted",
                )
