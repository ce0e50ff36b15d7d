"""The interface of a store: seven methods over relative keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

Data: TypeAlias = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
"""Data to store: bytes, an open binary file, or an iterable of pieces."""

Condition: TypeAlias = Callable[[bytes], bool]
"""Accepts or rejects the stored object by its first `HEAD_BYTES`."""

HEAD_BYTES = 4096
"""Read for a condition: enough for the first keys of a record, and no memory for a hostile one."""

MAX_SEGMENT_BYTES = 255
"""The longest file name of common file systems, so that a key works on every store."""


PARTIAL = re.compile(r"\.mldiag-[0-9a-f]{16}\.partial")
"""Names of files that are being written, or were when their process was killed."""


def partial_name(digits: str) -> str:
    """Return the name of a file that is being written, from 16 hexadecimal digits."""
    return f".mldiag-{digits}.partial"


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of a put.

    Attributes:
        bytes: The size.
        digest: Returns the SHA-256 of the content; computes it only then if the content was in memory.
    """

    key: str
    bytes: int
    url: str
    digest: Callable[[], str] = field(compare=False, repr=False)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content in lower-case hex."""
        return self.digest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object in a listing: `bytes` is the size, `modified` has a time zone."""

    key: str
    bytes: int
    modified: datetime


class Store(Protocol):
    """Storage for files under relative `/`-separated keys; blocking and thread-safe.

    Directories are only prefixes of keys: they need not be created, and end with their last object. Every method raises
    `ConfigurationError` for a key that is absolute, empty, or has an empty, `.` or `..` segment, and otherwise one of
    `StoreNotFound`, `StoreForbidden`, `StoreUnreachable`, `StoreFull` or plain `StoreError`.
    """

    def put(self, key: str, data: Data, *, replace: bool | Condition = False) -> Stored:
        """Store `data` under `key`, whole or not at all.

        Data in pieces is never joined in memory. An existing object is not overwritten unless `replace` is true or
        accepts it. If it has the same content the put succeeds, so a put whose response was lost can be repeated. Of
        concurrent puts with different content one succeeds. No conditional put or delete changes the object between the
        condition and the replacement.

        Raises `AlreadyStored` if the key holds other content.
        """

    def open(self, key: str) -> BinaryIO:
        """Open the object for reading. Raises `NotStored` if it does not exist."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield the objects below the directory `prefix` ("" = all).

        They are sorted by the UTF-8 bytes of their keys.
        """

    def folders(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the directories directly below `prefix`, in any order.

        A directory on the local disk may be empty.
        """

    def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """Delete the object; return false if it did not exist or the condition rejects it.

        No conditional put or delete changes the object between the condition and the deletion.
        """

    def delete_all(self, prefix: str, *, keep: Container[str] = ()) -> int:
        """Delete the objects below the directory `prefix`, except `keep`.

        Return their number. No link is followed, not even one in `prefix`: links below it are deleted themselves.
        Repeat the call after an error; objects that were deleted before it stay deleted.
        """

    def url(self, key: str = "") -> str:
        """Return the local path or URL of a key, or of the store for ""."""


def checked_key(key: str) -> str:
    """Return `key` if it is valid in every store. Raises `ConfigurationError`."""
    segments = key.split("/")
    if any(segment in {"", ".", ".."} for segment in segments):
        raise ConfigurationError(f"{key!r}: not a valid key; keys are relative, without empty, '.' or '..' segments")
    if any(control in key for control in "\0\r\n"):
        raise ConfigurationError(f"{key!r}: not a valid key; remove line breaks and NUL bytes")
    try:
        longest = max(len(segment.encode()) for segment in segments)
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{key!r}: not a valid key; it must be valid Unicode") from error
    if longest > MAX_SEGMENT_BYTES:
        raise ConfigurationError(f"{key!r}: not a valid key; a segment exceeds {MAX_SEGMENT_BYTES} bytes")
    return key


def checked_prefix(prefix: str) -> str:
    """Return `prefix` with a trailing `/`, or "". Raises `ConfigurationError`."""
    return f"{checked_key(prefix.removesuffix('/'))}/" if prefix else ""
