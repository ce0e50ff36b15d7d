"""Which run a user means by an id, the beginning of one, or a name; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


DELETION_PREFIX = 8
"""Characters of an id that a deletion needs at least, if it is not the whole id."""


class NamedRun(NamedTuple):
    """A run with the words that can mean it."""

    run_id: str
    names: frozenset[str]
    """Names that other runs may have too: of the run, of its workload."""
    key: str
    """Its unique name in its root or namespace: of the directory, or of the MLRun."""


def meant_runs(reference: str, runs: Sequence[NamedRun], *, shortest_prefix: int = 1) -> list[NamedRun]:
    """Return the runs that a reference can mean; one if it is clear.

    A whole id or key means its run alone. A name and the beginning of an id have the same right: if a word is the name
    of one run and begins the id of another, both are returned.

    Args:
        reference: The word of the user; an empty text means no run.
        runs: All runs of the root or namespace.
        shortest_prefix: Characters that the beginning of an id has at least.

    >>> a, b = NamedRun("81aa", frozenset({"a"}), "81aa"), NamedRun("a4f6", frozenset({"b"}), "a4f6")
    >>> [run.run_id for run in meant_runs("a", [a, b])]
    ['81aa', 'a4f6']
    >>> [run.run_id for run in meant_runs("a4f6", [a, b], shortest_prefix=8)]
    ['a4f6']
    """
    if exact := [run for run in runs if reference in {run.key, run.run_id}]:
        return exact
    if not reference:
        return []
    begins = len(reference) >= shortest_prefix
    return [run for run in runs if reference in run.names or (begins and run.run_id.startswith(reference))]
