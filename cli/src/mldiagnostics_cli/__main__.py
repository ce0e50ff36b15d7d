"""Entry point of `mldiag`, `kubectl mldiag` and `mldiag-xprofiler`."""

from __future__ import annotations

import os
import sys

TRACEBACK = "MLDIAG_TRACEBACK"
"""Environment variable: any value shows the traceback of an unexpected error."""

EXTRAS = ("gcs", "mcp", "xprof")
"""Extras of the command line, named instead of the SDK's."""

_INTERRUPTED = 130
"""That of `exit_codes`, known before the first import: Ctrl-C during any of them ends quietly."""

_PLUGIN = "kubectl-"
_NEWLINE = "\n"


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        code = run(sys.argv[1:], os.path.basename(sys.argv[0]))  # noqa: PTH119 - pathlib takes as long as click

        import signal  # noqa: PLC0415 - see _INTERRUPTED

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # an exception in the end of the interpreter prints a traceback
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)  # without its threads, which may wait for a network
    sys.exit(code)


def run(arguments: list[str], script: str) -> int:
    """Run a command, print why it failed, and return its exit code.

    Args:
        arguments: The arguments of the command.
        script: Name of the program as it was called.
    """
    import click  # noqa: PLC0415 - see _INTERRUPTED

    from mldiagnostics_cli.commands.completion import XPROFILER, complete_variable  # noqa: PLC0415 - as above
    from mldiagnostics_cli.exit_codes import CLOSED_PIPE, FAILED, INVALID_USAGE  # noqa: PLC0415 - as above

    if script == XPROFILER:
        from mldiagnostics_cli.commands.xprofiler import xprofiler as program  # noqa: PLC0415 - as above
    else:
        from mldiagnostics_cli.program import program  # noqa: PLC0415 - as above

    try:
        code = program.main(
            arguments or ["--help"],
            prog_name=_program_name(script),
            complete_var=complete_variable(script),
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:  # a group without a command
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        place = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
        return _fail(error.format_message().rstrip(".") + place, INVALID_USAGE)
    except click.Abort:
        return _INTERRUPTED
    except SystemExit as ended:  # click's way to end after completions, and after a closed pipe
        return CLOSED_PIPE if ended.code else 0
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _fail(_message(error), FAILED)
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> str:
    from mldiagnostics.errors import MissingExtraError, MLDiagnosticsError  # noqa: PLC0415 - only after a failure

    if isinstance(error, MissingExtraError) and error.extra in EXTRAS:
        from mldiagnostics.install import install_hint  # noqa: PLC0415 - as above

        return f"{str(error).partition(': ')[0]}: {install_hint('cli', extra=error.extra)}"
    if isinstance(error, MLDiagnosticsError):
        return str(error)
    if isinstance(error, OSError) and error.filename:
        from mldiagnostics.text.file_errors import file_problem  # noqa: PLC0415 - as above

        return f"{error.filename}: {file_problem(error)}"
    if isinstance(error, OSError) and sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as unwritten:  # text that click prints
            from mldiagnostics.standard_output import unwritable  # noqa: PLC0415 - as above

            return str(unwritable(unwritten))
    return f"unexpected {type(error).__name__}: {error}; set {TRACEBACK}=1 and report the traceback"


def _fail(message: str, code: int) -> int:
    from mldiagnostics.text.terminal import printable  # noqa: PLC0415 - only after a failure

    if sys.stderr is not None:
        print(f"mldiag: {printable(message, keep=_NEWLINE)}", file=sys.stderr)  # noqa: T201 - that is its purpose
    return code


def _program_name(script: str) -> str:
    """Return the command as a user types it."""
    if script.startswith(_PLUGIN):
        return f"kubectl {script.removeprefix(_PLUGIN)}"
    return script if script == "mldiag-xprofiler" else "mldiag"  # also for `python -m`


if __name__ == "__main__":
    main()
