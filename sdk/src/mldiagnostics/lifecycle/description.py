"""Name, tags and notes of a run, with their limits; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_NAME = 253
"""Characters of a name, as of `spec.displayName`."""
MAX_TAGS = 32
MAX_TAG = 64
"""Characters of a tag."""
MAX_NOTES = 2000
"""Characters of the notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """The words that people gave a run.

    None stands for a part that they did not give: that of the program counts.
    """

    name: str | None = None
    tags: tuple[str, ...] | None = None
    notes: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> RunDescription:
        """Return the words in the fields of a file; malformed ones count as absent."""
        name, tags, notes = (fields.get(key) for key in ("name", "tags", "notes"))
        return cls(
            name=name[:MAX_NAME] if isinstance(name, str) and name else None,
            tags=fitting_tags(tags)[0] if isinstance(tags, list) else None,
            notes=notes[:MAX_NOTES] if isinstance(notes, str) else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `of`."""
        fields = {"name": self.name, "tags": None if self.tags is None else list(self.tags), "notes": self.notes}
        return {key: value for key, value in fields.items() if value is not None}


def fitting_tags(tags: Iterable[object]) -> tuple[tuple[str, ...], list[object]]:
    """Return the valid tags, each once and in their order, and the others.

    A tag is a text in one line of at most 64 characters; a run has at most 32.

    >>> fitting_tags(["baseline", " baseline ", "", 3])
    (('baseline',), ['', 3])
    """
    kept: dict[str, None] = {}
    others: list[object] = []
    for tag in tags:
        text = tag.strip() if isinstance(tag, str) else ""
        fits = 0 < len(text) <= MAX_TAG and text.isprintable() and (text in kept or len(kept) < MAX_TAGS)
        if fits:
            kept.setdefault(text)
        else:
            others.append(tag)
    return tuple(kept), others
