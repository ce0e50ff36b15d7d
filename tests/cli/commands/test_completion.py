"""Completion in the real shells of this machine, and the plugin of a real kubectl."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from cluster.tools import tool
from mldiagnostics.pipeline.records import Record
from support.programs.command_line import MLDIAG, CommandLine
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store

TRIES = 5
"""Of a completion, which is empty where the machine takes longer than a user waits."""

SHELLS = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]
TYPED = {
    "bash": (["--norc", "-i"], "source '{folder}/completion'"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -d '{folder}/dump'; source '{folder}/completion'"),
}
"""Arguments of a shell in a terminal, and the line that prepares it."""
SCRIPTS = {
    "bash": """
        compopt() {{ :; }}  # it works in a completion only
        source '{script}'
        COMP_WORDS=({line}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _{function}_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "fish": """
        source '{script}'
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
    assert completions(shell, line, mldiag, tmp_path) == [completed]


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell in SCRIPTS])
def test_a_shell_completes_runs_groups_metrics_and_sessions(
    shell: str, mldiag: CommandLine, store: Store, tmp_path: Path
) -> None:
    for run, name in (("1a" * 12, "trainer"), ("2b" * 12, "twice"), ("3c" * 12, "twice"), ("4d" * 12, "two words")):
        put_run(store, run, name=name, runGroup="sweep-7", created=1.0)
    put_records(store, "1a" * 12, "a0-r0-aaaaaaaa-00001", Record("metric", 1.0, "train/loss", value=1.0, step=1))
    store.put(f"{'1a' * 12}/plugins/profile/a0-s5/h0.xplane.pb", b"12345")
    completed = {
        "mldiag runs get tr": ["trainer"],
        "mldiag runs get 1a": ["1a" * 8],
        "mldiag runs compare trainer tw": [],  # two runs have this name
        "mldiag runs get 2": ["2b" * 8],
        "mldiag runs get 4": ["4d" * 8],
        "mldiag goodput trai": ["trainer"],
        "mldiag runs list --group sw": ["sweep-7"],
        "mldiag runs get trainer --metric tr": ["train/loss"],
        "mldiag profiles get trainer/": ["trainer/a0-s5"],
        "mldiag runs get --storage nowhere tr": [],
    }
    shown = {
        line: completions(shell, line, mldiag, tmp_path, tries=TRIES if values else 1)
        for line, values in completed.items()
    }
    assert shown == completed


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
    os.write(terminal, f"{setup.format(folder=tmp_path)}\nmldiag runs ge\t --help > '{shown}'\nexit\n".encode())
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


def completions(shell: str, line: str, mldiag: CommandLine, folder: Path, *, tries: int = 1) -> list[str]:
    """Return the values that a shell offers for the last word of a line."""
    offered: list[str] = []
    while tries and not offered:
        offered, tries = completed_once(shell, line, mldiag, folder), tries - 1
    return offered


def completed_once(shell: str, line: str, mldiag: CommandLine, folder: Path) -> list[str]:
    """Return the values that a shell offers when Tab is pressed once."""
    program = line.partition(" ")[0]
    script = folder / program
    if not script.exists():
        script.write_text("\n".join(mldiag.lines("completion", shell, "--program", program)) + "\n")
    filled = {"script": script, "line": line, "program": program, "function": program.replace("-", "_")}
    done = subprocess.run(
        [shell, "-c", SCRIPTS[shell].format_map(filled)],
        cwd=mldiag.folder,
        env=with_scripts(mldiag, folder),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return [each.split("\t")[0] for each in done.stdout.splitlines() if each]


def with_scripts(mldiag: CommandLine, home: Path) -> dict[str, str]:
    """Return an environment whose PATH has the console scripts, and an empty home."""
    environment = mldiag.environment()
    return environment | {"PATH": f"{MLDIAG.parent}{os.pathsep}{environment['PATH']}", "HOME": str(home)}
