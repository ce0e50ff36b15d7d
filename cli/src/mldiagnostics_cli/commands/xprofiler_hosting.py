"""`mldiag xprofiler create|list|connect|delete`: servers of XProf by xprofiler's flags."""

from __future__ import annotations

import click

from mldiagnostics_cli.commands.options import OutputFormat, examples, needed
from mldiagnostics_cli.commands.xprofiler_options import ManyValuesCommand, ignored

_VERBOSE = "Accepted; it has no effect."
_ZONE = "Zone of the virtual machine; not used with --gke."
_GKE = "Servers on Kubernetes, in the namespace xprofiler; else virtual machines."


def _format(is_abbreviated: object) -> OutputFormat:
    return OutputFormat.NAME if is_abbreviated else OutputFormat.TABLE


@click.command(
    "create",
    epilog=examples(
        "mldiag xprofiler create -z us-east5-a -l gs://bucket/run",
        "mldiag xprofiler create -z us-east5-a -l gs://bucket/run --gke --image xprof:2.24",
    ),
)
@click.option("-l", "--log-directory", required=True, metavar="URL", help="Log directory: gs://bucket/path.")
@click.option("-z", "--zone", required=True, metavar="ZONE", help=_ZONE)
@click.option("-n", "--vm-name", metavar="NAME", help="Name of the server; default: xprof-UUID.")
@click.option(
    "-m",
    "--machine-type",
    metavar="TYPE",
    default="c4-highmem-8",
    show_default=True,
    help="Type of the virtual machine; with --gke the pod has its size.",
)
@ignored("--auto-delete-on-failure-off", help="Accepted; no machine is deleted by itself.")
@click.option(
    "--skip-creation-if-exists",
    is_flag=True,
    help="Only show a server that exists; default: ask whether to make another.",
)
@click.option("--gke", is_flag=True, help="On Kubernetes, in the namespace xprofiler; else on a virtual machine.")
@click.option("--image", metavar="IMAGE", help="With --gke: image with the commands xprof and python3; needed.")
@ignored("-v", "--verbose", help=_VERBOSE)
@click.pass_obj
def create(
    is_abbreviated: object,
    *,
    log_directory: str,
    zone: str,
    vm_name: str | None,
    machine_type: str,
    skip_creation_if_exists: bool,
    gke: bool,
    image: str | None,
) -> None:
    """Host XProf over a log directory on a virtual machine of Compute Engine, by gcloud, or on Kubernetes.

    The machine installs XProf at its first start and costs until it is deleted; `connect` opens it. On Kubernetes the
    pod has the ServiceAccount xprofiler, as in xprofiler. To host on this machine, use `mldiag xprof create`.
    """
    from mldiagnostics_cli.xprofiler.hosting import create_on_gce, create_on_gke

    if not gke:
        create_on_gce(
            log_directory,
            vm_name,
            _format(is_abbreviated),
            zone=zone,
            machine_type=machine_type,
            skip_if_exists=skip_creation_if_exists,
        )
        return
    image = needed(image, "--image", "an image with the commands xprof and python3")
    create_on_gke(log_directory, vm_name, _format(is_abbreviated), image=image, machine_type=machine_type)


@click.command(
    "list",
    cls=ManyValuesCommand,
    epilog=examples(
        "mldiag xprofiler list -z us-east5-a",
        "mldiag xprofiler list -z us-east5-a -l gs://bucket/run gs://bucket/other",
    ),
)
@click.option("-z", "--zones", "--zone", multiple=True, metavar="ZONE...", help="Zones; default: all.")
@click.option("-l", "--log-directory", "directories", multiple=True, metavar="URL...", help="Of these log directories.")
@click.option("-n", "--vm-name", "names", multiple=True, metavar="NAME...", help="Of these names.")
@click.option("--gke", is_flag=True, help=_GKE)
@click.option(
    "-f", "--filter", "filters", multiple=True, metavar="FILTER...", help="Filters of gcloud; a machine passes all."
)
@ignored("-v", "--verbose", help=_VERBOSE)
@click.pass_obj
def list_(
    is_abbreviated: object,
    *,
    zones: tuple[str, ...],
    directories: tuple[str, ...],
    names: tuple[str, ...],
    filters: tuple[str, ...],
    gke: bool,
) -> None:
    """List servers; those that match one of the names or log directories, if any is given."""
    from mldiagnostics_cli.xprofiler.hosting import list_servers

    if filters and gke:
        raise click.UsageError(
            f"--filter {filters[0]}: is a filter of gcloud, which --gke does not use; use --vm-name or --log-directory",
            click.get_current_context(),
        )
    output = _format(is_abbreviated)
    list_servers([*names, *directories], output, zones=zones, filters=filters, is_gke=gke)


@click.command("connect", epilog=examples("mldiag xprofiler connect -z us-east5-a -l gs://bucket/run -p 6006"))
@click.option("-l", "--log-directory", required=True, metavar="URL", help="Log directory of the server.")
@click.option("-z", "--zone", required=True, metavar="ZONE", help="Zone of the virtual machine.")
@click.option(
    "-m",
    "--mode",
    type=click.Choice(["ssh", "proxy"]),
    default="ssh",
    show_default=True,
    expose_value=False,
    help="Accepted; the connection is a tunnel of ssh.",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    default=6006,
    show_default=True,
    metavar="PORT",
    help="Port on this machine.",
)
@click.option(
    "--host-port",
    type=click.IntRange(1, 65535),
    default=6006,
    show_default=True,
    expose_value=False,
    metavar="PORT",
    help="Accepted; the port of the server is known.",
)
@click.option("-d", "--disconnect", is_flag=True, help="Only says that Ctrl-C ended the connection already.")
@ignored("-u", "--use-ssh-proxy", help="Accepted; the proxy is that of your ssh configuration.")
@ignored("-v", "--verbose", help=_VERBOSE)
def connect(*, log_directory: str, zone: str, port: int, disconnect: bool) -> None:
    """Print the link of a server on a virtual machine, and forward it by ssh until Ctrl-C.

    `mldiag xprof connect` opens one on Kubernetes.
    """
    from mldiagnostics_cli.output import note
    from mldiagnostics_cli.xprofiler.hosting import connect_server

    if disconnect:
        note("No connection is open: Ctrl-C in the command that made it has ended it.")
        return
    connect_server(log_directory, zone=zone, port=port)


@click.command(
    "delete",
    cls=ManyValuesCommand,
    epilog=examples(
        "mldiag xprofiler delete -z us-east5-a -l gs://bucket/run",
        "mldiag xprofiler delete -z us-east5-a -n trainer -q",
    ),
)
@click.option("-z", "--zone", required=True, metavar="ZONE", help=_ZONE)
@click.option("-l", "--log-directory", "directories", multiple=True, metavar="URL...", help="Of these log directories.")
@click.option("-n", "--vm-name", "names", multiple=True, metavar="NAME...", help="Of these names.")
@click.option("--gke", is_flag=True, help=_GKE)
@click.option("-q", "--quiet", is_flag=True, help="Do not ask for a confirmation.")
@ignored("-v", "--verbose", help=_VERBOSE)
def delete(*, zone: str, directories: tuple[str, ...], names: tuple[str, ...], gke: bool, quiet: bool) -> None:
    """Delete servers; the profiles stay."""
    from mldiagnostics_cli.xprofiler.hosting import delete_servers

    if not names and not directories:
        raise click.UsageError(
            "--vm-name or --log-directory: neither is given; pass one of them", click.get_current_context()
        )
    delete_servers([*names, *directories], zone=zone, is_gke=gke, yes=quiet)
