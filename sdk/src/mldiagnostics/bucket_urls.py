"""URLs of buckets: `gs://`, `s3://`, `az://` and `abfss://`.

The one place that knows their parts. Pure; `mldiagnostics.store.open_store` opens them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mldiagnostics.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme of buckets.

    Attributes:
        name: The part of the URL before `://`.
        extra: The extra of the package `mldiagnostics` that has the client.
        module: The module of the client.
        example: A URL, for messages.
        names: The pattern of the name of a bucket.
    """

    name: str
    extra: str
    module: str
    example: str
    names: re.Pattern[str]


_CONTAINER = r"[a-z0-9](?:-?[a-z0-9]){2,62}|\$(?:web|root|logs)"
_ACCOUNT = r"[a-z0-9]{3,24}"

SCHEMES: Final = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            *("gs", "gcs", "google.cloud.storage", "gs://bucket/prefix"),
            re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
        ),
        # Servers other than AWS allow more characters than AWS does.
        Scheme("s3", "s3", "obstore", "s3://bucket/prefix", re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")),
        Scheme("az", "azure", "obstore", "az://container/prefix", re.compile(_CONTAINER)),
        Scheme(
            *("abfss", "azure", "obstore", "abfss://container@account.dfs.core.windows.net/prefix"),
            re.compile(rf"(?:{_CONTAINER})@{_ACCOUNT}(?:\.[a-z0-9-]+)+"),
        ),
    )
}
"""The schemes by name."""

FORMS: Final = "gs://bucket/prefix, s3://bucket/prefix or az://container/prefix"
"""The URLs that messages and help show."""


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """The parts of a URL of a bucket.

    Attributes:
        scheme: The scheme, one of `SCHEMES`.
        bucket: The bucket; the container for `az://`; the container and the host of its account for `abfss://`.
        prefix: The prefix, without slashes at its ends.
    """

    scheme: Scheme
    bucket: str
    prefix: str

    @classmethod
    def parse(cls, url: str) -> BucketUrl:
        """Return the parts of a URL.

        Raises:
            ConfigurationError: It has another scheme, or no valid name of a bucket.

        >>> BucketUrl.parse("s3://models/runs/").prefix
        'runs'
        """
        name, separator, rest = url.partition("://")
        scheme = SCHEMES.get(name)
        if not separator or scheme is None:
            raise ConfigurationError(f"{url!r}: not the URL of a bucket; write {FORMS}")
        bucket, _, prefix = rest.partition("/")
        if not bucket:
            raise ConfigurationError(f"{url!r}: the bucket's name is missing; write {scheme.example}")
        if not scheme.names.fullmatch(bucket):
            raise ConfigurationError(f"{bucket!r}: not a valid bucket name; write {scheme.example}")
        return cls(scheme, bucket, prefix.strip("/"))

    @property
    def container(self) -> str:
        """The bucket or container without the host of its account."""
        return self.bucket.partition("@")[0]

    @property
    def account_host(self) -> str:
        """The host of the account of an `abfss://` URL, "" for others."""
        return self.bucket.partition("@")[2]

    def __str__(self) -> str:  # type: ignore[explicit-override]
        return f"{self.scheme.name}://{self.bucket}/{self.prefix}".rstrip("/")
