"""The same recordings and captures with every framework, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mldiagnostics.capture import ServerProbe, TargetState, capture
from support.programs import environments
from support.programs.training import training
from support.programs.xprof_reader import names_in

pytestmark = pytest.mark.peers

PROGRAM = Path(environments.__file__).parent / "recording_framework.py"
FRAMEWORKS = [
    pytest.param("", "jax", "JAX", id="jax"),
    pytest.param("jax-0.8", "jax", "JAX", id="jax-0.8"),
    pytest.param("torch", "torch", "PyTorch", id="torch"),
    pytest.param("torch", "torch_xla", "PyTorch/XLA", id="torch_xla"),
    pytest.param("tensorflow", "tensorflow", "TensorFlow", id="tensorflow"),
]


def interpreter(environment: str) -> Path:
    if not environment:
        return Path(sys.executable)
    try:
        return environments.interpreter(environment)
    except environments.Unavailable as error:
        pytest.skip(f"no environment {environment}: {error}")


@pytest.mark.parametrize(("environment", "framework", "name"), FRAMEWORKS)
def test_no_session_breaks_another_or_later_ones(environment: str, framework: str, name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [interpreter(environment), PROGRAM, "--course", tmp_path, framework],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "framework": name,
        "second start": "busy",
        "during a foreign profile": "busy",
    }
    for trace in ("first", "again", "and again"):
        assert "train_step" in names_in(str(tmp_path / f"{trace}.xplane.pb"))


@pytest.mark.parametrize(("environment", "framework", "name"), FRAMEWORKS)
def test_on_demand_captures_never_freeze_the_process(
    environment: str, framework: str, name: str, tmp_path: Path
) -> None:
    with training(interpreter(environment), PROGRAM.name, tmp_path, framework) as host:
        for _ in range(2):
            assert has_whole_step(host.address, name, str(tmp_path / "traces"))
        host.wait_for_step(host.steps() + 10, deadline_s=120)


def has_whole_step(address: str, name: str, storage: str) -> bool:
    """Capture, longer each time, until a whole step fits in: a busy machine may not finish one in 300 ms."""
    for duration_ms in (300, 2000, 10_000):
        (outcome,) = capture([address], duration_ms=duration_ms, storage=storage).outcomes
        assert outcome.state is TargetState.CAPTURED, (name, outcome.message)
        assert outcome.server is ServerProbe.SNAPSHOTS, name
        assert (outcome.stop_ns or 0) - (outcome.start_ns or 0) >= duration_ms * 1_000_000
        if "train_step" in names_in(outcome.file or ""):
            return True
    return False


XPROFS_CLIENT = """
import sys
from xprof.convert import _pywrap_profiler_plugin
_pywrap_profiler_plugin.trace(sys.argv[1], sys.argv[2], "", True, 200, 3, {})
"""


@pytest.mark.parametrize(("environment", "framework", "name"), FRAMEWORKS)
def test_xprofs_own_client_gets_the_same_file_name_from_every_server(
    environment: str, framework: str, name: str, tmp_path: Path
) -> None:
    with training(interpreter(environment), PROGRAM.name, tmp_path, framework) as host:
        command = [sys.executable, "-c", XPROFS_CLIENT, host.address, str(tmp_path / "traces")]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    (trace,) = (tmp_path / "traces").rglob("plugins/profile/*/*.xplane.pb")
    assert trace.name == f"127.0.0.1_{host.port}.xplane.pb", name
    assert "train_step" in names_in(str(trace))
