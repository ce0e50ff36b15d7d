"""Entry point of `mldiag` and of the kubectl plugin `kubectl mldiag`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mldiagnostics_cli.exit_codes import FAILED, INTERRUPTED, INVALID_USAGE

TRACEBACK = "MLDIAG_TRACEBACK"
"""Environment variable: any value shows the traceback of an unexpected error."""

_PLUGIN = "kubectl-"
_NEWLINE = "\n"


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        sys.exit(_run(sys.argv[1:], _program_name(sys.argv[0])))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(arguments: list[str], name: str) -> int:
    import click  # noqa: PLC0415 - Ctrl-C during this import ends quietly too

    from mldiagnostics_cli.commands.completion import COMPLETE_VARIABLE  # noqa: PLC0415 - as above
    from mldiagnostics_cli.program import program  # noqa: PLC0415 - as above

    try:
        code = program.main(
            arguments or ["--help"], prog_name=name, complete_var=COMPLETE_VARIABLE, standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:  # a group without a command
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        place = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
        return _fail(error.format_message().rstrip(".") + place, INVALID_USAGE)
    except click.Abort:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _fail(_message(error), FAILED)
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> str:
    from mldiagnostics.errors import MLDiagnosticsError  # noqa: PLC0415 - only after a failure

    if isinstance(error, MLDiagnosticsError):
        return str(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}; check the path and its permissions"
    return f"unexpected {type(error).__name__}: {error}; set {TRACEBACK}=1 and report the traceback"


def _fail(message: str, code: int) -> int:
    from mldiagnostics.text.terminal import printable  # noqa: PLC0415 - only after a failure

    if sys.stderr is not None:
        print(f"mldiag: {printable(message, keep=_NEWLINE)}", file=sys.stderr)  # noqa: T201 - that is its purpose
    return code


def _program_name(path: str) -> str:
    """Return the command as a user types it."""
    name = Path(path).name
    return f"kubectl {name.removeprefix(_PLUGIN)}" if name.startswith(_PLUGIN) else "mldiag"


if __name__ == "__main__":
    main()
