"""Observe how the process ends, without changing it.

Hooks are installed once in a process, before the existing ones, and do nothing in forked children: the phase belongs to
the parent. Python gives exit handlers no exit status, so a wrapper of `sys.exit` keeps its argument; the frame of the
main program (`main_program`) shows whether that call ended it, and which exception did.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.identity.environment import has_native_handler
from mldiagnostics.lifecycle import current_run
from mldiagnostics.lifecycle.outcome import ExitEvidence
from mldiagnostics.pipeline.buffer import child_of_multiprocessing
from mldiagnostics.run import preemption
from mldiagnostics.run.main_program import caller, exception_of, has_returned, main_frame, raised_exit
from mldiagnostics.run.python_hooks import watch_exceptions, watch_exits, watch_threads

if TYPE_CHECKING:
    from types import FrameType


class ExitHooks:
    """Evidence of how this process ends, handed to its run."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._main = main_frame()
        self._child: FrameType | None = None
        """The frame that runs this child of `multiprocessing`."""
        self._previous: Any = None
        self._uncaught = self._thread = self._signal = self._handled = ""
        self._exits: tuple[object, ...] = ()
        self._ended = False
        self._postponed = False

    def evidence(self, *, declared: Any = None, preempted: bool = False) -> ExitEvidence:
        """Return the evidence so far."""
        return ExitEvidence(
            declared=declared,
            uncaught=self._uncaught,
            thread=self._thread,
            signal=self._signal,
            handled=self._handled,
            preempted=preempted,
            exits=self._exits,
            returned=has_returned(self._main) if self._ended else None,
        )

    def forget(self) -> None:
        """Forget the evidence, for another run of the same process."""
        self._uncaught = self._thread = self._signal = self._handled = ""
        self._exits = ()

    def watch(self) -> None:
        """Install the hooks; called once."""
        watch_exceptions(self._note_reported)
        watch_threads(self._note_thread)
        atexit.register(self._on_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._release_in_child)
        if child_of_multiprocessing() is not None:
            from multiprocessing import process, util  # noqa: PLC0415 - loaded already

            self._child = caller(process.BaseProcess._bootstrap.__code__)  # type: ignore[attr-defined]  # noqa: SLF001
            util.Finalize(None, self._on_child_exit, exitpriority=100)  # forked ones end without exit handlers
        if not _in_notebook():
            watch_exits(self._note_exit)

    def watch_sigterm(self) -> bool:
        """Install the handler of SIGTERM; return whether it is installed.

        A signal that is ignored, or handled natively as by JAX, is left alone.
        """
        if threading.current_thread() is not threading.main_thread() or not self.is_ours():
            return False
        if (forked_exit := sys.modules.get("mldiagnostics.pipeline.forked_exit")) is not None:
            forked_exit.release()  # of a child that has recorded before it starts a run of its own
        handler = signal.getsignal(signal.SIGTERM)
        if handler == self._on_sigterm:
            return True
        if handler is None or handler == signal.SIG_IGN or (handler == signal.SIG_DFL and has_native_handler()):
            return False
        with contextlib.suppress(ValueError, OSError):
            self._previous = handler
            signal.signal(signal.SIGTERM, self._on_sigterm)
            return True
        return False

    def unwatch_sigterm(self) -> None:
        """Restore the previous handler, if ours is still installed.

        Deliver a postponed signal.
        """
        if self._postponed:
            _pass_on(self._previous, signal.SIGTERM, None)
        if threading.current_thread() is threading.main_thread() and self.is_ours():
            with contextlib.suppress(ValueError, OSError):
                if signal.getsignal(signal.SIGTERM) == self._on_sigterm and not preemption.is_watched():
                    signal.signal(signal.SIGTERM, self._previous)

    def _release_in_child(self) -> None:
        """Restore SIGTERM in a forked child.

        Python handlers wait for Python code, native ones do not.
        """
        if self._previous is not None and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            with contextlib.suppress(ValueError, OSError):
                signal.signal(signal.SIGTERM, self._previous)

    def note_uncaught(self, kind: type[BaseException], error: BaseException | None) -> None:
        """Keep the exception that ends the program."""
        if not issubclass(kind, SystemExit):
            self._uncaught = _described(kind, error)
        elif isinstance(error, SystemExit):
            self._note_exit(error.code)

    def note_in_flight(self) -> None:
        """Keep the exception that is in flight, if it means failure."""
        kind, error, _ = sys.exc_info()
        if kind is not None and not issubclass(kind, (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit)):
            self.note_uncaught(kind, error)

    def note_signal(self, name: str) -> None:
        """Keep the signal that ends the process."""
        self._signal = name

    def is_ours(self) -> bool:
        """Return whether this process installed the hooks, and is not a forked child."""
        return os.getpid() == self._pid

    def _note_exit(self, code: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self._exits = (code,)

    def _on_exit(self) -> None:
        self._ended = True
        if self.is_ours() and not hasattr(sys, "ps1"):
            self._note_end(self._main)
            if self._child is not None and (code := self._child.f_locals.get("exitcode")):
                self._exits = (code,)  # since Python 3.13 also forked children run exit handlers, without an exception
        self._close_run()

    def _note_end(self, main: FrameType | None) -> None:
        """Note how the main program ended, also if another hook has replaced ours."""
        if main is None or has_returned(main):
            return
        if not self._uncaught and (error := exception_of(main)) is not None:
            self.note_uncaught(type(error), error)
        self._exits = raised_exit(main.f_code, main.f_lasti, main.f_globals) or self._exits

    def _close_run(self) -> None:
        run = current_run.current()
        if run is not None and self.is_ours():
            run.close()

    def _on_child_exit(self) -> None:
        """Close the run of a multiprocessing child, with its exception, if any."""
        kind, error, _ = sys.exc_info()
        if kind is not None:
            self.note_uncaught(kind, error)
        self._close_run()

    def _note_reported(self, kind: type[BaseException], error: BaseException | None) -> None:
        if self.is_ours() and not hasattr(sys, "ps1"):  # at a prompt it ends a line, not the process
            self.note_uncaught(kind, error)

    def _note_thread(
        self, thread: threading.Thread | None, kind: type[BaseException], error: BaseException | None
    ) -> None:
        name = thread.name if thread is not None else "a thread"
        if self.is_ours() and not issubclass(kind, SystemExit) and not name.startswith("mldiagnostics-"):
            self._thread = f"{name}: {_described(kind, error)}"

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        """Record the signal, then call the previous handler."""
        previous = self._previous
        if not self.is_ours():
            _pass_on(previous, number, frame)
            return
        name, dying = signal.Signals(number).name, previous == signal.SIG_DFL
        if dying:
            self.note_signal(name)
        else:
            self._handled = name
        run, can_pass = current_run.current(), True
        try:
            can_pass = run is None or run.at_signal(name, dying=dying)
        except Exception as error:  # noqa: BLE001 - the program must learn of the signal
            warn_once("signal", f"{name}: could not be recorded: {error!r}")
        if can_pass:
            _pass_on(previous, number, frame)
        else:
            self._postponed = True


_process: ExitHooks | None = None


def process_exit_hooks() -> ExitHooks:
    """Return the installed hooks of this process, without evidence of earlier runs."""
    global _process  # noqa: PLW0603 - hooks are installed once in a process
    if _process is None or not _process.is_ours():
        _process = ExitHooks()
        _process.watch()
    _process.forget()
    return _process


def _pass_on(handler: Any, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _described(kind: type[BaseException], error: BaseException | None) -> str:
    try:
        return f"{kind.__name__}: {error}" if error is not None and str(error) else kind.__name__
    except Exception:  # noqa: BLE001 - the program's own class may raise anything
        return kind.__name__


def _in_notebook() -> bool:
    """Return whether a notebook runs the program.

    There `sys.exit` ends a cell, not the process.
    """
    return getattr(builtins, "__IPYTHON__", False) is True
