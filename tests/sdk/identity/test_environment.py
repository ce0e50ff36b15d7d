"""The environment of a process on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest
from mldiagnostics.identity.environment import detect, has_native_handler, jax_process, started

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
