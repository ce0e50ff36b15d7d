"""`mldiag capture`: profile a run, a workload or hosts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, parsed

if TYPE_CHECKING:
    from mldiagnostics_cli.captures.ending import CaptureWork
    from mldiagnostics_cli.cluster.options import ClusterOptions

__all__ = ["capture"]


def _parse_duration(text: str) -> int:
    from mldiagnostics_cli.captures.arguments import milliseconds

    return milliseconds(text)


_NARROWING = ("ranks", "slices", "nodes", "container", "limit")


@click.command(
    epilog=examples(
        "mldiag capture trainer-38ecfc8a2d",
        "mldiag capture jobset/trainer -n research --ranks 0-7 --duration 5s",
        "mldiag capture -l app=trainer --direct --open",
        "mldiag capture host-0:9999 10.0.0.7 --log-directory gs://bucket/profiles",
        "mldiag capture --hosts-file hosts.txt --dry-run",
        "mldiag capture --tpu-vm slice-0 --zone us-east5-a",
    )
)
@click.argument("target", nargs=-1)
@click.option("-l", "--selector", metavar="LABELS", help="Pods by their labels, as kubectl takes them.")
@cluster_options()
@click.option("--ranks", metavar="RANKS", help="Only these ranks, such as 0,4-7.")
@click.option("--slices", metavar="SLICES", help="Only these slices, such as 0-1.")
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="Only pods on this node; may be repeated.")
@click.option("--container", metavar="NAME", help="Only profilers of this container.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N targets.")
@click.option(
    "-f",
    "--file",
    "--hosts-file",
    "files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="File with a host in each line, - for standard input; may be repeated.",
)
@click.option("--slurm-job", metavar="ID", help="Hosts of a running Slurm job.")
@click.option(
    "--gce-vm", "vms", multiple=True, metavar="NAME", help="VM of Compute Engine, by gcloud; may be repeated."
)
@click.option("--tpu-vm", "tpu_vms", multiple=True, metavar="NAME", help="TPU VM, all its workers; may be repeated.")
@click.option("--zone", metavar="ZONE", help="Zone of the VMs.")
@click.option(
    "--log-directory",
    metavar="DIR|URL",
    help="Log directory of XProf; default: in a cluster that of the run, else ./profiles.",
)
@click.option(
    "-d",
    "--duration",
    metavar="TIME",
    default="2s",
    show_default=True,
    callback=parsed(_parse_duration),
    help="Length of the recording, such as 500ms or 2s.",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Port of hosts without one, and of pods that publish none; default: 9999.",
)
@click.option("--session", metavar="NAME", help="Name of the session; by default a new one.")
@click.option("--host-tracer", type=click.IntRange(0, 3), metavar="LEVEL", default=2, show_default=True, help="0 to 3.")
@click.option("--device-tracer", type=click.IntRange(0, 1), metavar="LEVEL", default=1, show_default=True, help="0, 1.")
@click.option("--python-tracer", type=click.IntRange(0, 1), metavar="LEVEL", default=0, show_default=True, help="0, 1.")
@click.option(
    "--allow-old-server",
    is_flag=True,
    help="Capture jaxlib < 0.9 too, which may freeze its process without TensorFlow.",
)
@click.option(
    "--wait/--detach", default=None, help="Follow a capture in the cluster to its end; default: on a terminal."
)
@click.option("--direct", is_flag=True, help="Capture pods through the API server, without the operator.")
@click.option(
    "--every",
    metavar="TIME",
    callback=parsed(_parse_duration),
    help="Repeat the capture at this interval, until Ctrl-C.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the session in XProf, in a browser.")
@click.option("--no-diagnosis", is_flag=True, help="Do not diagnose the session, here or in the cluster.")
@click.option("--dry-run", is_flag=True, help="Only show the targets; none is contacted.")
@output_option()
def capture(
    *,
    target: tuple[str, ...],
    selector: str | None,
    cluster: ClusterOptions,
    files: tuple[str, ...],
    slurm_job: str | None,
    vms: tuple[str, ...],
    tpu_vms: tuple[str, ...],
    zone: str | None,
    wait: bool | None,
    direct: bool,
    every: int | None,
    open_page: bool,
    no_diagnosis: bool,
    output: OutputFormat,
    **options: Any,
) -> None:
    """Profile running processes on all hosts at the same moment, into one XProf session.

    TARGET is a run (its id, the beginning of it, or its name), a workload such as jobset/trainer, rayjob/tune,
    lws/serve or job/train, pods such as pod/trainer-0, or addresses of hosts: HOST:PORT, an IP address or a domain.
    In a cluster an MLDiagnosticsConnection is created, and the operator captures. Ctrl-C cancels the capture and
    keeps the recorded traces; a second one ends at once.

    The session is diagnosed then: in a cluster by its operator, else here as by `mldiag diagnose`.

    Exit codes: 0 all hosts were captured, 2 a part of them, 1 none.
    """
    from mldiagnostics_cli.captures.repetition import run_capture
    from mldiagnostics_cli.captures.settings import CaptureSettings

    narrowing = {name: options.pop(name) for name in _NARROWING}
    settings = CaptureSettings(**options, diagnosed=not no_diagnosis)
    if every is not None and settings.session is not None:
        raise click.UsageError("--every and --session: both are given; give one of them", click.get_current_context())
    if open_page and (every is not None or wait is False):
        other = "--detach" if every is None else "--every"
        raise click.UsageError(f"--open and {other}: both are given; give one of them", click.get_current_context())
    if vms or tpu_vms:
        if zone is None or target or selector or files or slurm_job or (vms and tpu_vms):
            raise click.UsageError(
                "--gce-vm or --tpu-vm: give one of them, with --zone and without other targets",
                click.get_current_context(),
            )
        work = _by_vm(vms or tpu_vms, settings, output, zone=zone, is_tpu=bool(tpu_vms))
    elif files or slurm_job:
        work = _by_address(target, files, slurm_job, settings, output)
    else:
        waits = sys.stderr is not None and sys.stderr.isatty() if wait is None else wait
        waits = waits or settings.dry_run or every is not None or open_page
        work = _by_target(target, cluster, narrowing, settings, output, selector=selector, wait=waits, direct=direct)
    if output in {OutputFormat.TABLE, OutputFormat.WIDE} and not no_diagnosis:
        from mldiagnostics_cli.captures.verdict import with_verdict

        work = with_verdict(work)
    end = run_capture(work, every_s=None if every is None else every / 1000)
    if open_page and end.directory:
        from mldiagnostics_cli.captures.opening import open_capture

        open_capture(end, cluster)
    raise click.exceptions.Exit(end.exit_code)


def _by_address(
    hosts: tuple[str, ...], files: tuple[str, ...], slurm_job: str | None, settings: Any, output: OutputFormat
) -> CaptureWork:
    from mldiagnostics_cli.captures.arguments import read_addresses
    from mldiagnostics_cli.captures.by_address import capture_addresses
    from mldiagnostics_cli.captures.settings import DEFAULT_PORT
    from mldiagnostics_cli.captures.slurm import slurm_hosts

    of_job = slurm_hosts(slurm_job) if slurm_job else []
    addresses = read_addresses([*hosts, *of_job], files, port=settings.port or DEFAULT_PORT)
    return lambda interruption: capture_addresses(addresses, settings, output, interruption=interruption)


def _by_vm(names: tuple[str, ...], settings: Any, output: OutputFormat, *, zone: str, is_tpu: bool) -> CaptureWork:
    from mldiagnostics_cli.captures.by_vm import capture_vms

    return lambda interruption: capture_vms(
        names, settings, output, interruption=interruption, zone=zone, is_tpu=is_tpu
    )


def _by_target(
    targets: tuple[str, ...],
    cluster: ClusterOptions,
    narrowing: dict[str, Any],
    settings: Any,
    output: OutputFormat,
    *,
    selector: str | None,
    wait: bool,
    direct: bool,
) -> CaptureWork:
    from mldiagnostics_cli.captures.cluster_target import TargetNarrowing, parse_targets

    meant = parse_targets(targets, selector)
    if meant is None:
        return _by_address(targets, (), None, settings, output)
    narrowed = TargetNarrowing(**narrowing)
    if direct:
        from mldiagnostics_cli.captures.direct import capture_directly

        return lambda interruption: capture_directly(
            cluster, meant, narrowed, settings, output, interruption=interruption
        )
    from mldiagnostics_cli.captures.by_object import capture_in_cluster

    return lambda interruption: capture_in_cluster(
        cluster, meant, narrowed, settings, output, interruption=interruption, wait=wait
    )
