"""Requests for files, as the API server passes them on; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics_api import results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.captures.location import Location

GROUP_PATH: Final = f"/apis/{results.RESULTS_GROUP}/{results.RESULTS_VERSION}"
_PATH: Final = re.compile(
    rf"{re.escape(GROUP_PATH)}/namespaces/(?P<namespace>[a-z0-9]([a-z0-9-]{{0,61}}[a-z0-9])?)"
    rf"/{results.FILES}(?P<content>/{results.CONTENT})?"
)
"""Namespace, resource and name, exactly where the API server reads them; it checks no right for other paths."""


class InvalidRequest(ValueError):
    """A request that cannot be answered; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class FilesRequest:
    """A list of a directory, or a part of a file."""

    namespace: str
    directory: Location
    suffixes: tuple[str, ...] = ()
    """Only files with these ends of names are listed; empty: all."""
    file: tuple[str, ...] = ()
    """Segments below the directory; empty for a list."""
    offset: int = 0
    version: str = ""
    """The version of the earlier parts; empty for the first one."""


def parse(path: str, query: Sequence[tuple[str, str]]) -> FilesRequest:
    """Return what a request asks for.

    Args:
        path: Its path, without escapes.
        query: Its parameters.

    Raises:
        InvalidRequest: There is no such path, or a parameter is invalid.
    """
    parts = _PATH.fullmatch(path)
    if parts is None:
        raise InvalidRequest(404, f"{path[:200]}: no such path; use {GROUP_PATH}/namespaces/NAMESPACE/{results.FILES}")
    values = dict(query)
    try:
        directory = results.readable_directory(values.get("directory", ""))
        if not parts["content"]:
            suffixes = tuple(value for name, value in query if name == "suffix")
            return FilesRequest(parts["namespace"], directory, suffixes=suffixes)
        file = results.readable_file(values.get("file", ""))
    except ValueError as error:
        raise InvalidRequest(400, str(error)) from error
    offset = values.get("offset", "0")
    if not re.fullmatch(r"[0-9]{1,18}", offset, re.ASCII):
        raise InvalidRequest(400, f"offset: {offset[:50]!r} is not a number of bytes")
    version = values.get("version", "")
    return FilesRequest(parts["namespace"], directory, file=file, offset=int(offset), version=version)
