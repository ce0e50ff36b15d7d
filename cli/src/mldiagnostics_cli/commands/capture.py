"""`mldiag capture`: profile a run, a workload or hosts."""

from __future__ import annotations

import sys
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mldiagnostics.locations import DEFAULT_STORAGE

from mldiagnostics_cli.commands.capture_checks import check_options, refuse_options, typed_options
from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import STORAGE_VARIABLE, OutputFormat, examples, output_option, parsed
from mldiagnostics_cli.commands.schedule_options import cron_option, time_zone_option, trigger_option

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mldiagnostics_kube.client.cluster_options import ClusterOptions

    from mldiagnostics_cli.captures.ending import CaptureEnd, CaptureWork
    from mldiagnostics_cli.captures.recurrence_arguments import RecurrenceArguments
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.interruption import Interruption


def _parse_duration(text: str) -> int:
    from mldiagnostics_cli.captures.arguments import milliseconds

    return milliseconds(text)


T = TypeVar("T")

_NARROWING = ("ranks", "slices", "nodes", "container", "limit")
_OF_CLUSTER = ("namespace", "context", "kubeconfig", "direct", "wait")


@click.command(
    epilog=examples(
        "mldiag capture 4f6c --open",
        "mldiag capture trainer-38ecfc8a2d -n research",
        "mldiag capture jobset/trainer -n research --ranks 0-7 --duration 5s",
        "mldiag capture -l app=trainer --direct --open",
        "mldiag capture host-0:9999 10.0.0.7 --log-directory gs://bucket/profiles",
        "mldiag capture --hosts-file hosts.txt --dry-run",
        "mldiag capture 4f6c --pulse --every 10m",
        "mldiag capture --tpu-vm slice-0 --zone us-east5-a",
        "mldiag capture 4f6c --every 6h --trigger StepTimeRise --max-per-day 4",
    )
)
@click.argument("target", nargs=-1)
@click.option("-l", "--selector", metavar="LABELS", help="Pods by their labels, as kubectl takes them.")
@click.option(
    "-s",
    "--storage",
    metavar="DIR|URL",
    envvar=STORAGE_VARIABLE,
    show_envvar=True,
    help=f"Root of the files of a run outside a cluster; default: ./{DEFAULT_STORAGE} if it exists.",
)
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
    help="Log directory of XProf; default: that of the run, of addresses ./profiles.",
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
@click.option("--every", metavar="PERIOD", help="Capture now and in each such period: 10m, 6h, 1d; until Ctrl-C.")
@cron_option
@time_zone_option
@trigger_option
@click.option(
    "--max-per-day",
    "per_day",
    type=click.IntRange(min=0),
    metavar="N",
    help="Repeated captures in 24 hours; default: 8 with --trigger, else no limit.",
)
@click.option(
    "--past", is_flag=True, help="Take what the programs have recorded continuously, instead of a new recording."
)
@click.option(
    "--pulse",
    is_flag=True,
    help="Record seven steps for the diagnosis; keep the traces of the hosts that it names and of one other.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the session in XProf, in a browser.")
