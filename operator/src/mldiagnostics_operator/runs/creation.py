"""Creates the object of each run that a workload or a report shows."""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import FINISHED_RUN_PHASES, RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import reported_run_name, run_label, run_name
from mldiagnostics_kube.client.apiserver import Conflict, NotFound, path_to

from mldiagnostics_operator.runs.reported_quota import MAX_CREATED, MAX_UNFINISHED, ReportedRunQuota
from mldiagnostics_operator.runs.run import Run, run_manifest

if TYPE_CHECKING:
    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.memory.table import ReportTable
    from mldiagnostics_operator.runs.run_index import RunIndex
    from mldiagnostics_operator.runs.services import RunServices
    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities

_log: Final = logging.getLogger(__name__)

LATE_S: Final = 86_400.0
"""A workload that ended before gets no run: its run may have been deleted on purpose, or has expired even earlier."""
REPORT_GRACE_S: Final = 30.0
"""A run that pods report belongs to a workload, whose watch may be late by this much."""


class RunCreation:
    """Finds or creates the objects of runs.

    Args:
        services: The edges of the leadership.
        runs: The runs in memory, which get those that it finds or creates.
        identities: Decide which workloads are runs.
        reports: Reports of processes.
    """

    def __init__(
        self, services: RunServices, runs: RunIndex, identities: WorkloadIdentities, reports: ReportTable
    ) -> None:
        self._services = services
        self._runs = runs
        self._identities = identities
        self._reports = reports
        self._accepting = True
        self._listed_s = inf
        """When the watches of workloads had listed."""
        self._quota = ReportedRunQuota()

    def stop(self) -> None:
        """Create no run any more."""
        self._accepting = False

    def note_listed(self) -> None:
        """Note that the watches of workloads have listed.

        Before, no reported run is known to lack a workload.
        """
        self._listed_s = self._services.clock().timestamp()

    async def of_workload(self, observed: ObservedWorkload) -> Run | None:
        """Return the run of a workload; None if it has none. Raises ClusterError."""
        opted_in = await self._identities.decide(observed) if self._accepting else None
        if opted_in is None:
            return None
        workload, identity = opted_in.observed, opted_in.identity
        known = self._runs.of_workload(workload.uid)
        if known is not None:
            return known
        if self._is_over(workload):
            self._runs.note_no_run(workload.uid)
            return None
        name = run_name(workload.name, identity.run_id)
        run = await self._create(
            run_manifest(
                name, workload.namespace, identity.run_id, workload=opted_in.reference, group=identity.group or ""
            )
        )
        if run is None:
            return None
        if run.workload is None or run.workload.uid != workload.uid:
            _log.warning(
                "%(kind)s %(namespace)s/%(object)s has no run: %(run)s is that of another workload, created "
                "in the same second",
                {"kind": workload.kind.kind, "namespace": workload.namespace, "object": workload.name, "run": name},
            )
            self._runs.note_no_run(workload.uid)
            return None
        if run.finished:
            self._runs.note_end(run)
            self._runs.remove(run)
            return None
        return run

    def unrecorded(self, key: RunKey) -> ReportedRun | None:
        """Return the reports of a run that needs an object; None if it needs none."""
        reported = self._reports.view(key)
        if reported is None or self._runs.of_report(key) or self._runs.has_end_of(key) or not self._accepting:
            return None
        now_s = self._services.clock().timestamp()
        # The peer's client names no host, but reports from pods alone.
        in_cluster = bool(reported.aliases) or any(host.pod for host in reported.hosts)
        known_since_s = max(reported.first_received, self._listed_s)  # a new leader has reports before workloads
        may_have_workload = in_cluster and now_s - known_since_s < REPORT_GRACE_S
        is_over = now_s - reported.last_received > reported.silent_s  # it ended or was lost, and its object says so
        return None if may_have_workload or is_over else reported

    def count_reported(self) -> None:
        """Count the unfinished runs without a workload, for the share of their namespaces."""
        unfinished = (run.meta.namespace for run in self._runs.all if run.workload is None and not run.finished)
        self._quota.recount(unfinished, self._services.clock().timestamp())

    async def of_reports(self, reported: ReportedRun) -> Run | None:
        """Return the run of reports; None if its namespace is gone, or has used its share.

        Raises ClusterError.
        """
        key = reported.key
        now_s = self._services.clock().timestamp()
        if not self._quota.admits(key.namespace):
            self._services.telemetry.control_plane.limited(key.namespace)
            if self._quota.is_first_excess(key.namespace, now_s):
                _log.warning(
                    "Namespace %(namespace)s has %(unfinished)d unfinished reported runs or %(created_within_hour)d "
                    "new ones within an hour; others get no MLRun",
                    {"namespace": key.namespace, "unfinished": MAX_UNFINISHED, "created_within_hour": MAX_CREATED},
                )
            return None
        self._quota.note_created(key.namespace, now_s)
        name = reported_run_name(key.run_id)
        return await self._create(
            run_manifest(name, key.namespace, key.run_id, group=reported.group, title=reported.name)
        )

    async def of_ended(self, key: RunKey) -> Run | None:
        """Read an ended run that is not in memory; None without one.

        Raises ClusterError.
        """
        path = path_to(*RUNS.gvr, namespace=key.namespace)
        runs = await self._services.cluster.items(path, Run.of, labels=f"{RUN_LABEL}={run_label(key.run_id)}")
        ended = (run for run in runs if run.finished and run.run_id == key.run_id)
        run = next(ended, None) if self._runs.of_report(key) is None else None
        return self._runs.add(run) if run else None

    def _is_over(self, workload: ObservedWorkload) -> bool:
        state = workload.state
        if state is None or state.ended is None or state.phase not in FINISHED_RUN_PHASES:
            return False
        ttl_s = self._services.config.runs_ttl_s
        return (self._services.clock() - state.ended).total_seconds() > min(LATE_S, inf if ttl_s is None else ttl_s)

    async def _create(self, manifest: dict[str, Any]) -> Run | None:
        """Create a run, or return that of this name; None without a namespace."""
        metadata = manifest["metadata"]
        path = path_to(*RUNS.gvr, namespace=metadata["namespace"])
        await self._services.rate.take(metadata["namespace"])
        try:
            body = await self._services.cluster.create(path, manifest)
            self._services.telemetry.runs.created()
        except Conflict:  # raised again if the existing one is gone meanwhile: the next try creates it
            existing = await self._services.cluster.items(path, dict, fields=f"metadata.name={metadata['name']}")
            if not existing:
                raise
            body = existing[0]
        except NotFound:
            return None
        run = Run.of(body)
        known = self._runs.get(run.key)
        return known if known is not None and known.meta.uid == run.meta.uid else self._runs.add(run)
