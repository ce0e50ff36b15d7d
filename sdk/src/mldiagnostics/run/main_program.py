"""How the main program of the process ended, read from its outermost frame.

Python gives exit handlers no exit status. The last instruction of that frame shows whether the program returned, and
`sys.last_value` is the exception that left it, also if a hook of another library has printed it.
"""

from __future__ import annotations

import dis
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, FrameType


_RETURNS = {"RETURN_VALUE", "RETURN_CONST"}
_WITHOUT_MEANING = {"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL"}


def main_frame() -> FrameType | None:
    """Return the frame of the main program.

    It is that of its module, else the outermost one of the main thread.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 - a documented function
    names = vars(sys.modules["__main__"]) if "__main__" in sys.modules else None
    program = None
    while frame is not None:
        if frame.f_back is None or frame.f_globals is names:  # below it is the launcher of `python -m`
            program = frame if program is None or frame.f_globals is names else program
        frame = frame.f_back
    return program


def caller(code: CodeType) -> FrameType | None:
    """Return the frame of a function that is being called, None if it is not."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - a documented function
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def has_returned(frame: FrameType | None) -> bool | None:
    """Return whether the frame ran to its end, None if that is unknown."""
    if frame is None or frame.f_lasti < 0:
        return None
    code = frame.f_code.co_code
    return frame.f_lasti < len(code) and dis.opname[code[frame.f_lasti]] in _RETURNS


def exception_of(frame: FrameType | None) -> BaseException | None:
    """Return the exception that left the frame and that Python has reported."""
    error = getattr(sys, "last_value", None)
    trace = error.__traceback__ if isinstance(error, BaseException) else None
    while trace is not None and trace.tb_frame is not frame:
        trace = trace.tb_next
    return None if trace is None else error


def raised_exit(code: CodeType, last_instruction: int, variables: Mapping[str, object]) -> tuple[object, ...]:
    """Return the argument of the `raise SystemExit(…)` that ended the code.

    Only a constant or a variable can be read, since the exception is gone when exit handlers run. It is in a tuple,
    which is empty for any other end.
    """
    executed = [each for each in dis.get_instructions(code) if each.offset <= last_instruction]
    tail = [(each.opname, each.argval) for each in reversed(executed) if each.opname not in _WITHOUT_MEANING][:4]
    match tail:
        case [
            ("RAISE_VARARGS", 1),
            ("CALL" | "CALL_FUNCTION", 1),
            ("LOAD_CONST" | "LOAD_SMALL_INT", argument),
            ("LOAD_NAME" | "LOAD_GLOBAL", "SystemExit"),
        ]:
            return (argument,)
        case [
            ("RAISE_VARARGS", 1),
            ("CALL" | "CALL_FUNCTION", 1),
            ("LOAD_NAME" | "LOAD_GLOBAL", str(name)),
            ("LOAD_NAME" | "LOAD_GLOBAL", "SystemExit"),
        ] if isinstance(status := variables.get(name, ...), int | str | None):
            return (status,)
        case [("RAISE_VARARGS", 1), ("CALL" | "CALL_FUNCTION", 0), ("LOAD_NAME" | "LOAD_GLOBAL", "SystemExit"), *_]:
            return (None,)
        case [("RAISE_VARARGS", 1), ("LOAD_NAME" | "LOAD_GLOBAL", "SystemExit"), *_]:
            return (None,)
    return ()
