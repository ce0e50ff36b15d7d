"""The frame of all commands: help, examples, completion, errors, and loaded modules."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click
import pytest
from mldiagnostics_cli.exit_codes import CLOSED_PIPE, INVALID_USAGE
from mldiagnostics_cli.program import program, walk
from support.programs.command_line import MLDIAG
from support.run_files import put_run

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine

COMMANDS = list(walk())
HEAVY = ("rich", "mldiagnostics.runs", "mldiagnostics.capture", "mldiagnostics.goodput", "mldiagnostics.store")
HEAVY += ("asyncio", "typing_extensions")
HEAVY += (
    "yaml",
    "grpc",
    "pydantic",
    "aiohttp",
    "kubernetes",
    "google",
    "obstore",
    "mldiagnostics_api",
    "mldiagnostics_kube.client.apiserver",
    "mldiagnostics_kube.installation",
)


@pytest.mark.parametrize("context", COMMANDS, ids=lambda context: context.command_path)
def test_every_command_has_a_help_with_valid_examples(context: click.Context) -> None:
    assert context.command.help
    shown = [line.strip() for line in context.get_help().partition("Examples:")[2].splitlines()]
    examples = [line for line in shown if line.startswith("mldiag ")]
    assert examples
    for example in examples:
        assert example.startswith(context.command_path)
        parse(program, shlex.split(example.partition(" > ")[0])[1:])


def parse(command: click.Command, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse a command line as the program does, without running it."""
    context = command.make_context(command.name, arguments, parent=parent)
    if isinstance(command, click.Group):
        _, child, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert child is not None
        parse(child, rest, context)


@pytest.mark.parametrize("arguments", [[], *(context.command_path.split()[1:] for context in COMMANDS[1:])])
def test_help_loads_nothing_that_a_command_works_with(arguments: list[str]) -> None:
    source = (
        "import sys; from mldiagnostics_cli.__main__ import main; sys.argv = ['mldiag', *sys.argv[1:], '--help']\n"
        "try: main()\n"
        f"finally: print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", source, *arguments], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert "Usage: mldiag" in shown
    assert shown.endswith("loaded: []\n"), shown[-400:]


def test_the_plugin_of_kubectl_is_the_same_program() -> None:
    scripts = {each.name: each.value for each in entry_points(group="console_scripts")}
    assert scripts["mldiag"] == scripts["kubectl-mldiag"]
    shown = subprocess.run([MLDIAG.with_name("kubectl-mldiag"), "runs"], check=True, capture_output=True, timeout=60)
    assert shown.stdout.startswith(b"Usage: kubectl mldiag runs ")


def test_mldiag_shows_its_version_and_completes_commands(mldiag: CommandLine) -> None:
    assert mldiag.lines("--version") == [f"mldiag {entry_points(name='mldiag')['mldiag'].dist.version}"]
    words = {"_MLDIAG_COMPLETE": "bash_complete", "COMP_WORDS": "mldiag runs g", "COMP_CWORD": "2"}
    assert mldiag.lines(env=words) == ["plain,get"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs", "get", "--foo"), "No such option '--foo'; see 'mldiag runs get --help'"),
        (
            ("runs", "list", "--since", "soon"),
            "'soon': not a time; pass a value such as 2h, 7d or 2026-11-21T10:00:00Z",
        ),
        (("rusn",), "No such command 'rusn'. Did you mean 'runs'?"),
        (("runs", "get"), "Missing argument 'RUN'; see 'mldiag runs get --help'"),
    ],
)
def test_invalid_usage_has_an_exit_code_of_its_own(
    mldiag: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    assert message in mldiag.failure(*arguments, code=INVALID_USAGE)


def test_an_unexpected_error_is_one_line_too() -> None:
    code = "import mldiagnostics_cli.runs.listing as l; l.show_runs = lambda *_: 1 / 0"
    code += "; import sys; sys.argv = ['mldiag', 'runs', 'list', '--storage', '.']"
    start = "from mldiagnostics_cli.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}; {start}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("mldiag: unexpected ZeroDivisionError: division by zero; set MLDIAG_TRACEBACK=1")


def test_a_missing_extra_is_that_of_the_command_line() -> None:
    code = "import sys; sys.modules['google.cloud'] = None; sys.argv = ['mldiag', 'runs', 'list', '-s', 'gs://runs/r']"
    start = "from mldiagnostics_cli.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}; {start}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("mldiag: gs://runs/r needs the extra 'gcs': pip install './cli[gcs]' in a checkout")


def test_a_reader_that_ends_early_is_no_error(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc")
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [MLDIAG, "runs", "list"], stdout=writer, stderr=subprocess.PIPE, cwd=mldiag.folder, check=False, timeout=60
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (CLOSED_PIPE, b"")


@pytest.mark.parametrize(
    ("variables", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_it_refuses_them(
    mldiag: CommandLine, store: Store, variables: dict[str, str], has_colour: bool
) -> None:
    put_run(store, "abc", phase="Failed", reason="ExitCode")
    shown = mldiag.in_terminal("runs", "list", env={"TERM": "xterm", **variables})
    assert "Failed (ExitCode)" in shown
    assert ("\x1b[31m" in shown) == has_colour


def test_a_narrow_terminal_cuts_wide_columns(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc" * 20, name="a name that is longer than the terminal")
    shown = mldiag.in_terminal("runs", "list", env={"COLUMNS": "70", "LINES": "20", "NO_COLOR": "1"})
    assert max(map(len, shown.splitlines())) <= 70
    assert "a name" in shown
    assert "…" in shown
