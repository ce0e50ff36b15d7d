"""Storage of files: one small interface over local paths and `gs://`."""

from __future__ import annotations

from pathlib import Path

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.locations import path_of
from mldiagnostics.store.local import LocalStore
from mldiagnostics.store.model import Data, Entry, Store, Stored

__all__ = ["Data", "Entry", "Store", "Stored", "open_store"]


def open_store(url: str, *, timeout_s: float = 60.0) -> Store:
    """Open the store at a local path, `file:///…` or `gs://bucket[/prefix]`.

    No file or connection is opened until the store is used.

    Args:
        url: The path or URL.
        timeout_s: Time limit in seconds of one request to a remote store, retries included. Local disks have none.

    Returns:
        The store; all threads may use it.

    Raises:
        ConfigurationError: `url` is neither of these.
        MissingExtraError: `url` is `gs://…` and the extra `gcs` is not installed.

    Example:
        >>> store = open_store("gs://bucket/runs")  # doctest: +SKIP
        >>> store.put("notes/readme.txt", b"first run").url  # doctest: +SKIP
        'gs://bucket/runs/notes/readme.txt'
    """
    scheme, _, rest = url.partition("://")
    if not url:
        raise ConfigurationError("the storage location is empty; give a path, file:///… or gs://bucket/prefix")
    if (path := path_of(url)) is not None:
        return LocalStore(Path(path))
    if scheme == "gs":
        return _open_gcs(rest, timeout_s=timeout_s)
    raise ConfigurationError(f"{url!r}: not a storage location; give a path, file:///… or gs://bucket/prefix")


def _open_gcs(location: str, *, timeout_s: float) -> Store:
    bucket, _, prefix = location.partition("/")
    if not bucket:
        raise ConfigurationError(
            f"'gs://{location}': the bucket's name is missing; write gs://bucket or gs://bucket/prefix"
        )
    require("google.cloud.storage", extra="gcs", needed_for=f"gs://{location}")
    from mldiagnostics.store.gcs import GcsStore  # noqa: PLC0415 - Google's client takes a second to import

    return GcsStore(bucket, prefix.strip("/"), timeout_s=timeout_s)
