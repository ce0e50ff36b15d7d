"""What the fold remembers of the events that it has seen, beside its columns; pure."""

from __future__ import annotations

from typing import Any, TypeAlias

Key: TypeAlias = "tuple[int, int]"
"""The code that opens, and its argument's place in the table (0 without one)."""

NEVER = -1
NONE_FITS = 2**31 - 1
"""As `last`: no step may simply follow, each is looked at."""


class FoldState:
    """Scalars, and what is open. Times are microseconds, `NEVER` where there is none."""

    def __init__(self, place: int = 0) -> None:
        self.place = place
        """How many events of the log are folded."""
        self.started = NEVER
        self.step = NEVER
        """Index of the last step."""
        self.last = NONE_FITS
        """The same, if a higher one simply follows it."""
        self.last_t = NEVER
        self.step_end = NEVER
        """When the last step was told to end; older than `last_t` if it was not."""
        self.job_end = NEVER
        self.pending = NEVER
        """When the attempt that has no step yet began: the last job start or re-initialisation since the last step."""
        self.job_started = False
        """Whether a job has started since the last step."""
        self.back = NEVER
        """The first job start or re-initialisation since the last step."""
        self.first_init = NEVER
        """The first sign of a new attempt since the last step; older than `last_t` if there is none."""
        self.load = NEVER
        """Begin of the load that is open."""
        self.load_seen = NEVER
        self.quiet = NEVER
        """Until then a step may be one of the attempt before, told by a second writer."""
        self.floor = 0
        """Place of the first step since the last job start: a second writer tells of none before it."""
        self.over = False
        """The job's end has come: no step counts any more."""
        self.moments = [0]
        """Begins of attempts whose first load has not come."""
        self.edges: dict[int, int] = {}
        """When each edge was last told."""
        self.open: dict[Key, int] = {}
        self.closed: dict[Key, int] = {}
        """What was closed within the last second."""
        self.unopened: dict[Key, int] = {}
        """What ended last without a begin, at the moment that is being folded."""
        self.ignored: dict[str, int] = {}

    def known_end(self, *, repeated: bool = False) -> int:
        """Return when the last step is known to have been over, `NEVER` if it is not known.

        A job's end says nothing of a step that is made again: all from its begin is recovery then (R4).
        """
        if self.job_end >= self.last_t and not repeated:
            return self.job_end
        return self.step_end if self.step_end > self.last_t else NEVER

    def copy(self) -> FoldState:
        """Return a state that changes on its own."""
        other = FoldState.__new__(FoldState)
        plain = self.__dict__
        other.__dict__.update(plain)
        for name in _COPIED:
            other.__dict__[name] = plain[name].copy()
        return other

    def packed(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {name: _packed(getattr(self, name)) for name in vars(self)}

    @classmethod
    def unpacked(cls, packed: dict[str, Any]) -> FoldState:
        """Return what was packed. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
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
