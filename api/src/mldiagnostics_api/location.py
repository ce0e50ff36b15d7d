"""Storage locations in one canonical form, so that comparing with an allow-list cannot be tricked."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from mldiagnostics.store.model import MAX_SEGMENT_BYTES
from typing_extensions import override

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_SEGMENT: Final = re.compile(r"[A-Za-z0-9._~=+@:,-]+")
_MAX_LENGTH: Final = 1024


class Medium(StrEnum):
    """Where files lie: in a bucket, on the operator's volume, or in the pod that is profiled."""

    BUCKET = "gs"
    VOLUME = "volume"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class Location:
    """A directory in canonical form: no empty, `.` or `..` segments, a small alphabet, nothing percent-encoded."""

    medium: Medium
    bucket: str
    """Empty unless the medium is a bucket; empty there too in a prefix that stands for every bucket."""
    segments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `gs://bucket/a`, `volume:///a`, `pod:///a` or a bare absolute path (in the pod).

        Raises ValueError that says what is wrong with which part.
        """
        location = cls.prefix(text)
        if location.medium is Medium.BUCKET and not location.bucket:
            raise ValueError(f"'{text}' names no bucket; write gs://<bucket>/<path>")
        return location

    @classmethod
    def prefix(cls, text: str) -> Self:
        """Read an entry of an allow-list: a location, or `gs://` for every bucket. Raises ValueError as `parse`."""
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"the location is {len(text)} characters long, more than {_MAX_LENGTH}")
        scheme, separator, rest = text.partition("://")
        if not separator:
            scheme, rest = Medium.POD, text
        if scheme not in tuple(Medium):
            raise ValueError(f"'{text}' has the unknown scheme '{scheme}'; gs, volume and pod are known")
        authority, slash, path = rest.partition("/")
        medium = Medium(scheme)
        if medium is Medium.BUCKET:
            if (authority and not _BUCKET.fullmatch(authority)) or (slash and not authority):
                raise ValueError(f"'{text}' names no valid bucket")
        elif authority or not slash:
            example = "volume:///profiles" if medium is Medium.VOLUME else "/tmp/profiles"  # noqa: S108  # an example
            raise ValueError(f"'{text}' is no absolute path; write it like {example}")
        return cls(medium, authority, _segments(text, path))

    def child(self, *segments: str) -> Self:
        """Descend; every segment obeys the alphabet of `parse`, ValueError otherwise."""
        return replace(self, segments=(*self.segments, *_segments(str(self), "/".join(segments))))

    def within(self, prefix: "Location") -> bool:
        """Tell whether this is `prefix` or below it, segment by segment."""
        return (
            self.medium is prefix.medium
            and prefix.bucket in ("", self.bucket)
            and self.segments[: len(prefix.segments)] == prefix.segments
        )

    @property
    def path(self) -> str:
        """The absolute path inside the medium."""
        return "/" + "/".join(self.segments)

    @override
    def __str__(self) -> str:
        """Write it as people and tools use it; a path in the pod is a bare path."""
        match self.medium:
            case Medium.BUCKET:
                return "/".join((f"gs://{self.bucket}", *self.segments))
            case Medium.VOLUME:
                return f"volume://{self.path}"
            case Medium.POD:
                return self.path


def _segments(text: str, path: str) -> tuple[str, ...]:
    segments = tuple(segment for segment in path.split("/") if segment not in ("", "."))
    for segment in segments:
        if segment == "..":
            raise ValueError(f"'{text}' contains '..', which is refused; write the path without it")
        if not _SEGMENT.fullmatch(segment):
            raise ValueError(f"'{segment}' in '{text}' has characters other than letters, digits and ._~=+@:,-")
        if len(segment) > MAX_SEGMENT_BYTES:
            raise ValueError(
                f"'{segment}' has {len(segment)} characters; file systems take at most {MAX_SEGMENT_BYTES}"
            )
    return segments
