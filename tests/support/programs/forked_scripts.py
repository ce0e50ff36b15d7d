"""Console scripts run to their end in forks of a process that has imported them: most of a start is imports.

Each process of tests starts one such process when it first runs a script; it ends with the process of tests.
Calls with variables that an interpreter or a module reads once only are real starts.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING

from support.programs import fork_server
from support.suite.isolation import of_programs
from support.suite.processor_time import FORKED_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import FileIO
    from pathlib import Path

READ_ONCE = (
    *("PYTHON", "LC_", "LANG", "LD_", "SSL", "OPENSSL", "AIOHTTP_", "PYDANTIC_", "OTEL_"),
    *("API_", "CLOUDSDK_", "ENABLE_GCS_", "GOOGLE_API_", "GRPC_", "PROTOCOL_BUFFERS_"),
)
"""Prefixes of the variables that an interpreter, or a module of the scripts, reads when it starts."""

_starting = threading.Lock()


def run_script(
    command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], limit_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a script of `mldiag` to its end, as `subprocess.run` that captures text."""
    with _starting:
        forking = _forking()
    if _read_once(env) == forking.read_once:
        return forking.run(command, cwd, env, limit_s)
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=limit_s, check=False)


@cache
def _forking() -> ForkingProcess:
    forking = ForkingProcess()
    atexit.register(forking.close)
    return forking


class ForkingProcess:
    """A running `fork_server`."""

    def __init__(self) -> None:
        env = of_programs()
        self.read_once = _read_once(env)
        self._connection, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, str(end.fileno())],
                env=env,
                pass_fds=[end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # Python chooses its buffers by the kind of its files; forks keep these
                stderr=subprocess.PIPE,
                text=True,
            )

    def run(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], limit_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in a fork."""
        request = json.dumps([[os.fspath(each) for each in command], os.fspath(cwd), {**env}]).encode()
        readers, writers = zip(*(os.pipe() for _ in range(3)), strict=True)
        with ExitStack() as stack:
            files = [stack.enter_context(os.fdopen(each, "rb", buffering=0)) for each in readers]
            try:
                with suppress(BrokenPipeError):  # it has failed: the status stays empty
                    socket.send_fds(self._connection, [request], [0, *writers])
            finally:
                for each in writers:
                    os.close(each)
            is_whole, (out, err, status) = _read(files, limit_s)
        if not is_whole:
            if len(numbers := status.split()) == 1:
                with suppress(ProcessLookupError):
                    os.kill(int(numbers[0]), signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, limit_s, out, err)
        if not status:
            raise RuntimeError(f"the process that forks has failed: {self._process.communicate()[1]}")
        _, code, processor_s = status.split()
        FORKED_S.append(float(processor_s))
        return subprocess.CompletedProcess(command, int(code), out, err)

    def close(self) -> None:
        """End the process; its children go on."""
        self._connection.close()
        self._process.communicate()


def _read(files: Sequence[FileIO], limit_s: float) -> tuple[bool, list[str]]:
    """Read all files at the same time; return whether they have ended, and their texts."""
    deadline = time.monotonic() + limit_s
    parts = {file: bytearray() for file in files}
    with selectors.DefaultSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ, parts[file])
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(deadline - time.monotonic()):
                part = os.read(key.fd, 65536)
                key.data.extend(part)
                if not part:
                    selector.unregister(key.fd)
        is_whole = not selector.get_map()
    return is_whole, [part.decode().replace("\r\n", "\n").replace("\r", "\n") for part in parts.values()]


def _read_once(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_ONCE)}
