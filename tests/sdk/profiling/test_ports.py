"""Checks of free and taken ports."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.profiling.ports import is_free, listener
from support.ipv6 import needs_ipv6

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def listening(family: socket.AddressFamily, address: str, *, shared: bool) -> Iterator[int]:
    with socket.socket(family) as server:
        if shared:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((address, 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "SO_REUSEPORT"])
@pytest.mark.parametrize(
    ("family", "address"),
    [
        *((socket.AF_INET, address) for address in ("0.0.0.0", "127.0.0.1")),
        *(pytest.param(socket.AF_INET6, address, marks=needs_ipv6) for address in ("::", "::1")),
    ],
)
def test_a_port_with_a_listener_is_not_free(family: socket.AddressFamily, address: str, *, shared: bool) -> None:
    with listening(family, address, shared=shared) as port:
        assert not is_free(port)
    assert is_free(port)


def test_a_closed_connection_does_not_take_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as client:
            accepted, _ = server.accept()
            accepted.close()  # the side that closes first keeps the port in TIME_WAIT
            client.recv(1)
    assert is_free(address[1])


def test_the_listener_is_named() -> None:
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    )
    command = [sys.executable, "-c", program, "a-training-job"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            process_name = listener(int(process.stdout.readline()))
        finally:
            process.kill()
    assert process_name.startswith(f"process {process.pid} ({sys.executable}")


def test_a_listener_of_this_process_is_named_so() -> None:
    with listening(socket.AF_INET, "127.0.0.1", shared=False) as port:
        assert listener(port) == "this process"


def test_an_invisible_listener_is_another_process(tmp_path: Path) -> None:
    assert listener(9999, proc=tmp_path) == "another process"
