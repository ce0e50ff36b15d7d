"""Who profiles this process: one session at a time, whoever starts it."""

from __future__ import annotations

import os
import threading

from mldiagnostics.profiling.recorder import Busy

_changed = threading.Condition()
_holder: ProfilerClaim | None = None
_next: ProfilerClaim | None = None
"""Who records as soon as the trace of the holder is collected."""


class ProfilerClaim:
    """The right to record, from `who`'s turn until it is released."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.is_recording = True
        """Whether the recording may still be under way, or is to come."""
        self._is_withdrawn = False

    def wait(self, timeout_s: float | None) -> bool:
        """Return whether it is this claim's turn, after at most `timeout_s` (None: once that is decided)."""
        with _changed:
            _changed.wait_for(lambda: _holder is self or self._is_withdrawn, timeout_s)
            return _holder is self

    def collect(self) -> None:
        """Mark the recording as over: its trace is being collected, and another claim may be next."""
        with _changed:
            self.is_recording = False

    def withdraw(self) -> None:
        """Give up the next turn; does nothing once it is this claim's turn."""
        global _next  # noqa: PLW0603 - the process has one profiler, so this is its one owner
        with _changed:
            if _next is self:
                _next = None
                self._is_withdrawn = True
                _changed.notify_all()

    def release(self) -> None:
        """Let others record; a second time does nothing."""
        global _holder, _next
        with _changed:
            self.withdraw()
            if _holder is self:
                _holder, _next = _next, None
                _changed.notify_all()


def claim(who: str) -> ProfilerClaim:
    """Take the right to record, now. Raises `Busy`, never waits."""
    held = queue(who)
    if not held.wait(0):
        held.release()
        raise Busy("already profiling: the trace of the last profile of this process is still being collected")
    return held


def queue(who: str) -> ProfilerClaim:
    """Take the right to record, now or after the trace that is being collected; see `ProfilerClaim.wait`.

    Raises `Busy`, without waiting, while another session records or is next.
    """
    global _holder, _next  # noqa: PLW0603 - as above
    with _changed:
        other = _next or _holder
        if other is not None and other.is_recording:
            raise Busy(f"already profiling: {other.who} is recording this process")
        mine = ProfilerClaim(who)
        if _holder is None:
            _holder = mine
        else:
            _next = mine
        return mine


def _forget() -> None:
    """Begin anew in a forked child: the recording, and the thread that would end it, stayed with the parent."""
    global _changed, _holder, _next
    _changed, _holder, _next = threading.Condition(), None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
