"""The command lines of xprofiler's documentation, against a `gcloud` that forwards ports on this machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.records import DEADLINE_S, eventually
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from support.programs.command_line import CommandLine

GCLOUD = """#!{python}
import json, os, pathlib, socket, sys, threading
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + "\\n")
if "describe" in arguments:
    print(json.dumps({{"networkEndpoints": [{{}}] * int(arguments[4][-1])}}))
    sys.exit()
if arguments[arguments.index("ssh") + 1] == "gone":
    sys.exit("ERROR: (gcloud.compute.ssh) Could not fetch resource.")
local, _, remote = arguments[-1].split(":")
listener = socket.create_server(("127.0.0.1", int(local)))

def copy(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)

while True:
    accepted, _ = listener.accept()
    onward = socket.create_connection(("127.0.0.1", int(remote)))
    for ends in ((accepted, onward), (onward, accepted)):
        threading.Thread(target=copy, args=ends, daemon=True).start()
"""


@pytest.fixture
def gcloud(mldiag: CommandLine) -> dict[str, str]:
    """Variables with a gcloud; the last digit of a slice's name is the number of its workers."""
    path = mldiag.folder / "gcloud"
    path.write_text(GCLOUD.format(python=sys.executable, log=str(mldiag.folder / "calls")))
    path.chmod(0o755)
    return {"PATH": f"{mldiag.folder}:/usr/bin:/bin"}


def test_all_workers_of_tpu_vms_are_captured_into_one_session(mldiag: CommandLine, gcloud: dict[str, str]) -> None:
    with profiler_process() as server:
        line = f"-l logs -z us-east5-a -n tpu-1 slice-2 -f jax -o gce -d 10 -p {server.port} -u -v"
        ended = mldiag.run("xprofiler", "capture", *line.split(), env=gcloud)
    assert ended.code in {0, 2}, ended.err  # one server stands for all workers, and records one at a time
    calls = [json.loads(line) for line in (mldiag.folder / "calls").read_text().splitlines()]
    ssh = [call for call in calls if "ssh" in call]
    assert sorted(call[:7] for call in ssh) == [
        ["compute", "tpus", "tpu-vm", "ssh", name, "--zone=us-east5-a", f"--worker={worker}"]
        for name, worker in (("slice-2", 0), ("slice-2", 1), ("tpu-1", 0))
    ]
    stored = {path.name for path in (mldiag.folder / "logs").rglob("*.xplane.pb")}
    assert stored
    assert stored <= {"tpu-1.xplane.pb", "slice-2_0.xplane.pb", "slice-2_1.xplane.pb"}


def test_a_plain_vm_and_a_missing_one(mldiag: CommandLine, gcloud: dict[str, str]) -> None:
    with profiler_process() as server:
        line = f"--log-directory logs --zone z --hosts vm --framework pytorch --port {server.port} --duration 10"
        line += " --non-tpu-vm"
        ended = mldiag.run("xprofiler", "capture", *line.split(), env=gcloud)
    assert ended.code == 0, ended.err
    [call] = [json.loads(line) for line in (mldiag.folder / "calls").read_text().splitlines()]
    assert call[:4] == ["compute", "ssh", "vm", "--zone=z"]
    gone = mldiag.failure("capture", "--gce-vm", "gone", "--zone", "z", env=gcloud)
    assert gone.startswith("gone: no tunnel: (gcloud.compute.ssh) Could not fetch resource; check the name")


def test_a_machine_without_a_tunnel_fails_and_the_others_are_captured(
    mldiag: CommandLine, gcloud: dict[str, str]
) -> None:
    with profiler_process() as server:
        options = ["--zone", "z", "-d", "10ms", "-p", str(server.port), "-o", "json"]
        ended = mldiag.run("capture", "--gce-vm", "vm", "--gce-vm", "gone", *options, env=gcloud)
    assert ended.code == 2, ended.err
    assert "gone: no tunnel: (gcloud.compute.ssh) Could not fetch resource; check the name" in ended.err
    states = {target["host"]: target["state"] for target in json.loads(ended.out)["targets"]}
    assert states == {"vm": "Captured", "gone": "Failed"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_tunnels_too(mldiag: CommandLine, gcloud: dict[str, str], number: signal.Signals) -> None:
    with profiler_process() as server:
        options = ["--zone", "z", "-d", "60s", "-p", str(server.port)]
        command = [mldiag.script, "capture", "--gce-vm", "vm", *options]
        with subprocess.Popen(
            command, cwd=mldiag.folder, env=mldiag.environment(gcloud), stderr=subprocess.PIPE, text=True
        ) as capture:
            server.wait_until_recording(capture)
            [tunnel] = [int(line.split()[0]) for line in tunnels_of(capture.pid) if "ssh" in line]
            capture.send_signal(number)
            capture.communicate(timeout=DEADLINE_S)
        assert capture.returncode == -number
        eventually(lambda: not Path(f"/proc/{tunnel}").exists(), "gcloud has ended")


def tunnels_of(pid: int) -> list[str]:
    """Return the process ids and command lines of the children of a process."""
    children = [each for file in Path(f"/proc/{pid}/task").glob("*/children") for each in file.read_text().split()]
    return [f"{child} {Path(f'/proc/{child}/cmdline').read_bytes().decode()}" for child in children]


def test_a_dry_run_shows_the_machines_and_opens_no_tunnel(mldiag: CommandLine, gcloud: dict[str, str]) -> None:
    options = ["--zone", "z", "--dry-run", "-o", "json"]
    vms = mldiag.run("capture", "--gce-vm", "vm", *options, env=gcloud)
    assert [(each["host"], each["port"]) for each in json.loads(vms.out)] == [("vm", 9999)]
    workers = mldiag.run("capture", "--tpu-vm", "slice-2", *options, env=gcloud)
    assert [each["host"] for each in json.loads(workers.out)] == ["slice-2_0", "slice-2_1"]
    [call] = [json.loads(line) for line in (mldiag.folder / "calls").read_text().splitlines()]
    assert "describe" in call


def test_outcomes_name_the_machine_and_not_its_tunnel(mldiag: CommandLine, gcloud: dict[str, str]) -> None:
    with profiler_process() as server:
        options = ["--zone", "z", "-d", "10ms", "-p", str(server.port), "-o", "json"]
        ended = mldiag.run("capture", "--gce-vm", "vm", *options, env=gcloud)
    assert ended.code == 0, ended.err
    [target] = json.loads(ended.out)["targets"]
    assert (target["host"], target["port"], target["stem"]) == ("vm", server.port, "vm")
    assert f"1/1 vm:{server.port}  Captured" in ended.err


def test_misspelt_flags_are_errors_and_the_script_is_the_same_program(mldiag: CommandLine) -> None:
    script = type(mldiag)(mldiag.folder, mldiag.script.with_name("mldiag-xprofiler"))
    message = script.failure("capture", *["-l", "x", "-z", "z", "-n", "a", "-f", "jax", "--durations", "5"], code=64)
    assert message.startswith("No such option '--durations'")
