"""The server as a program: from its arguments to a signal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.text.terminal import printable

from mldiagnostics_view.event_loop import run_to_exit
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_view.settings import Settings


def run(arguments: Sequence[str]) -> NoReturn:
    """Serve, and open a browser, until Ctrl-C or SIGTERM ends the process.

    Raises:
        SystemExit: The arguments are wrong, or the server cannot start; the message has the reason.
    """
    try:
        run_to_exit(_serve(parse(arguments)))
    except MLDiagnosticsError as error:
        sys.exit(f"mldiag: {printable(str(error))}")


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    with suppress(NotImplementedError):  # on Windows, Ctrl-C alone ends the program
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving(settings) as url:
        _announce(url)
        if settings.opens_browser and _has_screen():
            await asyncio.to_thread(webbrowser.open, url)
        await stop.wait()


def _announce(url: str) -> None:
    """Show the URL; the server also serves if standard output cannot be written."""
    line = f"mldiag view: {url} (Ctrl-C ends it)"
    try:
        print(line, flush=True)  # noqa: T201 - its purpose
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter writes the line again
        print(line, file=sys.stderr)  # noqa: T201 - as above


def _has_screen() -> bool:
    """Return whether a browser has a window.

    One in the terminal would hide the program.
    """
    return sys.platform in {"darwin", "win32"} or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
