"""`mldiag capture` of servers that speak the profiler's protocol."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.layout import trace_stem
from mldiagnostics_cli.exit_codes import FAILED, INTERRUPTED, PARTIAL
from support.programs.terminals import in_terminal
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.programs.command_line import CommandLine
    from support.servers.profiler_process import ProfilerProcess


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
    assert f"To open it: xprof --logdir {shlex.quote(f'{mldiag.folder}/profiles')}" in ended.err
    [trace] = (mldiag.folder / "profiles/plugins/profile/first").glob("*.xplane.pb")
    assert trace.stat().st_size
    again = mldiag.failure("capture", "127.0.0.1", *options)
    assert "session: 'first' exists in" in again


def test_a_bucket_that_xprof_cannot_read_is_opened_by_a_server(
    mldiag: CommandLine, server: ProfilerProcess, s3_bucket: str
) -> None:
    directory = f"s3://{s3_bucket}/logs"
    ended = mldiag.run("capture", f"127.0.0.1:{server.port}", "--duration", "10ms", "--log-directory", directory)
    assert ended.code == 0, ended.err
    assert f"To open it: mldiag xprof create --open {directory}" in ended.err


def test_the_verdict_follows_the_table_and_never_changes_the_result(
    mldiag: CommandLine, server: ProfilerProcess
) -> None:
    options = [f"127.0.0.1:{server.port}", "--duration", "10ms"]
    ended = mldiag.run("capture", *options, "--session", "first")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[2] == ""  # after the heading and the row of the host
    assert lines[3].startswith("session   first: ")
    assert any(line.startswith("info      ") for line in lines)  # the trace of this server has no steps
    silent = mldiag.run("capture", *options, "--session", "second", "--no-diagnosis")
    assert len(silent.out.splitlines()) == 2
    assert not (mldiag.folder / "profiles/plugins/profile/second/diagnosis.json").exists()


def test_a_pulse_keeps_the_summaries_of_all_hosts_and_the_traces_of_few(
    mldiag: CommandLine, server: ProfilerProcess
) -> None:
    hosts = [f"{host}:{server.port}" for host in ("127.0.0.1", "localhost")]  # the second one waits for the first
    ended = mldiag.run("capture", *hosts, "--pulse", "--session", "pulse")
    assert ended.code == 0, ended.err
    folder = mldiag.folder / "profiles/plugins/profile/pulse"
    [kept] = folder.glob("*.xplane.pb")
    assert len([*folder.glob("*.summary.json")]) == 2
    assert f"Pulse: the traces of {trace_stem(str(kept))} are kept, and the summaries of all 2 hosts." in ended.err
    quiet = mldiag.document("capture", *hosts, "--pulse", "--session", "quiet")
    assert len(quiet["targets"]) == 2
    assert len([*(mldiag.folder / "profiles/plugins/profile/quiet").glob("*.xplane.pb")]) == 1


def test_a_process_without_a_continuous_recording_has_no_past(mldiag: CommandLine, server: ProfilerProcess) -> None:
    ended = mldiag.run("capture", f"127.0.0.1:{server.port}", "--past", "-o", "json")
    assert ended.code == FAILED
    assert [target["reason"] for target in json.loads(ended.out)["targets"]] == ["NoContinuousProfiling"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--past --duration 1s", "--past and --duration"),
        ("--past --pulse", "--past and --pulse"),
        ("--pulse --no-diagnosis", "--pulse and --no-diagnosis"),
        ("--pulse --duration 11s", "--pulse: takes at most 10000ms"),
    ],
)
def test_pulses_and_the_past_exclude_other_options(mldiag: CommandLine, options: str, problem: str) -> None:
    assert problem in mldiag.failure("capture", "127.0.0.1:1", *options.split(), code=64)


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
    assert [each["session"] for each in mldiag.document("profiles", "list", "profiles")] == [document["session"]]


def test_a_dry_run_contacts_nobody(mldiag: CommandLine, closed_port: int) -> None:
    [target] = mldiag.document("capture", f"127.0.0.1:{closed_port}", "--dry-run")
    assert target["port"] == closed_port
    assert not (mldiag.folder / "profiles").exists()
    assert len(mldiag.document("capture", f"127.0.0.1:{closed_port}", "--dry-run", "--every", "1m")) == 1


@pytest.mark.parametrize(
    "options",
    ["--ranks 0", "--slices 0", "--node a", "--container a", "--limit 1", "-n a", "--context a", "--direct", "-s runs"],
)
def test_options_of_other_targets_are_refused(mldiag: CommandLine, options: str) -> None:
    message = mldiag.failure("capture", "127.0.0.1:1", *options.split(), code=64)
    assert ": not possible with addresses; leave it out; see 'mldiag capture --help'" in message


def test_options_that_exclude_each_other_are_refused(mldiag: CommandLine) -> None:
    assert "--detach: not possible with addresses" in mldiag.failure("capture", "a:1", "--detach", code=64)
    selected = mldiag.failure("capture", "-l", "app=a", "--hosts-file", "hosts.txt", code=64)
    assert "--selector: not possible with addresses" in selected
    assert "--selector: not possible with VMs" in mldiag.failure(
        "capture", "-l", "app=a", "--gce-vm", "a", "--zone", "z", code=64
    )
    assert "--zone: is the zone of VMs" in mldiag.failure("capture", "a:1", "--zone", "z", code=64)


def test_invalid_hosts_are_errors_of_one_line(mldiag: CommandLine) -> None:
    assert "no host is given; pass HOST:PORT" in mldiag.failure("capture")
    assert "'a:b' has no port between 1 and 65535" in mldiag.failure("capture", "a:b")
    assert "--file none: cannot be read" in mldiag.failure("capture", "--file", "none")
    assert "'2': not a duration with its unit" in mldiag.failure("capture", "a", "-d", "2", code=64)


def test_ctrl_c_stops_the_recording_and_keeps_the_trace(mldiag: CommandLine) -> None:
    with profiler_process() as server:
        command = [mldiag.script, "capture", f"127.0.0.1:{server.port}", "--duration", "10m", "-o", "json"]
        with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment(), pipe=True) as process:
            server.wait_until_recording()
            process.press_ctrl_c()
            code, out = process.end()
    assert code == INTERRUPTED, process.shown
    [target] = json.loads(out)["targets"]
    assert (target["state"], target["reason"]) == ("Cancelled", "Cancelled")
    assert target["bytes"]
    assert "recording 600 s, 0 of 1 host done" in process.shown
    assert "Stopping the recordings" in process.shown


def test_ctrl_c_ends_a_repeated_capture(mldiag: CommandLine, server: ProfilerProcess) -> None:
    command = [mldiag.script, "capture", f"127.0.0.1:{server.port}", "--every", "60m", "-d", "10ms", "-o", "name"]
    with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment(), pipe=True) as process:
        first = process.read_line()
        process.press_ctrl_c()
        code, rest = process.end()
    assert code == INTERRUPTED, process.shown
    assert "Traceback" not in process.shown
    files = [Path(line) for line in (first + rest).splitlines()]
    assert len(set(files)) == len(files)
    assert set(files) == set(mldiag.folder.rglob("*.xplane.pb"))


def test_a_capture_by_address_loads_no_client_of_a_cluster() -> None:
    """These libraries cost it a second before it starts."""
    program = "import sys, mldiagnostics_cli.captures.by_address; print({'aiohttp', 'pydantic'} & {*sys.modules})"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"
