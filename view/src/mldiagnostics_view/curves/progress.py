"""How far a run was read, and when a page loads its curves again meanwhile; pure."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_STAGES: Final = 5
"""Parts of the lines after which curves are loaded again: each time costs about 0.1 MB of transfer."""


class ReadProgress(NamedTuple):
    """How far a run was read."""

    read_bytes: int
    total_bytes: int
    revision: int
    """Differs if points came or went."""
    left_out: int
    """Points of curves for which there was no room."""
    bad_lines: int
    long_names: int = 0
    """Points of curves whose names are too long."""

    @property
    def percent(self) -> int:
        """Return the part of the bytes that were read."""
        return 100 * self.read_bytes // max(1, self.total_bytes)

    def to_json(self, *, is_complete: bool) -> dict[str, Any]:
        """Return the progress as JSON; `is_complete` says whether all lines are read."""
        return {
            "readBytes": self.read_bytes,
            "totalBytes": self.total_bytes,
            "revision": self.revision,
            "leftOut": self.left_out,
            "longNames": self.long_names,
            "badLines": self.bad_lines,
            "complete": is_complete,
        }


class ReadingStages:
    """Names the state of curves for one page.

    The name changes only when it is worth to load them again.

    While lines are read, a fifth of them is; after the last one, any change is. The first fifth has no name: a page
    loads by itself when it opens. A short reading, such as that of a live run every few seconds, has no stages either.
    """

    def __init__(self) -> None:
        self._name = ""

    def after(self, progress: ReadProgress, *, is_complete: bool) -> str:
        """Return the name after some progress."""
        stage = _STAGES * progress.percent // 100
        if is_complete:
            self._name = f"all {progress.revision}"
        elif 0 < stage < _STAGES - 1:
            self._name = f"{stage} of {_STAGES}"
        return self._name
