"""One run of the capture engine: collects outcomes, and can delete the traces."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from mldiagnostics.capture import engine
from mldiagnostics.capture.model import Delivery, Options, Target
from mldiagnostics_api.captures.location import Medium

from mldiagnostics_operator.captures.outcomes import of_outcome, of_skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.capture.budget import ByteBudget
    from mldiagnostics.capture.model import Control, StoredTrace
    from mldiagnostics.store import Stored
    from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget

    from mldiagnostics_operator.captures.addresses import Addresses
    from mldiagnostics_operator.captures.session import Session


class EngineRun:
    """A run of the engine over a plan's targets.

    `outcomes` grows as targets end; skipped targets are in it from the start.
    """

    def __init__(
        self,
        plan: CapturePlan,
        session: Session,
        addresses: Addresses,
        control: Control,
        *,
        tenant: str,
        on_outcome: Callable[[], None],
    ) -> None:
        self.outcomes = [of_skip(target) for target in plan.skipped]
        self._control = control
        self._tenant = tenant
        self._on_outcome = on_outcome
        self._plan = plan
        self._session = session
        self._addresses = addresses
        self._contacted: set[str] = set()
        self._puts: dict[asyncio.Task[Stored], PlannedTarget] = {}

    async def run(self, *, deadline_s: float, budget: ByteBudget) -> None:
        """Record all targets; each has its outcome after at most `deadline_s`."""
        plan = self._plan
        options = Options(
            session=plan.session,
            duration_ms=plan.duration_ms,
            deadline_s=deadline_s,
            start_ns=plan.start_ns,
            tracers=plan.tracers,
            delivery=plan.delivery,
            recording=plan.recording,
            allow_old_server=plan.allow_old_server,
            max_trace_bytes=plan.max_trace_bytes,
        )
        targets = [self._target(number, planned) for number, planned in enumerate(plan.targets)]
        results = engine.run(
            targets,
            options,
            sink=self._store,
            control=self._control,
            verify=self._verify,
            budget=budget,
            tenant=self._tenant,
        )
        async with aclosing(results):
            async for result in results:
                self.outcomes.append(of_outcome(self._planned(result.target), result))
                self._on_outcome()

    async def drop(self) -> None:
        """Delete the stored traces, after the writes in progress have ended."""
        await asyncio.gather(*self._puts, return_exceptions=True)
        await self._session.drop(list(self._puts.values()))

    def _target(self, number: int, planned: PlannedTarget) -> Target:
        own_file = self._plan.delivery is not Delivery.OPERATOR and planned.directory.medium is not Medium.VOLUME
        return Target(
            host=planned.host,
            port=planned.port,
            stem=planned.stem,
            labels={"number": str(number), "uid": planned.uid},
            workload_root=str(planned.directory) if own_file else None,
            server_ok=planned.server_ok,
        )

    def _planned(self, target: Target) -> PlannedTarget:
        return self._plan.targets[int(target.labels["number"])]

    async def _store(self, target: Target, trace: memoryview) -> StoredTrace:
        put = asyncio.ensure_future(self._session.put(self._planned(target), trace))
        self._puts[put] = self._planned(target)
        put.add_done_callback(self._settle)
        try:
            return await asyncio.shield(put)
        finally:
            del put  # its error refers to this frame, and both to the trace

    def _settle(self, put: asyncio.Task[Stored]) -> None:
        """Forget a failed write: its traceback holds the trace, its caller may be gone."""
        if put.cancelled() or put.exception() is not None:
            del self._puts[put]

    async def _verify(self, target: Target) -> str | None:
        number, uid = target.labels["number"], target.labels["uid"]
        if number in self._contacted:
            return await self._addresses.after(uid, target.host)
        self._contacted.add(number)
        return await self._addresses.before(uid, target.host)
