"""A server with the part of Cloud Logging's API that its client needs to write and list entries."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

from support.servers.receivers import HttpReceiver
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLAUSE = re.compile(r'([A-Za-z_.]+)(<=|>=|=)("(?:[^"\\]|\\.)*"|[A-Z]+)')
_PAGE = 3


class LoggingServer(HttpReceiver):
    """A server that keeps entries by log, time and id, and ignores repeated ones, as the service does."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.hidden = 0
        """Number of the newest entries that are not visible yet."""

    @override
    def answer(self, path: str, body: bytes) -> bytes:
        request = json.loads(body)
        if path.startswith("/v2/entries:write"):
            self.put(*request["entries"])
            return b"{}"
        visible = list(self.entries.values())
        entries = [entry for entry in visible[: len(visible) - self.hidden] if _matches(entry, request["filter"])]
        entries.sort(key=lambda entry: (entry["timestamp"], entry["insertId"]))
        start = int(request.get("pageToken") or 0)
        more = {"nextPageToken": str(start + _PAGE)} if start + _PAGE < len(entries) else {}
        return json.dumps({"entries": entries[start : start + _PAGE], **more}).encode()

    def put(self, *entries: dict[str, Any]) -> None:
        """Store entries."""
        for entry in entries:
            kept = {"receiveTimestamp": entry["timestamp"], **entry}
            self.entries.setdefault((entry["logName"], entry["timestamp"], entry["insertId"]), kept)


def _matches(entry: dict[str, Any], text: str) -> bool:
    """Return whether an entry matches a filter of clauses joined by AND; other filters are errors."""
    clauses = [_CLAUSE.fullmatch(clause) for clause in text.split(" AND ")]
    assert all(clauses), text
    return all(_holds(entry, *clause.groups()) for clause in clauses if clause)


def _holds(entry: dict[str, Any], key: str, operator: str, value: str) -> bool:
    wanted = json.loads(value) if value.startswith('"') else value
    if key in {"timestamp", "receiveTimestamp"}:
        is_, wanted = entry[key].rstrip("Z").ljust(26, "0"), wanted.replace("+00:00", "").ljust(26, "0")
        return bool(is_ <= wanted if operator == "<=" else is_ >= wanted)
    field: Any = entry
    for part in key.split("."):
        field = field.get(part)
    return bool(field == wanted)


@contextlib.contextmanager
def logging_server() -> Iterator[LoggingServer]:
    """A server that listens."""
    server = LoggingServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
