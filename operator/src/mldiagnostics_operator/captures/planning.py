"""Make the plan of a capture from the current state of the cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import ProgressReason
from mldiagnostics_api.plan import PodInventory, make_plan
from mldiagnostics_api.request import CaptureRefusal, CaptureRequest, check
from mldiagnostics_kube.apiserver import Unavailable
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.captures.addresses import Addresses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from mldiagnostics_api.plan import CapturePlan
    from mldiagnostics_api.policy import Policy
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
    from mldiagnostics_kube.clock import Clock

    from mldiagnostics_operator.captures.lookup import Lookup

    Report = Callable[[str, str], Awaitable[None]]

_POLL_S: Final = 2.0


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

    def __init__(self, lookup: Lookup, policy: Policy, cluster_name: str, clock: Clock) -> None:
        self._lookup = lookup
        self._policy = policy
        self._cluster_name = cluster_name
        self._clock = clock

    async def plan(self, connection: MLDiagnosticsConnection, attempt: int) -> Prepared | CaptureRefusal:
        """Read the cluster and plan, or refuse; waits for the API server if necessary.

        Raises RequestRejected.
        """
        request = check(connection, self._policy)
        if isinstance(request, CaptureRefusal):
            return request
        inventory = await retry(lambda: self._lookup.find(request), on=Unavailable)
        plan = make_plan(
            connection,
            inventory,
            policy=self._policy,
            cluster=self._cluster_name,
            now=self._clock(),
            attempt=attempt,
        )
        return plan if isinstance(plan, CaptureRefusal) else Prepared(plan, self._addresses(request, inventory))

    async def plan_when_ready(
        self, connection: MLDiagnosticsConnection, attempt: int, *, report: Report
    ) -> Prepared | CaptureRefusal:
        """Plan until all pods are ready or `waitForPodsSeconds` have passed.

        The seconds count from the creation of the object.
        `report` is called with a reason and a message while it waits.
        """
        wait_s = connection.spec.trigger_capture.wait_for_pods_seconds or 0
        until = (connection.metadata.creation_timestamp or self._clock()) + timedelta(seconds=wait_s)
        while True:
            decision = await self.plan(connection, attempt)
            left_s = (until - self._clock()).total_seconds()
            if left_s <= 0 or not _may_improve(decision):
                return decision
            await report(ProgressReason.WAITING_FOR_PODS, _waiting_message(decision))
            await asyncio.sleep(min(_POLL_S, left_s))

    def _addresses(self, request: CaptureRequest, inventory: PodInventory) -> Addresses:
        workload = inventory.workload  # a plan may wait for long, so the closure keeps only the workload
        return Addresses(inventory.pods, lambda: self._lookup.pods(request, workload))


def _may_improve(decision: Prepared | CaptureRefusal) -> bool:
    return decision.transient if isinstance(decision, CaptureRefusal) else decision.plan.may_grow


def _waiting_message(decision: Prepared | CaptureRefusal) -> str:
    if isinstance(decision, CaptureRefusal):
        return f"waiting for pods: {decision.message}"
    plan = decision.plan
    unready = [target.pod for target in plan.targets if not target.ready]
    faults = [*(f"{pod}: the pod is not ready" for pod in unready), *(f"{s.pod}: {s.message}" for s in plan.skipped)]
    return f"waiting for pods: {len(plan.targets) - len(unready)} of {plan.total} targets are ready; {faults[0]}"
