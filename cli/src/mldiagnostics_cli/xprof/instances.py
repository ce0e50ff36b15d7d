"""One server of XProf as a row of a table; pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics_cli.table import TableColumn
from mldiagnostics_cli.values import DASH, age

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


RUNNING, STARTING, IDLE, FAILED = "Running", "Starting", "Idle", "Failed"
ENDED = frozenset({IDLE, FAILED})
"""States of a server in a cluster that `connect` starts again."""

_LAST_SLASHES = re.compile(r"(?<=[^/:])/+$")
_TAKEN_NAMES = 1000


@dataclass(frozen=True, slots=True)
class XprofInstance:
    """A server of XProf.

    Args:
        name: Its name, which other commands take.
        on: `local`, `kubernetes` or `gce`.
        log_directory: The path or URL that it shows.
        state: `Running`, or why it does not serve: on Kubernetes `Starting`, `Idle` or `Failed`.
        url: The link for a browser; empty if `mldiag xprof connect` is needed.
        created: Unix seconds; None if unknown.
        namespace: Namespace of Kubernetes; empty for others.
        zone: Zone of Compute Engine; empty for others.
    """

    name: str
    on: str
    log_directory: str
    state: str
    url: str
    created: float | None
    namespace: str = ""
    zone: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the server as JSON; `created` is in Unix seconds."""
        document = asdict(self)
        return {"name": document.pop("name"), "logDirectory": document.pop("log_directory"), **document}


def matching(instances: Iterable[XprofInstance], wanted: str) -> list[XprofInstance]:
    """Return the servers of this name, else those of this log directory."""
    instances = list(instances)
    named = [each for each in instances if each.name == wanted]
    place = trimmed(wanted)
    return named or [each for each in instances if trimmed(each.log_directory) == place]


def trimmed(log_directory: str) -> str:
    """Return a log directory without slashes at its end.

    Those of a root such as `volume:///` stay.
    """
    return _LAST_SLASHES.sub("", log_directory)


def _folder(log_directory: str) -> str:
    return trimmed(log_directory).removesuffix("/") + "/"


def nearest(instances: Iterable[XprofInstance], log_directory: str) -> tuple[XprofInstance, str] | None:
    """Return the server that shows a log directory, and the path from its own.

    Its own directory is the same one or above it.

    XProf shows the sessions of all directories below its own; the nearest server has the fewest others, and one that
    runs comes before one that must be started. None if there is no such server.
    """
    directory = _folder(log_directory)
    roots = ((each, _folder(each.log_directory)) for each in instances)
    above = [(each, root) for each, root in roots if directory.startswith(root)]
    if not above:
        return None
    instance, root = max(above, key=lambda pair: (len(pair[1]), pair[0].state == RUNNING))
    return instance, directory.removeprefix(root)


def free_name(log_directory: str, taken: Sequence[str]) -> str:
    """Return a free name after the last part of a log directory.

    It is valid and short enough in Kubernetes.

    >>> free_name("gs://bucket/runs/Trainer_1", ["trainer-1"])
    'trainer-1-2'
    """
    last = trimmed(log_directory).rpartition("/")[2].lower()
    name = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:35].strip("-") or "profiles"
    names = (name if number == 1 else f"{name}-{number}" for number in range(1, _TAKEN_NAMES))
    return next(each for each in names if each not in taken)


def columns(now: float) -> list[TableColumn[XprofInstance]]:
    """Return the columns of a table of servers, as of `now` in Unix seconds."""
    return [
        TableColumn("NAME", lambda each: each.name),
        TableColumn("ON", lambda each: each.on),
        TableColumn("STATE", lambda each: each.state),
        TableColumn("LOG-DIRECTORY", lambda each: each.log_directory),
        TableColumn("URL", lambda each: each.url or DASH),
        TableColumn("AGE", lambda each: DASH if each.created is None else age(now - each.created), is_number=True),
        TableColumn("NAMESPACE", lambda each: each.namespace or DASH, is_wide=True),
        TableColumn("ZONE", lambda each: each.zone or DASH, is_wide=True),
    ]
