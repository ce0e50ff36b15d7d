"""Sources as one viewer sees them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from mldiagnostics_view.authorization import ANYBODY, GET_RUN, LIST_PODS, LIST_RUNS, LIST_SCHEDULES
from mldiagnostics_view.captures.viewed_captures import ViewedCaptures
from mldiagnostics_view.sources.source import ListedSource, RunDetail, RunUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mldiagnostics_api.schedules.of_run import ScheduleOfRun

    from mldiagnostics_view.authorization import Access
    from mldiagnostics_view.captures.captures import Captures
    from mldiagnostics_view.sources.source import ListedRun


def viewed(source: ListedSource, access: Access) -> ListedSource:
    """Return a source as a viewer with an access sees it."""
    return source if access is ANYBODY else ViewedSource(source, access)


class ViewedSource(ListedSource):
    """Runs of a source that `kubectl get mlruns` would show to the viewer.

    See `ListedSource`.

    A run that the viewer may not see does not differ from one that does not exist.
    """

    def __init__(self, source: ListedSource, access: Access) -> None:
        self._source, self._access = source, access

    @property
    @override
    def place(self) -> str:
        return self._source.place

    @property
    @override
    def problem(self) -> str:
        return self._source.problem

    @property
    @override
    def captures(self) -> Captures:
        return ViewedCaptures(self._source.captures, self._access)

    @override
    async def rows(self) -> Sequence[ListedRun]:
        runs = await self._source.rows()
        namespaces = sorted({run.row.namespace for run in runs})
        verdicts = await asyncio.gather(*(self._access.allows(LIST_RUNS, each) for each in namespaces))
        allowed = {namespace for namespace, verdict in zip(namespaces, verdicts, strict=True) if verdict}
        return [run for run in runs if run.row.namespace in allowed]

    @override
    def namespace(self, key: str) -> str:
        return self._source.namespace(key)

    @override
    async def detail(self, key: str) -> RunDetail:
        await self._check(key)
        detail = await self._source.detail(key)
        if await self._access.allows(LIST_PODS, self.namespace(key)):
            return detail
        return replace(detail, hosts=())

    @override
    async def schedules(self, key: str) -> Sequence[ScheduleOfRun]:
        await self._check(key)
        return (
            await self._source.schedules(key) if await self._access.allows(LIST_SCHEDULES, self.namespace(key)) else ()
        )

    @override
    async def directory(self, key: str, *, may_copy: bool = True) -> str:
        await self._check(key)
        return await self._source.directory(key, may_copy=may_copy)

    @override
    async def configs(self, key: str) -> Mapping[str, Any]:
        await self._check(key)
        return await self._source.configs(key)

    @override
    async def account(self, key: str) -> Mapping[str, Any] | None:
        await self._check(key)
        return await self._source.account(key)

    @override
    async def aclose(self) -> None:
        """Nothing: the source belongs to the server."""

    async def _check(self, key: str) -> None:
        namespace = self._source.namespace(key)
        if not namespace or not await self._access.allows(GET_RUN, namespace):
            raise RunUnknown
