"""Claims on the process's profiler, which records one session at a time."""

from __future__ import annotations

import os
import threading

from mldiagnostics.profiling.recorder import Busy

_changed = threading.Condition()
_holder: ProfilerClaim | None = None
_next: ProfilerClaim | None = None
"""Records as soon as the holder's trace is collected."""


class ProfilerClaim:
    """The right to record, from its turn until it is released; `name` is for messages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_recording = True
        """Whether the recording is under way or has not started."""
        self._is_withdrawn = False

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for this claim's turn; false if it is withdrawn or after `timeout_s`."""
        with _changed:
            _changed.wait_for(lambda: _holder is self or self._is_withdrawn, timeout_s)
            return _holder is self

    def collect(self) -> None:
        """Mark the recording as stopped: another claim may be queued."""
        with _changed:
            self.is_recording = False

    def withdraw(self) -> None:
        """Leave the queue; does nothing once it is this claim's turn."""
        global _next  # noqa: PLW0603 - the process has one profiler
        with _changed:
            if _next is self:
                _next = None
                self._is_withdrawn = True
                _changed.notify_all()

    def release(self) -> None:
        """Let the next claim record; does nothing the second time."""
        global _holder, _next
        with _changed:
            self.withdraw()
            if _holder is self:
                _holder, _next = _next, None
                _changed.notify_all()


def claim(name: str) -> ProfilerClaim:
    """Return a claim whose turn is now. Raises `Busy` instead of waiting."""
    held = queue(name)
    if not held.wait(0):
        held.release()
        raise Busy("already profiling: the trace of the last profile of this process is still being collected")
    return held


def queue(name: str) -> ProfilerClaim:
    """Return a claim whose turn is now or next; see `ProfilerClaim.wait`.

    Raises `Busy`, without waiting, while another session records or is next.
    """
    global _holder, _next  # noqa: PLW0603 - as above
    with _changed:
        other = _next or _holder
        if other is not None and other.is_recording:
            raise Busy(f"already profiling: {other.name} is recording this process")
        new = ProfilerClaim(name)
        if _holder is None:
            _holder = new
        else:
            _next = new
        return new


def _after_fork() -> None:
    """Reset in a forked child: recording and thread exist only in the parent."""
    global _changed, _holder, _next
    _changed, _holder, _next = threading.Condition(), None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
