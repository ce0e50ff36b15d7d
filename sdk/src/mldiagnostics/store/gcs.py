"""The store in a Google Cloud Storage bucket.

The only module that imports Google's storage client.
"""

from __future__ import annotations

import base64
import contextlib
import io
from itertools import islice
from typing import TYPE_CHECKING, cast

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud import storage
from google.cloud.storage import exceptions as media
from google.cloud.storage.retry import DEFAULT_RETRY

from mldiagnostics.errors import (
    AlreadyStored,
    NoCredentials,
    NotStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store.model import HEAD_BYTES, Entry, Stored, checked_key, checked_prefix
from mldiagnostics.store.process_client import ProcessClient
from mldiagnostics.store.rights import missing_right
from mldiagnostics.store.source import UploadSource

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import BinaryIO

    from mldiagnostics.bucket_urls import BucketUrl
    from mldiagnostics.store.model import Condition, Data

_CHUNK_BYTES = 4 * 1024 * 1024  # of one request; also the memory that a transfer uses
_CLIENT_ERRORS = (api.GoogleAPIError, auth.GoogleAuthError, media.InvalidResponse, media.DataCorruption, OSError)
_INSUFFICIENT_STORAGE = 507
_PARALLEL_DELETES = 8
_DELETED_AT_ONCE = 1000
"""The objects of one page of a listing."""


class GcsStore:
    """A store below `prefix` of a bucket; credentials are looked up on first use."""

    def __init__(self, url: BucketUrl, *, timeout_s: float) -> None:
        self._bucket = url.bucket
        self._prefix = checked_prefix(url.prefix)
        # The last retry starts within the first third, then connects and waits for at most one third each.
        self._limits = {"timeout": timeout_s / 3, "retry": _retry(timeout_s / 3)}
        # The project is not used; without it the client looks one up.
        self._clients = ProcessClient(lambda: storage.Client(project="-"))

    def put(self, key: str, data: Data, *, replace: bool | Condition = False) -> Stored:
        """See `Store.put`; a precondition on the generation prevents overwriting."""
        url = self.url(key)
        source = UploadSource(data, md5=True)
        stream = _Stream(source)
        with _errors_of(url, unless=stream):
            blob = self._blob(key)
            generation: int | None = 0
            if replace is True:
                generation = None
            elif replace:
                generation = self._generation(blob, replace) or 0
            try:
                blob.upload_from_file(stream, size=source.size_hint, if_generation_match=generation, **self._limits)
            except api.PreconditionFailed as error:
                source.drain()
                if not self._holds(blob, source):
                    raise AlreadyStored(f"{url}: already stored with other content, which was not changed") from error
        return Stored(key, source.bytes, url, source.sha256)

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`; reads the generation that existed when it was opened."""
        url = self.url(key)
        with _errors_of(url):
            blob = self._blob(key)
            try:
                blob.reload(**self._limits)
            except api.NotFound as error:
                self._require_bucket()
                raise NotStored(f"{url}: no such object") from error
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
                yield from (prefix.removeprefix(start).removesuffix("/") for prefix in page.prefixes)

    def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """See `Store.delete`."""
        with _errors_of(self.url(key)):
            blob = self._blob(key)
            try:
                generation = self._generation(blob, only_if) if only_if else None
                if only_if and generation is None:
                    return False
                blob.delete(if_generation_match=generation, **self._limits)
            except api.NotFound:
                self._require_bucket()
                return False
            except api.PreconditionFailed as error:
                raise StoreUnreachable(f"{self.url(key)}: was changed at the same time; try again") from error
        return True

    def delete_all(self, prefix: str, *, keep: Container[str] = ()) -> int:
        """See `Store.delete_all`; placeholders of folders are deleted too."""
        # A short program first imports this module at its end, when this import is no longer possible.
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        start = self._prefix + checked_prefix(checked_key(prefix))

        def delete(blob: storage.Blob) -> int:
            try:
                blob.delete(**self._limits)
            except api.NotFound:
                return 0
            return 1

        with _errors_of(self.url()), ThreadPoolExecutor(_PARALLEL_DELETES) as threads:
            listing = self._client().list_blobs(
                self._bucket, prefix=start, fields="items(name),nextPageToken", **self._limits
            )
            doomed = (blob for blob in listing if blob.name.removeprefix(self._prefix) not in keep)
            deleted = 0
            while some := list(islice(doomed, _DELETED_AT_ONCE)):
                deleted += sum(threads.map(delete, some))
            return deleted

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return f"gs://{self._bucket}/{self._prefix}{checked_key(key) if key else ''}".rstrip("/")

    def _client(self) -> storage.Client:
        return self._clients.get()

    def _blob(self, key: str) -> storage.Blob:
        return self._client().bucket(self._bucket).blob(self._prefix + checked_key(key), chunk_size=_CHUNK_BYTES)

    def _generation(self, blob: storage.Blob, condition: Condition) -> int | None:
        """Return the generation of the object if the condition accepts it.

        None if the object does not exist or is rejected.
        """
        try:
            blob.reload(**self._limits)
            generation = blob.generation
            head = b""
            if blob.size:
                head = blob.download_as_bytes(end=HEAD_BYTES - 1, if_generation_match=generation, **self._limits)
        except (api.NotFound, api.PreconditionFailed):
            return None
        return generation if condition(head) else None

    def _holds(self, blob: storage.Blob, source: UploadSource) -> bool:
        """Return whether the object has the source's content, as after a lost response."""
        try:
            blob.reload(**self._limits)
        except (api.NotFound, api.Forbidden):
            return False
        return bool(blob.size == source.bytes and blob.md5_hash == base64.b64encode(source.md5).decode())

    def _require_bucket(self) -> None:
        """Raise `NotFound` if the bucket does not exist; a reader may always list."""
        with contextlib.suppress(api.Forbidden):
            next(iter(self._client().list_blobs(self._bucket, max_results=1, **self._limits)), None)


class _Stream:
    """The part of a file that Google's client uses: `read(n)` and `tell()`."""

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
    """Google's reader that raises the errors of `Store`."""

    def __init__(self, reader: io.BufferedIOBase, url: str) -> None:
        self._reader = reader
        self._url = url

    def readable(self) -> bool:  # type: ignore[explicit-override]  # typing.override is newer than Python 3.10
        """Return true."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[explicit-override,override]
        """Read the next bytes into the buffer and return their number."""
        with _errors_of(self._url):
            piece = self._reader.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@contextlib.contextmanager
def _errors_of(url: str, *, unless: _Stream | None = None) -> Iterator[None]:
    """Turn the client's errors into `StoreError`s, except errors of the caller's data."""
    try:
        yield
    except _CLIENT_ERRORS as error:
        if unless is not None and error is unless.failure:
            raise
        kind, problem, cure = _classify(error)
        raise kind(f"{url}: {problem}: {error}; {cure}") from error


def _retry(limit_s: float) -> object:
    return DEFAULT_RETRY.with_timeout(limit_s).with_delay(initial=0.25, maximum=8.0)


def _classify(error: Exception) -> tuple[type[StoreError], str, str]:
    """Return the error class for one of the client's errors, the problem and its cure."""
    code = getattr(error, "code", None)
    if isinstance(error, api.NotFound):
        return StoreNotFound, "the bucket does not exist", "create it or correct its name"
    if isinstance(error, api.Forbidden | api.Unauthorized):
        return StoreForbidden, "forbidden", f"grant this identity {missing_right('gcs', str(error))}"
    if isinstance(error, auth.DefaultCredentialsError):
        cure = "set up Workload Identity on GKE, application default credentials elsewhere"
        return NoCredentials, "no Google credentials", cure
    if isinstance(error, auth.RefreshError) and not error.retryable:
        return StoreForbidden, "the Google credentials were rejected", "renew them"
    if code == _INSUFFICIENT_STORAGE:
        return StoreFull, "the store is full", "free space or raise its quota"
    if isinstance(error, api.RetryError | api.ServerError | api.TooManyRequests | auth.GoogleAuthError | OSError):
        return StoreUnreachable, "no valid response in time", "check the network and try again"
    return StoreError, "the request was rejected", "see the service's message"
