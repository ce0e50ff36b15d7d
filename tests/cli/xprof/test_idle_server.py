"""The program of the pods of XProf, run as a pod runs it, over a web server with the options of XProf."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from cluster.ports import free_ports
from mldiagnostics_cli.xprof import idle_server
from mldiagnostics_cli.xprof.idle_server import LOCALHOST, _Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 60
PROBE = "kube-probe/1.34"
SERVER = """
import sys
from http.server import HTTPServer, SimpleHTTPRequestHandler
port = int(sys.argv[sys.argv.index("--port") + 1])
HTTPServer(("127.0.0.1", port), SimpleHTTPRequestHandler).serve_forever()
"""


@contextmanager
def program(port: int, idle_s: float, *command: str) -> Iterator[subprocess.Popen[str]]:
    arguments = ["-c", inspect.getsource(idle_server), str(port), str(idle_s), *command]
    isolated = [sys.executable, "-I", "-S", *arguments]  # an image of the user has only the standard library
    with subprocess.Popen(isolated, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answers(port: int, user_agent: str = "Mozilla/5.0") -> bool:
    request = urllib.request.Request(f"http://{LOCALHOST}:{port}/", headers={"User-Agent": user_agent})
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_an_idle_server_ends_with_success_while_only_probes_read_it() -> None:
    [port] = free_ports(1)
    with program(port, 0.5, sys.executable, "-c", SERVER) as process:
        while process.poll() is None:
            answers(port, PROBE)
        assert process.returncode == 0
        assert process.stderr
        # A probe in flight may leave a remark of asyncio after it.
        assert "XProf ends: nobody has read it for 0.5 s\n" in process.stderr.read()


def test_a_signal_is_a_failure_that_replaces_the_pod() -> None:
    [port] = free_ports(1)
    with program(port, 0, sys.executable, "-c", SERVER) as process:
        while not answers(port):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 143
    assert not answers(port)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], 3, ""),
        ([sys.executable, "-c", "pass"], 1, ""),
        (["no-xprof"], 1, "no-xprof: cannot be started: No such file or directory; use an image with this command\n"),
    ],
)
def test_an_end_of_xprof_is_a_failure(command: list[str], code: int, message: str) -> None:
    [port] = free_ports(1)
    with program(port, 0, *command) as process:
        assert process.wait(LIMIT_S) == code
        assert process.stderr
        assert process.stderr.read().endswith(message)


async def test_readers_count_and_health_checks_do_not() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    xprof = await asyncio.start_server(answer, LOCALHOST, 0)
    proxy = _Proxy(xprof.sockets[0].getsockname()[1])
    server = await asyncio.start_server(proxy.accept, LOCALHOST, 0)
    port = server.sockets[0].getsockname()[1]
    async with xprof, server:
        for user_agent in (PROBE, "GoogleHC/1.0", "ELB-HealthChecker/2.0"):
            assert await asyncio.to_thread(answers, port, user_agent)
            assert proxy.last_use == 0
        assert await asyncio.to_thread(answers, port)
        assert proxy.last_use > 0
