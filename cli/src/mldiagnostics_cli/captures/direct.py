"""`mldiag capture --direct`: pods of a cluster without an operator.

They are reached by port-forward, with the rights of the user.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.counts import counted
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.targets import TargetCandidate, candidates
from mldiagnostics_api.ranges import Ranges
from mldiagnostics_api.runs.row import run_row_of
from mldiagnostics_api.workloads.kinds import selector_text, workload_of
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_kube.client.apiserver import NotFound, path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.installation.run_hosts import list_pods

from mldiagnostics_cli.captures.by_address import conclude, prepare, record, show_targets
from mldiagnostics_cli.captures.cluster_target import parse_selector
from mldiagnostics_cli.cluster.port_forward import LOCALHOST, PodPort, forwarded
from mldiagnostics_cli.output import note
from mldiagnostics_cli.runs.cluster_runs import find_run_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_kube.client.apiserver import ClusterError
    from mldiagnostics_kube.client.cluster import Cluster
    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing
    from mldiagnostics_cli.captures.ending import CaptureEnd
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.interruption import Interruption


_ANY = Policy(allowed_ports=Ranges.parse("1-65535"), host_network=True)
"""The rights of the user are the only limits: port-forward reaches what the user may reach."""


async def capture_directly(
    options: ClusterOptions,
    target: ClusterTarget,
    narrowing: TargetNarrowing,
    settings: CaptureSettings,
    output: OutputFormat,
    *,
    interruption: Interruption,
) -> CaptureEnd:
    """Capture pods through the API server, and print their outcomes.

    A dry run forwards no port.

    Raises:
        ConfigurationError: The target is not valid, or no pod can be captured.
        ClusterFailure: The pods cannot be read.
    """
    async with connect(options) as cluster, AsyncExitStack() as stack:
        found = await find_pods(cluster, target, narrowing, settings.port)
        reachable = [each for each in found if each.skip is None]
        for each in found:
            if each.skip is not None:
                note(f"{each.pod.name}  Skipped  {each.message}")
        if not reachable:
            raise ConfigurationError(
                f"{target.label}: {counted(len(found), 'pod')} of namespace '{cluster.namespace}' cannot be captured; "
                "check the target and its pods"
            )
        stems = [_stem(each) for each in reachable]
        shown = [f"{each.pod.name}:{each.port}" for each in reachable]
        if settings.dry_run:
            return show_targets(prepare(shown, settings, stems), output)
        addresses = [f"{LOCALHOST}:{await _forward(cluster, each, stack)}" for each in reachable]
        report = await record(prepare(shown, settings, stems, through=addresses), interruption)
    return conclude(report, output, interruption, missing=len(found) - len(reachable))


async def find_pods(
    cluster: Cluster, target: ClusterTarget, narrowing: TargetNarrowing, port: int | None
) -> Sequence[TargetCandidate]:
    """Return the profilers of the pods that are meant, by rank.

    Raises:
        ConfigurationError: The narrowing is not valid, or the workload has no pods.
        ClusterError: The pods cannot be read.
    """
    chosen = narrowing.filter()
    pods = await _pods(cluster, target)
    return candidates(pods, workload=lambda _: "", policy=_ANY, target_filter=chosen, port=port)


async def _pods(cluster: Cluster, target: ClusterTarget) -> list[PodView]:
    namespace = cluster.namespace
    path = path_to("", "v1", "pods", namespace=namespace)
    if target.pods:
        return [PodView.of(await _read(cluster, f"{path}/{name}", f"pod/{name}")) for name in target.pods]
    if target.run:
        return await list_pods(cluster.client, run_row_of(await find_run_object(cluster, target.run)))
    if target.selector:
        labels = selector_text(parse_selector(target.selector)) or ""
    else:
        kind = workload_of(target.kind)
        if kind is None:
            raise ConfigurationError(f"{target.kind}/{target.name}: not a supported kind; use --selector")
        place = path_to(kind.group, kind.versions[0], kind.plural, namespace=namespace, name=target.name)
        labels = kind.pods(await _read(cluster, place, f"{target.kind}/{target.name}")) or ""
        if not labels:
            raise ConfigurationError(f"{target.kind}/{target.name}: has no pods yet; wait until it runs")
    return await cluster.client.items(path, PodView.of, labels=labels)


async def _read(cluster: Cluster, path: str, name: str) -> dict[str, Any]:
    try:
        return await cluster.client.get(path)
    except NotFound as error:
        raise ConfigurationError(
            f"{name}: not in namespace '{cluster.namespace}' of {cluster.description}; check the name, or pass -n"
        ) from error


async def _forward(cluster: Cluster, candidate: TargetCandidate, stack: AsyncExitStack) -> int:
    pod = PodPort(candidate.pod.namespace, candidate.pod.name, candidate.port or 0)

    async def find() -> PodPort:
        return pod

    def failed(error: ClusterError) -> None:
        note(f"{pod.pod}  port-forward  {cluster.failure(error) if error.status else error}")

    return await stack.enter_async_context(forwarded(cluster.client, find, on_failure=failed))


def _stem(candidate: TargetCandidate) -> str:
    local = "" if candidate.local_rank is None else f"_{candidate.local_rank}"
    return f"{candidate.pod.name}{local}"
