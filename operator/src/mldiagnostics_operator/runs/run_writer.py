"""Writes of the status and the events of all runs, under one limit."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_status import is_urgent, is_worth_writing
from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, Unavailable, path_to

from mldiagnostics_operator.announcements import Announcement, announce
from mldiagnostics_operator.runs.next_status import run_events
from mldiagnostics_operator.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.v1alpha1 import MLRunStatus
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.clock import Clock

    from mldiagnostics_operator.runs.write_rate import WriteRate
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

_PAUSE_S: Final = 1.0
"""Pause after a failed write; a watch delivers a newer version of the object meanwhile."""


class RunWriter:
    """Writes the statuses of runs, each from the newest facts at its turn.

    Args:
        cluster: Client of the API server.
        telemetry: Metrics of the operator.
        rate: Limit on all writes.
        next_status: Returns the status of a run now.
        written: Receives a run after a write, and its status before it.
        gone: Receives a run whose object does not exist any more.
        me: Name of this process.
        clock: Wall clock.
    """

    def __init__(
        self,
        cluster: ApiClient,
        telemetry: OperatorMetrics,
        rate: WriteRate,
        *,
        next_status: Callable[[Run], MLRunStatus],
        written: Callable[[Run, MLRunStatus], None],
        gone: Callable[[Run], None],
        me: str,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._telemetry = telemetry
        self._rate = rate
        self._next_status = next_status
        self._written = written
        self._gone = gone
        self._me = me
        self._clock = clock
        self._due: dict[tuple[str, str], Run] = {}
        self._phases: set[tuple[str, str]] = set()
        """Runs whose phase changes: they go first when many are due, as after the start of a newer version."""
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()

    def consider(self, run: Run) -> None:
        """Schedule a write if the status of a run would differ: urgent ones at once."""
        status = self._next_status(run)
        if is_worth_writing(run.status, status):
            within_s = 0.0 if is_urgent(run.status, status) else float("inf")
            run.updates.put(True, now=asyncio.get_running_loop().time(), within_s=within_s)  # noqa: FBT003
            self._due[run.key] = run
            if run.status.phase is not status.phase:
                self._phases.add(run.key)
            self._changed.set()

    def drop(self, run: Run) -> None:
        """Forget the scheduled write of a run."""
        self._due.pop(run.key, None)
        self._phases.discard(run.key)

    async def run(self) -> None:
        """Write until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._changed.clear()
            for run in sorted(self._due.values(), key=self._turn):
                if run.updates.take(now=clock()):
                    self.drop(run)
                    await self._rate.take()
                    async with self._writing:
                        await self._write(run)
                if self._changed.is_set():
                    break  # an urgent write may have come
            else:
                next_at = min(map(_due_at, self._due.values()), default=None)
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(next_at):
                        await self._changed.wait()

    async def drain(self) -> None:
        """Return when no write is in progress."""
        async with self._writing:
            return

    def _turn(self, run: Run) -> tuple[bool, float]:
        return run.key not in self._phases, _due_at(run)

    async def _write(self, run: Run) -> None:
        before = run.status
        status = self._next_status(run)
        if not is_worth_writing(before, status):
            return
        try:
            body = await self._cluster.replace(f"{_path(run)}/status", _body(run, status))
        except NotFound:
            self._telemetry.runs.status_written("gone")
            self._gone(run)
            return
        except (Conflict, Unavailable) as error:
            self._telemetry.runs.status_written("failed")
            _log.debug("The status of %s/%s is written again: %s", *run.key, error)
            await self._write_again(run)
            return
        except ClusterError as error:
            self._telemetry.runs.status_written("failed")
            _log.warning("The API server rejected the status of run %s/%s: %s", *run.key, error)
            return
        self._telemetry.runs.status_written("written")
        run.absorb(Run.of(body))
        for event in run_events(before, run.status):
            note = Announcement(event.reason, event.message, warning=event.warning)
            await announce(self._cluster, RUNS, run.meta, note, me=self._me, now=self._clock())
        self._written(run, before)

    async def _write_again(self, run: Run) -> None:
        if run.finished:  # no watch delivers a newer version of it
            with suppress(ClusterError):
                run.absorb(Run.of(await self._cluster.get(_path(run))))
        run.updates.put(True, now=asyncio.get_running_loop().time(), within_s=_PAUSE_S)  # noqa: FBT003
        self._due[run.key] = run


def _due_at(run: Run) -> float:
    return float("inf") if run.updates.due_at is None else run.updates.due_at


def _path(run: Run) -> str:
    return path_to(*RUNS.gvr, namespace=run.meta.namespace, name=run.meta.name)


def _body(run: Run, status: MLRunStatus) -> dict[str, Any]:
    """Return the object, with the version that another process must not change."""
    return {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {
            "name": run.meta.name,
            "namespace": run.meta.namespace,
            "uid": run.meta.uid,
            "resourceVersion": run.version,
        },
        "spec": run.spec,
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
