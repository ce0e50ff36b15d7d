"""Search for a job's log in the locations where it can be."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import LogMissing
from mldiagnostics.goodput.location import LogLocation
from mldiagnostics.goodput.log import absolute, known_locations, open_log
from mldiagnostics.goodput.log.pointers import pointed
from mldiagnostics.goodput.written_logs import written_log
from mldiagnostics.layout import RECORDS_DIR

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


_MOST_OTHERS = 5
_WRITTEN = "the recorder of this process"
_BY_POINTER = "the last recorder of these names on this machine"


def locations(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> list[LogLocation]:
    """Return the locations of a job's log, the most likely first.

    `log`, or the log that a recorder of this process writes, is the only location.
    """
    written = None if log else written_log(job_name, logger_name)
    if written is not None:
        return [LogLocation(written, _WRITTEN)]
    known = [
        LogLocation(absolute(location.url), location.known_by)
        for location in known_locations(job_name, logger_name, log)
    ]
    left = None if log else pointed(job_name, logger_name)
    if left is not None:
        known.append(LogLocation(left, _BY_POINTER))
    unique: dict[str, LogLocation] = {}
    for location in known:
        unique.setdefault(location.url, location)
    return list(unique.values())


def search_log(job_name: str, logger_name: str, log: str | os.PathLike[str] | None = None) -> str:
    """Return the path or URL of a job's log: the first location that has one.

    A location that `log` names, or that this process writes, is returned even without a log. Raises `LogUnreadable`,
    with all locations, if there is no log, or if an earlier one cannot be read: a later one could have an older log.
    """
    known = locations(job_name, logger_name, log)
    if log or known[0].known_by == _WRITTEN:
        return known[0].url
    for location in known:
        if open_log(location.url, job_name=job_name).exists():
            return location.url
    looked = "; ".join(f"{location.url} ({location.known_by})" for location in known)
    others = ", ".join(islice(_others(known), _MOST_OTHERS))
    raise LogMissing(
        f"job {job_name!r}, logger {logger_name!r}: no goodput log at {looked}; name it with log=, or "
        "set MLDIAG_GOODPUT_LOG or MLDIAG_STORAGE as for the job" + (f"; other logs there: {others}" if others else "")
    )


def _others(known: list[LogLocation]) -> Iterator[str]:
    """Yield the logs with other names below the local roots of these locations."""
    for location in known:
        if "://" not in location.url and location.known_by != _BY_POINTER:
            root = Path(location.url).parent.parent
            yield from (str(folder.parent) for folder in sorted(root.glob(f"*/*/{RECORDS_DIR}")))
