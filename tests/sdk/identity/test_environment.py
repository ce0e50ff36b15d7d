"""The environment of a process on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.identity.environment import detect, has_native_handler, jax_process, started
from support.programs import environments
from support.programs.processes import SDK as SOURCES

if TYPE_CHECKING:
    from pathlib import Path

SDK = {**os.environ, "PYTHONPATH": str(SOURCES)}

NATIVE = """
import ctypes, signal
from mldiagnostics.identity.environment import has_native_handler
assert not has_native_handler()
handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
ctypes.CDLL(None).signal(signal.SIGTERM, handler)
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "Python knows"
assert has_native_handler()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
def test_a_handler_that_a_library_put_in_is_seen() -> None:
    subprocess.run([sys.executable, "-c", NATIVE], check=True, capture_output=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
def test_a_python_handler_is_a_native_one_too() -> None:
    assert has_native_handler(signal.SIGINT) == callable(signal.getsignal(signal.SIGINT))


def test_the_host_is_the_machines_and_the_environment_is_the_one_given() -> None:
    facts = detect({"A": "b"})
    assert (facts.host, facts.env) == (socket.gethostname(), {"A": "b"})
    assert facts.launcher.startswith(f"{os.getppid()}-")
    assert facts == detect({"A": "b"})


def test_a_process_starts_once() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert started(process.pid) == started(process.pid) != started(os.getpid())
    assert started(process.pid) == ""


def test_without_jax_there_is_no_jax_process() -> None:
    assert "jax" in sys.modules or jax_process() is None


def torch_process_after(source: str, python: str = sys.executable) -> str:
    """Return the process of torch as a program sees it after `source`."""
    program = f"{source}\nfrom mldiagnostics.identity.environment import detect\nprint(detect({{}}).torch)"
    done = subprocess.run([python, "-c", program], env=SDK, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.strip()


def test_without_torch_there_is_no_torch_process_and_torch_is_not_imported() -> None:
    source = "import sys\nclass Finder:\n    def find_spec(self, name, *_):\n        assert 'torch' not in name, name\n"
    assert torch_process_after(f"{source}sys.meta_path.insert(0, Finder())") == "None"


@pytest.mark.parametrize(
    "state",
    [
        "",
        "is_available = lambda: False",
        "is_available, is_initialized = lambda: True, lambda: False",
        "is_available = is_initialized = lambda: True",
        "is_available = is_initialized = lambda: True; get_rank = get_world_size = lambda: None",
        "is_available = is_initialized = lambda: True; get_rank, get_world_size = lambda: -1, lambda: -1",
        "def is_available(): raise RuntimeError('half imported')",
    ],
)
def test_a_torch_in_any_other_state_gives_no_process(tmp_path: Path, state: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    (tmp_path / "torch/distributed.py").write_text(state)
    source = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport torch.distributed"
    assert torch_process_after(source) == "None"


def test_an_initialised_group_of_torch_gives_its_process(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    functions = "is_available = is_initialized = lambda: True; get_rank, get_world_size = lambda: 1, lambda: 2"
    (tmp_path / "torch/distributed.py").write_text(functions)
    source = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport torch.distributed"
    assert torch_process_after(source) == "TorchProcess(rank=1, world_size=2)"


@pytest.mark.peers
def test_processes_of_a_real_group_of_torch(tmp_path: Path) -> None:
    try:
        python = str(environments.interpreter("torch"))
    except environments.Unavailable as error:
        pytest.skip(f"no environment torch: {error}")
    group = (
        "import sys, torch.distributed as group\n"
        f"group.init_process_group('gloo', init_method='file://{tmp_path}/store', rank=int(sys.argv[1]), world_size=2)"
    )
    show = "from mldiagnostics.identity.environment import detect\nprint(detect({}).torch)"
    commands = [[python, "-c", f"{group}\n{show}\ngroup.barrier()", str(rank)] for rank in range(2)]
    processes = [subprocess.Popen(command, env=SDK, stdout=subprocess.PIPE, text=True) for command in commands]
    lines = [process.communicate(timeout=120)[0].splitlines()[-1] for process in processes]  # after those of gloo
    assert lines == [f"TorchProcess(rank={rank}, world_size=2)" for rank in range(2)]
