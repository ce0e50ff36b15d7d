"""Results on standard output: tables, JSON, YAML and names.

They have the encoding and width of the reader.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mldiagnostics.standard_output import write_text
from mldiagnostics.text.strict_json import finite
from mldiagnostics.text.terminal import encodable

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import CLOSED_PIPE
from mldiagnostics_cli.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mldiagnostics_cli.table import TableColumn


T = TypeVar("T")

PLAIN_WIDTH = 80
"""Width of plots and pages that do not go to a terminal."""

MAX_LEVELS = 100
"""Levels of a document; PyYAML fails at about 400, and the SDK records at most 30."""


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def has_colour() -> bool:
    """Return whether standard output shows colours: a terminal, without NO_COLOR."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the columns of the terminal, 80 without one."""
    return shutil.get_terminal_size().columns if is_terminal() else PLAIN_WIDTH


def show(text: str, *, replace: str | None = None) -> None:
    """Write lines to standard output.

    Args:
        text: The lines.
        replace: Error handler for characters that the encoding of the reader lacks; by default similar ones stand
            for them.

    Raises:
        ConfigurationError: standard output cannot be written.
    """
    if not write_text(text.rstrip("\n") + "\n", replace=replace):
        raise click.exceptions.Exit(CLOSED_PIPE)


def note(text: str) -> None:
    """Write a remark to standard error, so that it is not part of the result."""
    if sys.stderr is not None:
        sys.stderr.write(encodable(f"{text}\n", sys.stderr.encoding or "utf-8"))
        sys.stderr.flush()


def as_text(document: Any, output: str) -> str:
    """Return a value as JSON, or as YAML for the output `yaml`."""
    if output == OutputFormat.YAML.value:
        import yaml  # noqa: PLC0415 - only where it is requested

        return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def show_document(document: Any, output: OutputFormat) -> None:
    """Write a value as JSON or YAML.

    Numbers that are not finite are written as their names, and values below `MAX_LEVELS` levels as "…".
    """
    show(as_text(_writable(document), output.value))


def _writable(value: Any, levels: int = MAX_LEVELS) -> Any:
    if isinstance(value, Mapping | list | tuple) and not levels:
        return "…"
    if isinstance(value, Mapping):
        return {finite(name): _writable(each, levels - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(each, levels - 1) for each in value]
    return finite(value)


def show_rows(
    rows: Sequence[T],
    columns: Iterable[TableColumn[T]],
    output: OutputFormat,
    *,
    name: Callable[[T], str],
    document: Callable[[T], Any],
) -> None:
    """Write a list in the requested format.

    Args:
        rows: Entries of the list.
        columns: Columns of the table.
        output: Requested format.
        name: Returns the name of an entry, which other commands take.
        document: Returns an entry as JSON.
    """
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document([document(row) for row in rows], output)
    elif output is OutputFormat.NAME:
        if rows:
            show("\n".join(map(name, rows)))
    else:
        shown = [column for column in columns if output is OutputFormat.WIDE or not column.is_wide]
        width = terminal_width() if is_terminal() else None
        show("\n".join(table(rows, shown, width=width, colour=has_colour())))
