"""`mldiag capture` of servers that speak the profiler's protocol."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_cli.exit_codes import FAILED, INTERRUPTED, PARTIAL
from support.profiler_process import profiler_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import CommandLine
    from support.profiler_process import ProfilerProcess


@pytest.fixture(scope="module")
def server() -> Iterator[ProfilerProcess]:
    with profiler_process() as process:
        yield process


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nothing else can take while the test runs, and where nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_hosts_of_arguments_and_files_are_captured(mldiag: CommandLine, server: ProfilerProcess) -> None:
    (mldiag.folder / "hosts.txt").write_text("# one host\n\n127.0.0.1\n")
    options = ["--port", str(server.port), "--duration", "10ms", "--session", "first"]
    ended = mldiag.run("capture", "--file", "hosts.txt", *options)
    assert ended.code == 0, ended.err
    row = ended.out.splitlines()[1].split()
    assert row[:3] == [f"127.0.0.1:{server.port}", "Captured", "Captured"]
    assert "1/1 127.0.0.1" in ended.err
    assert f"To open it: xprof --logdir {mldiag.folder}/profiles" in ended.err
    [trace] = (mldiag.folder / "profiles/plugins/profile/first").glob("*.xplane.pb")
    assert trace.stat().st_size
    again = mldiag.failure("capture", "127.0.0.1", *options)
    assert "session: 'first' exists in" in again


def test_the_exit_code_says_how_many_hosts_were_captured(
    mldiag: CommandLine, server: ProfilerProcess, closed_port: int
) -> None:
    good, bad = f"127.0.0.1:{server.port}", f"127.0.0.1:{closed_port}"
    part = mldiag.run("capture", good, bad, "--duration", "10ms", "-o", "json")
    assert part.code == PARTIAL, part.err
    document = json.loads(part.out)
    assert [target["reason"] for target in document["targets"]] == ["Captured", "NothingListens"]
    none = mldiag.run("capture", bad, "--duration", "10ms", "-o", "name")
    assert (none.code, none.out) == (FAILED, "")
    assert "1/1" in none.err


def test_a_dry_run_contacts_nobody(mldiag: CommandLine, closed_port: int) -> None:
    [target] = mldiag.document("capture", f"127.0.0.1:{closed_port}", "--dry-run")
    assert target["port"] == closed_port
    assert not (mldiag.folder / "profiles").exists()


def test_invalid_hosts_are_errors_of_one_line(mldiag: CommandLine) -> None:
    assert "no host is given; give HOST:PORT" in mldiag.failure("capture")
    assert "'a:b' has no port between 1 and 65535" in mldiag.failure("capture", "a:b")
    assert "--file none: cannot be read" in mldiag.failure("capture", "--file", "none")
    assert "'2': not a duration with its unit" in mldiag.failure("capture", "a", "-d", "2", code=64)


def test_ctrl_c_stops_the_recording_and_keeps_the_trace(mldiag: CommandLine) -> None:
    terminal, end = pty.openpty()
    with profiler_process() as server:
        command = [mldiag.script, "capture", f"127.0.0.1:{server.port}", "--duration", "10m", "-o", "json"]
        process = subprocess.Popen(
            command, cwd=mldiag.folder, env=mldiag.environment(), stdout=subprocess.PIPE, stderr=end, text=True
        )
        os.close(end)
        server.wait_until_recording()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.returncode == INTERRUPTED, shown
    [target] = json.loads(out)["targets"]
    assert (target["state"], target["reason"]) == ("Cancelled", "Cancelled")
    assert target["bytes"]
    assert b"recording 600 s, 0 of 1 hosts done" in shown
    assert b"Stopping the recordings" in shown
