"""Storage of files: one small interface over local paths and buckets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.bucket_urls import FORMS, BucketUrl
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.locations import is_bucket, path_of
from mldiagnostics.store.local import LocalStore
from mldiagnostics.store.model import Data, Entry, Store, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Data", "Entry", "Store", "Stored", "open_store"]


def open_store(url: str, *, timeout_s: float = 60.0) -> Store:
    """Open the store at a local path, `file:///…` or the URL of a bucket.

    No file or connection is opened until the store is used.

    Args:
        url: The path or URL: `gs://bucket/prefix`, `s3://bucket/prefix`, `az://container/prefix` or
            `abfss://container@account.dfs.core.windows.net/prefix`; the prefix is optional.
        timeout_s: Time limit in seconds of one request to a remote store, retries included. Local disks have none.

    Returns:
        The store; all threads may use it.

    Raises:
        ConfigurationError: `url` is another one.
        MissingExtraError: `url` is that of a bucket and its extra, `gcs`, `s3` or `azure`, is not installed.

    Example:
        >>> store = open_store("gs://bucket/runs")  # doctest: +SKIP
        >>> store.put("notes/readme.txt", b"first run").url  # doctest: +SKIP
        'gs://bucket/runs/notes/readme.txt'
    """
    if not url:
        raise ConfigurationError(f"the storage location is empty; pass a path, file:///…, {FORMS}")
    if (path := path_of(url)) is not None:
        return LocalStore(Path(path))
    if not is_bucket(url):
        raise ConfigurationError(f"{url!r}: not a storage location; pass a path, file:///…, {FORMS}")
    location = BucketUrl.parse(url)
    require(location.scheme.module, extra=location.scheme.extra, needed_for=url)
    return _OPENERS[location.scheme.extra](location, timeout_s)


# A client takes up to a second to import.
def _open_gcs(location: BucketUrl, timeout_s: float) -> Store:
    from mldiagnostics.store.gcs import GcsStore  # noqa: PLC0415

    return GcsStore(location, timeout_s=timeout_s)


def _open_s3(location: BucketUrl, timeout_s: float) -> Store:
    from mldiagnostics.store.s3 import open_s3  # noqa: PLC0415

    return open_s3(location, timeout_s=timeout_s)


def _open_azure(location: BucketUrl, timeout_s: float) -> Store:
    from mldiagnostics.store.azure import open_azure  # noqa: PLC0415

    return open_azure(location, timeout_s=timeout_s)


_OPENERS: dict[str, Callable[[BucketUrl, float], Store]] = {
    "gcs": _open_gcs,
    "s3": _open_s3,
    "azure": _open_azure,
}
"""By extra."""
