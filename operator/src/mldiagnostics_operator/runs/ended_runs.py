"""Runs after their end, whose causes and captures may arrive late."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.disruptions.decision import WINDOW
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_names import run_label
from mldiagnostics_kube.apiserver import ClusterError, path_to

from mldiagnostics_operator.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.reported import RunKey
    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.runs.run_book import RunBook

_log: Final = logging.getLogger(__name__)

KEPT_S: Final = WINDOW.total_seconds()
"""Evidence of a cause arrives for so long."""
MOST: Final = 1024
"""Ended runs in memory, 4 KiB each; the oldest leaves first."""
_MOST_RECALLS: Final = 256


class EndedRuns:
    """Keeps ended runs in the book for a while.

    An ended run that is not in memory is recalled when a capture of it ends.

    Args:
        cluster: Client of the API server.
        book: The runs in memory.
        changed: Receives each recalled run.
        drop: Receives each run whose time is over.
    """

    def __init__(
        self, cluster: ApiClient, book: RunBook, *, changed: Callable[[Run], None], drop: Callable[[Run], None]
    ) -> None:
        self._cluster = cluster
        self._book = book
        self._changed = changed
        self._drop = drop
        self._until: dict[tuple[str, str], tuple[float, Run]] = {}
        self._recalls: dict[RunKey, None] = {}
        self._woken = asyncio.Event()

    def keep(self, run: Run) -> None:
        """Keep a run that has just ended, or was recalled."""
        self._until.pop(run.key, None)
        self._until[run.key] = asyncio.get_running_loop().time() + KEPT_S, run
        while len(self._until) > MOST:
            self._forget(next(iter(self._until)))
        self._woken.set()

    def recall(self, key: RunKey) -> None:
        """Read a run that is not in memory, if it has ended."""
        if len(self._recalls) < _MOST_RECALLS:
            self._recalls[key] = None
            self._woken.set()

    async def run(self) -> None:
        """Recall and forget runs until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            while self._recalls:
                key = next(iter(self._recalls))
                del self._recalls[key]
                await self._recall(key)
            for key_of_object in [key for key, (until, _) in self._until.items() if until <= loop.time()]:
                self._forget(key_of_object)
            next_at = next((until for until, _ in self._until.values()), None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._woken.wait()

    def _forget(self, key: tuple[str, str]) -> None:
        _, run = self._until.pop(key)
        if run in self._book:
            self._drop(run)

    async def _recall(self, key: RunKey) -> None:
        path = path_to(*RUNS.gvr, namespace=key.namespace)
        try:
            runs = await self._cluster.items(path, Run.of, labels=f"{RUN_LABEL}={run_label(key.run_id)}")
        except (ClusterError, ValueError) as error:
            _log.warning("The profiles of the ended run %s are not noted: %s", key.run_id, error)
            return
        for run in runs:
            if run.finished and run.run_id == key.run_id and self._book.of_report(key) is None:
                self.keep(self._book.add(run))
                self._changed(run)
