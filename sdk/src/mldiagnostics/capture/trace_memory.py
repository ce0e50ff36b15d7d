"""The memory of one response, counted until the system has it back."""

import asyncio
import mmap
import weakref
from collections.abc import Callable
from contextlib import suppress


class TraceMemory:
    """Memory of `size` bytes for one response; `view` is all of it.

    A page uses memory from its first byte on. `close` returns all to the system; if an abandoned write still reads it,
    as on a hanging volume, the end of that write does.

    Args:
        size: number of bytes.
        on_freed: called in the event loop when the memory is free.
    """

    def __init__(self, size: int, on_freed: Callable[[], None]) -> None:
        self._pages = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        loop = asyncio.get_running_loop()
        self._freed = weakref.finalize(self._pages, _call_in, loop, on_freed)
        self._freed.atexit = False
        self.view = memoryview(self._pages)[:size]

    def close(self) -> None:
        """Free the memory, now or when its last reader ends."""
        pages = self._pages
        del self._pages
        release(self.view)
        with suppress(BufferError):
            pages.close()
            self._freed()


def release(view: memoryview) -> None:
    """Release a view, which ends a write that reads it piece by piece."""
    with suppress(BufferError):  # a piece is being read
        view.release()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the loop from any thread; not after the end of the loop."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
