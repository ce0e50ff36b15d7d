"""A session of profiles that a real program recorded, in runs of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.store import open_store
from support.programs.command_line import CommandLine
from support.run_files import put_run
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from pathlib import Path


def capture_session(folder: Path) -> Path:
    """Capture a program, and return the directory of the traces."""
    with profiler_process() as profiled:
        options = ["-d", "10ms", "--session", "slow", "--log-directory", str(folder), "--no-diagnosis"]
        ended = CommandLine(folder).run("capture", f"127.0.0.1:{profiled.port}", *options)
    assert ended.code == 0, ended.err
    return folder / "plugins/profile/slow"


def put_session(root: str, traces: Path, *runs: str) -> None:
    """Put runs into a store, each with the session `slow`."""
    store = open_store(root)
    for run in runs:
        put_run(store, run)
        for trace in traces.glob("*.xplane.pb"):
            store.put(f"{run}/plugins/profile/slow/{trace.name}", trace.read_bytes())
