"""The program of `forked_scripts`: it imports the modules of `mldiag`, then forks for each request.

A child equals an interpreter after the imports of the script: it has the requested arguments, folder, variables and
standard files, runs the script itself, and ends as an interpreter does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("mldiagnostics_cli", "mldiagnostics.store")
NOT_PRELOADED = "mldiagnostics_cli.mcp"
"""Takes as long as all the rest; its tests start real processes."""

REQUEST_BYTES = 1 << 18
"""More than a socket sends at once."""

_FILES = 4
_MOST_FILES = 1024


class ForkedCall(NamedTuple):
    """Command of a child, and its standard files."""

    files: list[int]
    command: list[str]
    folder: str
    env: dict[str, str]


def preload() -> None:
    """Import what the commands import."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.startswith(NOT_PRELOADED):
                importlib.import_module(module.name)
    gc.freeze()  # a collection in a child would copy all pages


def serve(connection: socket.socket) -> ForkedCall | None:
    """Fork for each request until the caller closes its end.

    Returns:
        In a child its call; in this process nothing, at the end.
    """
    with connection, selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not connection:
                    selector.unregister(key.fd)
                    _report_end(key.fd, *key.data)
                    continue
                message, files, *_ = socket.recv_fds(connection, REQUEST_BYTES, _FILES)
                if not message:
                    return None
                *standard, status = files
                if (pid := os.fork()) == 0:
                    return ForkedCall(standard, *json.loads(message))
                for file in standard:
                    os.close(file)
                _write(status, f"{pid} ")
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))


def _report_end(process: int, pid: int, status: int) -> None:
    """Write the exit code and the processor's time of a child that has ended."""
    _, ended, used = os.wait4(pid, 0)
    _write(status, f"{os.waitstatus_to_exitcode(ended)} {used.ru_utime + used.ru_stime}")
    os.close(status)
    os.close(process)


def _write(status: int, text: str) -> None:
    with suppress(BrokenPipeError):  # the caller waits no longer
        os.write(status, text.encode())


def become(call: ForkedCall) -> None:
    """Run the script of a call in this process, a child that owns nothing yet."""
    for number, file in enumerate(call.files):
        os.dup2(file, number)
    os.closerange(len(call.files), _MOST_FILES)
    os.environ.clear()
    os.environ.update(call.env)
    time.tzset()
    tempfile.tempdir = None
    os.chdir(call.folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = call.command
    script = Path(sys.argv[0])
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    sys.path.pop(0)  # this folder; a script has its own
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests is the caller's
    preload()
    if (forked := serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        become(forked)
