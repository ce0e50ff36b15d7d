"""`mldiag completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click

from mldiagnostics_cli.commands.options import examples

MLDIAG, XPROFILER = "mldiag", "mldiag-xprofiler"
"""Programs with a command line of their own."""


def complete_variable(program: str) -> str:
    """Return the environment variable by which a script asks for completions.

    >>> complete_variable("mldiag-xprofiler"), complete_variable("kubectl-mldiag")
    ('_MLDIAG_XPROFILER_COMPLETE', '_MLDIAG_COMPLETE')
    """
    return "_MLDIAG_XPROFILER_COMPLETE" if program == XPROFILER else "_MLDIAG_COMPLETE"


@click.command(
    epilog=examples(
        "mldiag completion bash > ~/.local/share/bash-completion/completions/mldiag",
        "mldiag completion fish --program mldiag-xprofiler > ~/.config/fish/completions/mldiag-xprofiler.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option(
    "--program",
    type=click.Choice([MLDIAG, XPROFILER]),
    default=MLDIAG,
    show_default=True,
    help="Program whose commands are completed.",
)
@click.pass_context
def completion(context: click.Context, shell: str, program: str) -> None:
    """Print the script that completes commands and options in a shell.

    In zsh and fish, evaluate it at the start of the shell.
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None  # noqa: S101 - the choices are click's
    click.echo(shell_class(context.find_root().command, {}, program, complete_variable(program)).source())
