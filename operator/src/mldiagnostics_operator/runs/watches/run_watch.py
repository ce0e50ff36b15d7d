"""The watch of the unfinished runs, which may have to wait for their definition."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.cache.informer import Informer, Selection, SyncState
from mldiagnostics_kube.client.apiserver import path_to

from mldiagnostics_operator.runs.watches.run_store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mldiagnostics_kube.cache.informer import Backoff
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.runs.keys import ObjectKey
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

CHECK_S: Final = 0.5
"""Pause between two checks whether the definition of MLRun is served."""
_UNFINISHED: Final = ",".join(f"status.phase!={phase}" for phase in sorted(FINISHED_RUN_PHASES))


class RunWatch:
    """Follows the unfinished runs.

    Args:
        cluster: Client of the API server.
        namespaces: Namespaces of the runs; None stands for all.
        seen: Receives each new or changed object.
        left: Receives the key of each object that was deleted or has ended.
        telemetry: Metrics of the operator.
        backoff: Pauses after failures.
    """

    def __init__(
        self,
        cluster: ApiClient,
        namespaces: Collection[str | None],
        seen: Callable[[Mapping[str, Any]], None],
        left: Callable[[ObjectKey], None],
        telemetry: OperatorMetrics,
        *,
        backoff: Backoff,
    ) -> None:
        self._telemetry = telemetry
        self._informers = [
            Informer(
                RUNS.plural,
                [path_to(*RUNS.gvr, namespace=namespace)],
                cluster=cluster,
                store=RunStore(seen, left),
                metrics=telemetry,
                backoff=backoff,
                selection=Selection(fields=_UNFINISHED, metadata_only=False),
            )
            for namespace in namespaces
        ]

    @property
    def installed(self) -> bool:
        """Whether the definition is served, and its objects are followed."""
        return all(informer.state is SyncState.FOLLOWED for informer in self._informers)

    async def run(self) -> None:
        """Follow the runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())

    async def until_installed(self) -> None:
        """Wait until the definition of MLRun is served; captures go on meanwhile."""
        logged = False
        while not self.installed:
            absent = any(informer.state in (SyncState.ABSENT, SyncState.FORBIDDEN) for informer in self._informers)
            self._telemetry.runs.missing(missing=absent)
            if absent and not logged:
                _log.warning(
                    "The custom resource %(resource)s is not served to the operator: no run is recorded, captures go "
                    "on; apply crds/, or install the chart's CRDs and roles",
                    {"resource": RUNS.definition_name},
                )
                logged = True
            await asyncio.sleep(CHECK_S)
        self._telemetry.runs.missing(missing=False)
