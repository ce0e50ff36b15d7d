"""Servers of `mldiag xprof`: on this machine, Kubernetes and Compute Engine."""

from __future__ import annotations

import asyncio
import json
import time
import webbrowser
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.locations import absolute_location
from mldiagnostics_kube.client.cluster_options import ClusterOptions

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.deletion import confirm
from mldiagnostics_cli.output import note, show, show_document, show_rows
from mldiagnostics_cli.xprof.gce import GCE, delete_on_gce, forward_on_gce, host_on_gce, list_on_gce
from mldiagnostics_cli.xprof.instances import columns, free_name, matching
from mldiagnostics_cli.xprof.local import LOCAL, create_local, delete_local, has_profiles, list_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.xprof.gce import MachineSpec
    from mldiagnostics_cli.xprof.instances import XprofInstance
    from mldiagnostics_cli.xprof.manifests import XprofSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerScope:
    """The servers that a command means.

    Args:
        on: Their place; None for this machine and the cluster.
        cluster: Which cluster.
        zones: Zones of Compute Engine; empty for all.
        filters: Filters of gcloud; a machine passes all of them.
        runs: Place of runs whose servers may be meant; None if only servers are named.
    """

    on: str | None
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    zones: Sequence[str] = ()
    filters: Sequence[str] = ()
    runs: SourceChoice | None = None


def create_here(
    log_directory: str,
    output: OutputFormat,
    *,
    name: str | None,
    port: int,
    idle_s: float,
    cache_bytes: int,
    another: bool,
    open_page: bool,
) -> None:
    """Host a log directory on this machine, or show the server that does so already.

    Args:
        log_directory: A path or URL.
        output: Format of the result.
        name: Name of the server; None for one after the directory.
        port: Port of 127.0.0.1; 0 for a free one.
        idle_s: It ends after so many seconds without traffic; 0 for never.
        cache_bytes: Most bytes of the copy of a bucket that XProf cannot read.
        another: Whether a second server for the directory is made.
        open_page: Whether a browser opens it.

    Raises:
        ConfigurationError: It cannot start.
    """
    existing = [] if another else matching(list_local(), absolute_location(log_directory))
    if existing:
        note(f"{log_directory}: is hosted already; `mldiag xprof create --new` makes another server.")
    instance = (
        existing[0]
        if existing
        else create_local(log_directory, name=name, port=port, idle_s=idle_s, cache_bytes=cache_bytes)
    )
    _show([instance], output)
    if not has_profiles(log_directory):
        note(f"{log_directory}: has no profiles yet; pass the directory above plugins/profile if they are elsewhere.")
    if open_page:
        webbrowser.open(instance.url)


def host_here(log_directory: str, *, idle_s: float) -> XprofInstance:
    """Return the server of a log directory on this machine; start it if needed.

    Raises `ConfigurationError`.
    """
    existing = matching(list_local(), absolute_location(log_directory))
    return existing[0] if existing else create_local(log_directory, name=None, port=0, idle_s=idle_s)


def create_in_cluster(
    options: ClusterOptions, spec: XprofSpec, output: OutputFormat, *, another: bool, wait: bool, dry_run: bool
) -> None:
    """Host a log directory in a cluster, or show the server that does so already.

    Args:
        options: Which cluster.
        spec: The server; an empty name is replaced by one after the directory.
        output: Format of the result.
        another: Whether a second server for the directory is made.
        wait: Whether it waits until the server answers.
        dry_run: Whether the objects are only printed.

    Raises:
        ConfigurationError: The log directory cannot be read in a pod, or the server does not start.
        ClusterFailure: The cluster rejects it.
    """
    if dry_run:
        from mldiagnostics_cli.xprof.manifests import objects  # noqa: PLC0415 - only where it is needed

        named = replace(spec, name=spec.name or free_name(spec.log_directory, []))
        items = json.loads(json.dumps(objects(named)))  # without YAML's anchors
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        show_document(document, output if output is OutputFormat.JSON else OutputFormat.YAML)
        return
    from mldiagnostics_cli.xprof.in_cluster import host_in_cluster  # noqa: PLC0415 - half a second, only for a cluster

    instance = asyncio.run(host_in_cluster(options, spec, another=another, wait=wait))
    _show([instance], output)
    note(f"Open it with `mldiag xprof connect {instance.name} -n {instance.namespace}`.")


def create_on_machine(spec: MachineSpec, output: OutputFormat, *, another: bool) -> None:
    """Host a log directory on Compute Engine, or show the server that does so.

    Raises:
        ConfigurationError: gcloud is not installed, or the directory is not in a bucket.
        MLDiagnosticsError: gcloud rejects the machine.
    """
    instance = host_on_gce(spec, another=another)
    _show([instance], output)
    note(f"Open it with `mldiag xprof connect {instance.name} --on gce`.")


def show_instances(scope: ServerScope, output: OutputFormat, *, wanted: Sequence[str] = ()) -> None:
    """Print servers; if `wanted` are given, those of these names or log directories.

    A cluster that cannot be read is an error only if the scope names it.
    """
    known = _instances(scope)
    instances = [each for each in known if any(_meant([each], name) for name in wanted)] if wanted else known
    if not instances and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        note("No servers of XProf; `mldiag xprof create` makes one.")
        return
    _show(instances, output)


