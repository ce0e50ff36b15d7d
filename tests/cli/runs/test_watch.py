from __future__ import annotations

import json
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mldiagnostics_cli.exit_codes import INTERRUPTED
from support.run_files import put_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine


@contextmanager
def watching(mldiag: CommandLine, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [mldiag.script, "runs", "watch", "--interval", "0.1", *arguments]
    with subprocess.Popen(
        command, cwd=mldiag.folder, env=mldiag.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_run_is_watched_until_it_has_ended(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc", phase="Active", progress={"step": 1})
    with watching(mldiag, "abc") as process:
        assert next_line(process).split()[:2] == ["NAME", "RUN"]
        assert "Active" in next_line(process)
        put_run(store, "abc", phase="Active", progress={"step": 2})
        assert next_line(process).split()[5] == "2"
        put_run(store, "abc", phase="Failed", reason="ExitCode", progress={"step": 2})
        assert "Failed (ExitCode)" in next_line(process)
        assert process.wait(60) == 1


def test_changes_of_all_runs_are_lines_of_json_until_ctrl_c(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "abc", phase="Active")
    with watching(mldiag, "-o", "json") as process:
        assert json.loads(next_line(process))["runId"] == "abc"
        put_run(store, "def")
        assert json.loads(next_line(process))["runId"] == "def"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == INTERRUPTED
        assert process.stderr is not None
        assert process.stderr.read().strip() == ""
