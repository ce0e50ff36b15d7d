"""All watches that runs need, and the copies of objects that they keep."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from mldiagnostics_operator.runs.watches.pod_watches import PodWatches
from mldiagnostics_operator.runs.watches.queue_watches import QueueWatches
from mldiagnostics_operator.runs.watches.run_watch import RunWatch
from mldiagnostics_operator.runs.watches.workload_watches import WorkloadWatches

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_operator.runs.event_handlers import RunEventHandlers
    from mldiagnostics_operator.runs.services import RunServices
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey


class RunWatches:
    """Watches runs, their workloads and pods, and Kueue's Workloads.

    Args:
        services: The edges of the leadership.
        handlers: Receive the events.
        is_followed: Returns whether the run of pods is in memory.
    """

    def __init__(
        self, services: RunServices, handlers: RunEventHandlers, *, is_followed: Callable[[LabelKey], bool]
    ) -> None:
        cluster, telemetry, backoff = services.cluster, services.telemetry, services.backoff
        served = services.config.watch_namespaces
        self.runs: Final = RunWatch(
            cluster, services.namespaces, handlers.on_run, handlers.on_run_left, telemetry, backoff=backoff
        )
        self.workloads: Final = WorkloadWatches(cluster, served, handlers.on_workload, telemetry, backoff=backoff)
        self.pods: Final = PodWatches(
            cluster,
            served,
            handlers.on_pods,
            telemetry,
            is_followed=is_followed,
            backoff=backoff,
            clock=services.clock,
        )
        self.queues: Final = QueueWatches(cluster, handlers.on_queue, telemetry, backoff=backoff, clock=services.clock)

    async def run(self) -> None:
        """Watch workloads, pods and queues until cancelled; `runs` is run before."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.workloads.run())
            group.create_task(self.pods.run())
            group.create_task(self.queues.run())
