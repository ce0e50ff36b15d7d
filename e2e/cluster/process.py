"""Daemons with pid files; a recycled pid is never signalled."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from cluster import ambient
from cluster.progress import ClusterError, tail

KILLED_S = 10
"""Longest wait for a killed process to exit."""


class Record(TypedDict):
    """Content of a pid file; together the fields identify one process even if its pid is recycled."""

    pid: int
    boot: str
    start_ticks: int
    command: list[str]


class Daemon:
    """Process in its own session, with pid file and log in the given folders (Linux)."""

    def __init__(self, name: str, *, run: Path, logs: Path) -> None:
        self.name = name
        self.pid_file = run / f"{name}.pid"
        self.log = logs / f"{name}.log"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        """Start the process, write its pid file, and append its output to the log.

        Without an environment it has the user's: it may outlive the tests, and their folders.
        """
        for folder in (self.pid_file.parent, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=ambient.environment() if environment is None else environment,
            )
        _give_our_share(self._child.pid)
        state = _state(self._child.pid)
        record = Record(pid=self._child.pid, boot=_boot(), start_ticks=state[1] if state else 0, command=list(command))
        self.pid_file.write_text(json.dumps(record))

    @property
    def pid(self) -> int | None:
        """Id of the process; None before its start and after its stop."""
        record = self._record()
        return record["pid"] if record else None

    def running(self) -> bool:
        """Return whether the started process still runs."""
        if self._child is not None:
            self._child.poll()
        record = self._record()
        return record is not None and _alive(record)

    def stop(self, *, deadline_s: float = 10) -> None:
        """Terminate the process, kill it after the deadline, and remove the pid file."""
        record = self._record()
        if record is not None:
            with suppress(ProcessLookupError):
                _end(record, deadline_s)
        if self._child is not None:
            self._child.wait()
            self._child = None
        self.pid_file.unlink(missing_ok=True)

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Kill the process, and start its command again after the block.

        Raises:
            ClusterError: it does not run.
        """
        record = self._record()
        if record is None or not _alive(record):
            raise ClusterError(f"{self.name}: not running; start it first")
        self.stop(deadline_s=0)
        try:
            yield
        finally:
            self.start(record["command"])

    def log_tail(self) -> str:
        """Return the last lines of the log, indented."""
        return tail(self.log.read_text(errors="replace")) if self.log.exists() else ""

    def _record(self) -> Record | None:
        try:
            content = json.loads(self.pid_file.read_text())
            return Record(
                pid=content["pid"],
                boot=content["boot"],
                start_ticks=content["start_ticks"],
                command=content["command"],
            )
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None


def wait_until(ready: Callable[[], bool], what: str, *, deadline_s: float, needs: Sequence[Daemon] = ()) -> None:
    """Poll `ready` until it returns True.

    Raises:
        ClusterError: the deadline passed, or a process in `needs` exited; the message quotes their logs.
    """
    end = time.monotonic() + deadline_s
    while not ready():
        ended = next((daemon for daemon in needs if not daemon.running()), None)
        if ended is not None:
            raise ClusterError(f"{ended.name} exited; end of {ended.log}:\n{ended.log_tail()}")
        if time.monotonic() > end:
            logs = "".join(f"\n  end of {daemon.log}:\n{daemon.log_tail()}" for daemon in needs)
            raise ClusterError(f"{what}: not within {deadline_s:.0f} s{logs}")
        time.sleep(0.1)


def _give_our_share(session: int) -> None:
    """Give a new session the share of the processor that ours has (sched(7), autogroups), where Linux does so."""
    with suppress(OSError):
        niceness = Path("/proc/self/autogroup").read_text().split()[-1]
        Path(f"/proc/{session}/autogroup").write_text(niceness)


def _end(record: Record, deadline_s: float) -> None:
    """Stop a process through a pidfd, which keeps naming the same process after the check."""
    handle = os.pidfd_open(record["pid"])
    try:
        if not _alive(record):
            return
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not select.select([handle], [], [], deadline_s)[0]:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], KILLED_S)
    finally:
        os.close(handle)


def _alive(record: Record) -> bool:
    state = _state(record["pid"])
    return state is not None and state[0] not in "ZX" and (_boot(), state[1]) == (record["boot"], record["start_ticks"])


def _state(pid: int) -> tuple[str, int] | None:
    """Return state and start time in ticks (proc(5), fields 3 and 22), or None if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
