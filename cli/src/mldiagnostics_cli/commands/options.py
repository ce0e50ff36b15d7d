"""Options that several commands share, and their values."""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mldiagnostics.locations import DEFAULT_STORAGE

if TYPE_CHECKING:
    from collections.abc import Callable


PROGRAM_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Context settings of the commands that are programs."""

STORAGE_VARIABLE = "MLDIAG_STORAGE"

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class OutputFormat(Enum):
    """How a command prints its result."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def examples(*commands: str, note: str = "") -> str:
    """Return the end of a command's help: its examples, and a note."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands), "", note])


def parsed(parse: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that parses the text of an option, or each text of an option that may be repeated.

    Args:
        parse: Returns the value of a text, or raises `ConfigurationError`.
    """

    def convert(_context: click.Context, parameter: click.Parameter, text: Any) -> Any:
        from mldiagnostics.errors import ConfigurationError

        try:
            if parameter.multiple:
                return tuple(map(parse, text))
            return None if text is None else parse(text)
        except ConfigurationError as error:
            raise click.BadParameter(str(error)) from error

    return convert


def needed(value: T | None, option: str, example: str) -> T:
    """Return the value of an option that another option makes necessary.

    Args:
        value: Its value; None if it is not given.
        option: Its name.
        example: A value to pass, for the message.

    Raises:
        UsageError: It is not given.
    """
    if value is None:
        raise click.UsageError(f"{option}: is not given; pass {example}", click.get_current_context())
    return value


def parse_moment(text: str) -> int:
    """Return a time that a user gave, in microseconds since 1970.

    Raises:
        ConfigurationError: The text is not a time.
    """
    from mldiagnostics.goodput.options import moment

    return moment(text)


def since_option(command: F) -> F:
    """Add `--since`; its value is in Unix seconds."""
    return click.option(
        "--since",
        metavar="TIME",
        callback=parsed(_since),
        help="Only runs that were alive since then: 2h, 7d or 2026-11-21T10:00:00Z.",
    )(command)


def output_option(*formats: OutputFormat) -> Callable[[F], F]:
    """Return a decorator that adds `--output` with some formats; all of them if none is given."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([each.value for each in formats or OutputFormat]),
        default=OutputFormat.TABLE.value,
        show_default=True,
        callback=lambda _context, _parameter, value: OutputFormat(value),
        help="Format of the result; json and yaml have all fields.",
    )


def storage_option(command: F) -> F:
    """Add `--storage`."""
    return click.option(
        "-s",
        "--storage",
        metavar="DIR|URL",
        envvar=STORAGE_VARIABLE,
        show_envvar=True,
        default=DEFAULT_STORAGE,
        show_default=True,
        help="Root of the runs: a directory or a URL such as s3://bucket/prefix.",
    )(command)


def _since(text: str) -> float:
    """Return a duration before now, or a time, in Unix seconds."""
    from mldiagnostics.errors import ConfigurationError
    from mldiagnostics.goodput.options import moment, window

    try:
        return time.time() - window(text)
    except ConfigurationError:
        try:
            return moment(text) / 1e6
        except ConfigurationError:
            raise ConfigurationError(
                f"{text!r}: not a time; pass a value such as 2h, 7d or 2026-11-21T10:00:00Z"
            ) from None
