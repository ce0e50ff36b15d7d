"""`mldiag diagnose`: which host, phase and operation make a session slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.completed_values import complete_sessions
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option
from mldiagnostics_cli.commands.source_options import source_options

if TYPE_CHECKING:
    from mldiagnostics_cli.commands.source_options import SourceChoice


@click.command(
    epilog=examples(
        "mldiag diagnose 4f6c",
        "mldiag diagnose 4f6c/a0-s100 -o json",
        "mldiag diagnose gs://bucket/profiles/slow --against gs://bucket/profiles/fast",
        "mldiag diagnose trainer -n ml",
    )
)
@click.argument("session", metavar="SESSION|RUN|DIR", shell_complete=complete_sessions)
@source_options
@click.option("--against", metavar="SESSION|RUN|DIR", help="Compare with this earlier session, operation by operation.")
@click.option("--force", is_flag=True, help="Compare sessions whose hosts, devices or configurations differ.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    metavar="N",
    default=10,
    show_default=True,
    help="Operations that are compared.",
)
@output_option(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def diagnose(
    *, session: str, source: SourceChoice, against: str | None, force: bool, top: int, output: OutputFormat
) -> None:
    """Say which host, phase and operation make the steps of a session slow, with the cost and the next step.

    SESSION is as in `mldiag profiles`: SOURCE/NAME, or a run or log directory alone for its newest session. A finding
    has the numbers that it was made of. If the traces do not say enough, the result is Inconclusive, with its reason.

    Each trace is summarized once, in a process of its own; summaries and diagnosis.json are kept beside the traces.
    """
    from mldiagnostics_cli.diagnosis.showing import show_comparison, show_diagnosis

    if against is None:
        if force:
            raise click.UsageError("--force: only with --against; pass both or neither", click.get_current_context())
        show_diagnosis(source, session, output)
    else:
        show_comparison(source, (against, session), output, top=top, force=force)
