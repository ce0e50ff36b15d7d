"""Read the environment of this process, without network and framework imports."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldiagnostics.identity.process import JaxProcess, ProcessEnvironment, TorchProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_HOSTS_FILE = Path("/etc/hosts")
_ENDED = {"Z", "X"}
"""States of processes that have ended."""

session_id = getattr(os, "getsid", lambda _: 0)
"""Return the session of a process; a daemon has another one than the process that started its run."""


def detect(env: Mapping[str, str]) -> ProcessEnvironment:
    """Return the environment of this process, with `env` as its variables."""
    import socket  # noqa: PLC0415 - not with the first import

    host = socket.gethostname()
    return ProcessEnvironment(
        env=env,
        host=host,
        domain=_domain(host),
        namespace=_content(_NAMESPACE_FILE).strip(),
        launcher=f"{os.getppid()}-{started(os.getppid())}",
        jax=jax_process(),
        torch=torch_process(),
    )


def started(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot; empty if unknown.

    A process that has ended and that its parent has not noticed has none.
    """
    fields = _content(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in _ENDED else ""


def is_running(pid: int, since: str) -> bool:
    """Return whether the process that started at `since` (see `started`) still runs."""
    if since:
        return started(pid) == since
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def has_native_handler(number: int = signal.SIGTERM) -> bool:
    """Return whether the process handles the signal, natively or in Python."""
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", _content(Path("/proc/self/status")), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def jax_process() -> JaxProcess | None:
    """Return the process of `jax.distributed`, None if it is not initialised."""
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is None:
        return None
    try:
        return JaxProcess(int(state.process_id), int(state.num_processes), str(state.coordinator_address or ""))
    except (AttributeError, TypeError, ValueError):  # another version of JAX
        return None


def torch_process() -> TorchProcess | None:
    """Return the process of `torch.distributed`, None if it is not initialised."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
            return None
        rank, world_size = int(distributed.get_rank()), int(distributed.get_world_size())
    except Exception:  # noqa: BLE001 - another version of torch, or one half imported
        return None
    return TorchProcess(rank, world_size) if 0 <= rank < world_size else None


def _domain(host: str) -> str:
    """Return the DNS domain of this host in /etc/hosts, as for pods of a JobSet."""
    for line in _content(_HOSTS_FILE).splitlines():
        for name in line.partition("#")[0].split()[1:]:
            if name.startswith(f"{host}."):
                return name.removeprefix(f"{host}.")
    return ""


def _content(path: Path) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return ""
