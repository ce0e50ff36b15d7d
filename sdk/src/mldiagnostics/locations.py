"""Storage locations: paths, `file:///…` and other URLs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

DEFAULT_STORAGE = "mldiagnostics"
"""Root of the runs of a program that gives none: a directory in its working directory."""

BUCKET_SCHEMES = ("gs", "s3", "az", "abfss")
"""Schemes of URLs in buckets: Google Cloud, S3 and its relatives, Azure, and Azure with the account in the URL."""


def is_bucket(location: str) -> bool:
    """Return whether a location is the URL of a bucket or of a prefix in one.

    >>> is_bucket("s3://runs/a"), is_bucket("abfss://runs@account.dfs.core.windows.net/a"), is_bucket("/runs")
    (True, True, False)
    """
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme in BUCKET_SCHEMES


def is_on_volume(location: str) -> bool:
    """Return whether a location is on the operator's volume, as a cluster shows it."""
    return location.startswith("volume://")


def path_of(location: str) -> str | None:
    """Return the path that a path or `file:///…` URL names, None for other URLs.

    >>> path_of("file:///runs/a%20b"), path_of("runs"), path_of("gs://bucket/runs")
    ('/runs/a b', 'runs', None)
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    return unquote(urlsplit(location).path) if scheme == "file" and rest.startswith("/") else None


def local_path(location: str) -> Path | None:
    """Return the absolute local path of a location, None for other URLs."""
    path = path_of(location)
    return None if path is None else Path(path).absolute()


def absolute_location(location: str) -> str:
    """Return a URL unchanged and a path as an absolute one.

    The result stays valid when the program changes its directory.

    Raises:
        FileNotFoundError: the path is relative and the working directory was deleted.
    """
    if "://" in location:
        return location
    return os.path.abspath(os.path.expanduser(location))  # noqa: PTH100, PTH111 - keeps it a text
