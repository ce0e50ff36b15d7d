"""Where files go: one small interface over local paths and `gs://`, opened by URL."""

from __future__ import annotations

from pathlib import Path

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.locations import path_of
from mldiagnostics.store.local import LocalStore
from mldiagnostics.store.model import Data, Entry, Store, Stored

__all__ = ["Data", "Entry", "Store", "Stored", "open_store"]


def open_store(url: str, *, timeout_s: float = 60.0) -> Store:
    """Open the store at a local path, `file:///…` or `gs://bucket[/prefix]`; nothing is touched until it is used.

    `timeout_s` bounds how long a remote store may take over one request, repetitions included, before the verb raises
    `StoreUnreachable`. The local disk is given the time it takes.

    Raises `ConfigurationError` for any other URL and `MissingExtraError` for `gs://` without the extra `gcs`.
    """
    scheme, _, rest = url.partition("://")
    if not url:
        raise ConfigurationError("the storage location is empty: give a path, file:///… or gs://bucket/prefix")
    if (path := path_of(url)) is not None:
        return LocalStore(Path(path))
    if scheme == "gs":
        return _open_gcs(rest, timeout_s=timeout_s)
    raise ConfigurationError(
        f"{url!r} is no storage location that can be opened here: give a path, file:///… or gs://bucket/prefix"
    )


def _open_gcs(location: str, *, timeout_s: float) -> Store:
    bucket, _, prefix = location.partition("/")
    if not bucket:
        raise ConfigurationError(f"'gs://{location}' names no bucket: write gs://bucket or gs://bucket/prefix")
    require("google.cloud.storage", extra="gcs", needed_for=f"gs://{location}")  # two threads may find that at once
    from mldiagnostics.store.gcs import GcsStore  # noqa: PLC0415 - Google's client loads only for gs://

    return GcsStore(bucket, prefix.strip("/"), timeout_s=timeout_s)
