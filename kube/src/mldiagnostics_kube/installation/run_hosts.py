"""Pods and hosts of a run, with the rights of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.runs.hosts import hosts_of
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_api.workloads.pods import PodView

from mldiagnostics_kube.client.apiserver import path_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.runs import RankRow, RunRow

    from mldiagnostics_kube.client.api_client import ApiClient


async def list_pods(client: ApiClient, row: RunRow) -> list[PodView]:
    """Return the pods of a run. Raises `ClusterError`."""
    path = path_to("", "v1", "pods", namespace=row.namespace)
    return await client.items(path, PodView.of, labels=f"{RUN_LABEL}={run_label(row.run_id)}")


async def list_hosts(client: ApiClient, body: Mapping[str, Any], row: RunRow) -> list[RankRow]:
    """Return the ranks of an MLRun with their hosts. Raises `ClusterError`."""
    return hosts_of(body, await list_pods(client, row), attempt=row.attempt)
