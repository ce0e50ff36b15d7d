"""Copies of sessions for an XProf that has no credentials.

The server of the view reads a session with its own rights once the viewer's are checked; XProf reads the copy.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import shutil
import time
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics.layout import sanitize
from mldiagnostics.runs.session_cache import SessionCache

from mldiagnostics_view.limits import SESSION_AGE_S
from mldiagnostics_view.xprof.opening import SessionAbsent, readable_session

if TYPE_CHECKING:
    from pathlib import Path


_REMEDY: Final = (
    "download it with `mldiag profiles download`, or ask the administrator for a larger view.xprof.cacheGiB"
)


class SessionCopies:
    """Sessions in a directory that XProf reads.

    XProf shows a session to everybody who knows its path, so that nobody can guess it.

    Args:
        directory: The directory, which another container shares.
        limit: Most bytes of all sessions, with the files that XProf makes of them.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self._root = directory / "sessions"
        for each in (self._root, partial := directory / "partial"):
            shutil.rmtree(each, ignore_errors=True)  # of a process before this one
        self._key = secrets.token_bytes(32)
        self._cache = SessionCache(partial, limit, remedy=_REMEDY)
        self._copying: dict[Path, asyncio.Task[None]] = {}
        self._checked: dict[Path, float] = {}

    async def ensure(self, directory: str, session: str, *, wait_s: float) -> Path | None:
        """Return where XProf reads a session; None while it is copied.

        Args:
            directory: Path or URL of the directory of the run.
            session: Name of the session.
            wait_s: Longest wait, in seconds; the copy goes on after it.

        Raises:
            SessionAbsent: It has no traces.
            SessionTooLarge: It is larger than all copies may be.
            StoreError: It cannot be read.
        """
        if sanitize(session) != session:
            raise SessionAbsent(session)
        identity = f"{directory}\n{session}".encode()
        copy = self._root / hmac.digest(self._key, identity, hashlib.sha256).hex() / session
        if time.monotonic() - self._checked.get(copy, float("-inf")) < SESSION_AGE_S and copy.is_dir():
            return copy
        if copy not in self._copying:
            copying = asyncio.create_task(asyncio.to_thread(self._copy, directory, session, copy))
            self._copying[copy] = copying
            copying.add_done_callback(lambda ended: self._forget(copy, ended))
        task = self._copying[copy]
        await asyncio.wait({task}, timeout=wait_s)
        if not task.done():
            return None
        task.result()
        return copy

    async def aclose(self) -> None:
        """Forget copies that are being made; their threads end with the process."""
        await cancel_all(self._copying.values())

    def _forget(self, copy: Path, ended: asyncio.Task[None]) -> None:
        del self._copying[copy]
        if not ended.cancelled():
            ended.exception()  # those who still wait get it; the next request copies again

    def _copy(self, directory: str, session: str, copy: Path) -> None:
        for cleared in self._cache.ensure(readable_session(directory, session), copy):
            self._checked.pop(cleared, None)
        self._checked[copy] = time.monotonic()
