"""Ranks of a run from its pods, where the files of the run are not at hand."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from mldiagnostics.lifecycle.outcome import Phase
from mldiagnostics.runs.rank_row import RankRow
from mldiagnostics.runs.row_values import FieldReader

from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.profiler_ports import published_ports
from mldiagnostics_api.workloads.ranking import order, slice_of, without_superseded

_PHASES: Final = {"Pending": "Pending", "Succeeded": "Completed", "Failed": "Failed"}


def hosts_of(body: Mapping[str, Any], pods: Iterable[PodView], *, attempt: int | None) -> list[RankRow]:
    """Return the ranks of an MLRun, by rank.

    A pod that publishes several profiler ports has a rank for each, as in captures.

    Args:
        body: The MLRun as the API returns it: its exceptions are the reasons and messages.
        pods: Pods of the run.
        attempt: Attempt of the run; None where unknown.
    """
    exceptions = FieldReader(body).part("status").part("hosts").parts("exceptions")
    by_host = {fields.text("host"): fields for fields in exceptions}
    ordered = sorted(without_superseded(pods), key=order)
    ports = [(pod, port) for pod in ordered for port in _ports(pod) or (None,)]
    return [
        _rank_row(rank, pod, port, by_host.get(pod.name, FieldReader({})), attempt or 0)
        for rank, (pod, port) in enumerate(ports)
    ]


def _ports(pod: PodView) -> tuple[int, ...]:
    try:
        return published_ports(pod)
    except ValueError:  # a capture says what is wrong with them
        return ()


def _rank_row(rank: int, pod: PodView, port: int | None, exception: FieldReader, attempt: int) -> RankRow:
    return RankRow(
        rank=rank,
        attempt=attempt,
        incarnation="",
        host=pod.name,
        phase=cast(Phase, _PHASES.get(pod.phase, "Active")),
        reason=exception.text("reason"),
        message=exception.text("message"),
        heartbeat=None,
        step=None,
        pod=pod.name,
        pod_uid=pod.uid,
        node=pod.node or None,
        slice=slice_of(pod),
        port=port,
    )