def connect_instance(scope: ServerScope, wanted: str, *, port: int, open_page: bool) -> None:
    """Print the link of a server.

    One that is not on this machine is forwarded until Ctrl-C.

    Args:
        scope: Its place.
        wanted: Its name, its log directory, or a run with this directory.
        port: Port on this machine for a server elsewhere; 0 for a free one.
        open_page: Whether a browser opens it.

    Raises:
        ConfigurationError: There is no such server, or several.
        ClusterFailure: The cluster rejects it.
    """
    instance = _one(_instances(scope), wanted, scope.runs)
    if instance.on == LOCAL:
        show(instance.url)
        if open_page:
            webbrowser.open(instance.url)
        return
    asyncio.run(_forward(scope.cluster, instance, port=port, open_page=open_page))


def delete_instances(scope: ServerScope, wanted: Sequence[str], *, yes: bool, flag: str = "--yes") -> None:
    """Delete servers after a confirmation; profiles stay.

    Args:
        scope: Their places.
        wanted: Their names, log directories or runs.
        yes: Whether they are confirmed already.
        flag: The flag of the command that says so.

    Raises:
        ConfigurationError: There is no such server, or nobody can confirm. Nothing is deleted then.
    """
    known = _instances(scope)
    chosen = {(each.on, each.namespace, each.name): each for name in wanted for each in [_one(known, name, scope.runs)]}
    names = ", ".join(each.name for each in chosen.values())
    if not yes:
        confirm(names, f"Delete the servers {names}? Profiles stay.", flag=flag)
    for instance in chosen.values():
        if instance.on == LOCAL:
            delete_local(instance.name)
    delete_on_gce([each for each in chosen.values() if each.on == GCE])
    in_cluster = [each for each in chosen.values() if each.on not in {LOCAL, GCE}]
    if in_cluster:
        from mldiagnostics_cli.xprof.in_cluster import delete_in_cluster  # noqa: PLC0415 - as above

        asyncio.run(delete_in_cluster(scope.cluster, in_cluster))
    show("\n".join(f"xprof {each.name} deleted" for each in chosen.values()))


def _instances(scope: ServerScope) -> list[XprofInstance]:
    options, on = scope.cluster, scope.on
    if on == GCE:
        return list_on_gce(scope.zones, scope.filters)
    local = [] if on not in {None, LOCAL} or (on is None and options.are_given) else list_local()
    if on == LOCAL:
        return local
    from mldiagnostics_cli.xprof.in_cluster import list_in_cluster  # noqa: PLC0415 - half a second, only for a cluster

    try:
        return [*local, *asyncio.run(list_in_cluster(options))]
    except MLDiagnosticsError:
        if on is not None or options.are_given:
            raise
        return local


async def _forward(options: ClusterOptions, instance: XprofInstance, *, port: int, open_page: bool) -> None:
    def opened(local_port: int) -> None:
        url = f"http://127.0.0.1:{local_port}/"
        show(url)
        note("Ctrl-C ends the connection; the server goes on.")
        if open_page:
            webbrowser.open(url)

    if instance.on == GCE:
        await forward_on_gce(instance, port=port, opened=opened)
    else:
        from mldiagnostics_cli.xprof.in_cluster import forward_in_cluster  # noqa: PLC0415 - as above

        await forward_in_cluster(options, instance, port=port, opened=opened)


def _meant(instances: Sequence[XprofInstance], wanted: str) -> list[XprofInstance]:
    return matching(instances, wanted) or matching(instances, absolute_location(wanted))


def _of_run(instances: Sequence[XprofInstance], wanted: str, runs: SourceChoice) -> list[XprofInstance]:
    """Return the servers of the directory of a run; none if no run is meant."""
    from mldiagnostics_cli.profiles.references import named_directory  # noqa: PLC0415 - only for a run

    try:
        return _meant(instances, named_directory(runs, wanted))
    except MLDiagnosticsError:
        return []


def _one(instances: Sequence[XprofInstance], wanted: str, runs: SourceChoice | None) -> XprofInstance:
    found = _meant(instances, wanted) or ([] if runs is None else _of_run(instances, wanted, runs))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{each.name} on {each.on}" for each in found)
        choice = "the name of one" if len({each.on for each in found}) == 1 else "a name and --on"
        raise ConfigurationError(f"{wanted}: {len(found)} servers of XProf are meant: {names}; pass {choice}")
    known = ", ".join(each.name for each in instances)
    hint = f"the servers are: {known}" if known else "`mldiag xprof create` makes one"
    raise ConfigurationError(f"{wanted}: no server of XProf has this name or log directory; {hint}")


def _show(instances: Sequence[XprofInstance], output: OutputFormat) -> None:
    show_rows(
        instances,
        columns(time.time()),
        output,
        name=lambda each: each.name,
        document=lambda each: each.to_json(),
    )
