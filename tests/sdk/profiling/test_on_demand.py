"""The profiler server of a real JAX program: where it listens, when it does not, and what it says about that."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.capture import TargetState, capture
from mldiagnostics.profiling.ports import is_free
from support import environments
from support.jax_programs import end_of, free_port, run_program, start_program

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


TRAINS_UNTIL_TOLD = """
from jax._src import xla_bridge
run = begin(on_demand_xprof=True)
backends = xla_bridge.backends_are_initialized()
step()
tell(backends=backends)
import threading
told = threading.Thread(target=sys.stdin.read)
told.start()
while told.is_alive():
    step()
run.close()
tell(problems=diagnostics.counts())
"""


def test_a_run_listens_publishes_where_and_leaves_the_backends_alone(tmp_path: Path) -> None:
    port = free_port()
    with start_program(TRAINS_UNTIL_TOLD, tmp_path / "runs", MLDIAG_PROFILER_PORT=str(port)) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"backends": False}
        (outcome,) = capture([f"127.0.0.1:{port}"], duration_ms=200, storage=str(tmp_path / "captures")).outcomes
        ended = end_of(process, tmp_path / "runs")
    assert outcome.state is TargetState.CAPTURED, outcome.message
    assert ended.told == {"problems": {}}, ended.log
    section = published(tmp_path / "runs")
    assert (section["port"], section["server"]) == (port, "jax")
    assert ended.states("on-demand") == ["listening"]
    assert is_free(port)


def test_a_second_process_on_the_host_is_told_who_has_the_port(tmp_path: Path) -> None:
    port = str(free_port())
    with start_program(TRAINS_UNTIL_TOLD, tmp_path / "one", MLDIAG_PROFILER_PORT=port) as first:
        assert first.stdout
        assert first.stdout.readline()
        second = run_program(
            "begin(on_demand_xprof=True); step(); tell(trained=True)", tmp_path / "two", MLDIAG_PROFILER_PORT=port
        )
        ended = end_of(first, tmp_path / "one")
    assert ended.returncode == 0, ended.log
    assert second.told == {"trained": True}
    assert f"port {port} is taken by process {first.pid} (" in second.log


def test_the_local_rank_is_added_and_a_program_may_start_and_stop_by_itself(tmp_path: Path) -> None:
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
        tell(ports=[first, again, start_on_demand_xprof({port - 1})], problems=diagnostics.counts())
        """,
        tmp_path,
        LOCAL_RANK="1",
    )
    assert ended.told == {"ports": [port] * 3, "problems": {"on-demand-twice": 1}}, ended.log


