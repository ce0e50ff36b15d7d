"""The profiler server of a real JAX program: its port, its start and its warnings."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cluster.ports import free_port
from mldiagnostics.capture import TargetState, capture
from mldiagnostics.profiling.ports import is_free
from support.programs import environments
from support.programs.jax_programs import end_of, run_program, start_program
from support.programs.processes import eventually

if TYPE_CHECKING:
    from mldiagnostics.capture import CaptureReport

pytestmark = pytest.mark.peers


def manifest(storage: Path) -> dict[str, Any]:
    (file,) = storage.rglob("run.json")
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def published(storage: Path) -> dict[str, object]:
    section: dict[str, object] = manifest(storage)["profiler"]
    return section


TRAINS_UNTIL_EOF = """
from jax._src import xla_bridge
run = begin(on_demand_xprof=True)
backends = xla_bridge.backends_are_initialized()
step()
report(backends=backends)
import threading
waiting = threading.Thread(target=sys.stdin.read)
waiting.start()
while waiting.is_alive():
    step()
run.close()
report(problems=diagnostics.counts())
"""


def test_a_run_serves_publishes_its_port_and_initialises_no_backend(tmp_path: Path) -> None:
    port = free_port()
    with start_program(TRAINS_UNTIL_EOF, tmp_path / "runs", MLDIAG_PROFILER_PORT=str(port)) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"backends": False}
        (outcome,) = capture([f"127.0.0.1:{port}"], duration_ms=1000, storage=str(tmp_path / "captures")).outcomes
        ended = end_of(process, tmp_path / "runs")
    assert outcome.state is TargetState.CAPTURED, outcome.message
    assert ended.reported == {"problems": {}}, ended.log
    section = published(tmp_path / "runs")
    assert (section["port"], section["server"]) == (port, "jax")
    assert ended.states("on-demand") == ["listening"]
    assert is_free(port)


DAEMON = """
import os, sys, threading
from mldiagnostics.run import machinelearning_run
run = machinelearning_run("demo", storage=sys.argv[1], on_demand_xprof=True, log_system_metrics=False)
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
run.step(0)
import jax.numpy as jnp
waiting = threading.Thread(target=sys.stdin.read)
waiting.start()
while waiting.is_alive():
    jnp.ones((64, 64)).sum().block_until_ready()
