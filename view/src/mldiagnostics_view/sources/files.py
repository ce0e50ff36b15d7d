"""Runs below a directory or a prefix of a bucket, listed in threads."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.locations import local_path
from mldiagnostics.runs import attempt_rows, configs, findings, list_runs, sessions
from mldiagnostics.runs.finding import find_run_with_ranks
from typing_extensions import override

from mldiagnostics_view.captures.captures import NoCaptures
from mldiagnostics_view.limits import FIRST_LIST_S, MAX_RUNS, REFRESH_S
from mldiagnostics_view.sources.source import ListedRun, ListedSource, RunDetail, RunUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_api.schedules.of_run import ScheduleOfRun

    from mldiagnostics_view.captures.captures import Captures


_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NAMED: Final = 3
_log: Final = logging.getLogger(__name__)


class FileSource(ListedSource):
    """Runs from their files; as `ListedSource` says.

    Args:
        root: Root of the runs: a path or URL.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._rows: Sequence[ListedRun] | None = None
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None
        self._first_due: float | None = None
        """Time until which requests wait for the first list, in seconds of the loop's clock."""
        self._problem = ""
        self._broken: frozenset[str] = frozenset()
        """Directories whose run.json cannot be read."""

    @property
    @override
    def place(self) -> str:
        return self._root

    @property
    @override
    def problem(self) -> str:
        return self._problem

    @property
    @override
    def captures(self) -> Captures:
        return NoCaptures("")

    @override
    def namespace(self, key: str) -> str:
        return ""

    @override
    async def rows(self) -> Sequence[ListedRun]:
        """See `ListedSource.rows`.

        The first calls wait; others return the last list, and a new one is read.
        """
        now = asyncio.get_running_loop().time()
        if self._first_due is None:
            self._first_due = now + FIRST_LIST_S
        if self._listing is None and now - self._listed_at >= REFRESH_S:
            self._listing = asyncio.create_task(self._list())
        if self._rows is None and self._listing is not None:
            await asyncio.wait([self._listing], timeout=max(0.0, self._first_due - now))
        if self._rows is None:
            self._problem = f"{self._root}: has not responded yet; its runs appear once it does"
        return self._rows or ()

    @override
    async def detail(self, key: str) -> RunDetail:
        return await asyncio.to_thread(self._read, key)

    @override
    async def schedules(self, key: str) -> Sequence[ScheduleOfRun]:
        return ()

    @override
    async def directory(self, key: str, *, may_copy: bool = True) -> str:
        for listed in await self.rows():
            if listed.key == key:
                return listed.row.directory
        return (await self.detail(key)).row.directory

    @override
    async def configs(self, key: str) -> Mapping[str, Any]:
        return await asyncio.to_thread(configs, await self.directory(key))

    @override
    async def account(self, key: str) -> None:
        """Return None: only the files have an account."""

    @override
    async def aclose(self) -> None:
        if self._listing is not None:  # its thread only reads; a bucket that does not respond would delay the end
            self._listing.cancel()
            await asyncio.wait([self._listing])

    async def _list(self) -> None:
        try:
            broken: list[str] = []
            rows = await asyncio.to_thread(list_runs, self._root, limit=MAX_RUNS, unreadable=broken.append)
            listed = [
                ListedRun(row.directory.rpartition("/")[2], replace(row, configs={}, document={})) for row in rows
            ]
            problem = await asyncio.to_thread(_problem_of, self._root, broken)
            self._rows, self._broken, self._problem = listed, frozenset(broken), problem
        except (MLDiagnosticsError, OSError) as error:
            self._rows = self._rows or []
            self._problem = str(error)
        except Exception as error:  # noqa: BLE001 - the list must be read again
            _log.exception("list of runs failed root=%(root)s", {"root": self._root})
            self._rows = self._rows or []
            name = type(error).__name__
            self._problem = f"{self._root}: listing the runs failed with {name}; the output of the server has details"
        finally:
            self._listed_at = asyncio.get_running_loop().time()
            self._listing = None

    def _read(self, key: str) -> RunDetail:
        if key in self._broken:
            raise RunUnknown(f"{key}: its run.json cannot be read; repair or delete the file.")
        is_listed = any(key == listed.key for listed in self._rows or ())
        if not is_listed and not _KEY.fullmatch(key):
            raise RunUnknown
        try:
            row, hosts = find_run_with_ranks(self._root, key)
        except ConfigurationError as error:
            raise RunUnknown from error
        if row.directory.rpartition("/")[2] != key:  # the beginning of an id
            raise RunUnknown
        profiles = sessions(row)
        return RunDetail(
            row=row,
            attempts=attempt_rows(row),
            hosts=hosts,
            sessions=profiles,
            findings=findings(profiles),
        )


def _problem_of(root: str, broken: Sequence[str]) -> str:
    """Return why the list of a root is empty, or not complete."""
    path = local_path(root)
    if path is not None and not path.is_dir():
        return f"{root}: no such directory; it is read once it exists"
    if not broken:
        return ""
    named = ", ".join(sorted(broken)[:_NAMED]) + (", …" if len(broken) > _NAMED else "")
    return f"{root}: {len(broken)} with a broken run.json left out: {named}; repair or delete the file"
