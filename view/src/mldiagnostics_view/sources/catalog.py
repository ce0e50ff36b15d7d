"""All sources under short names, which stand in URLs."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics_view.sources.source import RunUnknown
from mldiagnostics_view.sources.viewed import viewed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_view.authorization import Access
    from mldiagnostics_view.sources.source import ListedRun, ListedSource


_LONGEST_NAME = 40


class SourceList(NamedTuple):
    """The runs of one source."""

    name: str
    place: str
    problem: str
    runs: Sequence[ListedRun]


def short_name(place: str, taken: Mapping[str, object]) -> str:
    """Return a name for URLs: the last part of a place, with a number if it is taken.

    >>> short_name("gs://bucket/team a/runs/", {}), short_name("/runs", {"runs": 1})
    ('runs', 'runs-2')
    """
    last = re.split(r"[/,]", place.rstrip("/"))[-1]
    name = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:_LONGEST_NAME] or "runs"
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(taken) + 2))
    return next(each for each in numbered if each not in taken)


class Catalog:
    """Runs of several sources."""

    def __init__(self, sources: Mapping[str, ListedSource]) -> None:
        self._sources = dict(sources)

    async def lists(self) -> list[SourceList]:
        """Return the runs of all sources."""
        rows = await asyncio.gather(*(source.rows() for source in self._sources.values()))
        return [
            SourceList(name, source.place, source.problem, runs)
            for (name, source), runs in zip(self._sources.items(), rows, strict=True)
        ]

    def seen_with(self, access: Access) -> Catalog:
        """Return the catalog as a viewer with an access sees it."""
        return Catalog({name: viewed(source, access) for name, source in self._sources.items()})

    def source(self, name: str) -> ListedSource:
        """Return a source. Raises `RunUnknown`."""
        if name not in self._sources:
            raise RunUnknown
        return self._sources[name]

    async def aclose(self) -> None:
        """Stop reading."""
        await asyncio.gather(*(source.aclose() for source in self._sources.values()))
