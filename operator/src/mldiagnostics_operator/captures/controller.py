"""All captures of this process: one task for each object, fed by the watch."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal

from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics_api.names import FINISHED_PHASES, RefusalReason
from mldiagnostics_api.v1alpha1 import ObjectMeta, read_connection
from mldiagnostics_kube.apiserver import ClusterError
from mldiagnostics_kube.logs import about

from mldiagnostics_operator.captures.admission import Quota
from mldiagnostics_operator.captures.capture import Capture, StopReason
from mldiagnostics_operator.captures.expiry import Expiry
from mldiagnostics_operator.captures.gate import Gate
from mldiagnostics_operator.captures.lookup import Lookup
from mldiagnostics_operator.captures.planning import Planner
from mldiagnostics_operator.captures.reporter import CaptureReporter
from mldiagnostics_operator.captures.services import Services
from mldiagnostics_operator.captures.storage import Storage
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)


class CaptureController:
    """Executes what the watch shows; `holder` names this process in the status of what it executes."""

    def __init__(self, cluster: ApiClient, config: OperatorConfig, telemetry: OperatorMetrics, holder: str) -> None:
        policy = config.policy
        self._expiry = Expiry(cluster, config.watch_namespaces, default_ttl_s=policy.ttl_s)
        self._services = Services(
            cluster=cluster,
            planner=Planner(Lookup(cluster), policy, config.cluster_name),
            storage=Storage(config.volume_root),
            gate=Gate(
                Quota(policy.captures_per_namespace, policy.captures_total),
                lambda waiting, inside: telemetry.queue(queued=waiting, in_flight=inside),
            ),
            telemetry=telemetry,
            budget=ByteBudget(),
            me=holder,
            namespace=config.pod_namespace,
            versions={"operator": version("mldiagnostics-operator")},
        )
        self._accepting = True
        self._lives: dict[str, Capture] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._taken_up: set[str] = set()  # and neither given back unanswered nor gone from the watch

    def observe(self, body: Mapping[str, Any], event: Literal["seen", "gone"]) -> None:
        """Take note of an object; returns at once. Seeing the same again changes nothing."""
        uid = body["metadata"]["uid"]
        life = self._lives.get(uid)
        if event == "gone":
            self._taken_up.discard(uid)
        if life is not None and event == "gone":
            life.end(StopReason.GONE)
        elif life is not None and (body.get("spec") or {}).get("cancel"):
            life.end(StopReason.CANCELLED)
        elif event == "seen" and self._accepting and uid not in self._tasks and not self._has_verdict(body):
            self._begin(body)

    async def run(self) -> None:
        """Delete captures whose time is over, until cancelled; then end whatever still runs here."""
        try:
            await self._expiry.run()
        finally:
            self._accepting = False
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._services.storage.close()

    def stop_accepting(self) -> None:
        """Begin nothing any more: what waits is left to the next leader, what runs goes on."""
        self._accepting = False
        for life in self._lives.values():
            life.end(StopReason.HANDED_OVER)

    async def drain(self) -> None:
        """Return once nothing runs here any more."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _begin(self, body: Mapping[str, Any]) -> None:
        meta = ObjectMeta.model_validate(body["metadata"])
        self._taken_up.add(meta.uid)
        try:
            connection = read_connection(body)
        except ValueError as fault:
            work = self._refuse(meta, fault)
        else:
            life = self._lives[meta.uid] = Capture(self._services, connection)
            work = life.run()
        with about(object=meta.name, namespace=meta.namespace, uid=meta.uid):
            task = self._tasks[meta.uid] = asyncio.create_task(work, name=f"{meta.namespace}/{meta.name}")
        task.add_done_callback(lambda _: self._forget(body))

    def _has_verdict(self, body: Mapping[str, Any]) -> bool:
        return body["metadata"]["uid"] in self._taken_up or (body.get("status") or {}).get("phase") in FINISHED_PHASES

    def _forget(self, body: Mapping[str, Any]) -> None:
        """Let go of a task that has ended; an event from before its verdict may still be under way."""
        uid = body["metadata"]["uid"]
        life = self._lives.pop(uid, None)
        self._tasks.pop(uid, None)
        if life is not None and not life.answered:
            self._taken_up.discard(uid)
        self._expiry.expect(body)

    async def _refuse(self, meta: ObjectMeta, fault: ValueError) -> None:
        """Answer an object that the schema should have kept out."""
        report = CaptureReporter(self._services.cluster, self._services.telemetry, meta, None, me=self._services.me)
        with suppress(ObjectGone, ClusterError):
            await report.refuse(RefusalReason.INVALID, f"the object cannot be read: {fault}", patience_s=60)
