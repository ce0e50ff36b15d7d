"""`mldiag diagnose`: findings about a session, or its changes since another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.runs import configs
from mldiagnostics_diagnosis.comparison import compare

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.diagnosis.configurations import difference
from mldiagnostics_cli.diagnosis.page import comparison_lines, diagnosis_lines
from mldiagnostics_cli.diagnosis.reading import diagnosed
from mldiagnostics_cli.output import has_colour, is_terminal, show, show_document, terminal_width
from mldiagnostics_cli.profiles.references import find_run, opened

if TYPE_CHECKING:
    from mldiagnostics_cli.commands.source_options import SourceChoice


def show_diagnosis(choice: SourceChoice, reference: str, output: OutputFormat) -> None:
    """Print the findings about a session.

    Raises:
        ConfigurationError: There is no such session, or it has no trace.
        StoreError: The traces cannot be read.
    """
    with opened(choice, [reference]) as source:
        _, result = diagnosed(source, reference)
    if output is not OutputFormat.TABLE:
        show_document(result.diagnosis.to_json(), output)
        return
    width = terminal_width() if is_terminal() else None
    show("\n".join(diagnosis_lines(result.diagnosis, width=width, colour=has_colour())))


def show_comparison(
    choice: SourceChoice, references: tuple[str, str], output: OutputFormat, *, top: int, force: bool
) -> None:
    """Print how the steps of the second session differ from those of the first.

    Raises:
        ConfigurationError: There is no such session, or they cannot be compared.
        StoreError: The traces cannot be read.
    """
    with opened(choice, references) as source:
        runs = [find_run(source, reference) for reference in references]
        if not force and (differing := difference(*(configs(run) if run else {} for run in runs))):
            raise ConfigurationError(f"{differing}; compare them anyway with --force")
        (_, before), (_, after) = (diagnosed(source, reference) for reference in references)
    comparison = compare(before.summaries, after.summaries, force=force)
    if output is not OutputFormat.TABLE:
        show_document(comparison.to_json(), output)
        return
    width = terminal_width() if is_terminal() else None
    show("\n".join(comparison_lines(comparison, top=top, width=width)))
