"""`mldiag xprof`: servers of XProf over log directories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import OutputFormat, examples, needed, output_option, parsed
from mldiagnostics_cli.commands.source_options import SourceChoice, storage_option
from mldiagnostics_cli.xprof.limits import CACHE_BYTES, IDLE_S

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


LOCAL, KUBERNETES, GCE = "local", "kubernetes", "gce"
PLACES = (LOCAL, KUBERNETES, GCE)


def _parse_idle(text: str) -> float:
    from mldiagnostics.goodput.options import window

    return 0.0 if text == "0" else window(text)


def _parse_size(text: str) -> int:
    from mldiagnostics_cli.values import bytes_of

    return bytes_of(text)


where_option = click.option("--on", type=click.Choice(PLACES), help="Only servers there; default: both but gce.")
open_option = click.option("--open", "open_page", is_flag=True, help="Open it in a browser.")


@click.group(
    epilog=examples(
        "mldiag xprof create --on local profiles --open", "mldiag xprof list", "mldiag xprof connect profiles"
    )
)
def xprof() -> None:
    """Host XProf over a log directory, on this machine, on Kubernetes or on Compute Engine, and open it."""


@xprof.command(
    "create",
    epilog=examples(
        "mldiag xprof create --on local profiles --open",
        "mldiag xprof create trainer --open",
        "mldiag xprof create --on local s3://bucket/runs/4f6c --cache-size 50Gi --open",
        "mldiag xprof create gs://bucket/runs/4f6c --on kubernetes --image xprof:2.24 --service-account reader",
        "mldiag xprof create volume:///runs/4f6c --on kubernetes --image xprof:2.24 --claim mldiagnostics",
        "mldiag xprof create s3://bucket/runs/4f6c --on kubernetes --image REGISTRY/mldiagnostics-xprof:0.1.0 "
        "--service-account reader",
        "mldiag xprof create gs://bucket/runs/4f6c --on gce --zone us-east5-a",
    ),
)
@click.argument("reference", metavar="DIR|URL|RUN")
@click.option("--on", type=click.Choice(PLACES), default=LOCAL, show_default=True, help="Place of the server.")
@click.option("--name", metavar="NAME", help="Name of the server; by default after the directory.")
@click.option("--new", "another", is_flag=True, help="Make a second server for a directory that is hosted already.")
@click.option(
    "-p", "--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="local: port; by default a free one."
)
@click.option(
    "--idle-after",
    "idle_s",
    metavar="TIME",
    default=f"{IDLE_S / 3600:g}h",
    show_default=True,
    callback=parsed(_parse_idle),
    help="local, kubernetes: end after this time without traffic; 0 for never.",
)
@click.option(
    "--cache-size",
    "cache_bytes",
    metavar="SIZE",
    default=f"{CACHE_BYTES >> 30}Gi",
    show_default=True,
    callback=parsed(_parse_size),
    help="local, kubernetes: most disk for copies of sessions in s3:// and az://, which XProf cannot read.",
)
@open_option
@click.option("--image", metavar="IMAGE", help="kubernetes: image with the commands xprof and python3; needed.")
@click.option("--claim", metavar="NAME", help="kubernetes: claim of volume:///…, such as the operator's.")
@click.option("--service-account", metavar="NAME", help="kubernetes, gce: account that can read the bucket.")
@click.option(
    "--bucket-secret", metavar="NAME", help="kubernetes: Secret whose keys are the variables of s3:// or az://."
)
@click.option(
    "--machine-type",
    metavar="TYPE",
    help="kubernetes: size as of this machine; gce: its type; default there: c4-highmem-8.",
)
@click.option("--zone", metavar="ZONE", help="gce: zone of the virtual machine; needed.")
@click.option("--memory", metavar="SIZE", help="kubernetes: memory, such as 8Gi; default: 4Gi or that of the machine.")
@click.option("--ingress-host", metavar="HOST", help="kubernetes: Ingress for a shared link; it has no authentication.")
@click.option("--wait/--no-wait", default=True, help="kubernetes: wait until it answers.")
@click.option("--dry-run", is_flag=True, help="kubernetes: only print the objects.")
@storage_option
@cluster_options()
@output_option()
def _create(
    *, reference: str, on: str, storage: str | None, cluster: ClusterOptions, output: OutputFormat, **options: Any
) -> None:
    """Host XProf over a log directory; an existing server for the directory is shown instead of a second one.

    For a run, which is found as by `mldiag runs get`, it is the directory of the run.

    On this machine it is a process in the background that only this machine can reach. XProf cannot read s3:// and
    az://: a session there is copied when it is opened, and the sessions that nobody has opened for longest are deleted
    from the copy when it is full. On Kubernetes it is a restricted pod that only port-forward reaches, unless an
    Ingress is requested; a server there that has ended is started again. Its image needs mldiagnostics-cli for s3://
    and az://, as mldiagnostics-xprof has it. On Compute Engine it is a virtual machine that
    only ssh reaches; gcloud makes it, and it costs until it is deleted. Open the last two with `mldiag xprof connect`.
    """
    from mldiagnostics_cli.profiles.references import named_directory

    log_directory = named_directory(SourceChoice(storage=storage, cluster=cluster), reference)
    if on == LOCAL:
        from mldiagnostics_cli.xprof.hosting import create_here

        names = ("name", "port", "idle_s", "cache_bytes", "another", "open_page")
        create_here(log_directory, output, **{name: options[name] for name in names})
    elif on == GCE:
        _create_on_machine(log_directory, output, **options)
    else:
        _create_in_cluster(log_directory, cluster, output, **options)


def _create_on_machine(log_directory: str, output: OutputFormat, **options: Any) -> None:
    from mldiagnostics_cli.xprof.gce import MACHINE_TYPE, MachineSpec
    from mldiagnostics_cli.xprof.hosting import create_on_machine

    machine = MachineSpec(
        log_directory=log_directory.rstrip("/"),
        zone=needed(options["zone"], "--zone", "a zone such as us-east5-a"),
        name=options["name"] or "",
        machine_type=options["machine_type"] or MACHINE_TYPE,
        service_account=options["service_account"],
    )
    create_on_machine(machine, output, another=options["another"])


def _create_in_cluster(log_directory: str, cluster: ClusterOptions, output: OutputFormat, **options: Any) -> None:
    from mldiagnostics_cli.xprof.hosting import create_in_cluster
    from mldiagnostics_cli.xprof.instances import trimmed
    from mldiagnostics_cli.xprof.manifests import XprofSpec, resources_of

    names = ("claim", "service_account", "bucket_secret", "cache_bytes", "idle_s")
    spec = XprofSpec(
        name=options["name"] or "",
        log_directory=trimmed(log_directory),
        image=needed(options["image"], "--image", "an image with the commands xprof and python3"),
        resources=resources_of(options["machine_type"], options["memory"]),
        host=options["ingress_host"],
        **{name: options[name] for name in names},
    )
    steps = {name: options[name] for name in ("another", "wait", "dry_run")}
    create_in_cluster(cluster, spec, output, **steps)


@xprof.command("list", epilog=examples("mldiag xprof list", "mldiag xprof list --on kubernetes -A -o wide"))
@where_option
@cluster_options(all_namespaces=True)
@output_option()
def _list(*, on: str | None, cluster: ClusterOptions, output: OutputFormat) -> None:
    """List servers with their log directories and links."""
    from mldiagnostics_cli.xprof.hosting import ServerScope, show_instances

    show_instances(ServerScope(on=on, cluster=cluster), output)


@xprof.command(
    "connect", epilog=examples("mldiag xprof connect profiles --open", "mldiag xprof connect trainer -n ml --port 6006")
)
@click.argument("server", metavar="NAME|DIR|URL|RUN")
@where_option
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Port on this machine for a server elsewhere; by default a free one.",
)
@open_option
@storage_option
@cluster_options()
def _connect(
    *, server: str, on: str | None, port: int, open_page: bool, storage: str | None, cluster: ClusterOptions
) -> None:
    """Print the link of a server, or open it. One on Kubernetes or Compute Engine is forwarded until Ctrl-C.

    One on Kubernetes that has ended is started again. If its pod is replaced, the same link goes to the new one.
    """
    from mldiagnostics_cli.xprof.hosting import ServerScope, connect_instance

    scope = ServerScope(on=on, cluster=cluster, runs=SourceChoice(storage=storage, cluster=cluster))
    connect_instance(scope, server, port=port, open_page=open_page)


@xprof.command("delete", epilog=examples("mldiag xprof delete profiles", "mldiag xprof delete trainer -n ml --yes"))
@click.argument("server", nargs=-1, required=True, metavar="NAME|DIR|URL|RUN...")
@where_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask for a confirmation.")
@storage_option
@cluster_options()
def _delete(
    *, server: tuple[str, ...], on: str | None, yes: bool, storage: str | None, cluster: ClusterOptions
) -> None:
    """Delete servers; the profiles stay."""
    from mldiagnostics_cli.xprof.hosting import ServerScope, delete_instances

    scope = ServerScope(on=on, cluster=cluster, runs=SourceChoice(storage=storage, cluster=cluster))
    delete_instances(scope, server, yes=yes)
