"""Checks of a port: profiler servers share a taken one silently (SO_REUSEPORT)."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path

_LISTENING = "0A"
_TABLES = ("tcp", "tcp6")
_EVERYWHERE = ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0"))


def is_free(port: int) -> bool:
    """Return whether no process listens on `port`, on any address."""
    return all(_can_listen(family, address, port) for family, address in _EVERYWHERE)


def listener(port: int, *, proc: Path = Path("/proc")) -> str:
    """Return a description of the process that listens on `port`, if it is visible."""
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port, proc)}
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(_link(descriptor) in inodes for descriptor in (process / "fd").iterdir()):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                own = process.name == str(os.getpid())
                return "this process" if own else f"process {process.name} ({command[:80]})"
    return "another process"


def _can_listen(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignores closed connections
            probe.bind((address, port))
            probe.listen()
    except OSError as error:  # other errors, as on a host without IPv6, do not mean a listener
        return error.errno != errno.EADDRINUSE
    return True


def _listening_inodes(port: int, proc: Path) -> set[str]:
    inodes = set()
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                    inodes.add(columns[9])
    return inodes


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""
