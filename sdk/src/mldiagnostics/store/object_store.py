"""The store in a bucket that obstore reaches: `s3://`, `az://` and `abfss://`."""

from __future__ import annotations

import contextlib
import hashlib
import io
import secrets
import time
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from mldiagnostics.errors import AlreadyStored, ConfigurationError, NotStored, StoreError, StoreUnreachable
from mldiagnostics.store.model import HEAD_BYTES, PARTIAL, Entry, Stored, checked_key, checked_prefix, partial_name
from mldiagnostics.store.object_client import is_process_of_threads
from mldiagnostics.store.object_errors import is_expired, is_missing_bucket, store_error
from mldiagnostics.store.object_reader import CHUNK_BYTES, PIECE_BYTES, Head, ObjectReader, Response
from mldiagnostics.store.object_upload import Upload
from mldiagnostics.store.process_client import ProcessClient
from mldiagnostics.store.source import UploadSource

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from typing import BinaryIO

    from obstore.store import AzureStore, S3Store
    from typing_extensions import Buffer

    from mldiagnostics.bucket_urls import BucketUrl
    from mldiagnostics.store.model import Condition, Data

    Client = S3Store | AzureStore

_PART_BYTES = 5 * 1024 * 1024
_PARALLEL_PARTS = 2
_MOST_REPLACED_BYTES = 64 * 1024 * 1024
"""The largest content that replaces another one on a condition, as such a request has all of it."""

_PAGE = 1000
_POLL_S = 0.05
_CLIENT_ERRORS = (BaseError, OSError, ValueError)
_CONFLICTS = (AlreadyExistsError, PreconditionError)

_DELETED = b"mldiagnostics: this object is being deleted\n"
"""The content that stands for an object between the condition of its deletion and the deletion.

These services delete without a condition, but replace on one.
"""


