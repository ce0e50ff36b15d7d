"""The event loop of a program, from its start to the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mldiagnostics_view.limits import MAX_THREADS

if TYPE_CHECKING:
    from collections.abc import Coroutine


_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as that of other commands."""


def run_to_exit(main: Coroutine[Any, Any, None]) -> NoReturn:
    """Run a program and end the process: with 0, or after Ctrl-C with 130.

    `main` has closed all when it returns, but for threads that wait for a store. They only read, so the process does
    not wait for them: the interpreter would, up to a minute.

    Raises:
        Exception: `main` raises it.
    """
    status = 0
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="mldiagnostics-view"))
        try:
            runner.run(main)
        except KeyboardInterrupt:
            status = _INTERRUPTED
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it
                stream.flush()
        os._exit(status)
