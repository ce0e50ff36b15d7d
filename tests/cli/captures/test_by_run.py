"""`mldiag capture RUN` of processes outside a cluster, found by the files of the run."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_port
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_cli.captures.by_run import processes_of
from mldiagnostics_cli.captures.cluster_target import TargetNarrowing
from mldiagnostics_cli.exit_codes import PARTIAL
from mldiagnostics_cli.sources import find
from support.programs.jax_programs import end_of, start_program
from support.programs.processes import eventually
from support.programs.profiled_runs import profiled_run

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.command_line import CommandLine
    from support.servers.profiler_process import ProfilerProcess


def test_the_processes_of_a_run_are_captured_into_its_directory(mldiag: CommandLine, server: ProfilerProcess) -> None:
    options = ["--storage", "runs", "--duration", "10ms", "-o", "json"]
    with profiled_run(mldiag.folder, server.port, 0):
        ended = mldiag.run("capture", "4f6c", *options)
        shown = mldiag.document("capture", "trainer", "--storage", "runs", "--ranks", "0", "--dry-run")
        refused = mldiag.failure("capture", "trainer", "--storage", "runs", "--ranks", "1")
        run = find(str(mldiag.folder / "runs"), "trainer")
        [other, _] = processes_of(run, TargetNarrowing().filter(), None, this_host="another")
        [_, given] = processes_of(run, TargetNarrowing().filter(), 9012, this_host=socket.gethostname())
    assert ended.code == PARTIAL, ended.err
    document = json.loads(ended.out)
    host, directory = socket.gethostname(), f"{mldiag.folder}/runs/4f6c"
    assert document["directory"] == directory
    [target] = document["targets"]
    assert (target["host"], target["port"], target["stem"]) == ("127.0.0.1", server.port, f"{host}_0")
    assert [each["stem"] for each in shown] == [f"{host}_0"]
    assert f"rank 1 on {host}  Skipped  listens on no port" in ended.err
    assert refused.startswith(f"trainer: rank 1 on {host} listens on no port; pass `on_demand_xprof=True`")
    assert other.address == f"{host}:{server.port}"
    assert given.address == "127.0.0.1:9012"
    [session] = mldiag.document("profiles", "list", directory, "--storage", "runs")
    assert session["session"] == document["session"]


def test_a_run_without_processes_or_files_is_named(mldiag: CommandLine) -> None:
    with profiled_run(mldiag.folder, 0):
        pass
    ended = mldiag.failure("capture", "trainer", "--storage", "runs")
    assert ended == "trainer: the run has ended (Completed); only processes that run can be captured"
    assert mldiag.failure("capture", "none", "-s", "runs").startswith("none: no run in runs has this name")
    both = mldiag.failure("capture", "none", env={"MLDIAG_STORAGE": "runs", "KUBECONFIG": "missing"})
    assert both.startswith("none: no run in runs has this name")
    assert "(in a cluster: " in both
    assert mldiag.failure("capture", "runs/4f6c").startswith("trainer: the run has ended")
    message = mldiag.failure("capture", "trainer", "-s", "runs", "--container", "main")
    assert message == "--container: trainer does not run in pods; leave the option out"


@pytest.mark.peers
def test_a_jax_program_is_captured_by_its_run(mldiag: CommandLine) -> None:
    for duration in ("1s", "10s", "30s"):
        folder = mldiag.folder / duration
        folder.mkdir()
        steps = steps_in_capture(replace(mldiag, folder=folder), duration)
        if steps["total"] > 1:  # else the program was paused
            break
    assert steps["source"] == "annotations"
    assert steps["total"] > 1


def steps_in_capture(mldiag: CommandLine, duration: str) -> dict[str, Any]:
    """Capture a program of its own by its run; return the steps of the summary."""
    program = """
    run = begin(on_demand_xprof=True)
    step()
    report(started=True)
    import threading
    waiting = threading.Thread(target=sys.stdin.read)
    waiting.start()
    while waiting.is_alive():
        run.step()
        step()
    """
    runs = mldiag.folder / "mldiagnostics"
    with start_program(program, runs, MLDIAG_PROFILER_PORT=str(free_port())) as process:
        assert process.stdout
        assert process.stdout.readline()
        eventually(lambda: listens(runs / "demo"))
        ended = mldiag.run("capture", "demo", "--duration", duration)
        end_of(process, runs)
    assert ended.code == 0, ended.err
    [trace] = runs.glob("demo/plugins/profile/*/*.xplane.pb")
    assert trace.name == f"{socket.gethostname()}.xplane.pb"
    [summary] = trace.parent.glob("*.summary.json")
    steps: dict[str, Any] = json.loads(summary.read_text())["steps"]
    return steps


def listens(run: Path) -> bool:
    """Return whether the files of a run have the port of its profiler."""
    return (run / "run.json").exists() and any('"listening"' in log.read_text() for log in run.rglob("*.jsonl"))


def test_ranges_that_are_not_valid_are_named() -> None:
    with pytest.raises(ConfigurationError, match="--ranks or --slices: "):
        TargetNarrowing(ranks="x").filter()
