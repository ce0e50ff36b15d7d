"""A change of the name, tags and notes of a run; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.lifecycle.description import MAX_TAG, MAX_TAGS, RunDescription, fitting_tags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEdit:
    """A change; None and empty parts change nothing."""

    name: str | None = None
    notes: str | None = None
    added_tags: Sequence[str] = ()
    removed_tags: Sequence[str] = ()
    is_reset: bool = False
    """Whether earlier changes are undone first."""

    def apply(self, row: RunRow, before: RunDescription, *, own_tags: Sequence[str]) -> RunDescription:
        """Return the words after the change.

        Args:
            row: The run, for messages.
            before: The words that people gave it before.
            own_tags: The tags that the program gave it.

        Raises:
            ConfigurationError: A tag is too long, is not there, or is one too many.
        """
        words = RunDescription() if self.is_reset else before
        if self.name is not None:
            words = replace(words, name=self.name or None)
        if self.notes is not None:
            words = replace(words, notes=self.notes)
        if self.added_tags or self.removed_tags:
            words = replace(words, tags=self._tags(row, own_tags if words.tags is None else words.tags))
        return words

    def _tags(self, row: RunRow, before: Sequence[str]) -> tuple[str, ...]:
        removed = {tag.strip() for tag in self.removed_tags}
        if missing := sorted(removed.difference(before)):
            has = f"its tags are: {', '.join(before)}" if before else "it has no tags"
            raise ConfigurationError(f"--remove-tag {missing[0]}: run {row.name or row.run_id} does not have it; {has}")
        tags, others = fitting_tags([*(tag for tag in before if tag not in removed), *self.added_tags])
        if others:
            raise ConfigurationError(
                f"--add-tag {others[0]!r}: not a tag, or one too many; a tag is a text of 1 to {MAX_TAG} characters "
                f"in one line, and a run has at most {MAX_TAGS}"
            )
        return tags
