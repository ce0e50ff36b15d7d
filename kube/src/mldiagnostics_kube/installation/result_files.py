"""Copies of directories of the operator's volume, with the rights of a reader."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics_api import results

from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError, Conflict, NotFound, Unavailable, path_to
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_kube.installation.operator_volume import copy_from_volume, extract
from mldiagnostics_kube.process.retry import retry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient


LIST_BYTES: Final = 32 * 2**20
"""Longest list: `results.MAX_FILES` of long names."""
CALL_S: Final = 60.0
RETRY_S: Final = 60.0
"""For so long a part is requested again: the operator is busy, or another one begins to lead."""
PARALLEL_FILES: Final = 4
REPLACED_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeDirectory:
    """A directory of the operator's volume, and the files to copy."""

    location: str
    """`volume:///…`."""
    namespace: str
    """Namespace of the run or capture."""
    suffixes: tuple[str, ...] = (".json", ".jsonl")
    """Only files whose names end so; by default the records of a run."""
    most_bytes: int | None = None
    """Limit for all files together; None: no limit."""


async def copy_directory(client: ApiClient, wanted: VolumeDirectory, folder: Path, *, cluster: str) -> None:
    """Copy the files below a directory of the operator's volume into a folder.

    They come through the API server, which checks the right of the caller in the namespace. Where it does not serve
    them, a program in the operator's pod writes them, for callers who may run programs there.

    Args:
        client: Client of the cluster, with the rights of the caller.
        wanted: The directory.
        folder: Folder of the copy, which is made.
        cluster: The cluster in messages.

    Raises:
        ConfigurationError: The directory does not exist, is not of a run of the namespace, or has too many bytes.
        ClusterFailure: The caller has neither right.
        ClusterError: The cluster cannot be reached.
        OSError: The copy cannot be written.
    """
    try:
        await _Download(client, wanted, folder).run()
    except ClusterError as refusal:
        if isinstance(refusal, Unavailable) and not refusal.status:
            raise
        try:
            await _copy_by_program(client, wanted, folder, cluster)
        except (MLDiagnosticsError, ClusterError) as error:
            raise _explained(wanted, refusal, error, cluster) from error


def _explained(wanted: VolumeDirectory, refusal: ClusterError, error: Exception, cluster: str) -> Exception:
    """Return the failure that the caller can act on."""
    if isinstance(refusal, Unavailable):
        return ClusterFailure(
            f"{wanted.location}: {cluster} cannot reach the operator, which has the files ({refusal.cause}); run the "
            "command again when it is ready",
            status=refusal.status,
        )
    if isinstance(refusal, NotFound) and refusal.detail.startswith(wanted.location):
        return ConfigurationError(f"{refusal.detail}; pass its namespace with -n")
    status = error.status if isinstance(error, ClusterFailure | ClusterError) else 0
    if refusal.status in NOT_PERMITTED or status in NOT_PERMITTED:
        return ClusterFailure(
            f"{wanted.location}: lies on the operator's volume, and {cluster} does not let you read files of namespace "
            f"{wanted.namespace}; ask the administrator for the right to get and list {results.FILES}."
            f"{results.RESULTS_GROUP} there, which controlPlane.files.enabled=true of the operator's chart gives to "
            "users with the role edit, or capture to a bucket with --log-directory s3://…",
            status=403,
        )
    return error


async def _copy_by_program(client: ApiClient, wanted: VolumeDirectory, folder: Path, cluster: str) -> None:
    with tempfile.TemporaryFile() as archive:

        def write(part: bytes) -> None:
            _check_size(wanted, archive.tell() + len(part))
            archive.write(part)

        await copy_from_volume(client, wanted.location, wanted.suffixes, write, cluster=cluster)
        archive.seek(0)
        await asyncio.to_thread(extract, archive, folder)


def _check_size(wanted: VolumeDirectory, size: int) -> None:
    if wanted.most_bytes is not None and size > wanted.most_bytes:
        raise ConfigurationError(
            f"{wanted.location}: has more than {wanted.most_bytes >> 20} MiB of records on the operator's volume; set "
            "storageLocation to a bucket, or run `mldiag view` beside the volume"
        )


class _Download:
    """One copy through the API server."""

    def __init__(self, client: ApiClient, wanted: VolumeDirectory, folder: Path) -> None:
        self._client, self._wanted, self._folder = client, wanted, folder
        self._path = path_to(results.RESULTS_GROUP, results.RESULTS_VERSION, results.FILES, namespace=wanted.namespace)
        self._copied = set[str]()

    async def run(self) -> None:
        """Copy the listed files, and list again while some are gone.

        A journal gives a file that grows another name.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        for _ in range(REPLACED_TRIES):
            files = await self._list()
            await self._copy_all([name for name, _ in files if name not in self._copied])
            if self._copied.issuperset(name for name, _ in files):
                return

    async def _list(self) -> list[tuple[str, int]]:
        query = [("directory", self._wanted.location), *(("suffix", each) for each in self._wanted.suffixes)]
        raw, _ = await self._client.content(self._path, query=query, max_bytes=LIST_BYTES, timeout_s=CALL_S)
        files = _files_of(raw)
        _check_size(self._wanted, sum(size for _, size in files))
        return files

    async def _copy_all(self, names: Sequence[str]) -> None:
        turns = asyncio.Semaphore(PARALLEL_FILES)
        try:
            async with asyncio.TaskGroup() as group:
                for name in names:
                    await turns.acquire()
                    group.create_task(self._copy(name)).add_done_callback(lambda _: turns.release())
        except* (ClusterError, MLDiagnosticsError, OSError) as failures:
            raise failures.exceptions[0] from None

    async def _copy(self, name: str) -> None:
        """Copy a file with its size at the first part; leave out a deleted one."""
        for _ in range(REPLACED_TRIES):
            try:
                await self._copy_once(name)
            except NotFound:
                return
            except Conflict:
                continue
            self._copied.add(name)
            return
        raise ConfigurationError(f"{self._wanted.location}/{name}: is replaced again and again; run the command again")

    async def _copy_once(self, name: str) -> None:
        target = self._folder / PurePosixPath(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        content, size, version = await self._part(name, 0, "")
        with part.open("wb") as file:
            while content:
                await asyncio.to_thread(file.write, content)
                if file.tell() >= size:
                    break
                content, _, _ = await self._part(name, file.tell(), version)
        part.replace(target)

    async def _part(self, name: str, offset: int, version: str) -> tuple[bytearray, int, str]:
        query = [
            ("directory", self._wanted.location),
            ("file", name),
            ("offset", str(offset)),
            *([("version", version)] if version else []),
        ]

        async def ask() -> tuple[bytearray, int, str]:
            raw, headers = await self._client.content(
                f"{self._path}/{results.CONTENT}", query=query, max_bytes=results.PART_BYTES, timeout_s=CALL_S
            )
            size = headers.get(results.SIZE_HEADER, "")
            return raw, int(size) if size.isdecimal() else 0, headers.get(results.VERSION_HEADER, "")

        return await retry(ask, on=Unavailable, until=asyncio.get_running_loop().time() + RETRY_S)


def _files_of(raw: bytes | bytearray) -> list[tuple[str, int]]:
    """Return names and sizes of a list.

    Raises:
        ConfigurationError: It is not a list, or a name leads out of the directory.
    """
    try:
        entries: list[dict[str, Any]] = json.loads(raw)["files"]
        files = [(str(each["file"]), int(each["bytes"])) for each in entries]
        for name, _ in files:
            results.readable_file(name)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"the list of files is not that of an operator: {error}") from error
    return files
