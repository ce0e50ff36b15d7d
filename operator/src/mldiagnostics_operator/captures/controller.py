"""The controller of captures: one task for each object that the watch delivers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mldiagnostics.capture.budget import ByteBudget
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics_api.names import FINISHED_PHASES, RefusalReason
from mldiagnostics_api.resources import CONNECTIONS, Resource
from mldiagnostics_api.v1alpha1 import ObjectMeta, read_connection
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.process.clock import Clock, utc_now
from mldiagnostics_kube.process.logs import about

from mldiagnostics_operator.captures.capture import Capture
from mldiagnostics_operator.captures.expiry import Expiry
from mldiagnostics_operator.captures.lookup import Lookup
from mldiagnostics_operator.captures.planning import Planner
from mldiagnostics_operator.captures.queue.capture_queue import CaptureQueue
from mldiagnostics_operator.captures.queue.crash_guard import CrashGuard
from mldiagnostics_operator.captures.reporter import CaptureReporter
from mldiagnostics_operator.captures.services import Services
from mldiagnostics_operator.captures.stage import StopReason
from mldiagnostics_operator.captures.volume_share import VolumeShare
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.status_writer import ObjectGone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.controller import Event
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)


class CaptureController:
    """Runs the captures that the watch delivers; `holder` names this process in them."""

    name: ClassVar[str] = "captures"
    resource: ClassVar[Resource] = CONNECTIONS
    field_selector: ClassVar[str] = ",".join(f"status.phase!={phase}" for phase in sorted(FINISHED_PHASES))

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        exchange: RunExchange | None = None,
        clock: Clock = utc_now,
    ) -> None:
        policy = config.policy
        exchange = exchange or RunExchange()
        self._expiry = Expiry(cluster, config.watch_namespaces, default_ttl_s=policy.ttl_s, clock=clock)
        queue = CaptureQueue(
            cluster,
            policy,
            CrashGuard(cluster, clock()),
            lambda waiting, inside: telemetry.queue(queued=waiting, in_flight=inside),
        )
        self._services = Services(
            cluster=cluster,
            planner=Planner(
                Lookup(cluster),
                queue.pod_waits,
                policy,
                config.cluster_name,
                clock,
                exchange=exchange,
            ),
            queue=queue,
            storage=storage,
            share=VolumeShare(storage),
            exchange=exchange,
            telemetry=telemetry,
            budget=ByteBudget(policy.max_trace_bytes),
            clock=clock,
            me=holder,
            namespace=config.pod_namespace,
            versions={"operator": version("mldiagnostics-operator")},
            diagnoses=policy.diagnoses and config.diagnosis_job is not None,
        )
        self._accepting = True
        self._captures: dict[str, Capture] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._accepted: set[str] = set()  # uids; not those that were handed over, nor those that left the watch

    def observe(self, body: Mapping[str, Any], event: Event) -> None:
        """Start, cancel or stop the capture of an object; repeated events are ignored."""
        uid = body["metadata"]["uid"]
        capture = self._captures.get(uid)
        if event == "gone":
            self._accepted.discard(uid)
        if capture is not None and event == "gone":
            capture.stop(StopReason.GONE)
        elif capture is not None and (body.get("spec") or {}).get("cancel"):
            capture.stop(StopReason.CANCELLED)
        elif event == "seen" and self._accepting and uid not in self._tasks and not self._is_accepted_or_finished(body):
            self._start(body)

    def reset(self) -> None:
        """Stop all captures: the definition was removed, and their objects with it."""
        self._accepted.clear()
        for capture in self._captures.values():
            capture.stop(StopReason.GONE)

    async def run(self) -> None:
        """Delete expired captures until cancelled; then cancel the running captures."""
        try:
            await self._expiry.run()
        finally:
            self._accepting = False
            await cancel_all(self._tasks.values())

    def stop_accepting(self) -> None:
        """Leave waiting captures to the next leader; running captures go on."""
        self._accepting = False
        for capture in self._captures.values():
            capture.stop(StopReason.HANDED_OVER)

    async def drain(self) -> None:
        """Return when no capture runs."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _start(self, body: Mapping[str, Any]) -> None:
        meta = ObjectMeta.model_validate(body["metadata"])
        self._accepted.add(meta.uid)
        try:
            connection = read_connection(body)
        except ValueError as error:
            work = self._refuse(meta, error)
        else:
            capture = self._captures[meta.uid] = Capture(self._services, connection)
            work = capture.run()
        with about(object=meta.name, namespace=meta.namespace, uid=meta.uid):
            task = self._tasks[meta.uid] = asyncio.create_task(work, name=f"{meta.namespace}/{meta.name}")
        kept = {"metadata": {"uid": meta.uid}, "spec": body.get("spec") or {}}  # annotations may have 256 KiB
        task.add_done_callback(lambda _: self._forget(kept))

    def _is_accepted_or_finished(self, body: Mapping[str, Any]) -> bool:
        return body["metadata"]["uid"] in self._accepted or (body.get("status") or {}).get("phase") in FINISHED_PHASES

    def _forget(self, body: Mapping[str, Any]) -> None:
        """Forget a task that has ended; earlier events of its object may still arrive."""
        uid = body["metadata"]["uid"]
        capture = self._captures.pop(uid, None)
        self._tasks.pop(uid, None)
        if capture is not None and not capture.finished:
            self._accepted.discard(uid)
        self._expiry.expect(body)

    async def _refuse(self, meta: ObjectMeta, error: ValueError) -> None:
        """Write a final status for an object that does not match the schema."""
        services = self._services
        reporter = CaptureReporter(
            services.cluster, services.telemetry, meta, None, me=services.me, clock=services.clock
        )
        with suppress(ObjectGone, ClusterError):
            await reporter.refuse(RefusalReason.INVALID, f"the object cannot be read: {error}", timeout_s=60)
