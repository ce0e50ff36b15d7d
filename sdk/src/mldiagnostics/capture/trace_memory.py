"""The memory of one response, counted until the system has it back."""

import asyncio
import mmap
import weakref
from collections.abc import Callable
from contextlib import suppress

_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_HEAP_BYTES = 64 * 1024
"""Largest response in memory of the interpreter: pages of its own cost 0.1 ms."""


class _Heap(bytearray):
    """Memory of the interpreter, with weak references."""


class TraceMemory:
    """Memory of `size` bytes for one response; `view` is all of it.

    A page uses memory from its first byte on. `close` returns all to the system; if an abandoned write still reads it,
    as on a hanging volume, the end of that write does.

    Args:
        size: number of bytes.
        on_freed: called in the event loop when the memory is free.
    """

    def __init__(self, size: int, on_freed: Callable[[], None]) -> None:
        bytes_ = _Heap(size) if size <= _HEAP_BYTES else mmap.mmap(-1, size, flags=_PRIVATE)
        freed = weakref.finalize(bytes_, _call_in, asyncio.get_running_loop(), on_freed)
        freed.atexit = False
        self.view = memoryview(bytes_)

    def close(self) -> None:
        """Free the memory, now or when its last reader ends."""
        release(self.view)


def release(view: memoryview) -> None:
    """Release a view, which ends a write that reads it piece by piece."""
    with suppress(BufferError):  # a piece is being read
        view.release()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the loop from any thread; not after the end of the loop."""
    with suppress(RuntimeError):
        if asyncio._get_running_loop() is loop:  # noqa: SLF001 - documented, and does not raise
            loop.call_soon(function)
        else:
            loop.call_soon_threadsafe(function)
