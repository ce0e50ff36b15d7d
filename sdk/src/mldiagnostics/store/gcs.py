"""Objects in a Google Cloud Storage bucket, through Google's client; the only module that imports it."""

from __future__ import annotations

import base64
import contextlib
import io
import re
import threading
from typing import TYPE_CHECKING, cast

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud import storage
from google.cloud.storage import exceptions as media
from google.cloud.storage.retry import DEFAULT_RETRY

from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    NoCredentials,
    NotStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store.model import Entry, Stored, checked_key, checked_prefix
from mldiagnostics.store.source import UploadSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from mldiagnostics.store.model import Data

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_CHUNK_BYTES = 4 * 1024 * 1024  # one request of an upload or a download, and what each holds in memory
_CLIENT_ERRORS = (api.GoogleAPIError, auth.GoogleAuthError, media.InvalidResponse, media.DataCorruption, OSError)
_INSUFFICIENT_STORAGE = 507


class GcsStore:
    """A store in a bucket, below `prefix`; credentials are looked for when it is first used."""

    def __init__(self, bucket: str, prefix: str, *, timeout_s: float) -> None:
        if not _BUCKET.fullmatch(bucket):
            raise ConfigurationError(f"{bucket!r} is no name of a bucket: write gs://bucket or gs://bucket/prefix")
        self._bucket = bucket
        self._prefix = checked_prefix(prefix)
        # A last repetition begins within the first third, then connects and waits for at most one third each.
        self._limits = {"timeout": timeout_s / 3, "retry": _retry(timeout_s / 3)}
        self._lock = threading.Lock()
        self._made: storage.Client | None = None

    def put(self, key: str, data: Data, *, replace: bool = False) -> Stored:
        """See `Store.put`; the precondition "no generation yet" makes the object exclusive."""
        url = self.url(key)
        source = UploadSource(data, md5=True)
        stream = _Stream(source)
        generation = None if replace else 0
        with _errors_of(url, unless=stream):
            blob = self._blob(key)
            try:
                blob.upload_from_file(stream, size=source.size_hint, if_generation_match=generation, **self._limits)
            except api.PreconditionFailed as error:
                source.drain()
                if not self._holds(blob, source):
                    raise AlreadyStored(f"{url} exists with other content and was left as it is") from error
        return Stored(key, source.bytes, source.sha256, url)

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`; what is read is the object as it was when opened."""
        url = self.url(key)
        with _errors_of(url):
            blob = self._blob(key)
            try:
                blob.reload(**self._limits)
            except api.NotFound as error:
                self._require_bucket()
                raise NotStored(f"there is no object {url}") from error
            reader = blob.open("rb", **self._limits)
        return cast("BinaryIO", io.BufferedReader(_BlobReader(reader, url)))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See `Store.list`."""
        start = self._prefix + checked_prefix(prefix)
        fields = "items(name,size,updated),nextPageToken"
        with _errors_of(self.url()):
            for blob in self._client().list_blobs(self._bucket, prefix=start, fields=fields, **self._limits):
                if not blob.name.endswith("/"):  # a placeholder that consoles show as a folder
                    yield Entry(blob.name.removeprefix(self._prefix), blob.size, blob.updated)

    def folders(self, prefix: str = "") -> Iterator[str]:
        """See `Store.folders`."""
        start = self._prefix + checked_prefix(prefix)
        with _errors_of(self.url()):
            listing = self._client().list_blobs(
                self._bucket, prefix=start, delimiter="/", fields="prefixes,nextPageToken", **self._limits
            )
            for page in listing.pages:
                yield from (found.removeprefix(start).removesuffix("/") for found in page.prefixes)

    def delete(self, key: str) -> bool:
        """See `Store.delete`."""
        with _errors_of(self.url(key)):
            try:
                self._blob(key).delete(**self._limits)
            except api.NotFound:
                self._require_bucket()
                return False
        return True

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return f"gs://{self._bucket}/{self._prefix}{checked_key(key) if key else ''}".rstrip("/")

    def _client(self) -> storage.Client:
        with self._lock:
            if self._made is None:
                self._made = storage.Client(project="-")  # never used; without it the client searches for one
            return self._made

    def _blob(self, key: str) -> storage.Blob:
        return self._client().bucket(self._bucket).blob(self._prefix + checked_key(key), chunk_size=_CHUNK_BYTES)

    def _holds(self, blob: storage.Blob, source: UploadSource) -> bool:
        """Tell whether the object has exactly the content of the source, as after a put whose answer was lost."""
        try:
            blob.reload(**self._limits)
        except (api.NotFound, api.Forbidden):
            return False
        return bool(blob.size == source.bytes and blob.md5_hash == base64.b64encode(source.md5).decode())

    def _require_bucket(self) -> None:
        """Raise `NotFound` if the bucket is what is missing; asks with the one right that a reader surely has."""
        with contextlib.suppress(api.Forbidden):
            next(iter(self._client().list_blobs(self._bucket, max_results=1, **self._limits)), None)


class _Stream:
    """What Google's client needs of a file that it reads once and forwards: `read(n)` and `tell()`."""

    def __init__(self, source: UploadSource) -> None:
        self.failure: Exception | None = None
        self._pieces = iter(source)
        self._rest = memoryview(b"")
        self._position = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end."""
        parts = []
        missing = size
        while missing and self._fill():
            parts.append(self._rest[:missing])
            self._rest = self._rest[missing:]
            missing -= parts[-1].nbytes
        self._position += size - missing
        return b"".join(parts)

    def tell(self) -> int:
        """Return how many bytes have been read."""
        return self._position

    def _fill(self) -> bool:
        try:
            while not self._rest:
                self._rest = next(self._pieces)
        except StopIteration:
            return False
        except Exception as error:
            self.failure = error
            raise
        return True


class _BlobReader(io.RawIOBase):
    """Google's reader with our errors."""

    def __init__(self, reader: io.BufferedIOBase, url: str) -> None:
        self._reader = reader
        self._url = url

    def readable(self) -> bool:  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        """Yes: that is all it can do."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[explicit-override,override]
        """Fill the buffer with the next bytes, return how many."""
        with _errors_of(self._url):
            piece = self._reader.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@contextlib.contextmanager
def _errors_of(url: str, *, unless: _Stream | None = None) -> Iterator[None]:
    """Turn the client's errors into the store's own, except one that comes out of the caller's data."""
    try:
        yield
    except _CLIENT_ERRORS as error:
        if unless is not None and error is unless.failure:
            raise
        kind, advice = _meaning(error)
        raise kind(f"{url}: {advice}: {error}") from error


def _retry(limit_s: float) -> object:
    return DEFAULT_RETRY.with_timeout(limit_s).with_delay(initial=0.25, maximum=8.0)


def _meaning(error: Exception) -> tuple[type[StoreError], str]:
    """Return our error for one of the client's, and what to do about it."""
    code = getattr(error, "code", None)
    if isinstance(error, api.NotFound):
        return StoreNotFound, "the bucket is not there; create it or mend its name"
    if isinstance(error, api.Forbidden | api.Unauthorized):
        return StoreForbidden, "give this identity a role on the bucket, such as roles/storage.objectUser"
    if isinstance(error, auth.DefaultCredentialsError):
        return NoCredentials, "no Google credentials; on GKE set up Workload Identity, elsewhere application defaults"
    if isinstance(error, auth.RefreshError) and not error.retryable:
        return StoreForbidden, "the Google credentials were not accepted"
    if code == _INSUFFICIENT_STORAGE:
        return StoreFull, "the store has no room"
    if isinstance(error, api.RetryError | api.ServerError | api.TooManyRequests | auth.GoogleAuthError | OSError):
        return StoreUnreachable, "no usable answer in time; check the network and try again"
    return StoreError, "the store refused the request"
