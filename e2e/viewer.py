"""Requests to XProf's server over stored profiles."""

import gzip
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from cluster.ports import free_ports
from demo.kubectl import eventually

START_DEADLINE_S = 120


def hosts_in_xprof(log_directory: Path, session: str) -> set[str]:
    """Return the hosts that the unmodified XProf server lists for a session."""
    port, grpc_port = free_ports(2)
    command = [str(Path(sys.executable).parent / "xprof"), "--logdir", str(log_directory), "--port", str(port)]
    command += ["--grpc_port", str(grpc_port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            return hosts_served(port, session)
        finally:
            server.terminate()


def hosts_served(port: int, session: str) -> set[str]:
    """Return the hosts that XProf's server on a local port lists for a session, once it answers."""
    runs = eventually(lambda: _answer(port, "runs"), "the list of runs in XProf", deadline_s=START_DEADLINE_S)
    if session not in runs:
        raise AssertionError(f"XProf lists {runs}, not {session}")
    hosts = eventually(
        lambda: _answer(port, f"hosts?run={session}&tag=trace_viewer%40"),
        f"the hosts of {session} in XProf",
        deadline_s=START_DEADLINE_S,
    )
    return {host["hostname"] for host in hosts} - {"ALL_HOSTS"}


def _answer(port: int, path: str) -> Any:
    """Return the decoded answer, always compressed by XProf; None while it does not listen."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/plugin/profile/{path}", timeout=30) as response:
            body: bytes = response.read()
    except OSError:
        return None
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)