class BucketStore:
    """A store below the prefix of a bucket; credentials are looked up on first use.

    Args:
        url: The bucket and prefix.
        connect: Makes the client; called again after credentials have expired.
        timeout_s: Time limit of one request, retries included.
    """

    def __init__(self, url: BucketUrl, connect: Callable[[], Client], *, timeout_s: float) -> None:
        self._url = url
        self._prefix = checked_prefix(url.prefix)
        self._clients = ProcessClient(connect)
        self._timeout_s = timeout_s

    def put(self, key: str, data: Data, *, replace: bool | Condition = False) -> Stored:
        """See `Store.put`; a precondition on the ETag prevents overwriting."""
        url, path = self.url(key), self._path(key)
        source = Upload(UploadSource(data))
        with self._errors_of(url, unless=source):
            whole = source.start()
            if replace is True:
                self._overwrite(path, source, whole)
            elif not self._put_if(path, source, whole, replace or None):
                source.source.drain()
                if not self._holds(path, source.source):
                    raise AlreadyStored(f"{url}: already stored with other content, which was not changed")
        return Stored(key, source.source.bytes, url, source.source.sha256)

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`; reads the version that existed when it was opened. Can seek."""
        url, path = self.url(key), self._path(key)
        with self._errors_of(url):
            response = self._get(path, CHUNK_BYTES)
            first = bytes(next(response.pieces, b"")) if response else _DELETED
            if response is None or first == _DELETED:
                raise NotStored(f"{url}: no such object")

        def rest() -> Iterator[Buffer]:
            with self._errors_of(url):
                self._client()  # refuses in a forked process, where no piece would arrive
                yield from response.pieces

        def read(start: int, stop: int) -> memoryview:
            with self._errors_of(url):
                options = cast("obstore.GetOptions", {"range": (start, stop), "if_match": response.etag})
                return memoryview(obstore.get(self._client(), path, options=options).bytes())

        reader = ObjectReader(response.size, first, rest(), read)
        return cast("BinaryIO", io.BufferedReader(reader))

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See `Store.list`."""
        start = self._prefix + checked_prefix(prefix)
        last: Entry | None = None
        with self._errors_of(self.url()):
            for page in obstore.list(self._client(), start.rstrip("/") or None, chunk_size=_PAGE):
                for item in page:
                    key = item["path"].removeprefix(self._prefix)
                    # An empty object with the name of a directory is a placeholder that consoles show as a folder.
                    if last and (last.bytes or not key.startswith(f"{last.key}/")):
                        yield last
                    is_partial = PARTIAL.fullmatch(key.rpartition("/")[2])
                    last = None if is_partial else Entry(key, item["size"], item["last_modified"])
        if last:
            yield last

    def folders(self, prefix: str = "") -> Iterator[str]:
        """See `Store.folders`."""
        start = self._prefix + checked_prefix(prefix)
        with self._errors_of(self.url()):
            listing = obstore.list_with_delimiter(self._client(), start.rstrip("/") or None)
        yield from (folder.rstrip("/").rpartition("/")[2] for folder in listing["common_prefixes"])

    def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """See `Store.delete`."""
        url, path = self.url(key), self._path(key)
        with self._errors_of(url):
            present = self._read(path, HEAD_BYTES)
            if present is None or present.content == _DELETED or (only_if and not only_if(present.content)):
                return False
            if only_if:
                try:
                    obstore.put(self._client(), path, _DELETED, mode={"e_tag": present.etag})
                except (PreconditionError, FileNotFoundError) as error:
                    raise StoreUnreachable(f"{url}: was changed at the same time; try again") from error
            self._remove([path])
        return True

    def delete_all(self, prefix: str, *, keep: Container[str] = ()) -> int:
        """See `Store.delete_all`; files that were never completed are deleted too."""
        start = self._prefix + checked_prefix(checked_key(prefix))
        deleted = 0
        with self._errors_of(self.url()):
            for page in obstore.list(self._client(), start.rstrip("/"), chunk_size=_PAGE):
                paths = [item["path"] for item in page if item["path"].removeprefix(self._prefix) not in keep]
                self._remove(paths)
                deleted += len(paths)
        return deleted

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return f"{self._url.scheme.name}://{self._url.bucket}/{self._prefix}{checked_key(key) if key else ''}".rstrip(
            "/"
        )

    def _path(self, key: str) -> str:
        path = self._prefix + checked_key(key)
        if "\\" in path and self._url.scheme.extra == "azure":
            raise ConfigurationError(f"{key!r}: not a valid key; the service takes '\\' for '/'")
        if PARTIAL.fullmatch(path.rpartition("/")[2]):
            raise ConfigurationError(f"{key!r}: not a valid key; this name is reserved for files being written")
        return path

    def _client(self) -> Client:
        if not is_process_of_threads():
            raise StoreUnreachable(
                f"{self.url()}: a bucket of S3 or Azure was used before this process was forked; start the process "
                "with 'spawn', or use such buckets only in one of them"
            )
        return self._clients.get()

    def _overwrite(self, path: str, source: Upload, whole: bytes | None) -> None:
        if whole is not None:
            obstore.put(self._client(), path, whole, use_multipart=False)
        else:
            self._put_parts(path, source)

    def _put_parts(self, path: str, source: Upload) -> None:
        obstore.put(
            self._client(), path, source, use_multipart=True, chunk_size=_PART_BYTES, max_concurrency=_PARALLEL_PARTS
        )

    def _put_if(self, path: str, source: Upload, whole: bytes | None, accept: Condition | None) -> bool:
        """Create the object, or replace one that is accepted; return whether it was."""
        until = time.monotonic() + self._timeout_s
        partial = ""
        try:
            while True:
                accepted = self._accepted(path, accept)
                if whole is None and accepted:
                    whole = source.rest(_MOST_REPLACED_BYTES, self.url())
                elif whole is None and not partial:
                    partial = f"{path.rpartition('/')[0]}/{partial_name(secrets.token_hex(8))}".lstrip("/")
                    self._put_parts(partial, source)
                try:
                    self._put_or_copy(path, whole, partial, accepted, source)
                except (*_CONFLICTS, FileNotFoundError) as error:
                    if is_missing_bucket(error):
                        raise
                    if not self._wait_for_deletion(path, until):
                        return False
                else:
                    return True
        finally:
            if partial:
                self._remove_quietly(partial)

    def _accepted(self, path: str, accept: Condition | None) -> Head | None:
        """Return the object if it exists and the condition accepts it."""
        present = self._read(path, HEAD_BYTES) if accept else None
        if present is None or accept is None or present.content == _DELETED:
            return None
        return present if accept(present.content) else None

    def _put_or_copy(self, path: str, whole: bytes | None, partial: str, accepted: Head | None, source: Upload) -> None:
        if whole is None:
            self._copy_new(partial, path, source.source.bytes)
        elif accepted:
            obstore.put(self._client(), path, whole, mode={"e_tag": accepted.etag})
        else:
            obstore.put(self._client(), path, whole, mode="create")

    def _copy_new(self, partial: str, path: str, size: int) -> None:
        """Give the complete parts their name, unless it is taken."""
        obstore.copy(self._client(), partial, path, overwrite=False)
        until = time.monotonic() + self._timeout_s
        while obstore.head(self._client(), path)["size"] != size:  # Azure may copy after its response
            if time.monotonic() > until:
                raise StoreUnreachable(f"{self.url()}: the service did not complete a copy in time; try again")
            time.sleep(_POLL_S)

    def _wait_for_deletion(self, path: str, until: float) -> bool:
        """Wait while another process deletes the object; false if none does.

        A process that was killed meanwhile leaves a mark, which is deleted at the end of the time limit.
        """
        while (present := self._read(path, HEAD_BYTES)) is not None:
            if present.content != _DELETED:
                return False
            if time.monotonic() > until:
                self._remove([path])
            time.sleep(_POLL_S)
        return True

    def _read(self, path: str, most: int) -> Head | None:
        """Return the first bytes of an object, None if it does not exist."""
        response = self._get(path, most)
        return response.head() if response else None

    def _get(self, path: str, most: int) -> Response | None:
        """Request the first bytes of an object; None if it does not exist."""
        client = self._client()
        try:
            result = obstore.get(client, path, options={"range": (0, most)})
            pieces = iter(result.stream(min_chunk_size=PIECE_BYTES))
            return Response(result.meta["e_tag"] or "", result.meta["size"], pieces)
        except FileNotFoundError as error:
            if is_missing_bucket(error):
                raise
            return None
        except BaseError:
            try:
                meta = obstore.head(client, path)  # an empty object has no range
            except (BaseError, OSError):
                meta = None
            if meta is None or meta["size"]:
                raise
            return Response(meta["e_tag"] or "", 0, iter(()))

    def _holds(self, path: str, source: UploadSource) -> bool:
        """Return whether the object has the source's content, as after a lost response."""
        try:
            meta = obstore.head(self._client(), path)
            if meta["size"] != source.bytes:
                return False
            digest = hashlib.sha256()
            if meta["size"]:
                for piece in obstore.get(self._client(), path).stream(min_chunk_size=_PART_BYTES):
                    digest.update(piece)
        except (BaseError, OSError):
            return False
        return digest.hexdigest() == source.sha256()

    def _remove(self, paths: Sequence[str]) -> None:
        """Delete objects; others may have deleted them meanwhile."""
        if not paths:
            return
        try:
            obstore.delete(self._client(), paths)
        except FileNotFoundError as error:
            if is_missing_bucket(error):
                raise
            for path in paths if len(paths) > 1 else ():
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._client(), [path])

    def _remove_quietly(self, path: str) -> None:
        with contextlib.suppress(*_CLIENT_ERRORS, StoreError):
            self._remove([path])

    @contextlib.contextmanager
    def _errors_of(self, url: str, *, unless: Upload | None = None) -> Iterator[None]:
        """Turn the client's errors into `StoreError`s, except errors of the caller's data."""
        try:
            yield
        except ConfigurationError:
            raise
        except _CLIENT_ERRORS as error:
            if unless is not None and unless.failure is not None:
                raise unless.failure from None
            if is_expired(error):
                self._clients.forget()  # the next request reads the credentials anew
            raise store_error(error, url, self._url) from error
