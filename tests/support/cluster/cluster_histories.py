"""Random histories of a run in a cluster: acts of its controllers, its kubelet and its processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Train:
    """The processes take steps and report."""

    steps: int
    each_s: int
    unreported: frozenset[int]
    """Ranks whose report is lost."""


@dataclass(frozen=True)
class Silence:
    """No process reports for some time."""

    seconds: int


@dataclass(frozen=True)
class Restart:
    """The program starts again; `in place` is the container that leads, and the others are of all pods."""

    kind: Literal["controller", "in place", "suspension"]
    is_reported: bool
    """Whether the processes report their failure before they end."""


@dataclass(frozen=True)
class SetClock:
    """The clock of the process that leads is set by so much, and back; it reports after both."""

    seconds: int


@dataclass(frozen=True)
class ReplaceLeader:
    """Another operator leads."""

    is_killed: bool


Act: TypeAlias = "Train | Silence | Restart | SetClock | ReplaceLeader"
Outcome: TypeAlias = Literal["Completed", "unreported completion", "Failed", "killed", "deleted", "active"]


@dataclass(frozen=True)
class ClusterHistory:
    """Acts of a run, in their order, and the moments at which others look at it."""

    ranks: int
    acts: Sequence[Act]
    outcome: Outcome
    looks: frozenset[int]
    """Others look after the acts of these numbers, and after the end."""


_ACTS = st.one_of(
    st.builds(
        Train,
        steps=st.integers(1, 8),
        each_s=st.sampled_from([1, 1, 3, 20]),
        unreported=st.frozensets(st.integers(0, 2), max_size=1),
    ),
    st.builds(Silence, seconds=st.sampled_from([5, 45])),
    st.builds(Restart, kind=st.sampled_from(["controller", "in place", "suspension"]), is_reported=st.booleans()),
    st.builds(SetClock, seconds=st.sampled_from([-25, 25])),
    st.builds(ReplaceLeader, is_killed=st.booleans()),
)


@st.composite
def cluster_histories(draw: st.DrawFn) -> ClusterHistory:
    """Draw a history of up to seven acts; the first one is that the program trains."""
    first = Train(steps=draw(st.integers(1, 8)), each_s=2, unreported=frozenset())
    acts = (first, *draw(st.lists(_ACTS, max_size=6)))
    outcomes: list[Outcome] = ["Completed", "unreported completion", "Failed", "killed", "deleted", "active"]
    return ClusterHistory(
        ranks=draw(st.integers(1, 3)),
        acts=acts,
        outcome=draw(st.sampled_from(outcomes)),
        looks=frozenset(draw(st.sets(st.integers(0, len(acts) - 1), max_size=2))),
    )
