"""Refusals to create the pods of waiting runs, from the events of controllers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.disruptions import CREATION_FAILURES, CreationFailure
from mldiagnostics_api.workloads.owners import run_of
from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_operator.owners import Owners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mldiagnostics_api.disruptions import Evidence
    from mldiagnostics_api.workloads.owners import ObjectReference
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey

_log: Final = logging.getLogger(__name__)

PAUSE_S: Final = 5.0
"""Pause between two rounds of reads; a namespace is read once in a round, however many of its runs wait."""
NAMESPACE_S: Final = 0.2
"""Pause between the reads of two namespaces."""
MAX_EVENTS: Final = 256
"""Events about refused pods that are read of one namespace; of one object there are at most a few."""
MAX_WALKS: Final = 32
"""Objects of one namespace whose owners are read in one round."""
_KNOWN_OWNERS: Final = 4096


class CreationFailures:
    """Reads the events of refused pods while runs wait for pods.

    Args:
        cluster: Client of the API server.
        changed: Receives the key of each run with news.
    """

    def __init__(self, cluster: ApiClient, changed: Callable[[LabelKey], None]) -> None:
        self._cluster = cluster
        self._owners = Owners(cluster)
        self._changed = changed
        self._failures: dict[LabelKey, Evidence] = {}
        self._waiting: dict[str, dict[str, LabelKey]] = {}
        """The waiting runs of each namespace, by the uid of their workload."""
        self._tops: dict[str, str] = {}
        """Uid of the topmost owner of an object, by its own; empty without one."""
        self._woken = asyncio.Event()

    def of(self, key: LabelKey) -> Evidence | None:
        """Return the newest failure of a run; None if none was read."""
        return self._failures.get(key)

    def search(self, key: LabelKey, workload: ObservedWorkload) -> None:
        """Read soon why pods of a workload are not created."""
        self._waiting.setdefault(workload.namespace, {})[workload.uid] = key
        self._woken.set()

    def forget(self, key: LabelKey) -> None:
        """Forget the failure of a run that has ended."""
        self._failures.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled, one request at a time."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            waiting, self._waiting = self._waiting, {}
            for namespace, runs in waiting.items():
                try:
                    await self._read(namespace, runs)
                except ClusterError as error:
                    _log.warning(
                        "The events of namespace %(namespace)s cannot be read: %(error)s",
                        {"namespace": namespace, "error": error},
                    )
                await asyncio.sleep(NAMESPACE_S)
            await asyncio.sleep(PAUSE_S)

    async def _read(self, namespace: str, runs: dict[str, LabelKey]) -> None:
        """Find the newest failure of each waiting run of a namespace."""
        path = path_to("", "v1", "events", namespace=namespace)
        failures: list[CreationFailure] = []
        for reason in CREATION_FAILURES:
            fields = f"reason={reason},type=Warning"
            failures += await self._cluster.items(path, CreationFailure.of, fields=fields, most=MAX_EVENTS)
        tops = await self._tops_of(failures)
        for failure in failures:
            key = runs.get(tops.get(failure.reference.uid, ""))
            if key is None:
                continue
            before = self._failures.get(key)
            if before is None or failure.evidence.time > before.time:
                self._failures[key] = failure.evidence
                self._changed(key)

    async def _tops_of(self, failures: Iterable[CreationFailure]) -> dict[str, str]:
        """Return the uids of topmost owners by those of at most `MAX_WALKS` new objects."""
        references = {failure.reference.uid: failure.reference for failure in failures}
        tops = {uid: self._tops[uid] for uid in references if uid in self._tops}
        for uid in [uid for uid in references if uid not in tops][:MAX_WALKS]:
            tops[uid] = await self._top(references[uid])
        if len(self._tops) >= _KNOWN_OWNERS:
            self._tops.clear()
        self._tops.update(tops)
        return tops

    async def _top(self, reference: ObjectReference) -> str:
        run = run_of(await self._owners.chain(reference))
        return run.uid if run else ""
