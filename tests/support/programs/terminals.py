"""Programs in a pseudo-terminal that controls them, as in a user's window: Ctrl-C is typed, not sent."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LIMIT_S = 120.0
CTRL_C = b"\x03"


class TerminalProcess:
    """A running program; `shown` is the output of its terminal until now."""

    def __init__(self, process: subprocess.Popen[str], terminal: int) -> None:
        self._process, self._terminal = process, terminal
        self._changed = threading.Condition()
        self._is_closed = False
        self.shown = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        """Wait until the terminal shows a text. Fails if the program ends before."""
        with self._changed:
            is_shown = self._changed.wait_for(lambda: text in self.shown or self._is_closed, LIMIT_S)
        assert is_shown, f"{text!r} is not shown: {self.shown}"
        assert text in self.shown, self.shown

    def read_line(self) -> str:
        """Return the next line of standard output, if that is a pipe."""
        assert self._process.stdout
        return self._process.stdout.readline()

    def press_ctrl_c(self) -> None:
        os.write(self._terminal, CTRL_C)

    def end(self, *, limit_s: float = LIMIT_S) -> tuple[int, str]:
        """Wait for the end; return the exit code and the rest of standard output."""
        out, _ = self._process.communicate(timeout=limit_s)
        self._reader.join(LIMIT_S)
        return self._process.returncode, out or ""

    def _read(self) -> None:
        while part := self._part():
            with self._changed:
                self.shown += part.decode(errors="replace")
                self._changed.notify_all()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _part(self) -> bytes:
        try:
            return os.read(self._terminal, 65536)
        except OSError:  # the program has closed its end
            return b""


@contextmanager
def in_terminal(
    command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], pipe: bool = False
) -> Iterator[TerminalProcess]:
    """Run a program in a terminal of its own while the block runs.

    Args:
        command: The program and its arguments.
        cwd: Its working directory.
        env: Its variables.
        pipe: Whether standard output is a pipe instead of the terminal.
    """
    terminal, end = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", *command],
        cwd=cwd,
        env=env,
        stdin=end,
        stdout=subprocess.PIPE if pipe else end,
        stderr=end,
        text=True,
    ) as process:
        os.close(end)
        started = TerminalProcess(process, terminal)
        try:
            yield started
        finally:
            process.kill()
            started._reader.join(LIMIT_S)
            os.close(terminal)
