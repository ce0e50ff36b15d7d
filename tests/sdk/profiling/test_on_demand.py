"""The profiler server of a real JAX program: where it listens, when it does not, and what it says about that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.capture import State, capture
from mldiagnostics.profiling.ports import is_free
from support import environments
from support.jax_programs import end_of, free_port, run_program, start_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers


def published(storage: Path) -> dict[str, object]:
    (manifest,) = storage.rglob("run.json")
    section: dict[str, object] = json.loads(manifest.read_text())["profiler"]
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
tell(problems=complaints.counts())
"""


def test_a_run_listens_publishes_where_and_leaves_the_backends_alone(tmp_path: Path) -> None:
    port = free_port()
    with start_program(TRAINS_UNTIL_TOLD, tmp_path / "runs", MLDIAG_PROFILER_PORT=str(port)) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"backends": False}
        (outcome,) = capture([f"127.0.0.1:{port}"], duration_ms=200, storage=str(tmp_path / "captures")).outcomes
        ended = end_of(process, tmp_path / "runs")
    assert outcome.state is State.CAPTURED, outcome.message
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
        tell(ports=[first, again, start_on_demand_xprof({port - 1})], problems=complaints.counts())
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
        tell(ports=ports, problems=complaints.counts())
        """,
        tmp_path,
    )
    assert ended.told == {"ports": [None] * 7, "problems": {"on-demand-off": 7}}
    assert "on-demand captures of this process are off: 0 is no port" in ended.log


def test_a_variable_that_is_no_number_is_replaced_by_the_default(tmp_path: Path) -> None:
    ended = run_program(
        "begin(on_demand_xprof=True); step(); tell(trained=True)", tmp_path, MLDIAG_PROFILER_PORT="many"
    )
    assert ended.told == {"trained": True}
    assert "MLDIAG_PROFILER_PORT='many' is no number; 9999 is used" in ended.log


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
        assert "mldiagnostics[capture]" in ended.log
    else:
        assert (published(tmp_path)["server"], published(tmp_path)["version"]) == (server, "0.8.2")