@click.option("--no-diagnosis", is_flag=True, help="Do not diagnose the session, here or in the cluster.")
@click.option("--dry-run", is_flag=True, help="Only show the targets; none is contacted.")
@output_option()
def capture(
    *,
    cluster: ClusterOptions,
    wait: bool | None,
    open_page: bool,
    no_diagnosis: bool,
    output: OutputFormat,
    **_: Any,
) -> None:
    """Profile running processes on all hosts at the same moment, into one XProf session.

    TARGET is a run (its id, the beginning of it, or its name), a workload such as jobset/trainer, rayjob/tune,
    lws/serve or job/train, pods such as pod/trainer-0, or addresses of hosts: HOST:PORT, an IP address or a domain.
    A run outside a cluster is found by its files, and captured into its directory. In a cluster an
    MLDiagnosticsConnection is created, and the operator captures. Ctrl-C cancels the capture and keeps the recorded
    traces; a second one ends at once.

    The session is diagnosed then: in a cluster by its operator, else here as by `mldiag diagnose`.

    With --every, --cron or --trigger it goes on until Ctrl-C, SIGTERM or the end of the run, also over restarts of
    the command: slots and budgets count in ~/.local/state/mldiagnostics/captures. Triggers follow the files of a
    run; in a cluster, `mldiag schedules create` does all of this without a command that must run.

    Exit codes: 0 all hosts were captured, or the run has ended; 2 a part of them, 1 none.
    """
    from mldiagnostics_cli.captures.recurrence_arguments import RecurrenceArguments
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.interruption import run_interruptibly

    context = click.get_current_context()
    given, arguments = context.params, _of_options(RecurrenceArguments, context.params)
    check_options(context, is_repeated=arguments.are_given)
    if given["pulse"] and not typed_options(context, "duration"):
        given = {**given, "duration": None}
    settings = _of_options(CaptureSettings, given, diagnosed=not no_diagnosis)
    waits = settings.dry_run or arguments.are_given or open_page or (_is_on_terminal() if wait is None else wait)
    work = _diagnosed(_chosen(cluster, settings, output, wait=waits), settings, output)
    if arguments.are_given:
        work = _repeated(work, arguments, cluster, is_dry_run=settings.dry_run)
    end = run_interruptibly(work)
    if open_page and end.directory:
        from mldiagnostics_cli.captures.opening import open_capture

        open_capture(end, cluster)
    raise click.exceptions.Exit(end.exit_code)


def _of_options(kind: Callable[..., T], given: dict[str, Any], **more: Any) -> T:
    """Return an object of the options that have the names of its fields."""
    return kind(**{name: given[name] for name in signature(kind).parameters if name in given}, **more)


def _chosen(cluster: ClusterOptions, settings: CaptureSettings, output: OutputFormat, *, wait: bool) -> CaptureWork:
    """Return the capture of the VMs, addresses or other targets that the command names."""
    context = click.get_current_context()
    given = context.params
    if vms := given["vms"] or given["tpu_vms"]:
        from mldiagnostics_cli.captures.by_vm import capture_vms

        refuse_options(context, "VMs", "selector", "storage", *_NARROWING, *_OF_CLUSTER)
        zone, is_tpu = given["zone"], bool(given["tpu_vms"])
        return lambda interruption: capture_vms(
            vms, settings, output, interruption=interruption, zone=zone, is_tpu=is_tpu
        )
    if given["files"] or given["slurm_job"]:
        refuse_options(context, "addresses", "selector", "storage", *_NARROWING, *_OF_CLUSTER)
        return _by_address(given["target"], given["files"], given["slurm_job"], settings, output)
    return _by_target(given["target"], cluster, settings, output, wait=wait)


def _is_on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _diagnosed(work: CaptureWork, settings: CaptureSettings, output: OutputFormat) -> CaptureWork:
    """Return the capture with the diagnosis of its session, if that is shown or decides about the traces."""
    is_shown = output in {OutputFormat.TABLE, OutputFormat.WIDE} and settings.diagnosed
    if not is_shown and not settings.pulse:
        return work
    from mldiagnostics_cli.captures.verdict import with_verdict

    return with_verdict(work, is_shown=is_shown, is_pulse=settings.pulse)


