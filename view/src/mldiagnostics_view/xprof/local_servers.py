"""Servers of XProf on this machine, which the command line starts and ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import signal
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import xprof_page

from mldiagnostics_view.limits import MAX_XPROF_SERVERS
from mldiagnostics_view.xprof.opening import readable_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_view.xprof.opening import SessionAddress


_LIST: Final = ("xprof", "list", "--on", "local", "-o", "json")


class XprofFailed(MLDiagnosticsError):
    """XProf cannot be started; the message has the reason and a remedy."""


class XprofServers:
    """Starts or finds the server of XProf for a log directory.

    It ends those that it started.

    The command line is a program of its own: the view does not import it, and XProf is not loaded into this process.

    Args:
        mldiag: The command `mldiag`.
    """

    def __init__(self, mldiag: Sequence[str]) -> None:
        self._mldiag = tuple(mldiag)
        self._prefix = f"view-{secrets.token_hex(3)}"
        self._numbers = itertools.count(1)
        self._opening: dict[str, asyncio.Task[str]] = {}
        self._started: set[str] = set()

    async def page(self, address: SessionAddress, directory: str, *, wait_s: float) -> str | None:
        """See `SessionOpener.page`; `XprofFailed` if XProf cannot start."""
        await asyncio.to_thread(readable_session, directory, address.session)
        url = await self._url(directory, wait_s=wait_s)
        return url and url + xprof_page(address.session)

    async def _url(self, log_directory: str, *, wait_s: float) -> str | None:
        """Return the URL of a server for a log directory, which must be one of a run.

        The start takes seconds; it goes on after the call, and later calls return its result.

        Args:
            log_directory: A path or URL.
            wait_s: Longest wait, in seconds.

        Returns:
            The URL; None while the server starts.

        Raises:
            XprofFailed: XProf is not installed or ends, or too many servers run.
        """
        if log_directory not in self._opening:
            self._opening[log_directory] = asyncio.create_task(self._open(log_directory))
        task = self._opening[log_directory]
        await asyncio.wait({task}, timeout=wait_s)
        if not task.done():
            return None
        if self._opening.get(log_directory) is task:
            del self._opening[log_directory]
        return task.result()

    async def aclose(self) -> None:
        """End the servers that were started here."""
        await cancel_all(self._opening.values())
        if not self._started:
            return
        running = {server["name"] for server in await self._run(*_LIST)}
        if names := sorted(self._started & running):
            await self._run("xprof", "delete", *names, "--on", "local", "--yes")
        self._started.clear()

    async def _open(self, log_directory: str) -> str:
        if self._count() > MAX_XPROF_SERVERS:
            running = await self._run(*_LIST)
            for server in running:
                if server["logDirectory"] == log_directory:
                    return str(server["url"])
            self._started &= {server["name"] for server in running}
            if self._count() > MAX_XPROF_SERVERS:
                raise XprofFailed(
                    f"{MAX_XPROF_SERVERS} servers of XProf run for this page already; end one with "
                    f"`mldiag xprof delete {min(self._started, default='NAME')} --on local`, then try again"
                )
        name = f"{self._prefix}-{next(self._numbers)}"
        [server] = await self._run("xprof", "create", log_directory, "--on", "local", "--name", name, "-o", "json")
        if server["name"] == name:
            self._started.add(name)
        return str(server["url"])

    def _count(self) -> int:
        """Return the number of servers that run or start."""
        return len(self._started) + sum(not task.done() for task in self._opening.values())

    async def _run(self, *arguments: str) -> Any:
        """Run the command line, and return the JSON that it prints."""
        process = await asyncio.create_subprocess_exec(
            *self._mldiag, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            process.send_signal(signal.SIGINT)  # it ends the server that it is starting
            await process.wait()
            raise
        if process.returncode:
            lines = err.decode(errors="replace").strip().splitlines()
            raise XprofFailed(lines[-1].removeprefix("mldiag: ") if lines else "XProf: cannot be started")
        return json.loads(out) if out.startswith((b"[", b"{")) else None
