"""What a store is: six verbs over relative keys, and the values they speak in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias

from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

Data: TypeAlias = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]
"""What can be put: bytes in hand, an open binary file, or pieces that are consumed one by one."""

MAX_SEGMENT_BYTES = 255
"""The longest file name that common file systems take, so that a key works on every store."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The receipt of a put: `bytes` is the size, `sha256` lower-case hex, `url` for people and for XProf."""

    key: str
    bytes: int
    sha256: str
    url: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object in a listing: `bytes` is the size, `modified` has a time zone."""

    key: str
    bytes: int
    modified: datetime


class Store(Protocol):
    """A place for files, addressed by relative `/`-separated keys; blocking, and safe to use from many threads.

    Directories are only prefixes of keys: they need no making and an empty one does not exist. Every verb raises
    `ConfigurationError` for a key that is absolute, empty, or has an empty, `.` or `..` segment, and otherwise one of
    `StoreNotFound`, `StoreForbidden`, `StoreUnreachable`, `StoreFull` or plain `StoreError`.
    """

    def put(self, key: str, data: Data, *, replace: bool = False) -> Stored:
        """Store `data` whole under `key`, or leave no trace: nobody sees a part of it.

        Data in pieces is never joined in memory. An object that another put made is never overwritten unless `replace`
        is true; if it holds exactly the same content the put succeeds, so that a put whose answer was lost can be
        repeated. Of several that claim one key with different content, one wins.

        Raises `AlreadyStored` if the key holds other content.
        """

    def open(self, key: str) -> BinaryIO:
        """Read the object; the caller closes the file. Raises `NotStored` if there is none."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield the objects below the directory `prefix` ("" = all), in the order of their keys' UTF-8 bytes."""

    def folders(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of directories right below the directory `prefix`, in any order; a local one may be empty."""

    def delete(self, key: str) -> bool:
        """Delete the object; false if there was none."""

    def url(self, key: str = "") -> str:
        """Return where the key is, as people and XProf write it: a local path or `gs://…`; "" is the store itself."""


def checked_key(key: str) -> str:
    """Return `key` if it is one that every store takes and none leaves by, else raise `ConfigurationError`."""
    segments = key.split("/")
    if any(segment in {"", ".", ".."} for segment in segments):
        raise ConfigurationError(f"{key!r} is no key: keys are relative, without empty, '.' or '..' segments")
    if any(control in key for control in "\0\r\n"):
        raise ConfigurationError(f"{key!r} is no key: it contains a line break or a NUL")
    try:
        longest = max(len(segment.encode()) for segment in segments)
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{key!r} is no key: it is not valid Unicode") from error
    if longest > MAX_SEGMENT_BYTES:
        raise ConfigurationError(f"{key!r} is no key: a segment has {longest} bytes, at most {MAX_SEGMENT_BYTES} work")
    return key


def checked_prefix(prefix: str) -> str:
    """Return `prefix` as the keys below it start (ending in `/`, or empty), else raise `ConfigurationError`."""
    return f"{checked_key(prefix.removesuffix('/'))}/" if prefix else ""
