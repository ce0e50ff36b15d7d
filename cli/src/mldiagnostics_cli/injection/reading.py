"""`mldiag explain`: read an object and print the webhook's decision."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.terminal import printable
from mldiagnostics_api.injection import OwnersUnknown
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_kube.client.apiserver import ClusterError, path_to
from mldiagnostics_kube.client.cluster import connect

from mldiagnostics_cli.cluster.objects import ObjectName, owners_of, read_object
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.injection.explanation import (
    InjectionExplanation,
    InjectionState,
    explain_pod,
    explain_workload,
)
from mldiagnostics_cli.output import show, show_document

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster import Cluster
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


def show_explanation(target: str, options: ClusterOptions, output: OutputFormat) -> None:
    """Print why a pod or the pods of a workload have a run, or none.

    Raises:
        ConfigurationError: There is no such object.
        ClusterFailure: It cannot be read.
    """
    explanation = asyncio.run(_explain(target, options))
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document(explanation.to_json(), output)
    else:
        show("\n".join(map(printable, _lines(explanation))))


async def explain_object(cluster: Cluster, name: ObjectName, found: Any) -> InjectionExplanation:
    """Return the explanation of an object that was read. Raises `ClusterError`."""
    namespace = await cluster.client.get(path_to("", "v1", "namespaces", name=cluster.namespace), metadata_only=True)
    owners = await owners_of(cluster.client, ObjectReference.to_controller(found["metadata"], cluster.namespace))
    if name.is_pod:
        return explain_pod(found, namespace, owners, datetime.now(UTC))
    if name.kind.groups:
        raise ConfigurationError(
            f"{name.text}: only groups runs; explain one of its parts, {name.kind.parts[0].lower()}/NAME"
        )
    if isinstance(owners, OwnersUnknown):
        raise ConfigurationError(f"{name.text}: its owners cannot be read: {owners.message}; ask for that right")
    top = owners[-1] if owners else found
    run_id = await _run_id(cluster, top["metadata"]["uid"])
    try:
        return explain_workload(found, namespace, owners, run_id)
    except ValueError as error:
        raise ConfigurationError(f"{name.text}: {error}; explain one of its pods") from error


async def _explain(target: str, options: ClusterOptions) -> InjectionExplanation:
    name = ObjectName.parse(target)
    async with connect(options) as cluster:
        return await explain_object(cluster, name, await read_object(cluster, name))


async def _run_id(cluster: Cluster, uid: str) -> str | None:
    """Return the id of the run of a workload.

    None if none is recorded or runs cannot be read.
    """

    def run_id(run: dict[str, Any]) -> str | None:
        of_workload = (run.get("spec") or {}).get("workloadRef") or {}
        return (run.get("status") or {}).get("runId") if of_workload.get("uid") == uid else None

    try:
        found = await cluster.client.items(path_to(*RUNS.gvr, namespace=cluster.namespace), run_id, most=1)
    except ClusterError:
        return None
    return found[0] if found else None


_HEADINGS = {
    InjectionState.INJECTED: "injected",
    InjectionState.NOT_INJECTED: "not injected",
    InjectionState.MISSED: "not injected",
}


def _lines(explanation: InjectionExplanation) -> list[str]:
    lines = [f"{explanation.object}: {_HEADINGS[explanation.state]} ({explanation.reason})", f"  {explanation.message}"]
    if explanation.run_id and explanation.run_id not in explanation.message:
        lines.append(f"  run: {explanation.run_id}")
    if explanation.variables:
        lines.append(f"  variables: {', '.join(explanation.variables)}")
    if explanation.remedy:
        lines.append(f"  to change it: {explanation.remedy}")
    return lines
