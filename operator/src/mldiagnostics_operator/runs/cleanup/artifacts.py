"""Deletes the files of a run whose records name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreNotFound
from mldiagnostics.text.counts import counted
from mldiagnostics_api.runs.artifacts import capture_names_run, record_names_run, run_directories

from mldiagnostics_operator.control_plane.memory.journal_page import read_key
from mldiagnostics_operator.runs.user_json import MAX_BYTES, parse_user_json

if TYPE_CHECKING:
    from mldiagnostics_api.captures.policy import Policy
    from mldiagnostics_api.runs.artifacts import RunDirectory

    from mldiagnostics_operator.runs.run import Run
    from mldiagnostics_operator.storage import LogDirectory, Storage

MAX_CAPTURES: Final = 16
"""Captures whose records are read if no other record names the run."""


class ForeignFiles(Exception):
    """A directory is not certainly that of the run; none of its files was deleted."""


class RunArtifacts:
    """Deletes the files of runs.

    Args:
        storage: Opens directories.
        policy: The default storage, and the storage that each namespace may use.
    """

    def __init__(self, storage: Storage, policy: Policy) -> None:
        self._storage = storage
        self._policy = policy

    async def delete(self, run: Run) -> list[str]:
        """Delete the files of a run; return a line for each directory that had files.

        The records that name the run go last, so that another call can finish the work of one that failed.

        Raises:
            StoreError: The storage does not work, or refuses.
            ForeignFiles: A directory has files that no record assigns to the run.
            ValueError: The run's storage is not allowed.
        """
        if not run.run_id:
            return []
        done, foreign = [], []
        for each in run_directories(run.run_id, run.meta.namespace, run.storage_location, self._policy):
            directory = self._storage.directory(each.location)
            try:
                records = await self._records(each, directory, run)
                if records is None:
                    foreign.append(str(each.location))
                elif records:
                    count = await directory.delete_all(keep=records) + await directory.delete_all()
                    done.append(f"{counted(count, 'file')} below {each.location}")
            except StoreNotFound:
                continue  # nothing is there
        if foreign:
            raise ForeignFiles("; ".join(foreign))
        return done

    async def _records(self, wanted: RunDirectory, directory: LogDirectory, run: Run) -> list[str] | None:
        """Return the records that name the run.

        Empty without any file; None if the files may be of another run.
        """
        uid = (run.workload.uid if run.workload else None) or ""
        records = {key: await _document(directory, key) for key in wanted.records}
        present = {key: record for key, record in records.items() if record is not None}
        named = [
            key for key, record in present.items() if record_names_run(record, run.run_id, run.meta.namespace, uid)
        ]
        if len(named) < len(present):
            return None
        captures = await directory.list(layout.PROFILE_DIR, only=_CaptureRecords()) if wanted.has_captures else ()
        if named:
            return [*named, *(entry.key for entry in captures)]
        for entry in captures[:MAX_CAPTURES]:
            if capture_names_run(await _document(directory, entry.key), run.run_id, run.meta.namespace):
                return [each.key for each in captures]
        return None if captures or await directory.list("", only=_First()) else []


async def _document(directory: LogDirectory, key: str) -> object | None:
    """Return a record, or the part of it that names its run.

    None if it does not exist, an empty text if it is not JSON.
    """
    try:
        if key.endswith(layout.REPORTED_STATE) and (run := read_key(await directory.read(key))):
            return {"namespace": run.namespace, "runId": run.run_id}  # the state of a large run has tens of MiB
        return parse_user_json(await directory.load(key, max_bytes=MAX_BYTES)) or ""
    except NotStored:
        return None
    except ValueError:
        return ""


class _CaptureRecords:
    """A filter of keys: the records of captures."""

    def __contains__(self, key: object) -> bool:
        return str(key).endswith(f"/{layout.CAPTURE_RECORD}")


class _First:
    """A filter of keys that accepts one."""

    def __init__(self) -> None:
        self._seen = False

    def __contains__(self, _key: object) -> bool:
        first, self._seen = not self._seen, True
        return first
