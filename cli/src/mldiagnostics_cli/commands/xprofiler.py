"""`mldiag xprofiler`: the flags of Google's `xprofiler` with their defaults, also as `mldiag-xprofiler`."""

from __future__ import annotations

import click

from mldiagnostics_cli.commands import xprofiler_hosting
from mldiagnostics_cli.commands.options import PROGRAM_SETTINGS, examples
from mldiagnostics_cli.commands.xprofiler_options import ManyValuesCommand, ignored


@click.group(
    context_settings=PROGRAM_SETTINGS,
    epilog=examples("mldiag xprofiler capture -l gs://bucket/run -z us-east5-a -n host-0 -f jax", note=""),
)
@click.option("-a", "--abbrev", is_flag=True, help="Print only the names of servers.")
@click.pass_context
def xprofiler(context: click.Context, *, abbrev: bool) -> None:
    """Run xprofiler's commands with xprofiler's flags.

    Unknown flags are errors, failures have exit codes, and all hosts are captured at the same moment.
    """
    context.obj = abbrev


for command in (
    xprofiler_hosting.create,
    xprofiler_hosting.list_,
    xprofiler_hosting.connect,
    xprofiler_hosting.delete,
):
    xprofiler.add_command(command)


@xprofiler.command(
    "capture",
    cls=ManyValuesCommand,
    epilog=examples(
        "mldiag xprofiler capture -l gs://bucket/run -z us-east5-a -n tpu-0 tpu-1 -f jax",
        "mldiag xprofiler capture -l gs://bucket/run -z us-east5-a -n pod-0 pod-1 -f jax -o gke -d 5000",
    ),
)
@click.option("-l", "--log-directory", required=True, metavar="URL", help="Log directory: gs://bucket/path.")
@click.option("-z", "--zone", required=True, metavar="ZONE", help="Zone of the VMs; not used for pods.")
@click.option("-n", "--hosts", required=True, multiple=True, metavar="NAME...", help="VMs, TPU VMs or pods.")
@click.option(
    "-f",
    "--framework",
    required=True,
    type=click.Choice(["pytorch", "jax", "tensorflow"]),
    expose_value=False,
    help="Framework; the protocol of their profilers is the same.",
)
@click.option(
    "-o",
    "--orchestrator",
    type=click.Choice(["gce", "gke"]),
    default="gce",
    show_default=True,
    help="Virtual machines, or pods of the current context.",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    default=9012,
    show_default=True,
    help="Profiler port.",
)
@click.option(
    "-d",
    "--duration",
    type=click.IntRange(min=1),
    metavar="MS",
    default=2000,
    show_default=True,
    help="Length of the recording in milliseconds.",
)
@ignored("-u", "--use-ssh-proxy", help="Accepted; the proxy is that of your ssh configuration.")
@click.option("--non-tpu-vm", is_flag=True, help="The machines are not TPU VMs.")
@ignored("-v", "--verbose", help="Accepted; progress is always shown.")
def _capture(
    *,
    log_directory: str,
    zone: str,
    hosts: tuple[str, ...],
    orchestrator: str,
    port: int,
    duration: int,
    non_tpu_vm: bool,
) -> None:
    """Profile virtual machines through gcloud, or pods, all at the same moment."""
    from mldiagnostics_cli.captures.by_vm import capture_vms
    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.interruption import run_interruptibly
    from mldiagnostics_cli.xprofiler.capturing import capture_pods, settings_of

    settings = settings_of(log_directory=log_directory, port=port, duration_ms=duration)
    if orchestrator == "gke":
        end = run_interruptibly(lambda interruption: capture_pods(hosts, settings, interruption))
    else:
        end = run_interruptibly(
            lambda interruption: capture_vms(
                hosts, settings, OutputFormat.TABLE, interruption=interruption, zone=zone, is_tpu=not non_tpu_vm
            )
        )
    raise click.exceptions.Exit(end.exit_code)


@xprofiler.command(
    "register",
    epilog=examples("mldiag xprofiler register -l gs://bucket/runs/7 -r us-east5 -m trainer -s sweep -p my-project"),
)
@click.option("-l", "--log-directory", required=True, metavar="URL", help="Log directory: gs://bucket/path.")
@click.option("-r", "--region", required=True, metavar="REGION", help="Region, kept with the run.")
@click.option("-m", "--ml-run-name", required=True, metavar="NAME", help="Name of the run.")
@click.option("-s", "--run-set", required=True, metavar="NAME", help="Group of the run.")
@click.option("-p", "--project-id", required=True, metavar="ID", help="Project, kept with the run.")
@ignored("-v", "--verbose", help="Accepted; it has no effect.")
def _register(*, log_directory: str, region: str, ml_run_name: str, run_set: str, project_id: str) -> None:
    """Make a log directory a completed run, for `mldiag runs`; no service is called."""
    from mldiagnostics_cli.output import show
    from mldiagnostics_cli.xprofiler.registering import register

    root = register(log_directory, name=ml_run_name, group=run_set, project=project_id, region=region)
    show(f"Registered; to see it: mldiag runs list --storage {root} --group {run_set}")
