"""The sizes of all journals in a storage.

Journals of runs that are not in memory use its space too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics.errors import NotStored

from mldiagnostics_operator.control_plane.memory.journal_page import read_key

if TYPE_CHECKING:
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.storage import LogDirectory


async def stored_journals(root: LogDirectory) -> dict[RunKey, int]:
    """Return the bytes of each journal below a root.

    The keys are `<run id>`, or `<namespace>/<run id>`.

    Raises:
        StoreError: The storage does not work.
    """
    sizes: dict[RunKey, int] = {}
    for name in await root.folders():
        if not await _add(sizes, root, name):
            for inner in await root.folders(name):
                await _add(sizes, root, f"{name}/{inner}")
    return sizes


async def _add(sizes: dict[RunKey, int], root: LogDirectory, folder: str) -> bool:
    """Add the journal of a folder; return whether it has one."""
    journal = f"{folder}/{layout.REPORTED_DIR}"
    try:
        key = read_key(await root.read(f"{journal}/{layout.REPORTED_STATE}"))
    except NotStored:
        return False
    if key is not None:
        sizes[key] = sum(entry.bytes for entry in await root.list(journal))
    return True
