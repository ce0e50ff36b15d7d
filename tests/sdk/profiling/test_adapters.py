"""Equal recordings and captures with every framework, each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.capture import ServerProbe, TargetState, capture
from support.programs import environments
from support.programs.training import Training, training
from support.programs.xprof_reader import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.peers

PROGRAM = Path(environments.__file__).parent / "recording_framework.py"
FRAMEWORKS = [
    pytest.param(("", "jax", "JAX"), id="jax"),
    pytest.param(("jax-0.8", "jax", "JAX"), id="jax-0.8"),
    pytest.param(("torch", "torch", "PyTorch"), id="torch"),
    pytest.param(("torch", "torch_xla", "PyTorch/XLA"), id="torch_xla"),
    pytest.param(("tensorflow", "tensorflow", "TensorFlow"), id="tensorflow"),
]


def interpreter(environment: str) -> Path:
    if not environment:
        return Path(sys.executable)
    try:
        return environments.interpreter(environment)
    except environments.Unavailable as error:
        pytest.skip(f"no environment {environment}: {error}")


@dataclass(frozen=True)
class Trained:
    """A process that has recorded itself and trains, the name of its framework, and its folder."""

    host: Training
    name: str
    folder: Path


@pytest.fixture(scope="module", params=FRAMEWORKS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """One process for all tests of a framework: its imports take most of their time."""
    environment, framework, name = request.param
    folder = tmp_path_factory.mktemp(framework)
    with training(interpreter(environment), PROGRAM.name, folder, framework, str(folder)) as host:
        yield Trained(host, name, folder)


def test_no_session_breaks_another_or_later_ones(trained: Trained) -> None:
    assert json.loads((trained.folder / "seen.json").read_text()) == {
        "framework": trained.name,
        "second start": "busy",
        "during a foreign profile": "busy",
    }
    for trace in ("first", "again", "and again"):
        assert "train_step" in names_in(str(trained.folder / f"{trace}.xplane.pb"))


def test_on_demand_captures_never_freeze_the_process(trained: Trained, tmp_path: Path) -> None:
    host, name = trained.host, trained.name
    for number in range(2):
        assert first_with_a_step(lambda length, at=number: captured(host, name, length, tmp_path / f"{at}"))
    host.wait_for_step(host.steps() + 10, deadline_s=120)


def captured(host: Training, name: str, duration_ms: int, storage: Path) -> str:
    """Capture with our engine and return the file."""
    (outcome,) = capture([host.address], duration_ms=duration_ms, storage=str(storage)).outcomes
    assert outcome.state is TargetState.CAPTURED, (name, outcome.message)
    assert outcome.server is ServerProbe.SNAPSHOTS, name
    assert (outcome.stop_ns or 0) - (outcome.start_ns or 0) >= duration_ms * 1_000_000
    return outcome.file or ""


XPROFS_CLIENT = """
import sys
from xprof.convert import _pywrap_profiler_plugin
_pywrap_profiler_plugin.trace(sys.argv[1], sys.argv[2], "", True, int(sys.argv[3]), 3, {})
"""


def test_xprofs_own_client_gets_the_same_file_name_from_every_server(trained: Trained, tmp_path: Path) -> None:
    host = trained.host

    def recorded(duration_ms: int) -> str:
        folder = tmp_path / str(duration_ms)
        command = [sys.executable, "-c", XPROFS_CLIENT, host.address, str(folder), str(duration_ms)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        (trace,) = folder.rglob("plugins/profile/*/*.xplane.pb")
        return str(trace)

    trace = first_with_a_step(recorded)
    assert Path(trace).name == f"127.0.0.1_{host.port}.xplane.pb", trained.name


def first_with_a_step(record: Callable[[int], str]) -> str:
    """Record, longer each time, until a whole step fits in: a busy machine may not finish one in 300 ms."""
    for duration_ms in (300, 2000, 10_000, 30_000):
        if "train_step" in names_in(trace := record(duration_ms)):
            return trace
    raise AssertionError("no whole step in a trace of 30 s")
