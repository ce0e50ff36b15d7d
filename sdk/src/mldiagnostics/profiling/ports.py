"""Whether a port is free, and who has it: profiler servers share a taken one silently (SO_REUSEPORT)."""

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
    """Tell whether nobody listens on `port`, on any address of this network namespace."""
    return all(_can_listen(family, address, port) for family, address in _EVERYWHERE)


def listener(port: int, *, proc: Path = Path("/proc")) -> str:
    """Say who listens on `port`, as far as this system lets us see."""
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
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that are over do not count
            probe.bind((address, port))
            probe.listen()
    except OSError as error:  # any other, like a host without IPv6, says nothing about listeners
        return error.errno != errno.EADDRINUSE
    return True


def _listening_inodes(port: int, proc: Path) -> set[str]:
    found = set()
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in (proc / "net" / table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                    found.add(columns[9])
    return found


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""
