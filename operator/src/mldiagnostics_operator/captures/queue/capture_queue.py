"""The queue of captures: all places in which one waits, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mldiagnostics_operator.captures.queue.admission import CaptureClaim, Quota, WaitReason
from mldiagnostics_operator.captures.queue.gate import Gate
from mldiagnostics_operator.captures.queue.pod_waits import PodWaits
from mldiagnostics_operator.fair_slots import FairSlots

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.v1alpha1 import ObjectMeta
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.captures.queue.crash_guard import CrashGuard
    from mldiagnostics_operator.fair_slots import Slot

_PLANS: Final = 4
"""Captures with a plan, as a multiple of those that may run; the others wait without one."""
_REPORTS: Final = 16


class CaptureQueue:
    """The queue of one operator.

    A capture takes a plan slot, passes the crash guard, takes a look-up slot (`Lookup`) for each plan, waits for its
    pods without the plan slot, and is admitted by the gate. Each place reports why the capture waits, by a report slot.

    Args:
        cluster: Client of the API server.
        policy: Limits of the administrator.
        crash_guard: Makes the first plan of older captures.
        on_change: Receives the numbers of captures before and behind the gate.
    """

    def __init__(
        self, cluster: ApiClient, policy: Policy, crash_guard: CrashGuard, on_change: Callable[[int, int], None]
    ) -> None:
        self.plan_slots: Final = FairSlots(None, per_namespace=_PLANS * policy.captures_per_namespace)
        self.crash_guard: Final = crash_guard
        self.pod_waits: Final = PodWaits(cluster, per_namespace=policy.waiting_per_namespace)
        self.gate: Final = Gate(Quota(policy.captures_per_namespace, policy.captures_total), on_change)
        self.report_slots: Final = FairSlots(_REPORTS, per_namespace=_REPORTS // 4)

    def enter(self, meta: ObjectMeta, report: Callable[[str, str], Awaitable[None]]) -> QueueEntry:
        """Return the entry of a capture, behind all earlier ones.

        Args:
            meta: Metadata of the object.
            report: Writes a reason and a message to its status.
        """
        return QueueEntry(self, meta, report)


class QueueEntry:
    """The entry of one capture, which keeps its arrival for all its attempts."""

    def __init__(self, queue: CaptureQueue, meta: ObjectMeta, report: Callable[[str, str], Awaitable[None]]) -> None:
        self._queue = queue
        self._meta = meta
        self._report = report
        self._arrival = queue.gate.arrive()

    def plan_slot(self) -> AbstractAsyncContextManager[Slot]:
        """Hold a plan slot in a `with` block."""
        return self._queue.plan_slots.slot(self._meta.namespace, on_wait=self.report_plan_slot)

    def admitted(self, pods: frozenset[str]) -> AbstractAsyncContextManager[bool]:
        """Be behind the gate with these pods in a `with` block; yields whether it waited."""
        claim = CaptureClaim(self._meta.uid, self._meta.namespace, self._arrival, pods)
        return self._queue.gate.admitted(claim, self._report_gate)

    async def report(self, reason: str, message: str) -> None:
        """Report why the capture waits, with fair shares of the API server."""
        async with self._queue.report_slots.slot(self._meta.namespace):
            await self._report(reason, message)

    async def report_plan_slot(self) -> None:
        """Report that the capture waits for a plan slot."""
        namespace, limit = self._meta.namespace, self._queue.plan_slots.per_namespace
        message = f"queued: {limit} captures of namespace {namespace} are before this one"
        await self.report(WaitReason.NAMESPACE_QUOTA, f"{message} ({_PLANS} x policy.capturesPerNamespace)")

    async def _report_gate(self, reason: WaitReason) -> None:
        await self.report(reason, self._queue.gate.quota.message(reason, self._meta.namespace))
