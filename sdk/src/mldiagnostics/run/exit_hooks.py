"""Ways in which a process ends, watched without changing any of them.

Hooks are put in once for a process, in front of those that were there, and are asked for nothing in forked children:
the parent owns the phase. Python does not tell an exit handler the exit status, so `sys.exit` notes what it is called
with; whether that call was the end is told by where the main program stopped.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import dis
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.identity.environment import has_native_handler
from mldiagnostics.lifecycle import current_run
from mldiagnostics.lifecycle.outcome import ExitEvidence, shorten
from mldiagnostics.run import preemption

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

_RETURNS = {"RETURN_VALUE", "RETURN_CONST"}


class ExitHooks:
    """What this process has seen of its end; the run that it is in then is told."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._main = _main_frame()
        self._before: Any = None
        self._uncaught = self._thread = self._signal = self._handled = ""
        self._exits: tuple[object, ...] = ()
        self._ended = False
        self._postponed = False

    def evidence(self, *, said: Any = None, preempted: bool = False) -> ExitEvidence:
        """Return what was seen so far."""
        return ExitEvidence(
            said=said,
            uncaught=self._uncaught,
            thread=self._thread,
            signal=self._signal,
            handled=self._handled,
            preempted=preempted,
            exits=self._exits,
            returned=_has_returned(self._main) if self._ended else None,
        )

    def forget(self) -> None:
        """Begin anew, for another run of the same process."""
        self._uncaught = self._thread = self._signal = self._handled = ""
        self._exits = ()

    def watch(self) -> None:
        """Put in the hooks that every kind of process takes; once."""
        sys.excepthook = self._before_excepthook(sys.excepthook)
        threading.excepthook = self._before_thread_hook(threading.excepthook)
        atexit.register(self._exiting)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._release_in_child)
        if "multiprocessing.process" in sys.modules and _is_child_of_multiprocessing():
            from multiprocessing import util  # noqa: PLC0415 - loaded already

            util.Finalize(None, self._leaving_child, exitpriority=100)  # forked ones end without exit handlers
        if not _in_notebook():
            sys.exit = self._noting(sys.exit)
            for name in ("exit", "quit"):
                if hasattr(builtins, name):
                    setattr(builtins, name, _noting_quitter(getattr(builtins, name), self._note_exit))

    def watch_sigterm(self) -> bool:
        """Put in the handler of SIGTERM, or leave it: what ignores it, or is not Python's (JAX's), has its reasons."""
        if threading.current_thread() is not threading.main_thread() or not self.is_ours():
            return False
        if (forked_exit := sys.modules.get("mldiagnostics.pipeline.forked_exit")) is not None:
            forked_exit.release()  # of a child that has recorded before it begins a run of its own
        before = signal.getsignal(signal.SIGTERM)
        if before == self._on_sigterm:
            return True
        if before is None or before == signal.SIG_IGN or (before == signal.SIG_DFL and has_native_handler()):
            return False
        with contextlib.suppress(ValueError, OSError):
            self._before = before
            signal.signal(signal.SIGTERM, self._on_sigterm)
            return True
        return False

    def unwatch_sigterm(self) -> None:
        """Put back what was there, unless somebody has put another handler in since; deliver what was put off."""
        if self._postponed:
            _pass_on(self._before, signal.SIGTERM, None)
        if threading.current_thread() is threading.main_thread() and self.is_ours():
            with contextlib.suppress(ValueError, OSError):
                if signal.getsignal(signal.SIGTERM) == self._on_sigterm and not preemption.is_watched():
                    signal.signal(signal.SIGTERM, self._before)

    def _release_in_child(self) -> None:
        """Give SIGTERM back in a forked child: Python's handlers wait for Python code, the system's do not."""
        if self._before is not None and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            with contextlib.suppress(ValueError, OSError):
                signal.signal(signal.SIGTERM, self._before)

    def note_uncaught(self, kind: type[BaseException], error: BaseException | None) -> None:
        """Remember that the program is ended by an exception."""
        if not issubclass(kind, SystemExit):
            self._uncaught = _described(kind, error)
        elif isinstance(error, SystemExit):
            self._note_exit(error.code)

    def is_ours(self) -> bool:
        """Tell whether this is the process in which the hooks were put in, and not a forked child."""
        return os.getpid() == self._pid

    def _note_exit(self, code: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._exits = (code,)

    def _exiting(self) -> None:
        self._ended = True
        self._tell()

    def _tell(self) -> None:
        run = current_run.current()
        if run is not None and self.is_ours():
            run.at_exit()

    def _leaving_child(self) -> None:
        """End with a process of multiprocessing, which is still handling the exception that ended it, if any."""
        kind, error, _ = sys.exc_info()
        if kind is not None:
            self.note_uncaught(kind, error)
        self._tell()

    def _before_excepthook(self, before: Callable[..., object]) -> Callable[..., None]:
        def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            if self.is_ours() and not hasattr(sys, "ps1"):  # at a prompt it ends a line, not the process
                self.note_uncaught(kind, error)
            before(kind, error, trace)

        return excepthook

    def _before_thread_hook(self, before: Callable[[Any], object]) -> Callable[[Any], None]:
        def excepthook(seen: Any) -> None:
            if self.is_ours() and not issubclass(seen.exc_type, SystemExit):
                name = seen.thread.name if seen.thread is not None else "a thread"
                self._thread = f"{name}: {_described(seen.exc_type, seen.exc_value)}"
            before(seen)

        return excepthook

    def _noting(self, original: Callable[..., Any]) -> Any:
        def exit(status: object = None, /) -> None:  # noqa: A001 - it stands in for that one
            """Exit the interpreter by raising SystemExit(status)."""
            self._note_exit(status)
            original(status)

        return exit

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Report, then let the signal do what it did without us."""
        before = self._before
        if not self.is_ours():
            _pass_on(before, number, frame)
            return
        name, dying = signal.Signals(number).name, before == signal.SIG_DFL
        if dying:
            self._signal = name
        else:
            self._handled = name
        run = current_run.current()
        if run is None or run.at_signal(name, dying=dying):
            _pass_on(before, number, frame)
        else:
            self._postponed = True


_process: ExitHooks | None = None


def process_endings() -> ExitHooks:
    """Return this process's own, with its hooks in place and nothing seen yet: a new run has not ended in any way."""
    global _process  # noqa: PLW0603 - hooks are put in once for a process
    if _process is None or not _process.is_ours():
        _process = ExitHooks()
        _process.watch()
    _process.forget()
    return _process


def _pass_on(before: Any, number: int, frame: FrameType | None) -> None:
    if callable(before):
        before(number, frame)
    elif before == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _described(kind: type[BaseException], error: BaseException | None) -> str:
    try:
        return shorten(f"{kind.__name__}: {error}" if error is not None and str(error) else kind.__name__)
    except Exception:  # noqa: BLE001 - it is the program's own exception
        return kind.__name__


def _noting_quitter(original: Any, note: Callable[[object], None]) -> Any:
    """Return the `exit` or `quit` of interactive use as it was, but noting what it is called with."""

    class Quitter:
        def __repr__(self) -> str:  # type: ignore[explicit-override]
            return repr(original)

        def __call__(self, code: object = None) -> None:
            note(code)
            original(code)

    return Quitter()


def _main_frame() -> FrameType | None:
    """Return the outermost frame of the main thread, whose last instruction tells how the program ended."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - a documented function
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _has_returned(frame: FrameType | None) -> bool | None:
    if frame is None or frame.f_lasti < 0:
        return None
    code = frame.f_code.co_code
    return frame.f_lasti < len(code) and dis.opname[code[frame.f_lasti]] in _RETURNS


def _in_notebook() -> bool:
    """Tell whether a kernel runs the program: there `sys.exit` ends a cell, not the process."""
    return getattr(builtins, "__IPYTHON__", False) is True


def _is_child_of_multiprocessing() -> bool:
    from multiprocessing import parent_process  # noqa: PLC0415 - loaded already

    return parent_process() is not None