def _repeated(
    work: CaptureWork, arguments: RecurrenceArguments, cluster: ClusterOptions, *, is_dry_run: bool
) -> CaptureWork:
    """Return the capture at slots and triggers; a dry run shows them with the targets, and ends."""
    import time

    from mldiagnostics.locations import absolute_location

    from mldiagnostics_cli.captures.recurrence import recurrence_of
    from mldiagnostics_cli.captures.repetition import repeated
    from mldiagnostics_cli.captures.run_samples import RunSamples
    from mldiagnostics_cli.output import note

    context, recurrence = click.get_current_context(), recurrence_of(arguments)
    storage = context.params["storage"] or DEFAULT_STORAGE
    run = _run_of_files(context, cluster)
    if arguments.triggers and not run:
        raise click.UsageError(
            "--trigger: follows the files of one run, and there is no such run here; name a run with --storage, or "
            "use `mldiag schedules create` in a cluster",
            context,
        )
    planned = recurrence.starting(time.time()).describe(time.time())
    if is_dry_run:
        for line in planned:
            note(line)
        return work
    targets = [context.params[name] for name in ("target", "selector", "files", "slurm_job", "vms", "tpu_vms")]
    rules = [arguments.every, arguments.cron, arguments.time_zone, *arguments.triggers]
    samples = RunSamples(run, storage) if run else None
    return repeated(work, recurrence, samples, [absolute_location(storage), *targets, *rules])


def _run_of_files(context: click.Context, cluster: ClusterOptions) -> str | None:
    """Return the run that the command names and finds by its files, which may come later."""
    from mldiagnostics_cli.captures.run_samples import is_of_files

    given = context.params
    others = ("selector", "direct", "vms", "tpu_vms", "files", "slurm_job")
    if cluster.are_given or any(given[name] for name in others):
        return None
    return given["target"][0] if is_of_files(given["target"], given["storage"]) else None


def _by_address(
    hosts: tuple[str, ...],
    files: tuple[str, ...],
    slurm_job: str | None,
    settings: CaptureSettings,
    output: OutputFormat,
) -> CaptureWork:
    from mldiagnostics.capture.addresses import DEFAULT_PORT

    from mldiagnostics_cli.captures.arguments import read_addresses
    from mldiagnostics_cli.captures.by_address import capture_addresses
    from mldiagnostics_cli.captures.slurm import slurm_hosts

    of_job = slurm_hosts(slurm_job) if slurm_job else []
    addresses = read_addresses([*hosts, *of_job], files, port=settings.port or DEFAULT_PORT)
    return lambda interruption: capture_addresses(addresses, settings, output, interruption=interruption)


def _by_target(
    texts: tuple[str, ...], cluster: ClusterOptions, settings: CaptureSettings, output: OutputFormat, *, wait: bool
) -> CaptureWork:
    from mldiagnostics_cli.captures.cluster_target import ClusterTarget, TargetNarrowing, parse_targets
    from mldiagnostics_cli.sources import is_run_directory

    context = click.get_current_context()
    narrowed, selector = _of_options(TargetNarrowing, context.params), context.params["selector"]
    is_files = selector is None and len(texts) == 1 and is_run_directory(texts[0])
    target = ClusterTarget(run=texts[0]) if is_files else parse_targets(texts, selector)
    if target is None:
        refuse_options(context, "addresses", "storage", *_NARROWING, *_OF_CLUSTER)
        return _by_address(texts, (), None, settings, output)
    if context.params["direct"]:
        from mldiagnostics_cli.captures.direct import capture_directly

        refuse_options(context, "pods", "storage")
        return lambda interruption: capture_directly(
            cluster, target, narrowed, settings, output, interruption=interruption
        )
    from mldiagnostics_cli.captures.by_object import capture_in_cluster

    def in_cluster(interruption: Interruption) -> Coroutine[Any, Any, CaptureEnd]:
        return capture_in_cluster(cluster, target, narrowed, settings, output, interruption=interruption, wait=wait)

    if cluster.are_given or not target.run:
        refuse_options(context, "a cluster", "storage")
        return in_cluster
    from mldiagnostics_cli.captures.by_run import FilesOfRun, capture_here_or

    files = FilesOfRun(target.run, context.params["storage"], are_typed=bool(typed_options(context, "storage")))
    needs_cluster = typed_options(context, "container", "wait")
    return capture_here_or(in_cluster, files, narrowed, settings, output, needs_cluster=needs_cluster)
