"""Programs that use the SDK, as real processes: tests see only their files and output."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.runs import list_runs
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mldiagnostics.runs.row import RunRow

SDK = Path(__file__).parents[3] / "sdk/src"
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a program."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Programs:
    """A runner of programs with `storage` as the root of their runs, without this process's identity."""

    folder: Path
    python: str = sys.executable
    options: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def storage(self) -> str:
        return str(self.folder / "storage")

    def run(self, source: str, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run a program to its end."""
        done = subprocess.run(
            self._command(source, arguments),
            cwd=self.folder,
            env=self._environment(env),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, source: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Child]:
        """Run a program while the block runs; kill it at the end."""
        process = subprocess.Popen(
            self._command(source, arguments),
            cwd=self.folder,
            env=self._environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield Child(process)
            finally:
                process.kill()

    def the_run(self, *, now: float | None = None) -> RunRow:
        """Return the one run of the programs."""
        [row] = list_runs(self.storage, now=now)
        return row

    def _command(self, source: str, arguments: Sequence[str]) -> list[str]:
        program = self.folder / f"program{len(list(self.folder.glob('program*.py')))}.py"
        program.write_text(textwrap.dedent(source))
        return [*self.around, self.python, *self.options, str(program), *arguments]

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        own = {"MLDIAG_STORAGE": self.storage, "MLDIAG_SPOOL": str(self.folder / "spool")}
        return {**of_programs(), "PYTHONPATH": str(SDK), **own, **self.env, **(env or {})}


@dataclass(frozen=True)
class Child:
    """A running program."""

    process: subprocess.Popen[str]

    def says(self, line: str) -> None:
        """Wait until the program prints a line."""
        assert self.process.stdout is not None
        for printed in self.process.stdout:
            if printed.strip() == line:
                return
        raise AssertionError(f"the program ended without printing {line!r}: {self.end().err}")

    def end(self) -> Ended:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return Ended(self.process.returncode, out, err)


def eventually(condition: Callable[[], object], *, limit_s: float = 60.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit_s:g} s: {condition}")
        time.sleep(0.02)
