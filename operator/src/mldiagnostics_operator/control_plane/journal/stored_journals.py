"""The sizes of all journals in a storage.

Journals of runs that are not in memory use its space too.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mldiagnostics import layout
from mldiagnostics.errors import NotStored, StoreError, StoreUnreachable

from mldiagnostics_operator.control_plane.memory.journal_page import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.storage import LogDirectory

_log: Final = logging.getLogger(__name__)


async def stored_journals(root: LogDirectory) -> dict[RunKey, int]:
    """Return the bytes of each journal below a root.

    The directories are `<run id>`, or `<namespace>/<run id>`. One that cannot be read is left out.

    Raises:
        StoreError: The storage does not work.
    """
    sizes: dict[RunKey, int] = {}
    errors: list[StoreError] = []
    for name in await root.folders():
        if not await _add(sizes, root, name, errors):
            with _collected(errors):
                for inner in await root.folders(name):
                    await _add(sizes, root, f"{name}/{inner}", errors)
    if errors:
        _log.warning(
            "Journals of %(number)d directories are not counted; the first error: %(error)s",
            {"number": len(errors), "error": errors[0]},
        )
    return sizes


async def _add(sizes: dict[RunKey, int], root: LogDirectory, folder: str, errors: list[StoreError]) -> bool:
    """Add the journal of a folder; return whether it has one that can be read."""
    journal = f"{folder}/{layout.REPORTED_DIR}"
    has_journal = False
    with _collected(errors):
        key = read_key(await root.read(f"{journal}/{layout.REPORTED_STATE}"))
        if key is not None:
            sizes[key] = sum(entry.bytes for entry in await root.list(journal))
        has_journal = True
    return has_journal  # noqa: RET504 - the block may end with an error that is collected


@contextmanager
def _collected(errors: list[StoreError]) -> Iterator[None]:
    """Collect the error of one directory; only one of the whole storage is raised."""
    try:
        yield
    except StoreUnreachable:
        raise
    except NotStored:
        pass
    except StoreError as error:
        errors.append(error)
