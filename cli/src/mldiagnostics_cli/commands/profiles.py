"""`mldiag profiles`: list, summarize, compare, delete, prune, download and adopt sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.completed_values import complete_sessions, complete_sources
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, parsed
from mldiagnostics_cli.commands.source_options import source_options

if TYPE_CHECKING:
    from mldiagnostics_cli.commands.source_options import SourceChoice


session_argument = click.argument("session", nargs=-1, required=True, shell_complete=complete_sessions)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for a confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show the sessions that would be deleted.")
top_option = click.option(
    "--top", type=click.IntRange(min=0), metavar="N", default=10, show_default=True, help="Operations that are shown."
)


def _parse_window(text: str) -> float:
    from mldiagnostics.goodput.options import window

    return window(text)


@click.group(epilog=examples("mldiag profiles list", "mldiag profiles get 4f6c", "mldiag profiles compare 4f6c 81aa"))
def profiles() -> None:
    """List, summarize, compare, delete, download and adopt profile sessions of runs, directories and buckets.

    SOURCE is a run (its id or the beginning of it, its name, its directory) or a log directory of XProf. SESSION is
    SOURCE/NAME, or SOURCE alone for its newest session. In a cluster, files are read with your own rights: those of
    buckets directly, those on the operator's volume through the API server, with the right to get and list
    files.results.diagon.gke.io in their namespace.

    Runs are found as by `mldiag runs`: in the cluster if -n, -A, --context or --kubeconfig is given; else in files if
    --storage or MLDIAG_STORAGE is given, or ./mldiagnostics exists; else in the cluster of the current context.
    """


@profiles.command(
    "list",
    epilog=examples(
        "mldiag profiles list", "mldiag profiles list 4f6c -o wide", "mldiag profiles list gs://bucket/profiles -o json"
    ),
)
@click.argument("reference", nargs=-1, metavar="[SOURCE]...", shell_complete=complete_sources)
@source_options
@output_option()
def _list(*, reference: tuple[str, ...], source: SourceChoice, output: OutputFormat) -> None:
    """List sessions, the newest last; without SOURCE those of all runs."""
    from mldiagnostics_cli.profiles.listing import show_sessions

    show_sessions(source, reference, output)


@profiles.command(
    "get",
    epilog=examples(
        "mldiag profiles get 4f6c",
        "mldiag profiles get 4f6c/a0-s100 --top 30",
        "mldiag profiles get gs://bucket/profiles/2026_11_21_10_00_00 -o json",
    ),
)
@click.argument("session", shell_complete=complete_sessions)
@source_options
@top_option
@output_option()
def _get(*, session: str, source: SourceChoice, top: int, output: OutputFormat) -> None:
    """Summarize a session: step time and its phases, memory, the longest operations and the verdict.

    Summaries that `mldiag diagnose` stored beside the traces are used. Nothing is written there.
    """
    from mldiagnostics_cli.profiles.detail import show_session

    show_session(source, session, output, top=top)


@profiles.command(
    "compare",
    epilog=examples("mldiag profiles compare 4f6c/a0-s100 4f6c/a0-s900", "mldiag profiles compare 4f6c 81aa -o json"),
)
@click.argument("session", nargs=2, shell_complete=complete_sessions)
@source_options
@top_option
@output_option(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def _compare(*, session: tuple[str, str], source: SourceChoice, top: int, output: OutputFormat) -> None:
    """Compare two sessions: their steps, memory, and the operations that changed most, per step.

    Summaries that `mldiag diagnose` stored beside the traces are used. Nothing is written there.
    """
    from mldiagnostics_cli.profiles.detail import compare_sessions

    compare_sessions(source, session, output, top=top)


@profiles.command(
    "delete", epilog=examples("mldiag profiles delete 4f6c/a0-s100", "mldiag profiles delete 4f6c/a0-s100 --dry-run")
)
@session_argument
@source_options
@yes_option
@dry_run_option
@output_option()
def _delete(*, session: tuple[str, ...], source: SourceChoice, yes: bool, dry_run: bool, output: OutputFormat) -> None:
    """Delete sessions with their records and the caches of XProf."""
    from mldiagnostics_cli.profiles.removal import delete_sessions

    delete_sessions(source, session, output, yes=yes, dry_run=dry_run)


@profiles.command(
    "prune",
    epilog=examples(
        "mldiag profiles prune 4f6c --keep 5",
        "mldiag profiles prune gs://bucket/profiles --older-than 30d --keep 3 --yes",
    ),
)
@click.argument("reference", nargs=-1, required=True, metavar="SOURCE...", shell_complete=complete_sources)
@source_options
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N of each SOURCE, however old.")
@click.option(
    "--older-than", "older_than_s", metavar="30d", callback=parsed(_parse_window), help="Keep sessions up to this age."
)
@yes_option
@dry_run_option
@output_option()
def _prune(
    *,
    reference: tuple[str, ...],
    source: SourceChoice,
    keep: int | None,
    older_than_s: float | None,
    yes: bool,
    dry_run: bool,
    output: OutputFormat,
) -> None:
    """Delete sessions that are too many or too old; with both limits, those that exceed both."""
    from mldiagnostics_cli.profiles.removal import prune_sessions

    prune_sessions(source, reference, output, keep=keep, older_than_s=older_than_s, yes=yes, dry_run=dry_run)


@profiles.command(
    "download",
    epilog=examples(
        "mldiag profiles download 4f6c/a0-s100",
        "mldiag profiles download trainer/try-81aa20c3 -n ml --to traces",
        "mldiag profiles download volume:///ml/trainer/try-81aa20c3 --to traces",
        "mldiag profiles download gs://bucket/profiles/slow --to traces",
    ),
)
@session_argument
@source_options
@click.option(
    "--to", "directory", metavar="DIR", default="profiles", show_default=True, help="Log directory on this machine."
)
@output_option()
def _download(*, session: tuple[str, ...], source: SourceChoice, directory: str, output: OutputFormat) -> None:
    """Copy sessions to a log directory on this machine, for XProf or TensorBoard."""
    from mldiagnostics_cli.profiles.copying import download_sessions

    download_sessions(source, session, directory, output)


@profiles.command(
    "adopt",
    epilog=examples(
        "mldiag profiles adopt /tmp/tensorboard --run 4f6c",
        "mldiag profiles adopt host-0.xplane.pb --run 4f6c --session slow-step",
    ),
)
@click.argument("found", nargs=-1, required=True, metavar="DIR|FILE...")
@source_options
@click.option("--run", metavar="RUN|DIR", required=True, help="Run or log directory that gets the sessions.")
@click.option("--session", metavar="NAME", help="Name of the session there; by default its own.")
@output_option()
def _adopt(
    *, found: tuple[str, ...], source: SourceChoice, run: str, session: str | None, output: OutputFormat
) -> None:
    """Copy sessions of other tools to a run: a log directory, the directory of a session, or traces.

    A session whose name is taken by other files gets the next free one, such as NAME-2.
    """
    from mldiagnostics_cli.profiles.copying import adopt_sessions

    adopt_sessions(source, found, run, output, session=session)
