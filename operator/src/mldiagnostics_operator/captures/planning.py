"""Make the plan of a capture from the current state of the cluster."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.text.counts import counted_of
from mldiagnostics_api.captures.planner import PodInventory, make_plan
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import CaptureRequest, check
from mldiagnostics_api.captures.run_target import RunTarget
from mldiagnostics_api.names import ProgressReason, RefusalReason
from mldiagnostics_api.reports.reported_profilers import profilers_by_pod
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_operator.captures.addresses import Addresses
from mldiagnostics_operator.captures.lookup import LOOKUP_S, LookupRefused
from mldiagnostics_operator.captures.queue.pod_waits import TooManyWaits
from mldiagnostics_operator.request_retry import retry_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from mldiagnostics_api.captures.plan import CapturePlan
    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.captures.lookup import Lookup
    from mldiagnostics_operator.captures.queue.pod_waits import PodWaits
    from mldiagnostics_operator.fair_slots import Slot
    from mldiagnostics_operator.run_exchange import RunExchange

    T = TypeVar("T")
    Report = Callable[[str, str], Awaitable[None]]
    OnWait = Callable[[], Awaitable[None]]

_log: Final = logging.getLogger(__name__)

_SLOW_S: Final = 3.0
MANY_PODS: Final = 200
"""A plan of more pods is made in a thread: 200 take 20 ms of processor time, 10 000 take 1.4 s."""
_RECHECK_S: Final = 30.0
"""A plan may also depend on objects that are not watched, such as the status of a RayJob."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan, and the check whether its pods still have their addresses."""

    plan: CapturePlan
    addresses: Addresses

    @property
    def pods(self) -> frozenset[str]:
        """Uids of the pods that will be contacted."""
        return frozenset(target.uid for target in self.plan.targets)

    def timed(self, start: datetime, deadline: datetime) -> Prepared:
        """Return the plan with these start and deadline times."""
        return replace(self, plan=replace(self.plan, planned_start=start, deadline=deadline))

    def starting(self, now: datetime) -> Prepared:
        """Return the plan with start and deadline as if it had been made at `now`."""
        lead = timedelta(milliseconds=self.plan.lead_ms)
        late = now + lead - self.plan.planned_start
        return self.timed(now + lead, self.plan.deadline + late)


