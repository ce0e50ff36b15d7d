"""Checks of the schedules of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.names import ScheduleConditionType, ScheduleReason
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_kube.client.apiserver import NotFound, path_to

from mldiagnostics_cli.doctor.finding import DoctorFinding, broken, fine, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_kube.client.cluster import Cluster


PART: Final = "schedules"
MOST: Final = 100


async def check_schedules(cluster: Cluster) -> list[DoctorFinding]:
    """Return the findings about the schedules of the namespace; none without one."""
    path = path_to(*SCHEDULES.gvr, namespace=cluster.namespace)
    try:
        return schedule_findings(await cluster.client.items(path, dict, most=MOST))
    except NotFound:  # an older chart: another check says so
        return []


def schedule_findings(bodies: Sequence[Mapping[str, Any]]) -> list[DoctorFinding]:
    """Return the schedules that make no captures, else one line for all; pure.

    Those whose budgets refuse captures are among them.
    """
    findings = [finding for body in bodies if (finding := _problem(body)) is not None]
    if findings or not bodies:
        return findings
    return [fine(PART, f"{len(bodies)} in this namespace, none with a problem")]


def _problem(body: Mapping[str, Any]) -> DoctorFinding | None:
    name = body["metadata"]["name"]
    ready = condition_of(body, ScheduleConditionType.READY)
    budget = condition_of(body, ScheduleConditionType.BUDGET_AVAILABLE)
    if ready is None:
        return unknown(PART, f"{name}: no operator has read it yet", "see the line of the operator")
    if not ready.holds and ready.reason != ScheduleReason.SUSPENDED:
        return broken(PART, f"{name}: {ready.reason}: {ready.message}", f"mldiag schedules get {name}")
    if budget is not None and not budget.holds:
        return broken(PART, f"{name}: budgets refuse captures: {budget.message}", f"mldiag schedules get {name}")
    return None
