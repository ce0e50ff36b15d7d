"""All commands as one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mldiagnostics_cli.commands.capture import capture
from mldiagnostics_cli.commands.completion import completion
from mldiagnostics_cli.commands.diagnose import diagnose
from mldiagnostics_cli.commands.doctor import doctor
from mldiagnostics_cli.commands.explain import explain
from mldiagnostics_cli.commands.goodput import goodput
from mldiagnostics_cli.commands.mcp import mcp
from mldiagnostics_cli.commands.mltrace import mltrace
from mldiagnostics_cli.commands.options import PROGRAM_SETTINGS, examples
from mldiagnostics_cli.commands.profiles import profiles
from mldiagnostics_cli.commands.runs import runs
from mldiagnostics_cli.commands.schedules import schedules
from mldiagnostics_cli.commands.trace import trace
from mldiagnostics_cli.commands.view import view
from mldiagnostics_cli.commands.xprof import xprof
from mldiagnostics_cli.commands.xprofiler import xprofiler

if TYPE_CHECKING:
    from collections.abc import Iterator


def _show_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - takes as long as all the rest

        click.echo(f"mldiag {version('mldiagnostics-cli')}")
        context.exit()


@click.group(
    context_settings=PROGRAM_SETTINGS,
    epilog=examples(
        "mldiag runs list --storage gs://bucket/runs",
        "mldiag goodput 4f6c",
        "mldiag capture jobset/trainer --duration 500ms",
        note="Exit codes: 0 done, 1 failed, 2 partly done, 64 invalid usage, 130 Ctrl-C. NO_COLOR turns colours off.",
    ),
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def program() -> None:
    """Diagnose machine-learning runs: list and compare them, account for their time, profile their hosts."""


for command in (
    capture,
    completion,
    diagnose,
    doctor,
    explain,
    goodput,
    mcp,
    mltrace,
    profiles,
    runs,
    schedules,
    trace,
    view,
    xprof,
    xprofiler,
):
    program.add_command(command)


def walk() -> Iterator[click.Context]:
    """Yield a context for each command, in the order of the help.

    Groups come before their commands.
    """
    yield from _walk(program, "mldiag", None)


def _walk(command: click.Command, name: str, parent: click.Context | None) -> Iterator[click.Context]:
    settings: dict[str, Any] = dict(command.context_settings)
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from _walk(command.commands[child], child, context)
