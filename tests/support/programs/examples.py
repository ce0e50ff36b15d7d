"""Runs of the programs in `examples/`, each with its packages and in its own folder."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.runs import find_run, list_runs, read_records
from support.programs import environments
from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.goodput.account import Account
    from mldiagnostics.runs.row import RunRow

ROOT = Path(__file__).parents[3]
LIMIT_S = 280.0


@dataclass(frozen=True)
class Example:
    """The results of an example: its one run, and the files in its folder."""

    folder: Path
    out: str
    err: str

    @property
    def row(self) -> RunRow:
        [row] = list_runs(self._storage)
        return find_run(self._storage, row.run_id)

    def series(self, name: str) -> list[tuple[int | None, object]]:
        """Steps and values of a metric, in order."""
        records = read_records(self._storage, self.row.run_id, kinds={"metric"})
        return [(record.step, record.value) for record in records if record.name == name]

    def account(self) -> Account:
        """Return the account of its time."""
        history, now = History(), datetime.now(timezone.utc)
        open_log(f"{self._storage}/{self.row.run_id}").read_new(history, now)
        moment = round(now.timestamp() * 1e6)
        return history.of(moment).account(moment)

    @property
    def _storage(self) -> str:
        return str(self.folder / "mldiagnostics")


def python(environment: str) -> str:
    """Return the Python of an environment, or skip the test."""
    try:
        return str(environments.interpreter(environment))
    except environments.Unavailable as error:
        pytest.skip(f"no environment {environment}: {error}")


def run_example(path: str, folder: Path, *, environment: str, **variables: str) -> Example:
    """Run `examples/<path>` to completion."""
    return _run(ROOT / "examples" / path, folder, environment, variables)


def run_source(source: str, folder: Path, *, environment: str, **variables: str) -> Example:
    """Run a program of a test like an example."""
    program = folder / "program.py"
    program.write_text(source)
    return _run(program, folder, environment, variables)


def _run(program: Path, folder: Path, environment: str, variables: Mapping[str, str]) -> Example:
    done = subprocess.run(
        [python(environment), str(program)],
        cwd=folder,
        env={**of_programs(), "PYTHONPATH": str(ROOT / "sdk/src"), "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Example(folder, done.stdout, done.stderr)
