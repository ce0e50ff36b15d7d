"""Servers of XProf on this machine: processes with a record of each.

The records are in the user's state directory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.install import install_hint
from mldiagnostics.layout import PROFILE_DIR, TRACE_SUFFIX
from mldiagnostics.locations import absolute_location, local_path

from mldiagnostics_cli.state import state_directory
from mldiagnostics_cli.xprof.instances import XprofInstance, free_name
from mldiagnostics_cli.xprof.limits import CACHE_BYTES

LOCAL = "local"
SERVER = "mldiagnostics_cli.xprof.local_server"
STATE = "xprof"

START_LIMIT_S = 120.0
"""XProf imports for 2 s on a fast machine, and for half a minute on one that is busy."""

STOP_LIMIT_S = 20.0
_POLL_S = 0.05
_LEVELS = ("", "*/", "*/*/")
"""Of a run, of the root of runs, and of a volume with namespaces; deeper ones would take long in a large directory."""


def create_local(
    log_directory: str, *, name: str | None, port: int, idle_s: float, cache_bytes: int = CACHE_BYTES
) -> XprofInstance:
    """Start a server in the background, and return it once it answers.

    Args:
        log_directory: A path or URL.
        name: Its name; None for one after the directory.
        port: Port of 127.0.0.1; 0 for a free one.
        idle_s: It ends after so many seconds without traffic; 0 for never.
        cache_bytes: Most bytes of the copy of a bucket that XProf cannot read.

    Raises:
        ConfigurationError: The directory does not exist, the name or port is taken, or XProf is missing or ends.
    """
    if find_spec("xprof") is None:
        raise ConfigurationError(f"xprof: is not installed; {install_hint('cli', extra='xprof')}")
    path = local_path(log_directory)
    if path is not None and not path.is_dir():
        raise ConfigurationError(f"{log_directory}: no such directory; pass the log directory of profiles")
    log_directory = absolute_location(log_directory)
    taken = [each.name for each in list_local()]
    if name in taken:
        raise ConfigurationError(f"{name}: a server has this name; choose another name, or delete that server")
    name = name or free_name(log_directory, taken)
    state = state_directory(STATE)
    state.mkdir(parents=True, exist_ok=True)
    record, log = state / f"{name}.json", state / f"{name}.log"
    with log.open("wb") as output:
        options = [str(record), name, log_directory, str(port), str(idle_s), str(cache_bytes)]
        command = [sys.executable, "-m", SERVER, *options]
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        _wait_for_start(server, record, log)
    except BaseException:
        server.terminate()
        server.wait()
        raise
    server.returncode = 0  # it goes on without this process
    instance = _read(record)
    if instance is None:
        raise ConfigurationError(f"{name}: has ended; its messages are in {log}")
    return instance


def list_local() -> list[XprofInstance]:
    """Return the servers that run, by name.

    Records of processes that were killed are removed.
    """
    try:
        records = sorted(state_directory(STATE).glob("*.json"))
    except OSError:
        return []
    return [instance for record in records if (instance := _read(record)) is not None]


def has_profiles(log_directory: str) -> bool:
    """Return whether a local directory has traces for XProf; True for a URL."""
    path = local_path(log_directory)
    if path is None:
        return True
    return any(True for level in _LEVELS for _ in path.glob(f"{level}{PROFILE_DIR}/*/*{TRACE_SUFFIX}"))


def delete_local(name: str) -> None:
    """Stop a server. Raises `ConfigurationError` if it does not end."""
    record = state_directory(STATE) / f"{name}.json"
    pid = _pid_of(record)
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_LIMIT_S
    while record.exists() and is_server(pid):
        if time.monotonic() > deadline:
            raise ConfigurationError(f"{name}: process {pid} has not ended in {STOP_LIMIT_S:g} s; end it with kill")
        time.sleep(_POLL_S)
    record.unlink(missing_ok=True)
    record.with_suffix(".log").unlink(missing_ok=True)


def _wait_for_start(server: subprocess.Popen[bytes], record: Path, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not record.exists():
        if server.poll() is not None:
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            raise ConfigurationError(f"XProf: has ended at its start: {lines[-1] if lines else 'without a message'}")
        if time.monotonic() > deadline:
            raise ConfigurationError(f"XProf: does not answer in {START_LIMIT_S:g} s; its messages are in {log}")
        time.sleep(_POLL_S)


def _read(record: Path) -> XprofInstance | None:
    try:
        document = json.loads(record.read_text())
        pid, port = int(document["pid"]), int(document["port"])
        instance = XprofInstance(
            name=record.stem,
            on=LOCAL,
            log_directory=str(document["logDirectory"]),
            state="Running",
            url=f"http://127.0.0.1:{port}/",
            created=float(document["created"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if is_server(pid):
        return instance
    record.unlink(missing_ok=True)
    return None


def _pid_of(record: Path) -> int | None:
    try:
        pid = int(json.loads(record.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if is_server(pid) else None


def is_server(pid: int) -> bool:
    """Return whether a process is a server of ours, not another one with its number."""
    try:
        return SERVER in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
    except OSError:
        return False
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return SERVER in shown.stdout
