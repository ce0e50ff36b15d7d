"""Deletes ended runs and, where they ask for it, their files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics_operator.runs.cleanup.artifacts import RunArtifacts
from mldiagnostics_operator.runs.cleanup.deletion import RunDeletions
from mldiagnostics_operator.runs.cleanup.expiry import RunExpiry

if TYPE_CHECKING:
    from mldiagnostics_operator.runs.services import RunServices
    from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords


class RunCleanup:
    """Deletes ended runs by age and number, and the files that go with a run.

    Args:
        services: The edges of the leadership.
        records: Writes files of runs; it forgets a run before its files are deleted.
    """

    def __init__(self, services: RunServices, records: ClusterRecords) -> None:
        self.deletions = RunDeletions(
            services.cluster,
            services.namespaces,
            RunArtifacts(services.storage, services.config.policy),
            services.rate,
            services.telemetry,
            records=records,
            me=services.me,
            clock=services.clock,
            backoff=services.backoff,
        )
        self._expiry = RunExpiry(
            services.cluster,
            services.namespaces,
            services.rate,
            ttl_s=services.config.runs_ttl_s,
            keep=services.config.runs_kept,
            clock=services.clock,
            seen=self.deletions.consider,
        )

    async def run(self) -> None:
        """Delete until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._expiry.run())
            group.create_task(self.deletions.run())
