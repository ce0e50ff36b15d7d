"""`mldiag completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click

from mldiagnostics_cli.commands.options import examples

__all__ = ["COMPLETE_VARIABLE", "completion"]

COMPLETE_VARIABLE = "_MLDIAG_COMPLETE"
"""Environment variable by which the script asks for completions."""


@click.command(
    epilog=examples("mldiag completion bash > ~/.local/share/bash-completion/completions/mldiag"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    In zsh and fish, evaluate it at the start of the shell.
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None  # noqa: S101 - the choices are click's
    click.echo(shell_class(context.find_root().command, {}, "mldiag", COMPLETE_VARIABLE).source())
