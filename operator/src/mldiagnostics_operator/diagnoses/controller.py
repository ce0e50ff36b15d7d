"""The controller of diagnoses: Jobs for captures, and findings for their runs.

Both follow from the status of the capture, so that nothing is lost when the leader changes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.runs.findings import run_findings
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis
from mldiagnostics_kube.cache.informer import Backoff, Informer, InformerStore, NoInformerMetrics, Selection
from mldiagnostics_kube.cache.object_store import key_of
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.process.clock import Clock, utc_now
from typing_extensions import override

from mldiagnostics_operator.diagnoses.conclusion import conclude
from mldiagnostics_operator.diagnoses.diagnosis import DiagnosisFailed, Diagnostician
from mldiagnostics_operator.fair_slots import FairSlots
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

TOTAL: Final = 4
PER_NAMESPACE: Final = 2
"""Jobs at a time; other captures wait in line."""
_STATE: Final = "status.diagnosis.state"


class DiagnosisController:
    """Diagnoses pending captures, and notes the findings of diagnosed ones in runs.

    `holder` names this process in events.
    """

    name: ClassVar[str] = "diagnoses"

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        exchange: RunExchange,
        clock: Clock = utc_now,
    ) -> None:
        self._cluster, self._telemetry, self._exchange = cluster, telemetry, exchange
        self._me, self._clock = holder, clock
        self._namespaces = config.watch_namespaces or (None,)
        self._storage = storage.apart()
        template = config.diagnosis_job
        self._diagnostician = (
            Diagnostician(cluster, template, self._storage, namespace=config.pod_namespace) if template else None
        )
        self._slots = FairSlots(TOTAL, per_namespace=PER_NAMESPACE)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._accepting = True

    def stop_accepting(self) -> None:
        """Leave pending captures, and Jobs that run, to the next leader."""
        self._accepting = False
        for task in self._tasks.values():
            task.cancel()

    async def drain(self) -> None:
        """Return when no diagnosis is in progress."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def run(self) -> None:
        """Diagnose until cancelled."""
        try:
            await keep_running("diagnoses", self._follow, failed=self._telemetry.work_failed)
        finally:
            self.stop_accepting()
            self._storage.close()

    async def _follow(self) -> None:
        await asyncio.gather(
            *(
                self._informer(namespace, state, changed).run()
                for namespace in self._namespaces
                for state, changed in (("Pending", self.start), ("Done", self.note_findings))
            )
        )

    def _informer(
        self, namespace: str | None, state: str, changed: Callable[[Mapping[str, Any]], None]
    ) -> Informer[_Captures]:
        return Informer(
            f"captures with the diagnosis {state}",
            [path_to(*CONNECTIONS.gvr, namespace=namespace)],
            cluster=self._cluster,
            store=_Captures(changed),
            metrics=NoInformerMetrics(),
            backoff=Backoff(),
            selection=Selection(fields=f"{_STATE}={state}", metadata_only=False),
        )

    def start(self, body: Mapping[str, Any]) -> None:
        """Start the diagnosis of a capture; repeated events are ignored."""
        uid = body["metadata"]["uid"]
        if self._accepting and uid not in self._tasks:
            task = self._tasks[uid] = asyncio.create_task(self._diagnose(body), name=f"diagnosis of {uid}")
            task.add_done_callback(lambda _: self._tasks.pop(uid, None))

    async def _diagnose(self, body: Mapping[str, Any]) -> None:
        meta, result = body["metadata"], await self._result(body)
        while True:
            try:
                return await conclude(self._cluster, body, result, me=self._me, clock=self._clock)
            except ClusterError as error:
                _log.warning(
                    "The diagnosis of %(namespace)s/%(object)s cannot be written yet: %(error)s",
                    {"namespace": meta["namespace"], "object": meta["name"], "error": error},
                )

    def note_findings(self, body: Mapping[str, Any]) -> None:
        """Note the findings of a diagnosed capture in its runs; repeats are ignored."""
        meta, status = body["metadata"], body["status"]
        diagnosis = CaptureDiagnosis.model_validate(status["diagnosis"])
        namespace = body["spec"]["triggerCapture"].get("podNamespace") or meta["namespace"]
        ended = optional_time(status.get("completionTime")) or self._clock()
        for run_id in diagnosis.runs or ():
            findings = run_findings(
                diagnosis, run_id=run_id, session=status["sessionId"], capture=meta["name"], time=ended
            )
            self._exchange.note_findings(RunKey(namespace, run_id), findings)

    async def _result(self, body: Mapping[str, Any]) -> Any:
        if self._diagnostician is None:
            return DiagnosisFailed("Disabled", "this operator makes no diagnoses; set diagnosis.enabled in its chart")
        try:
            async with self._slots.slot(body["metadata"]["namespace"]):
                return await self._diagnostician.diagnose(body)
        except DiagnosisFailed as failure:
            return failure
        except Exception as error:  # noqa: BLE001 - no diagnosis stays pending after any error
            _log.exception("A diagnosis failed with an internal error")
            message = f"the operator could not diagnose the capture because of a bug ({type(error).__name__})"
            return DiagnosisFailed("InternalError", f"{message}; report the operator's log")


class _Captures(InformerStore):
    """Passes on each capture that an informer delivers, and keeps its key alone."""

    left_out = 0

    def __init__(self, changed: Callable[[Mapping[str, Any]], None]) -> None:
        self._changed = changed
        self._keys: set[str] = set()

    @override
    def __len__(self) -> int:
        return len(self._keys)

    @override
    def put(self, item: Mapping[str, Any]) -> None:
        self._keys.add(key_of(item))
        self._changed(item)

    @override
    def remove(self, item: Mapping[str, Any]) -> None:
        """A task ends by itself: it wrote the result, or finds that the object is gone."""
        self._keys.discard(key_of(item))

    @override
    def keep_only(self, keys: set[str]) -> None:
        self._keys &= keys
