"""Who profiles this process: one session at a time, whoever asks."""

from __future__ import annotations

import os
import threading

from mldiagnostics.profiling.recorder import Busy

_changed = threading.Condition()
_holder: Claim | None = None


class Claim:
    """The right to record, held by `who` until it is released."""

    def __init__(self, who: str) -> None:
        self.who = who

    def release(self) -> None:
        """Let others record; a second time does nothing."""
        global _holder  # noqa: PLW0603 - the process has one profiler, so this is its one owner
        with _changed:
            if _holder is self:
                _holder = None
                _changed.notify_all()


def claim(who: str, *, patience_s: float = 0.0) -> Claim:
    """Take the right to record, waiting up to `patience_s` for another holder. Raises `Busy`."""
    global _holder  # noqa: PLW0603
    with _changed:
        if not _changed.wait_for(lambda: _holder is None, patience_s):
            raise Busy(f"{_holder.who if _holder else 'another session'} is recording this process")
        _holder = Claim(who)
        return _holder


def _forget() -> None:
    """Begin anew in a forked child: the recording, and the thread that would end it, stayed with the parent."""
    global _changed, _holder
    _changed, _holder = threading.Condition(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