class Planner:
    """Makes plans for one operator."""

    def __init__(
        self,
        lookup: Lookup,
        waits: PodWaits,
        policy: Policy,
        cluster_name: str,
        clock: Clock,
        *,
        exchange: RunExchange,
    ) -> None:
        self._lookup = lookup
        self._exchange = exchange
        self._waits = waits
        self._policy = policy
        self._cluster_name = cluster_name
        self._clock = clock

    async def plan(self, connection: MLDiagnosticsConnection, attempt: int) -> Prepared | CaptureRefusal:
        """Read the cluster and plan, or refuse; waits for the API server if necessary."""
        run = await self._run(connection)
        if isinstance(run, CaptureRefusal):
            return run
        request = check(connection, self._policy, run)
        if isinstance(request, CaptureRefusal):
            return request
        try:
            inventory = await retry_request(lambda: self._lookup.find(request))
        except LookupRefused as refused:
            return refused.refusal
        except ClusterError as error:
            return _unreadable(request.description, error)
        hosts = [host for reported in self._exchange.reported_in(request.namespace) for host in reported.hosts]
        inventory = replace(inventory, reported=profilers_by_pod(hosts))
        plan = await _computed(
            len(inventory.pods),
            partial(
                make_plan,
                connection,
                request,
                inventory,
                policy=self._policy,
                cluster=self._cluster_name,
                now=self._clock(),
                attempt=attempt,
            ),
        )
        return plan if isinstance(plan, CaptureRefusal) else Prepared(plan, self._addresses(request, inventory))

    async def plan_when_ready(
        self, connection: MLDiagnosticsConnection, attempt: int, *, slot: Slot, report: Report, on_slot: OnWait
    ) -> Prepared | CaptureRefusal:
        """Plan until all pods are ready or `waitForPodsSeconds` have passed.

        The seconds count from the creation of the object.

        Args:
            connection: The object.
            attempt: Number of the attempt.
            slot: The capture's slot; given back while the capture waits.
            report: Called with a reason and a message while the capture waits.
            on_slot: Called if it must wait for a slot again.
        """
        trigger, meta = connection.spec.trigger_capture, connection.metadata
        created = meta.creation_timestamp or self._clock()
        until = created + timedelta(seconds=trigger.wait_for_pods_seconds or 0)
        decision = await self._plan_and_report(connection, attempt, report)
        if self._clock() >= until or not _may_improve(decision):
            return decision
        try:
            async with self._waits.join(meta.namespace, trigger.pod_namespace or meta.namespace) as wait:
                while (left_s := (until - self._clock()).total_seconds()) > 0 and _may_improve(decision):
                    message = f"waiting for pods until {until:%Y-%m-%dT%H:%M:%SZ}: {_waiting_message(decision)}"
                    del decision  # it may be large
                    async with slot.freed(on_slot):
                        await report(ProgressReason.WAITING_FOR_PODS, message)
                        await wait.until_changed(min(left_s, _RECHECK_S))
                    started = asyncio.get_running_loop().time()
                    decision = await self.plan(connection, attempt)
                    wait.planned(asyncio.get_running_loop().time() - started)
        except TooManyWaits:
            limit = self._waits.per_namespace
            return CaptureRefusal(
                RefusalReason.TOO_MANY_WAITING,
                f"waitForPodsSeconds: {counted_of(limit, limit, 'capture')} of namespace {meta.namespace} wait for "
                "pods (policy.waitingPerNamespace); delete one of them, or create this capture when its pods are ready",
            )
        return decision

    async def _plan_and_report(
        self, connection: MLDiagnosticsConnection, attempt: int, report: Report
    ) -> Prepared | CaptureRefusal:
        """Plan; report a look-up that takes long."""
        slow = asyncio.create_task(_report_slow(report))
        try:
            return await self.plan(connection, attempt)
        finally:
            await cancel_all([slow])

    async def _run(self, connection: MLDiagnosticsConnection) -> RunTarget | CaptureRefusal | None:
        """Read the MLRun that the capture names, and the pods that report it."""
        target, namespace = connection.spec.trigger_capture.target, connection.metadata.namespace
        if target is None or target.run_ref is None:
            return None
        name = target.run_ref.name
        try:
            run = await retry_request(lambda: self._lookup.run(namespace, name))
        except ValueError as error:
            return CaptureRefusal(RefusalReason.INVALID, f"target.runRef '{name}': the MLRun cannot be read: {error}")
        except ClusterError as error:
            return _unreadable(f"MLRun {namespace}/{name}", error)
        if run is None:
            return None
        run_id = (run.status and run.status.run_id) or run.spec.run_id
        hosts = [
            host for each in self._exchange.reported_in(namespace) if each.key.run_id == run_id for host in each.hosts
        ]
        return RunTarget(run, {host.pod_uid: host.pod for host in hosts if host.pod_uid and host.phase == "Active"})

    def _addresses(self, request: CaptureRequest, inventory: PodInventory) -> Addresses:
        selector = inventory.pod_selector  # a plan may wait for long, so the closure keeps only the selector
        return Addresses(inventory.pods, lambda: self._lookup.pods(request, selector))


async def _computed(pods: int, compute: Callable[[], T]) -> T:
    """Return a result; with many pods it is computed in a thread.

    The event loop renews the lease and answers probes meanwhile.
    """
    return await asyncio.to_thread(compute) if pods > MANY_PODS else compute()


def _unreadable(description: str, error: ClusterError) -> CaptureRefusal:
    _log.warning("Planning ends: %(error)s", {"error": error})
    return CaptureRefusal(
        RefusalReason.LOOKUP_REJECTED,
        f"{description}: cannot be read: {error.cause}; ask the administrator to check the operator's roles and log",
    )


async def _report_slow(report: Report) -> None:
    await asyncio.sleep(_SLOW_S)
    message = (
        "reading the pods and their owners: the API server is slow, or earlier look-ups of the namespace are large; "
        f"a look-up that takes longer than {LOOKUP_S:g} s is repeated"
    )
    await report(ProgressReason.LOOKING_UP, message)


def _may_improve(decision: Prepared | CaptureRefusal) -> bool:
    return decision.transient if isinstance(decision, CaptureRefusal) else decision.plan.may_grow


def _waiting_message(decision: Prepared | CaptureRefusal) -> str:
    if isinstance(decision, CaptureRefusal):
        return decision.message
    plan = decision.plan
    unready = [target.pod for target in plan.targets if not target.ready]
    faults = [*(f"{pod}: the pod is not ready" for pod in unready), *(f"{s.pod}: {s.message}" for s in plan.skipped)]
    return f"{counted_of(len(plan.targets) - len(unready), plan.total, 'target', 'are')} ready; {faults[0]}"