def test_what_is_no_port_is_refused_and_training_goes_on(tmp_path: Path) -> None:
    ended = run_program(
        """
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof
        ports = [start_on_demand_xprof(port) for port in (0, -1, 70_000, 1 << 80, "ten", [], 1j)]
        tell(ports=ports, problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.told == {"ports": [None] * 7, "problems": {"on-demand-off": 7}}
    assert "on-demand captures of this process are off: port 0 is not between 1 and 65535" in ended.log


def test_a_variable_that_is_no_number_is_replaced_by_the_default(tmp_path: Path) -> None:
    ended = run_program(
        "begin(on_demand_xprof=True); step(); tell(trained=True)", tmp_path, MLDIAG_PROFILER_PORT="many"
    )
    assert ended.told == {"trained": True}
    assert "MLDIAG_PROFILER_PORT='many' is not a number; 9999 is used" in ended.log


def test_a_local_rank_alone_gives_each_process_of_a_host_a_port(tmp_path: Path) -> None:
    port = free_port()
    ended = run_program(
        "begin(on_demand_xprof=True); step(); tell(trained=True)",
        tmp_path,
        MLDIAG_PROFILER_PORT=str(port - 1),
        LOCAL_RANK="1",
    )
    assert ended.told == {"trained": True}, ended.log
    assert published(tmp_path)["port"] == port


BARE = """
import json, sys, threading
from mldiagnostics import diagnostics
from mldiagnostics.run import machinelearning_run

def tell(**what):
    print(json.dumps(what), flush=True)

def begin(**more):
    return machinelearning_run("demo", run_workload_id="demo", storage=sys.argv[1], **more)

"""
"""Begins a run in a program that has not imported any framework."""

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
def test_captures_begin_with_the_framework_that_the_program_imports_later(
    tmp_path: Path, environment: str, framework: str, name: str, server: str
) -> None:
    try:
        python = environments.interpreter(environment) if environment else Path(sys.executable)
    except environments.Unavailable as error:
        pytest.skip(f"no environment {environment}: {error}")
    port = free_port()
    text = f"""
        run = begin(on_demand_xprof=True)
        tell(imported=[name for name in ("jax", "torch", "tensorflow") if name in sys.modules], at=run.framework.name)
        sys.stdin.readline()
        {IMPORTS_LATER[framework].strip()}
        step()
        tell(framework=run.framework.name)
        ended = threading.Thread(target=sys.stdin.read)
        ended.start()
        while ended.is_alive():
            step()
        from mldiagnostics import xprof
        with xprof():
            step()
        run.close()
        tell(problems=diagnostics.counts())
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
    assert ended.told == {"problems": {}}, ended.log
    assert (published(tmp_path / "runs")["port"], published(tmp_path / "runs")["server"]) == (port, server)
    assert ended.states("a0-n1") == ["recording", "stored"]
    document = manifest(tmp_path / "runs")
    assert document["kinds"]["framework"] == document["configs"]["software"]["framework"] == name
    assert document["configs"]["software"]["framework_version"] != "n/a"


def _captured(port: int, storage: Path) -> CaptureReport:
    """Capture as soon as something listens."""
    until = time.monotonic() + 60
    while True:
        report = capture([f"127.0.0.1:{port}"], duration_ms=200, storage=str(storage), session=f"s{time.monotonic()}")
        if report.outcomes[0].state is TargetState.CAPTURED or time.monotonic() > until:
            return report


def test_a_run_without_any_framework_listens_nowhere_and_says_so_in_the_end(tmp_path: Path) -> None:
    ended = run_program(
        """
        run = begin(on_demand_xprof=True)
        tell(early=diagnostics.counts())
        run.close()
        tell(late=diagnostics.counts(), threads=[thread.name for thread in threading.enumerate() if thread.is_alive()])
        """,
        tmp_path,
        prelude=BARE,
        MLDIAG_PROFILER_PORT=str(free_port()),
    )
    assert ended.told["early"] == {}
    assert ended.told["late"] == {"on-demand-off": 1}
    assert "on-demand captures of this process never began: no framework was imported" in ended.log


def test_unknown_parameters_are_ignored_with_a_hint(tmp_path: Path) -> None:
    port = free_port()
    ended = run_program(
        f"""
        from mldiagnostics.profiling.on_demand import start_on_demand_xprof
        tell(port=start_on_demand_xprof(prt=3, port={port}), problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.told == {"port": port, "problems": {"on-demand-parameters": 1}}
    assert "start_on_demand_xprof: unknown parameter 'prt' is ignored; did you mean 'port'?" in ended.log


WITHOUT_GRPC = "import sys; sys.modules['grpc'] = None; "


@pytest.mark.parametrize(("prepare", "server"), [("", "mldiagnostics"), (WITHOUT_GRPC, None)], ids=["grpc", "no grpc"])
def test_an_old_jax_is_served_by_us_or_not_at_all(tmp_path: Path, prepare: str, server: str | None) -> None:
    try:
        python = environments.interpreter("jax-0.8")
    except environments.Unavailable as error:
        pytest.skip(f"no environment jax-0.8: {error}")
    port = free_port()
    ended = run_program(
        f"{prepare}begin(on_demand_xprof=True); step(); tell(trained=True)",
        tmp_path,
        python=python,
        MLDIAG_PROFILER_PORT=str(port),
    )
    assert ended.told == {"trained": True}, ended.log
    if server is None:
        assert "would freeze this process for good" in ended.log
        assert "./sdk[capture]" in ended.log
    else:
        assert (published(tmp_path)["server"], published(tmp_path)["version"]) == (server, "0.8.2")
