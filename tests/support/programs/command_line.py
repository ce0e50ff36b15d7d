"""The console script `mldiag`, as a user runs it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.programs.forked_scripts import run_script
from support.programs.processes import Ended
from support.programs.terminals import in_terminal
from support.servers.buckets import client_variables
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Mapping

MLDIAG = Path(sys.executable).parent / "mldiag"
LIMIT_S = 120.0


@dataclass(frozen=True)
class CommandLine:
    """A runner of `mldiag` in a folder, without variables of this process."""

    folder: Path
    script: Path = MLDIAG
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run a command to its end."""
        done = run_script([self.script, *arguments], cwd=self.folder, env=self.environment(env), limit_s=LIMIT_S)
        assert "Traceback" not in done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    def lines(self, *arguments: str, env: Mapping[str, str] | None = None) -> list[str]:
        """Return the output of a command that succeeds, without spaces at the ends of lines."""
        ended = self.run(*arguments, env=env)
        assert ended.code == 0, ended.err
        return [line.rstrip() for line in ended.out.splitlines()]

    def in_terminal(self, *arguments: str, env: Mapping[str, str]) -> str:
        """Return what a command that succeeds shows in a terminal; `COLUMNS` and `TERM` are in `env`."""
        with in_terminal([self.script, *arguments], cwd=self.folder, env=self.environment(env)) as process:
            code, _ = process.end(limit_s=LIMIT_S)
            shown = process.shown.replace("\r\n", "\n")
        assert code == 0, shown
        return shown

    def document(self, *arguments: str) -> Any:
        """Return what a command prints with `-o json`."""
        return json.loads("\n".join(self.lines(*arguments, "-o", "json")))

    def failure(self, *arguments: str, code: int = 1, env: Mapping[str, str] | None = None) -> str:
        """Return the message of a command that fails: one line, and nothing else."""
        ended = self.run(*arguments, env=env)
        assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), ended
        return ended.err.removeprefix("mldiag: ").rstrip()

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables of a command."""
        return {**of_programs(), **client_variables(), **self.env, **(env or {})}
