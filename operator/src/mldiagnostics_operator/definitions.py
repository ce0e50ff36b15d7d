"""The definitions of the watched resources: wait for them, notice replacement."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to

from mldiagnostics_operator.preflight import missing_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mldiagnostics_api.resources import Resource
    from mldiagnostics_kube.client.api_client import ApiClient

_log: Final = logging.getLogger(__name__)

CHECK_S: Final = 2.0
"""Pause between two checks. A request for metadata takes the API server less than a millisecond."""

Uids = tuple[str, ...]


class Definitions:
    """The definitions of some resources, as the API server has them now.

    A watch does not show that its definition was removed: the objects are deleted with it, and a watch of a definition
    that does not exist stays silent also when another one is created.
    """

    def __init__(self, cluster: ApiClient, resources: Collection[Resource]) -> None:
        self._cluster = cluster
        self._resources = resources

    async def until_installed(self, report: Callable[[bool], None]) -> Uids:
        """Wait until all resources are served; return the uids of their definitions.

        `report` is called with False when one is missing, and with True at the end. Each problem is logged once.
        """
        logged: str | None = None
        while True:
            try:
                uids = await self._uids()  # before the check, so that a replacement during it is noticed
                problem = await missing_resource(self._cluster, self._resources)
            except ClusterError as error:
                uids, problem = None, str(error)
            if uids is not None and problem is None:
                report(True)  # noqa: FBT003 - the only argument
                return uids
            report(False)  # noqa: FBT003 - the only argument
            if (problem := problem or "a custom resource is being deleted") != logged:
                _log.warning("%(problem)s; retrying every %(seconds)g s", {"problem": problem, "seconds": CHECK_S})
                logged = problem
            await asyncio.sleep(CHECK_S)

    async def until_replaced(self, uids: Uids) -> None:
        """Return when a definition is removed or replaced, also after an outage."""
        while True:
            with suppress(ClusterError):
                if await self.are_replaced(uids):
                    return
            await asyncio.sleep(CHECK_S)

    async def are_replaced(self, uids: Uids) -> bool:
        """Return whether a definition is removed or replaced. Raises ClusterError."""
        return await self._uids() != uids

    async def _uids(self) -> Uids | None:
        """Return the uids; None if a definition is missing or being deleted."""
        uids: list[str] = []
        for resource in self._resources:
            path = path_to("apiextensions.k8s.io", "v1", "customresourcedefinitions", name=resource.definition_name)
            try:
                metadata = (await self._cluster.get(path, metadata_only=True))["metadata"]
            except NotFound:
                return None
            if "deletionTimestamp" in metadata:
                return None
            uids.append(metadata["uid"])
        return tuple(uids)