"""


def test_a_daemon_serves_the_port_of_its_run(tmp_path: Path) -> None:
    port, runs = free_port(), tmp_path / "runs"
    with start_program(DAEMON, runs, prelude="", MLDIAG_PROFILER_PORT=str(port)) as process:
        eventually(lambda: "profiler" in "".join(file.read_text() for file in runs.rglob("run.json")))
        (outcome,) = capture([f"127.0.0.1:{port}"], duration_ms=500, storage=str(tmp_path / "captures")).outcomes
        ended = end_of(process, runs)
    assert outcome.state is TargetState.CAPTURED, outcome.message
    assert "forkedFrom" in manifest(runs)
    assert published(runs)["port"] == port
    assert ended.phase() == "Completed", ended.log


def test_a_taken_port_is_logged_with_its_process(tmp_path: Path) -> None:
    port = str(free_port())
    with start_program(TRAINS_UNTIL_EOF, tmp_path / "one", MLDIAG_PROFILER_PORT=port) as first:
        assert first.stdout
        assert first.stdout.readline()
        second = run_program(
            "begin(on_demand_xprof=True); step(); report(trained=True)", tmp_path / "two", MLDIAG_PROFILER_PORT=port
        )
        ended = end_of(first, tmp_path / "one")
    assert ended.returncode == 0, ended.log
    assert second.reported == {"trained": True}
    assert f"port {port} is taken by process {first.pid} (" in second.log


def test_the_local_rank_is_added_and_the_program_can_start_and_stop_the_server(tmp_path: Path) -> None:
    port = free_port()
    ended = run_program(
        f"""
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof, stop_on_demand_xprof
        from mldiagnostics.profiling.ports import is_free
        first = start_on_demand_xprof({port - 1})
        again = start_on_demand_xprof(port={port - 1})
        stop_on_demand_xprof(); stop_on_demand_xprof()
        while not is_free({port}):
            time.sleep(0.01)
        report(ports=[first, again, start_on_demand_xprof({port - 1})], problems=diagnostics.counts())
        """,
        tmp_path,
        LOCAL_RANK="1",
    )
    assert ended.reported == {"ports": [port] * 3, "problems": {"on-demand-twice": 1}}, ended.log


@pytest.mark.parametrize(
    ("flags", "platforms", "problems"),
    [
        ("", "", {"command-buffers": 1}),
        ("--xla_gpu_enable_command_buffer=", "", {}),
        ("", "cpu", {}),
    ],
)
def test_a_gpu_that_a_capture_can_break_is_logged(
    tmp_path: Path, flags: str, platforms: str, problems: dict[str, int]
) -> None:
    (tmp_path / "driver").touch()
    ended = run_program(
        f"""
        from mldiagnostics.profiling import on_demand
        on_demand._NVIDIA_DRIVER = {str(tmp_path / "driver")!r}  # this machine has no GPU
        begin(on_demand_xprof=True)
        step()
        report(problems=diagnostics.counts())
        """,
        tmp_path / "runs",
        MLDIAG_PROFILER_PORT=str(free_port()),
        XLA_FLAGS=flags,
        JAX_PLATFORMS=platforms,
    )
    assert ended.reported == {"problems": problems}, ended.log


def test_an_invalid_port_is_logged_and_training_goes_on(tmp_path: Path) -> None:
    ended = run_program(
        """
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof
        ports = [start_on_demand_xprof(port) for port in (0, -1, 70_000, 1 << 80, "ten", [], 1j)]
        report(ports=ports, problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"ports": [None] * 7, "problems": {"on-demand-off": 7}}
    assert "on-demand captures of this process are off: port 0 is not between 1 and 65535" in ended.log


def test_a_variable_that_is_not_a_number_is_replaced_by_the_default(tmp_path: Path) -> None:
    ended = run_program(
        "begin(on_demand_xprof=True); step(); report(trained=True)", tmp_path, MLDIAG_PROFILER_PORT="many"
    )
    assert ended.reported == {"trained": True}
    assert "MLDIAG_PROFILER_PORT='many' is not a number; 9999 is used" in ended.log


def test_local_rank_alone_gives_each_process_its_port(tmp_path: Path) -> None:
    port = free_port()
    ended = run_program(
        "begin(on_demand_xprof=True); step(); report(trained=True)",
        tmp_path,
        MLDIAG_PROFILER_PORT=str(port - 1),
        LOCAL_RANK="1",
    )
    assert ended.reported == {"trained": True}, ended.log
    assert published(tmp_path)["port"] == port


BARE = """
import json, sys, threading
from mldiagnostics import diagnostics
from mldiagnostics.run import machinelearning_run

def report(**values):
    print(json.dumps(values), flush=True)

def begin(**more):
    return machinelearning_run("demo", run_workload_id="demo", storage=sys.argv[1], **more)

"""
"""Starts a run in a program that has imported no framework."""

IMPORTS_LATER = {
    "jax": """
        import jax, jax.numpy as jnp
        multiply = jax.jit(lambda x: jnp.tanh(x @ x) / 2)
        def step():
            with jax.profiler.TraceAnnotation("train_step"):
                multiply(jnp.ones((64, 64))).block_until_ready()
        """,
    "torch": """
        import torch
        model = torch.nn.Linear(64, 64)
        def step():
            with torch.profiler.record_function("train_step"):
                model(torch.ones(64, 64)).square().mean().backward()
        """,
}


