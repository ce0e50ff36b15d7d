"""The state of the fold beside its columns; pure."""

from __future__ import annotations

from typing import Any, TypeAlias

Key: TypeAlias = "tuple[int, int]"
"""Opening code and the number of its argument in the table (0 without one)."""

NEVER = -1
NONE_FITS = 2**31 - 1
"""Value of `last` that sends every step through the handlers."""


class FoldState:
    """Scalars and open spans. Times are microseconds, `NEVER` without one.

    The names of the attributes are keys of the snapshot's format.
    """

    def __init__(self, place: int = 0) -> None:
        self.place = place
        """Number of folded events of the log."""
        self.started = NEVER
        self.step = NEVER
        """Index of the last step."""
        self.last = NONE_FITS
        """Index of the last step while a higher index needs no further checks, else `NONE_FITS`."""
        self.last_t = NEVER
        self.step_end = NEVER
        """End event of the last step; older than `last_t` without one."""
        self.job_end = NEVER
        self.pending = NEVER
        """Begin of an attempt without steps: the last job start or re-initialisation since the last step."""
        self.job_started = False
        """Whether a job has started since the last step."""
        self.back = NEVER
        """The first job start or re-initialisation since the last step."""
        self.first_init = NEVER
        """The first of `rules.RESTARTS` since the last step; older than `last_t` without one."""
        self.load = NEVER
        """Start of the open load."""
        self.load_seen = NEVER
        self.quiet = NEVER
        """End of the time in which a step may be a duplicate from the attempt before."""
        self.floor = 0
        """Row of the first step since the last job start: no duplicates are searched before it."""
        self.over = False
        """Whether the job has ended: later steps are ignored."""
        self.moments = [0]
        """Begins of attempts without a data load yet."""
        self.edges: dict[int, int] = {}
        """Last time of each start and end."""
        self.open: dict[Key, int] = {}
        self.closed: dict[Key, int] = {}
        """Spans that closed within the last second."""
        self.unopened: dict[Key, int] = {}
        """Ends without a start at the current moment."""
        self.ignored: dict[str, int] = {}

    def known_end(self, *, repeated: bool = False) -> int:
        """Return the known end of the last step, or `NEVER` (R4).

        The end of the job does not end a step that is `repeated`: its time is recovery from its start on.
        """
        if self.job_end >= self.last_t and not repeated:
            return self.job_end
        return self.step_end if self.step_end > self.last_t else NEVER

    def copy(self) -> FoldState:
        """Return an independent copy."""
        other = FoldState.__new__(FoldState)
        plain = self.__dict__
        other.__dict__.update(plain)
        for name in _COPIED:
            other.__dict__[name] = plain[name].copy()
        return other

    def packed(self) -> dict[str, Any]:
        """Return the state as JSON types."""
        return {name: _packed(getattr(self, name)) for name in vars(self)}

    @classmethod
    def unpacked(cls, packed: dict[str, Any]) -> FoldState:
        """Return a state from its packed form.

        Raises:
            KeyError, TypeError, ValueError: `packed` is not a packed state.
        """
        state = cls()
        for name in _PLAIN:
            setattr(state, name, bool(packed[name]) if name in _FLAGS else int(packed[name]))
        state.moments = [int(each) for each in packed["moments"]]
        state.edges = {int(code): int(t) for code, t in packed["edges"]}
        state.ignored = {str(reason): int(number) for reason, number in packed["ignored"]}
        for name in ("open", "closed", "unopened"):
            setattr(state, name, {(int(code), int(arg)): int(t) for (code, arg), t in packed[name]})
        return state


_FLAGS = ("over", "job_started")
_COPIED = ("moments", "edges", "open", "closed", "unopened", "ignored")
_PLAIN = tuple(name for name in vars(FoldState()) if name not in _COPIED)


def _packed(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value
