"""Wrap the hooks by which Python reports exceptions and exits.

The earlier hooks are called. A program, or a library such as rich, may replace a hook later: `main_program` then has
the exception of the main thread, and new threads are watched where they call the hook.
"""

from __future__ import annotations

import builtins
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeAlias

    NoteThread: TypeAlias = Callable[[threading.Thread | None, type[BaseException], BaseException | None], None]


def watch_exceptions(note: Callable[[type[BaseException], BaseException | None], None]) -> None:
    """Call `note` with each exception that `sys.excepthook` gets."""
    previous = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        note(kind, error)
        previous(kind, error, trace)

    sys.excepthook = excepthook


def watch_threads(note: NoteThread) -> None:
    """Call `note` with each exception that ends a thread."""
    previous = threading.excepthook

    def excepthook(args: Any) -> None:
        note(args.thread, args.exc_type, args.exc_value)
        previous(args)

    threading.excepthook = excepthook
    make = getattr(threading, "_make_invoke_excepthook", None)  # of CPython: each new thread calls it
    if make is None:
        return

    def make_invoke_excepthook() -> Callable[[threading.Thread], object]:
        invoke = make()

        def invoke_excepthook(thread: threading.Thread) -> None:
            kind, error, _ = sys.exc_info()
            if kind is not None:
                note(thread, kind, error)
            invoke(thread)

        return invoke_excepthook

    threading._make_invoke_excepthook = make_invoke_excepthook  # type: ignore[attr-defined] # noqa: SLF001 - see above


def watch_exits(note: Callable[[object], None]) -> None:
    """Call `note` with the argument of each `sys.exit`, `exit` and `quit`."""
    original = sys.exit

    def exit(status: object = None, /) -> None:  # noqa: A001 - it replaces `sys.exit`
        """Exit the interpreter by raising SystemExit(status)."""
        note(status)
        original(status)  # type: ignore[arg-type]

    sys.exit = exit  # type: ignore[assignment]
    for name in ("exit", "quit"):
        if hasattr(builtins, name):
            setattr(builtins, name, _wrap_quitter(getattr(builtins, name), note))


def _wrap_quitter(original: Any, note: Callable[[object], None]) -> Any:
    """Return the `exit` or `quit` of interactive use, wrapped to keep its argument."""

    class Quitter:
        def __repr__(self) -> str:  # type: ignore[explicit-override]
            return repr(original)

        def __call__(self, code: object = None) -> None:
            note(code)
            original(code)

    return Quitter()
