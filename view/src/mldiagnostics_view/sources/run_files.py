"""Files of the runs of a cluster.

Those of buckets are read as they are, those of the operator's volume as copies.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mldiagnostics.locations import is_bucket, is_on_volume
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.failures import failure_of
from mldiagnostics_kube.installation.operator_policy import records_location
from mldiagnostics_kube.installation.result_files import VolumeDirectory, copy_directory
from typing_extensions import override

from mldiagnostics_view.limits import COPY_AGE_S, MAX_COPIES, MAX_COPY_BYTES

if TYPE_CHECKING:
    from mldiagnostics.runs import RunRow
    from mldiagnostics_kube.client.api_client import ApiClient


class RunFiles(Protocol):
    """Makes the files of runs readable."""

    async def directory(self, row: RunRow, *, may_copy: bool = True) -> str:
        """Return the readable directory of a run, a path or URL; empty without one.

        Without `may_copy`, a directory whose files must be copied first is empty too.

        Raises:
            ConfigurationError: The directory does not exist.
            ClusterFailure: The files may not be read, or the cluster does not respond.
            StoreError: The storage does not respond.
        """

    async def aclose(self) -> None:
        """Delete copies."""


@dataclass(slots=True)
class _Copy:
    directory: Path
    """The directory that has the copy."""
    copied_at: float = float("-inf")
    """When it was made, in seconds of the loop's clock."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class UserFiles(RunFiles):
    """Files with the rights of the user.

    Buckets are read with the cloud credentials, the volume through the API server.

    Args:
        client: Client of the cluster, with the rights of the user.
        cluster: The cluster in messages.
    """

    def __init__(self, client: ApiClient, *, cluster: str) -> None:
        self._client, self._cluster = client, cluster
        self._folder = tempfile.TemporaryDirectory(prefix="mldiag-view-volume-")
        self._numbers = itertools.count()
        self._copies: OrderedDict[str, _Copy] = OrderedDict()

    @override
    async def directory(self, row: RunRow, *, may_copy: bool = True) -> str:
        if not may_copy:
            return row.directory if is_bucket(row.directory) else ""
        location = await records_location(self._client, row)
        if is_on_volume(location):
            return str(await self._copied(location, row.namespace))
        return location if is_bucket(location) else ""

    @override
    async def aclose(self) -> None:
        self._folder.cleanup()  # in no thread: all may wait for a bucket that does not respond

    async def _copied(self, location: str, namespace: str) -> Path:
        """Return a copy of a directory of the volume, at most `COPY_AGE_S` old."""
        if location not in self._copies:
            self._copies[location] = _Copy(Path(self._folder.name, str(next(self._numbers))))
        copy = self._copies[location]
        self._copies.move_to_end(location)
        if len(self._copies) > MAX_COPIES:
            _, oldest = self._copies.popitem(last=False)
            await asyncio.to_thread(shutil.rmtree, oldest.directory, ignore_errors=True)
        folder = copy.directory / location.rpartition("/")[2]
        clock = asyncio.get_running_loop().time
        async with copy.turn:
            if clock() - copy.copied_at >= COPY_AGE_S:
                wanted = VolumeDirectory(location=location, namespace=namespace, most_bytes=MAX_COPY_BYTES)
                try:
                    await copy_directory(self._client, wanted, folder, cluster=self._cluster)
                except ClusterError as error:
                    raise failure_of(error, cluster=self._cluster) from error
                copy.copied_at = clock()
        return folder
