"""Completion in the real shells of this machine, and the plugin of a real kubectl."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from cluster.tools import tool
from support.programs.command_line import MLDIAG, CommandLine

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
TYPED = {
    "bash": (["--norc", "-i"], "source {folder}/completion"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -d {folder}/dump; source {folder}/completion"),
}
"""Arguments of a shell in a terminal, and the line that prepares it."""
SCRIPTS = {
    "bash": """
        source {script}
        COMP_WORDS=({line}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _{function}_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "fish": """
        source {script}
        complete -C '{line}'
    """,
}


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in SCRIPTS])
@pytest.mark.parametrize(
    ("line", "completed"), [("mldiag runs ge", "get"), ("mldiag-xprofiler capture --dur", "--duration")]
)
def test_a_shell_completes_a_command(
    shell: str, line: str, completed: str, mldiag: CommandLine, tmp_path: Path
) -> None:
    program = line.partition(" ")[0]
    script = tmp_path / "completion"
    script.write_text("\n".join(mldiag.lines("completion", shell, "--program", program)) + "\n")
    filled = {"script": script, "line": line, "program": program, "function": program.replace("-", "_")}
    done = subprocess.run(
        [shell, "-c", SCRIPTS[shell].format_map(filled)],
        env=with_scripts(mldiag, tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert [each.split("\t")[0] for each in done.stdout.splitlines()] == [completed], done.stderr


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in TYPED])
def test_a_line_that_is_typed_in_a_terminal_is_completed(shell: str, mldiag: CommandLine, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    (tmp_path / "completion").write_text("\n".join(mldiag.lines("completion", shell)) + "\n")
    arguments, setup = TYPED[shell]
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [shell, *arguments], stdin=end, stdout=end, stderr=end, env=with_scripts(mldiag, tmp_path) | {"TERM": "dumb"}
    )
    os.close(end)
    os.write(terminal, f"{setup.format(folder=tmp_path)}\nmldiag runs ge\t --help > {shown}\nexit\n".encode())
    printed = b""
    try:
        while part := os.read(terminal, 65536):
            printed += part
    except OSError:  # the shell has closed its end
        pass
    os.close(terminal)
    assert process.wait(60) == 0, printed
    assert shown.read_text().startswith("Usage: mldiag runs get "), printed


def test_kubectl_finds_the_plugin(mldiag: CommandLine, tmp_path: Path) -> None:
    def kubectl(*arguments: str) -> str:
        env = with_scripts(mldiag, tmp_path)
        done = subprocess.run(
            [tool("kubectl"), *arguments], env=env, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    assert kubectl("mldiag", "runs", "--help").startswith("Usage: kubectl mldiag runs ")
    assert str(MLDIAG.with_name("kubectl-mldiag")) in kubectl("plugin", "list")


def with_scripts(mldiag: CommandLine, home: Path) -> dict[str, str]:
    """Return an environment whose PATH has the console scripts, and an empty home."""
    environment = mldiag.environment()
    return environment | {"PATH": f"{MLDIAG.parent}{os.pathsep}{environment['PATH']}", "HOME": str(home)}
