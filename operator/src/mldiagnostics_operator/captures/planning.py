"""From an object to a plan, by what the cluster holds now; waits for pods that are still starting."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.names import ProgressReason
from mldiagnostics_api.plan import PodInventory, make_plan
from mldiagnostics_api.request import CaptureRefusal, CaptureRequest, check
from mldiagnostics_kube.apiserver import Unavailable
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.captures.addresses import Addresses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mldiagnostics_api.plan import CapturePlan
    from mldiagnostics_api.policy import Policy
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.lookup import Lookup

    Tell = Callable[[str, str], Awaitable[None]]

_POLL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan, and how to see later whether its pods still have their addresses."""

    plan: CapturePlan
    addresses: Addresses

    @property
    def pods(self) -> frozenset[str]:
        """Uids of the pods that will be dialled."""
        return frozenset(target.uid for target in self.plan.targets)

    def timed(self, start: datetime, deadline: datetime) -> Prepared:
        """Set the moments that were promised before."""
        return replace(self, plan=replace(self.plan, planned_start=start, deadline=deadline))

    def starting(self, now: datetime) -> Prepared:
        """Move start and deadline to where they would be had the plan been made at `now`."""
        lead = timedelta(milliseconds=self.plan.lead_ms)
        late = now + lead - self.plan.planned_start
        return self.timed(now + lead, self.plan.deadline + late)


class Planner:
    """Makes plans for one operator."""

    def __init__(self, lookup: Lookup, policy: Policy, cluster_name: str) -> None:
        self._lookup = lookup
        self._policy = policy
        self._cluster_name = cluster_name

    async def plan(self, connection: MLDiagnosticsConnection, attempt: int) -> Prepared | CaptureRefusal:
        """Look at the cluster, waiting for the API server if need be, and decide. Raises cluster.Refused."""
        request = check(connection, self._policy)
        if isinstance(request, CaptureRefusal):
            return request
        found = await retry(lambda: self._lookup.find(request), on=Unavailable)
        now = datetime.now(UTC)
        plan = make_plan(connection, found, policy=self._policy, cluster=self._cluster_name, now=now, attempt=attempt)
        return plan if isinstance(plan, CaptureRefusal) else Prepared(plan, self._addresses(request, found))

    async def plan_when_ready(
        self, connection: MLDiagnosticsConnection, attempt: int, *, tell: Tell
    ) -> Prepared | CaptureRefusal:
        """Plan again and again while waiting may bring more pods and `waitForPodsSeconds` are not over."""
        patience_s = connection.spec.trigger_capture.wait_for_pods_seconds or 0
        until = (connection.metadata.creation_timestamp or datetime.now(UTC)) + timedelta(seconds=patience_s)
        while True:
            decided = await self.plan(connection, attempt)
            left_s = (until - datetime.now(UTC)).total_seconds()
            if left_s <= 0 or not _may_improve(decided):
                return decided
            await tell(ProgressReason.WAITING_FOR_PODS, _what_is_missing(decided))
            await asyncio.sleep(min(_POLL_S, left_s))

    def _addresses(self, request: CaptureRequest, found: PodInventory) -> Addresses:
        workload = found.workload  # not all that was found: a plan may wait for long
        return Addresses(found.pods, lambda: self._lookup.pods(request, workload))


def _may_improve(decided: Prepared | CaptureRefusal) -> bool:
    return decided.transient if isinstance(decided, CaptureRefusal) else decided.plan.may_grow


def _what_is_missing(decided: Prepared | CaptureRefusal) -> str:
    if isinstance(decided, CaptureRefusal):
        return f"waiting for pods: {decided.message}"
    plan = decided.plan
    unready = [target.pod for target in plan.targets if not target.ready]
    faults = [*(f"{pod}: the pod is not ready" for pod in unready), *(f"{s.pod}: {s.message}" for s in plan.skipped)]
    return f"waiting for pods: {len(plan.targets) - len(unready)} of {plan.total} targets are ready; {faults[0]}"
