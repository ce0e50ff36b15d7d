"""Runs below a directory or a prefix of a bucket, listed in threads."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.locations import local_path
from mldiagnostics.runs import attempt_rows, find_run, list_runs, ranks, sessions
from typing_extensions import override

from mldiagnostics_view.limits import MAX_RUNS, REFRESH_S
from mldiagnostics_view.sources.source import ListedRun, ListedSource, RunDetail, RunUnknown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FileSource"]

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


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
        self._problem = ""

    @property
    @override
    def place(self) -> str:
        return self._root

    @property
    @override
    def problem(self) -> str:
        return self._problem

    @override
    def namespace(self, key: str) -> str:
        return ""

    @override
    async def rows(self) -> Sequence[ListedRun]:
        """See `ListedSource.rows`. The first call waits; others return the last list, and a new one is read."""
        loop = asyncio.get_running_loop()
        if self._listing is None and loop.time() - self._listed_at >= REFRESH_S:
            self._listing = asyncio.create_task(self._list())
        if self._rows is None and self._listing is not None:
            await asyncio.wait([self._listing])
        return self._rows or ()

    @override
    async def detail(self, key: str) -> RunDetail:
        return await asyncio.to_thread(self._read, key)

    @override
    async def directory(self, key: str) -> str:
        for listed in await self.rows():
            if listed.key == key:
                return listed.row.directory
        return (await self.detail(key)).row.directory

    @override
    async def aclose(self) -> None:
        if self._listing is not None:
            await asyncio.wait([self._listing])

    async def _list(self) -> None:
        try:
            rows = await asyncio.to_thread(list_runs, self._root, limit=MAX_RUNS)
            self._rows = [
                ListedRun(row.directory.rpartition("/")[2], replace(row, configs={}, document={})) for row in rows
            ]
            path = local_path(self._root)
            is_missing = path is not None and not path.is_dir()
            self._problem = f"{self._root}: no such directory; it is read once it exists" if is_missing else ""
        except (MLDiagnosticsError, OSError) as error:
            self._rows = self._rows or []
            self._problem = str(error)
        self._listed_at = asyncio.get_running_loop().time()
        self._listing = None

    def _read(self, key: str) -> RunDetail:
        if not _KEY.fullmatch(key):
            raise RunUnknown
        try:
            row = find_run(self._root, key)
        except ConfigurationError as error:
            raise RunUnknown from error
        if row.directory.rpartition("/")[2] != key:  # the beginning of an id
            raise RunUnknown
        return RunDetail(
            row=row,
            attempts=attempt_rows(row),
            hosts=ranks(row),
            sessions=sessions(row),
            configs=row.configs,
            has_files=True,
        )
