"""Positions of pods in their workload, out of their names; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_OF_JOBSET = re.compile(r"(?:.*-)?(\d{1,6})-(\d{1,6})-[a-z0-9]{5}")
"""`<jobset>-<replicated job>-<slice>-<worker>-<5 letters or digits>`"""
_OF_LWS = re.compile(r"(?:.*-)?(\d{1,6})-(\d{1,4})")
"""`<leaderworkerset>-<slice>-<worker>`"""


class PodPosition(NamedTuple):
    """Slice and worker of a pod; sorts in the order of a job."""

    slice: int
    worker: int

    @property
    def title(self) -> str:
        """The position for people."""
        return f"slice {self.slice} worker {self.worker}"


def position_of(pod: str) -> PodPosition | None:
    """Return the position of a pod of a JobSet or a LeaderWorkerSet.

    None for other names.

    >>> position_of("trainer-workers-1-3-x7k2p")
    PodPosition(slice=1, worker=3)
    """
    match = _OF_JOBSET.fullmatch(pod) or _OF_LWS.fullmatch(pod)
    return None if match is None else PodPosition(int(match[1]), int(match[2]))
