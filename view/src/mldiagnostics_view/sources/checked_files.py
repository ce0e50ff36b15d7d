"""Files of runs that a deployed server reads with its own rights.

It reads only those that certainly belong to the run.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
from mldiagnostics.errors import NotStored, StoreNotFound
from mldiagnostics.store import open_store
from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.runs.artifacts import MAX_RECORD_BYTES, record_names_run, run_directories
from typing_extensions import override

from mldiagnostics_view.limits import PARALLEL_FILES
from mldiagnostics_view.sources.run_files import RunFiles

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.runs import RunRow
    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.runs.artifacts import RunDirectory


class CheckedFiles(RunFiles):
    """Files in storage that the run's namespace may use, if they name the run.

    The author of an MLRun chooses its id and its storage. Without this check, authors could see the files of another
    namespace with the rights of the server. The rules are those of the operator before it deletes the files of a run.

    Args:
        policy: The storage that each namespace may use.
        volume_root: Directory where the operator's volume is mounted; None if it is not.
    """

    def __init__(self, policy: Policy, *, volume_root: Path | None) -> None:
        self._policy, self._volume_root = policy, volume_root
        self._turns = asyncio.Semaphore(PARALLEL_FILES)

    @override
    async def directory(self, row: RunRow, *, may_copy: bool = True) -> str:
        async with self._turns:
            return await asyncio.to_thread(self._find, row)

    @override
    async def aclose(self) -> None:
        """Nothing: it keeps nothing."""

    def _find(self, row: RunRow) -> str:
        chosen = None if row.storage == str(self._policy.default_storage) else row.storage
        with suppress(ValueError):  # the storage is invalid, or not allowed
            for each in run_directories(row.run_id, row.namespace, chosen, self._policy):
                url = self._url(each.location)
                if url and _is_of(url, each, row):
                    return url
        return ""

    def _url(self, location: Location) -> str:
        if location.medium is Medium.VOLUME:
            root = self._volume_root
            return "" if root is None else str(root.joinpath(*location.segments))
        return str(location) if location.medium is Medium.BUCKET else ""


def _is_of(url: str, directory: RunDirectory, row: RunRow) -> bool:
    """Return whether there are records, and all of them name the run."""
    uid = str((row.workload or {}).get("uid") or "")
    records = []
    with suppress(StoreNotFound):
        for key in directory.records:
            with suppress(NotStored):
                records.append(_document(url, key))
    return bool(records) and all(record_names_run(record, row.run_id, row.namespace, uid) for record in records)


def _document(url: str, key: str) -> object:
    with open_store(url).open(key) as file:
        content = file.read(MAX_RECORD_BYTES + 1)
    try:
        return orjson.loads(content) if len(content) <= MAX_RECORD_BYTES else None
    except ValueError:
        return None