@pytest.mark.parametrize(
    ("environment", "framework", "name", "server"),
    [("", "jax", "JAX", "jax"), ("torch", "torch", "PYTORCH", "mldiagnostics")],
    ids=["jax", "torch"],
)
def test_the_server_starts_when_the_program_imports_a_framework(
    tmp_path: Path, environment: str, framework: str, name: str, server: str
) -> None:
    try:
        python = environments.interpreter(environment) if environment else Path(sys.executable)
    except environments.Unavailable as error:
        pytest.skip(f"no environment {environment}: {error}")
    port = free_port()
    text = f"""
        run = begin(on_demand_xprof=True)
        report(imported=[name for name in ("jax", "torch", "tensorflow") if name in sys.modules], at=run.framework.name)
        sys.stdin.readline()
        {IMPORTS_LATER[framework].strip()}
        step()
        report(framework=run.framework.name)
        ended = threading.Thread(target=sys.stdin.read)
        ended.start()
        while ended.is_alive():
            step()
        from mldiagnostics import xprof
        with xprof():
            step()
        run.close()
        report(problems=diagnostics.counts())
        """
    with start_program(
        text, tmp_path / "runs", python=python, prelude=BARE, MLDIAG_PROFILER_PORT=str(port), CUDA_VISIBLE_DEVICES=""
    ) as process:
        assert process.stdin
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"imported": [], "at": "DETECT"}
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"framework": name}
        (outcome,) = _captured(port, tmp_path / "captures").outcomes
        ended = end_of(process, tmp_path / "runs")
    assert outcome.state is TargetState.CAPTURED, outcome.message
    assert ended.reported == {"problems": {}}, ended.log
    assert (published(tmp_path / "runs")["port"], published(tmp_path / "runs")["server"]) == (port, server)
    assert ended.states("a0-n1") == ["recording", "stored"]
    document = manifest(tmp_path / "runs")
    assert document["kinds"]["framework"] == document["configs"]["software"]["framework"] == name
    assert document["configs"]["software"]["framework_version"] != "n/a"


def _captured(port: int, storage: Path) -> CaptureReport:
    """Capture as soon as the port is served."""
    until = time.monotonic() + 60
    while True:
        report = capture([f"127.0.0.1:{port}"], duration_ms=200, storage=str(storage), session=f"s{time.monotonic()}")
        if report.outcomes[0].state is TargetState.CAPTURED or time.monotonic() > until:
            return report


def test_a_run_without_a_framework_logs_that_captures_did_not_start(tmp_path: Path) -> None:
    ended = run_program(
        """
        run = begin(on_demand_xprof=True)
        report(early=diagnostics.counts())
        run.close()
        report(late=diagnostics.counts(), threads=[each.name for each in threading.enumerate() if each.is_alive()])
        """,
        tmp_path,
        prelude=BARE,
        MLDIAG_PROFILER_PORT=str(free_port()),
    )
    assert ended.reported["early"] == {}
    assert ended.reported["late"] == {"on-demand-off": 1}
    assert "on-demand captures of this process did not start: no framework was imported" in ended.log


def test_unknown_parameters_are_ignored_with_a_hint(tmp_path: Path) -> None:
    port = free_port()
    ended = run_program(
        f"""
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof
        report(port=start_on_demand_xprof(prt=3, port={port}), problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"port": port, "problems": {"start_on_demand_xprof-parameters": 1}}
    assert "start_on_demand_xprof: unknown parameter 'prt' is ignored; did you mean 'port'?" in ended.log


WITHOUT_GRPC = "import sys; sys.modules['grpc'] = None; "


@pytest.mark.parametrize(("prepare", "server"), [("", "mldiagnostics"), (WITHOUT_GRPC, None)], ids=["grpc", "no grpc"])
def test_an_old_jax_uses_our_server_or_none(tmp_path: Path, prepare: str, server: str | None) -> None:
    try:
        python = environments.interpreter("jax-0.8")
    except environments.Unavailable as error:
        pytest.skip(f"no environment jax-0.8: {error}")
    port = free_port()
    ended = run_program(
        f"{prepare}begin(on_demand_xprof=True); step(); report(trained=True)",
        tmp_path,
        python=python,
        MLDIAG_PROFILER_PORT=str(port),
    )
    assert ended.reported == {"trained": True}, ended.log
    if server is None:
        assert "would freeze this process for good" in ended.log
        assert "./sdk[capture]" in ended.log
    else:
        assert (published(tmp_path)["server"], published(tmp_path)["version"]) == (server, "0.8.2")
