"""Storage locations in canonical form, so that an allow-list cannot be bypassed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from typing import Final, Self

from mldiagnostics.locations import BUCKET_SCHEMES
from mldiagnostics.store.model import MAX_SEGMENT_BYTES
from typing_extensions import override

OWN_NAMESPACE: Final = "{namespace}"
"""A segment of a prefix that stands for the namespace of the capture."""

_CONTAINER: Final = r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]"
BUCKET_NAMES: Final[Mapping[str, str]] = {
    "gs": r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]",
    "s3": r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    "az": _CONTAINER,
    "abfss": rf"{_CONTAINER}@[a-z0-9]{{3,24}}\.dfs\.core\.windows\.net",
}
"""Pattern of the part before the path, by scheme; no host but Azure's own, because it gets the operator's token."""
_BUCKET_FORMS: Final = {
    **{scheme: f"{scheme}://<bucket>/<path>" for scheme in BUCKET_SCHEMES},
    "az": "az://<container>/<path>",
    "abfss": "abfss://<container>@<account>.dfs.core.windows.net/<path>",
}
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._~=+@:,-]+")
_MAX_LENGTH: Final = 1024


class Medium(StrEnum):
    """Storage for files: a bucket, the operator's volume, or the profiled pod."""

    BUCKET = auto()
    VOLUME = auto()
    POD = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A directory in canonical form.

    Segments are never empty, `.` or `..`, use a small alphabet and are not percent-encoded.
    """

    medium: Medium
    bucket: str
    """URL of the bucket, `s3://name`; `s3://` in a prefix that stands for every bucket; empty for other media."""
    segments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `s3://bucket/a`, `volume:///a`, `pod:///a` or an absolute path in the pod.

        Buckets have the schemes of `BUCKET_SCHEMES`.

        Raises:
            ValueError: The text is not such a location; the message quotes the wrong part.
        """
        location = cls.prefix(text)
        if OWN_NAMESPACE in location.segments:
            raise ValueError(
                f"'{text}' has invalid characters in '{OWN_NAMESPACE}'; only policy.allowedStorage uses it"
            )
        if location.bucket.endswith("://"):
            raise ValueError(f"'{text}' has no bucket; use {_form(location.bucket)}")
        return location

    @classmethod
    def prefix(cls, text: str) -> Self:
        """Parse an entry of an allow-list: a location, or `s3://` for every bucket.

        A segment `{namespace}` stands for the namespace of the capture, see `of_namespace`.

        Raises:
            ValueError: As `parse`.
        """
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"the location has {len(text)} characters; use at most {_MAX_LENGTH}")
        scheme, separator, rest = text.partition("://")
        if not separator:
            scheme, rest = Medium.POD, text
        if scheme not in (*BUCKET_SCHEMES, Medium.VOLUME, Medium.POD):
            known = ", ".join(BUCKET_SCHEMES)
            raise ValueError(f"'{text}' has the unknown scheme '{scheme}'; use {known}, volume or pod")
        if "://" in rest:
            raise ValueError(f"'{text}' has '://' in its path; write one location, such as {_form(scheme)}")
        authority, slash, path = rest.partition("/")
        if scheme in BUCKET_SCHEMES:
            if re.fullmatch(BUCKET_NAMES[scheme], authority) is None if authority else slash:
                raise ValueError(f"'{text}' has an invalid bucket name; use {_form(scheme)}")
            return cls(Medium.BUCKET, f"{scheme}://{authority}", _segments(text, path, is_prefix=True))
        medium = Medium(scheme)
        if authority or not slash:
            raise ValueError(f"'{text}' is not an absolute path; use a path such as {_form(scheme)}")
        return cls(medium, "", _segments(text, path, is_prefix=True))

    def child(self, *segments: str) -> Self:
        """Return a directory below this one; raise ValueError for a segment as `parse`."""
        return replace(self, segments=(*self.segments, *_segments(str(self), "/".join(segments))))

    def of_namespace(self, namespace: str) -> Self:
        """Return a prefix as it applies to captures of the namespace."""
        return replace(self, segments=tuple(namespace if s == OWN_NAMESPACE else s for s in self.segments))

    def within(self, prefix: "Location") -> bool:
        """Return whether this is `prefix` or below it, compared by segments."""
        return (
            self.medium is prefix.medium
            and prefix.bucket in (self.bucket, self.bucket[: self.bucket.find("://") + 3])
            and self.segments[: len(prefix.segments)] == prefix.segments
        )

    @property
    def path(self) -> str:
        """The absolute path inside the medium."""
        return "/" + "/".join(self.segments)

    @override
    def __str__(self) -> str:
        """Format the location for people and tools; a path in the pod has no scheme."""
        match self.medium:
            case Medium.BUCKET:
                return "/".join((self.bucket, *self.segments))
            case Medium.VOLUME:
                return f"volume://{self.path}"
            case Medium.POD:
                return self.path


def _form(scheme: str) -> str:
    """Return a location of a scheme, for messages."""
    others = {"volume": "volume:///profiles", "pod": "/tmp/profiles"}  # noqa: S108  # an example
    return (_BUCKET_FORMS | others)[scheme.removesuffix("://")]


def _segments(text: str, path: str, *, is_prefix: bool = False) -> tuple[str, ...]:
    segments = tuple(segment for segment in path.split("/") if segment not in ("", "."))
    for segment in segments:
        if segment == "..":
            raise ValueError(f"'{text}' contains '..'; use the path without it")
        if not (_SEGMENT.fullmatch(segment) or (is_prefix and segment == OWN_NAMESPACE)):
            raise ValueError(f"'{text}' has invalid characters in '{segment}'; use letters, digits and ._~=+@:,-")
        if len(segment) > MAX_SEGMENT_BYTES:
            raise ValueError(
                f"'{segment}' has {len(segment)} characters; file systems allow at most {MAX_SEGMENT_BYTES}"
            )
    return segments
