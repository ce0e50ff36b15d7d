"""XProf's server as a deployment of the view runs it: on this machine only."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cluster.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = ("-m", "mldiagnostics_cli.xprof.local_xprof", "--hide_capture_profile_button")
START_LIMIT_S = 120


@contextmanager
def xprof_server(*options: str) -> Iterator[str]:
    """Run the server while the block runs, and yield its address."""
    port, grpc_port = free_ports(2)
    command = [sys.executable, "-P", *COMMAND, "--port", str(port), "--grpc_port", str(grpc_port), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_until_it_answers(server, address)
            yield address
        finally:
            server.kill()


def _wait_until_it_answers(server: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not _answers(address):
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"XProf does not answer; exit code {server.poll()}")
        time.sleep(0.1)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/data/plugin/profile/version", timeout=START_LIMIT_S):
            return True
    except OSError:  # its port is closed while it imports
        return False
